/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter_programs - the filters, as supervisor/filter/filter_make.c writes them when podrun is
 * built.
 */
#ifndef SUPERVISOR_FILTER_FILTER_PROGRAMS_H
#define SUPERVISOR_FILTER_FILTER_PROGRAMS_H

#include <stddef.h>

struct sock_filter;

struct filter_program {
	unsigned translated; /* classes of names, as bits */
	const struct sock_filter *code;
	size_t n; /* instructions */
};
extern const struct filter_program filter_programs[];
extern const size_t filter_n_programs;

#endif
