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

#define PAR_MOST 3 /* threads beside the caller's */

/*
 * Calls @each for all i < @n, in any order and at the same time.  Nothing new is begun once one has
 * failed; returns the failure of the lowest number among those seen, else 0.  Other threads run
 * with all signals blocked.
 */
int par_each(
	size_t n, int (*each)(void *ctx, size_t i, struct err *e), void *ctx, struct err *e);

/*
 * The same by threads that wait from one call to the next, for who can't start any later.  While
 * they wait they hold nothing, so their process may fork.
 */
struct par_crew;
/* As many as par_each would have; NULL where there are none.  They begin with the start. */
struct par_crew *par_crew_new(void);
void par_crew_start(struct par_crew *c);
/* Without a crew, or one that has not started, it is the caller's alone. */
int par_crew_each(struct par_crew *c, size_t n, int (*each)(void *ctx, size_t i, struct err *e),
	void *ctx, struct err *e);
/* Ends them; NULL is fine in all of these. */
void par_crew_free(struct par_crew *c);

#endif
