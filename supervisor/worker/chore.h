/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chore - something that takes long and needs nobody: done by a forked child, while the
 * supervisor's event loop goes on.  Unlike a worker it is told nothing and asks nothing.
 */
#ifndef SUPERVISOR_WORKER_CHORE_H
#define SUPERVISOR_WORKER_CHORE_H

struct chore;
struct err;
struct event_base;

/*
 * Forks; the child, with no descriptors but 0 1 2, runs @run and ends.  Then @done is called from
 * the loop, with the error of @run (err_is) or of a child that was killed.  The chore may be freed
 * in there, and is not of use any more.
 */
int chore_start(struct chore **ret, struct event_base *loop, int (*run)(struct err *e),
	void (*done)(void *ctx, struct err *e), void *ctx, struct err *e);
/* NULL is fine.  A child still there is killed; @done is not called. */
void chore_free(struct chore *c);

#endif
