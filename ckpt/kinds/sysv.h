/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sysv - what segments, semaphore sets and message queues have in common.
 *
 * They belong to the session's ipc namespace, whose owner may see and change all of them: a helper
 * inside lists them (ckpt/enter.h) and hands out raw structures of the kernel, which have numbers
 * of the session's users.  New ones get the ids they had through the shm_next_id, sem_next_id and
 * msg_next_id of /proc/sys/kernel.
 *
 * Where there is no ipc namespace whoever rewrites names knows which of the host's objects are the
 * session's and what it calls them (struct ckpt_ipc_names); the host's id is the one to make calls
 * with, in the session's tasks as well, for they stand still and nobody rewrites what they are made
 * to do.
 */
#ifndef CKPT_KINDS_SYSV_H
#define CKPT_KINDS_SYSV_H

#include <stddef.h>
#include <sys/ipc.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

struct Pb__IpcPerm;
struct ckpt_build;

#define SYSV_MAX_OBJECTS 32768 /* IPCMNI */

/*
 * Runs inside: all objects of a sort; *ret is freed by the caller.  Returns how many.
 */
ssize_t sysv_list(const struct ckpt_world *w, enum ckpt_ipc_sort sort, struct ckpt_ipc_object **ret,
	struct err *e);
/* Likewise, puts what the session calls it, its mode and its owners in place of the host's. */
void sysv_name(const struct ckpt_world *w, const struct ckpt_ipc_object *o, struct ipc_perm *p);

/* The host's id for the session's @id and the other way: -1 if there is none. */
int sysv_host(const struct ckpt_world *w, enum ckpt_ipc_sort sort, int id);
int sysv_id(const struct ckpt_world *w, enum ckpt_ipc_sort sort, int host);

/* A new message, freed with free(); NULL when memory is out. */
struct Pb__IpcPerm *sysv_perm_dump(int id, const struct ipc_perm *p);

/*
 * Gives it its owner: the session's users are the host's where there is no ipc namespace, and there
 * is one.
 */
void sysv_set_owner(const struct ckpt_build *b, const struct Pb__IpcPerm *m, struct ipc_perm *p);
/* Makes an object again: returns the id to make calls with, or a negative errno.  @size: bytes of a
 * segment, semaphores of a set. */
int sysv_make(struct ckpt_build *b, enum ckpt_ipc_sort sort, const struct Pb__IpcPerm *m,
	uint64_t size, struct err *e);

#endif
