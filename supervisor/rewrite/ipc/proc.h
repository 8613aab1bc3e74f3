/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipc/proc - /proc/sysvipc of a session without an ipc namespace: the host's, of which only the
 * session's own lines are left, with the session's names in them.
 */
#ifndef SUPERVISOR_REWRITE_IPC_PROC_H
#define SUPERVISOR_REWRITE_IPC_PROC_H

#include <stdint.h>

#include "supervisor/rewrite/ipc/names.h"

struct buf;
struct numbers;
struct tasks;

/* Appends what /proc/sysvipc/shm, sem or msg says.  0 or a negative errno. */
int ipc_proc_show(
	struct ipc_names *n, const struct tasks *tasks, enum ipc_sort sort, struct buf *ret);

struct ipc_totals {
	uint64_t size;		    /* pages of segments, semaphores, bytes of messages */
	uint64_t resident, swapped; /* pages of segments */
	uint64_t messages;
};
/* Over all objects of a sort; 0 where the host's /proc says nothing. */
void ipc_proc_totals(struct ipc_names *n, enum ipc_sort sort, struct ipc_totals *ret);

/* What the session calls process @host, who uses or has used objects; 0 if it has no name. */
pid_t ipc_proc_user(const struct ipc_names *n, const struct numbers *numbers, pid_t host);

#endif
