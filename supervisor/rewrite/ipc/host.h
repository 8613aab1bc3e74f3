/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipc/host - the System V calls of the three sorts under one name each.  Private to rewrite/.
 *
 * All return what the call returns, or a negative errno.  None of them waits.
 */
#ifndef SUPERVISOR_REWRITE_IPC_HOST_H
#define SUPERVISOR_REWRITE_IPC_HOST_H

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "supervisor/rewrite/ipc/names.h"

/* What IPC_STAT tells: each sort begins with what all have. */
union ipc_status {
	struct ipc_perm perm;
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;
};

/* shmget(2), semget(2), msgget(2); @size is in bytes or semaphores. */
int ipc_host_get(enum ipc_sort sort, key_t key, uint64_t size, int flags);
/*
 * The same for an object that must not be there yet; @flags of its creator.  -EINVAL for
 * IPC_PRIVATE.
 */
int ipc_host_make(enum ipc_sort sort, key_t key, uint64_t size, int flags);
/* shmctl(2), semctl(2) of a whole set, msgctl(2). */
int ipc_host_ctl(enum ipc_sort sort, int id, int command, void *arg);
/* As IPC_STAT, also of what one may not read where the kernel lets everybody look (since 4.17). */
int ipc_host_stat(enum ipc_sort sort, int id, union ipc_status *ret);

/*
 * Forgets @o if the host has it no more: a removed segment that nobody is attached to any longer,
 * or an object that somebody outside has removed.  False if it was forgotten.  Notes that a segment
 * is removed.
 */
bool ipc_host_has(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o);

#endif
