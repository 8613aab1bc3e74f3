/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * check - what this host offers, and what is lost without it: the table behind `podrun check`.
 */
#ifndef SUPERVISOR_CHECK_H
#define SUPERVISOR_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct check {
	const char *name;
	bool needed;	  /* nothing works without it */
	bool (*try)(void); /* in a process of its own: see check_works */
	const char *lost; /* without it */
	const char *get;  /* how to get it */
};
extern const struct check checks[];
extern const size_t n_checks;

/* Tries one, in a child that has a few seconds. */
bool check_works(const struct check *check);

#endif
