/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sysv - what segments, semaphore sets and message queues have in common.
 *
 * They belong to the session's ipc namespace, whose owner may see and change all of them: a helper
 * inside lists them (ckpt/enter.h) and hands out raw structures of the kernel, which have numbers
 * of the session's users.  New ones get the ids they had through the shm_next_id, sem_next_id and
 * msg_next_id of /proc/sys/kernel.
 */
#ifndef CKPT_KINDS_SYSV_H
#define CKPT_KINDS_SYSV_H

#include <stddef.h>
#include <sys/ipc.h>

#include "base/base.h"

struct Pb__IpcPerm;
struct ckpt_build;

#define SYSV_MAX_OBJECTS 32768 /* IPCMNI */

/* One for everything the family's own call tells at an index: its id, or -errno. */
typedef int (*sysv_stat_fn)(int index, void *ds);

/*
 * Runs inside: appends for every object its id (int64_t) and @size bytes of its structure to @answer.
 * @max is the highest index in use, as the family's _INFO call returns it.
 */
int sysv_tell_all(struct buf *answer, int max, sysv_stat_fn stat, void *ds, size_t size, struct err *e);

/* A new message, freed with free(); NULL when memory is out. */
struct Pb__IpcPerm *sysv_perm_dump(int id, const struct ipc_perm *p);

/* Makes the next object of @family ("shm", "sem", "msg") of this namespace get @id. */
int sysv_next_id(struct ckpt_build *b, const char *family, int id, struct err *e);
/* -EEXIST with a story unless @got is the recorded id. */
int sysv_check_id(const char *family, const struct Pb__IpcPerm *m, int got, struct err *e);

#endif
