/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipc - System V objects and message queues of a session without an ipc namespace.
 *
 * They are objects of the host's, under names that nobody uses (ipc/names.h), and the session knows
 * them by names of its own.  Four modules deal with them:
 *
 *      ipc_names    the table of names
 *      ipc_sysv     shmget, shmctl, semget, semctl, msgget, msgctl: answered, one notification each
 *      ipc_queues   mq_open, mq_unlink: likewise; the descriptor is put into the task
 *      ipc_calls    shmat, semop, semtimedop, msgsnd, msgrcv: what waits, or changes the task
 *                   itself, the task does itself, with the host's id in a register for that long
 *
 * All else works on what one holds (shmdt, mq_send, mq_notify, ...) and goes to the kernel
 * untouched.
 *
 * Isolation: an id leads to an object only if it is in the table, and the table has only what the
 * session has made.  Who answers makes every object anew and exclusively, with a key that the
 * session can't say.  What a call says in memory is read once, and what is in registers can't be
 * changed meanwhile.  Permissions are the kernel's business, but where a key finds an object: then
 * what a set of permission bits means for its owner is looked at here.
 *
 * Nothing outlives its session.  Whoever ends it removes what the table knows.  If the supervisor
 * is killed nobody is left who does: for that a file, STATE/ipc/TAG, is locked as long as the
 * supervisor lives.  Whoever comes by a file that nobody has locked looks for all keys and names
 * that follow from the tag, and removes what is there (ipc_sweep).
 */
#ifndef SUPERVISOR_REWRITE_IPC_IPC_H
#define SUPERVISOR_REWRITE_IPC_IPC_H

#include <stdint.h>
#include <sys/types.h>

#include "supervisor/rewrite/ipc/names.h"

struct err;
struct ipc;

/*
 * For a session that may begin.  ERR_HOST where the host has no System V IPC.  Forked processes
 * share the table.
 */
int ipc_create(struct ipc **ret, struct err *e);
/*
 * It begins.  @state_dir is the user's (paths.h), NULL for none: then nobody removes anything after
 * a crash.
 */
int ipc_begin(struct ipc *i, const char *state_dir, struct err *e);
/*
 * Removes all that the session has made and frees @i (NULL is fine).  When nobody of it runs any
 * more.
 */
void ipc_end(struct ipc *i);
struct ipc_names *ipc_table(const struct ipc *i);

/* Removes what sessions have left whose supervisors were killed. */
void ipc_sweep(const char *state_dir);

/* ---- for a session that is written and made again -------------------------------------------- */

/*
 * Makes an object under its old names: @id and @key are the session's, @size bytes or semaphores,
 * @mode what the session knows; on the host it has the bits of @more as well for now.  Returns the
 * host's id.  -EEXIST for one that is there already.
 */
int ipc_restore(struct ipc_names *n, enum ipc_sort sort, int id, key_t key, uint64_t size,
	unsigned mode, unsigned more, struct err *e);

#endif
