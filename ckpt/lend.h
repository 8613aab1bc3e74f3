/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend - how descriptors of the builder come into tasks.  Private to ckpt.
 *
 * Every descriptor table of a task that is being built holds one descriptor of ours: a pidfd of
 * the builder.  pidfd_getfd on it is one call that takes any of the builder's descriptors; it
 * needs the right to trace the builder, which a task has until its credentials are restored.
 * The builder is not in the session's pid namespace, so tasks can't open that pidfd themselves:
 * the first task is given it over a socket, the others inherit it.
 *
 * Where names are rewritten, whoever answers the session's calls is the process that makes them
 * now: one with a key as its argument is answered by a descriptor (SECCOMP_IOCTL_NOTIF_ADDFD).
 * Tables hold nothing of ours then, and no call is needed that container engines refuse.
 */
#ifndef CKPT_LEND_H
#define CKPT_LEND_H

#include "ckpt/build.h"

/*
 * Adds the call for descriptor @fd of ours to a batch of @r; its index, or -ENOSPC.  Only where
 * names are rewritten (@names).
 */
int ckpt_lend_call(const struct ckpt_names *names, struct remote *r, int fd);
/* Gives the pidfd to a task without any descriptor; it gets number *ret_fd. */
int ckpt_lend_bootstrap(struct ckpt_build *b, struct remote *r, int *ret_fd, struct err *e);
/* None of this is needed, and nothing done, where names are rewritten. */
/* Adds its move to number @fd to a batch of @p's first thread.  What is lent from then on in that
 * batch comes from there. */
void ckpt_lend_move(struct ckpt_build *b, struct ckpt_build_proc *p, int fd);
/* Adds its closing to a batch of @p's first thread, if the table still has it. */
void ckpt_lend_end(struct ckpt_build *b, struct ckpt_build_proc *p);

#endif
