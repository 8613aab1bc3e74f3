/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * birth - how one blank process of a build is made by another, with the numbers it must have and
 * into the namespaces it must be in.  Private to ckpt; the order of births is
 * ckpt/restore/grow.c's.
 */
#ifndef CKPT_RESTORE_BIRTH_H
#define CKPT_RESTORE_BIRTH_H

#include "ckpt/build.h"
#include "ckpt/restore/tree.h"

struct ckpt_born {
	pid_t vpid, pid;
	pid_t told; /* its number to whoever made it */
	struct remote *remote;
	int lend_fd;   /* ckpt/lend.h */
	uint32_t user; /* the user namespace that it is in now (ckpt/nested/nested.h) */
};

/* Process @pid is there, and is to be killed if the build fails.  -ENOMEM. */
int ckpt_birth_note(struct ckpt_build *b, pid_t pid, struct err *e);
/* Where names are rewritten: task @host of process @pid is the session's @vpid (0: nobody's). */
int ckpt_birth_tell(const struct ckpt_build *b, pid_t vpid, pid_t host, pid_t pid, struct err *e);

/*
 * A child of @maker, which is in user namespace @user, with clone(2)'s @flags.  @vpid 0: of any
 * number.
 */
int ckpt_birth_child(struct ckpt_build *b, const struct ckpt_born *maker, uint32_t user, pid_t vpid,
	uint64_t flags, int exit_signal, struct ckpt_born *t, struct err *e);
/* The target of @o, with the namespaces that its birth makes. */
int ckpt_birth(struct ckpt_build *b, const struct ckpt_tree_op *o, struct ckpt_born *maker,
	uint64_t flags, int exit_signal, struct ckpt_born *t, struct err *e);
/* @who, who of @o, makes namespaces for itself. */
int ckpt_birth_unshare(
	struct ckpt_build *b, const struct ckpt_tree_op *o, struct ckpt_born *who, struct err *e);
/* Adds to @leader's batch the call that makes thread @k of @p. */
int ckpt_birth_add_thread(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k,
	struct remote *leader, struct err *e);

#endif
