/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper - short-lived tasks which a stopped task of the session makes for us.  They are traced
 * from birth, never run a line of the session's code, and are ended by us.
 */
#ifndef CKPT_HELPER_H
#define CKPT_HELPER_H

#include <stdint.h>

struct ckpt_proc;
struct err;
struct remote;

/* One clone(2) call of @maker: the new task's remote, and its number in the session. */
int ckpt_helper_clone(
	struct remote *maker, uint64_t flags, struct remote **ret, long *ret_vpid, struct err *e);
/*
 * The same in two steps, as remote_start and remote_wait are.  Calls that were added before are
 * made before it.
 */
int ckpt_helper_start(struct remote *maker, uint64_t flags, struct err *e);
int ckpt_helper_wait(
	struct remote *maker, uint64_t flags, struct remote **ret, long *ret_vpid, struct err *e);
/* The task ends by itself, its tracer sees it.  Frees @helper. */
void ckpt_helper_end(struct remote *helper);
/* In two steps; the second comes whatever the first said. */
int ckpt_helper_end_start(struct remote *helper);
void ckpt_helper_end_wait(struct remote *helper, int started);

/*
 * A process with the same descriptors as @p, for pidfd_getfd(2), which looks at first threads only.
 * *ret_pidfd leads to it.  ckpt_helper_return ends it.
 */
struct ckpt_helper {
	struct remote *maker, *task;
	long vpid;
};
int ckpt_helper_borrow(struct ckpt_proc *p, struct ckpt_helper *ret, int *ret_pidfd, struct err *e);
int ckpt_helper_return(struct ckpt_helper *h, struct err *e);

#endif
