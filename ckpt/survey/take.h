/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * take - descriptors of stopped tasks become ours.
 *
 * pidfd_getfd(2) does it from outside.  Where an engine's profile refuses that, and names are
 * rewritten, the task is lent a socket (ckpt/lend.h) and sends them itself (SCM_RIGHTS of unix(7)),
 * as many in one message as there may be.  A table without a free place, or a user with too many
 * descriptors in flight, is helped by raising the task's limit for the moment.
 */
#ifndef CKPT_SURVEY_TAKE_H
#define CKPT_SURVEY_TAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct ckpt_world;
struct err;
struct remote;

/* Is pidfd_getfd(2) allowed?  Asked once. */
bool ckpt_take_by_pidfd(void);
/*
 * The @n descriptors @theirs of @r's task, close-on-exec; all or none.  No batch may be in
 * preparation in @r.  ERR_HOST where there is no way to it.
 */
int ckpt_take(const struct ckpt_world *w, struct remote *r, const int *theirs, size_t n, int *ret,
	struct err *e);

/* What is said, ERR_UNFREEZABLE, where this process may have no more of them. */
int ckpt_take_full(struct err *e);

/* Its limit of descriptors for the moment: to the most that it may have, and back. */
int ckpt_take_raise(pid_t tid, struct rlimit *ret_old);
void ckpt_take_lower(pid_t tid, const struct rlimit *old);

#endif
