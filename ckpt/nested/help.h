/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nested/help - processes that help the builder to fill nested namespaces.  Private to ckpt.
 *
 * Tasks take descriptors by pidfd_getfd(2) from the builder (ckpt/lend.h).  Who is in a user
 * namespace within the session's has no right to that.  So for each such namespace there is a
 * *lender*: a process that is in it, too, and has the builder's descriptor table.  It is made
 * before the namespace, so that the founder can be given its pidfd.
 *
 * Nor may such a task choose a number of its child in a pid namespace that is not its user
 * namespace's: that is the next one which the kernel gives there, and somebody in there decides
 * about it by kernel.ns_last_pid (proc(5)), a *scribe*.
 *
 * All of them end with the build.
 */
#ifndef CKPT_NESTED_HELP_H
#define CKPT_NESTED_HELP_H

#include "ckpt/build.h"

/*
 * For a process that is about to make user namespace @user.  *ret_pidfd is the builder's descriptor
 * of its lender, borrowed.
 */
int ckpt_lender_start(struct ckpt_build *b, uint32_t user, int *ret_pidfd, struct err *e);
/* It goes into the user namespace of process @host. */
int ckpt_lender_enter(struct ckpt_build *b, uint32_t user, pid_t host, struct err *e);
/* The next task that is born in pid namespace @ns (0: the session's) has @number, if nobody has. */
int ckpt_scribe_next(struct ckpt_build *b, uint32_t ns, pid_t number, struct err *e);
/* The session's number of one that is in nested user namespace @user, or in the session's (0). */
int ckpt_helper_number(struct ckpt_build *b, uint32_t user, pid_t *ret, struct err *e);
/* Somebody in user namespace @user (0: the session's) writes @t->text into the file. */
struct ckpt_helper_text {
	char path[48], text[CKPT_MAX_ID_RANGES * 36];
};
int ckpt_helper_write(
	struct ckpt_build *b, uint32_t user, const struct ckpt_helper_text *t, struct err *e);
/* All of them end.  Harmless without any. */
void ckpt_helpers_end(struct ckpt_build *b);

#endif
