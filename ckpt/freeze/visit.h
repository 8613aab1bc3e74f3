/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * visit - a look at a session that runs: it stands still for some milliseconds.
 */
#ifndef CKPT_FREEZE_VISIT_H
#define CKPT_FREEZE_VISIT_H

struct ckpt_dump;
struct ckpt_dump_options;
struct ckpt_world;
struct err;

/*
 * Stops every task, finds out which there are and what they share - neither maps nor open files -
 * and calls @see, which may have tasks make calls (ckpt_proc_remote).  Then all run on.  @ret_ns:
 * for how long they stood still.  Fails as ckpt_freeze does, -EAGAIN if it is worth another try.
 */
int ckpt_visit(const struct ckpt_world *w, const struct ckpt_dump_options *o,
	int (*see)(void *ctx, struct ckpt_dump *d, struct err *e), void *ctx, uint64_t *ret_ns,
	struct err *e);

#endif
