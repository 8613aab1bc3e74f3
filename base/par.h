/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * par - one function for many things, on all CPUs.
 *
 * For what a frozen session waits for and what only reads: files of /proc.  A thread costs some
 * 50 us; each item should cost more.  The caller is one of those who work, and all others have
 * ended when the call returns, so a process that is single-threaded before is so behind it.
 */
#ifndef BASE_PAR_H
#define BASE_PAR_H

#include <stddef.h>

struct err;

/*
 * Calls @each for all i < @n, in any order and at the same time.  Nothing new is begun once one has
 * failed; returns the failure of the lowest number among those seen, else 0.  Other threads run
 * with all signals blocked.
 */
int par_each(
	size_t n, int (*each)(void *ctx, size_t i, struct err *e), void *ctx, struct err *e);

#endif
