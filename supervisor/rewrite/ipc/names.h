/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipc/names - names of System V objects and message queues where no ipc namespace holds them.
 *
 *      session                             host
 *      key 0x4711 -> id 32769 = slot 1  -> key that no other session uses, id 7340034
 *      /queue                 = slot 0  -> /podrun-TAG-0
 *
 * The session's ids are given as a fresh ipc namespace gives them (ipc/util.c of the kernel): a
 * slot, in a circle that grows with what is in use, and a sequence number that counts the rounds;
 * the id is sequence * 32768 + slot.  On the host an object has a key that follows from the slot
 * and from the session's tag, a random number.  So whatever a session has made can be found by
 * whoever knows its tag, also when who made it was killed in the middle.
 *
 * The table is in memory shared with processes forked after it was made.  One process changes it
 * (the rewriter, or whoever rebuilds the session before that); the others look when it stands still
 * or is gone. Pages that nobody wrote to take no memory.
 */
#ifndef SUPERVISOR_REWRITE_IPC_NAMES_H
#define SUPERVISOR_REWRITE_IPC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct ipc_names;

enum ipc_sort { IPC_SHM, IPC_SEM, IPC_MSG, IPC_SORTS };

#define IPC_SLOTS  32768 /* IPCMNI of linux/ipc_namespace.h */
#define IPC_QUEUES 1024	 /* POSIX; fs.mqueue.queues_max is 256 where nobody has raised it */

struct ipc_object {
	bool used;
	bool attached; /* a segment to which somebody is or was attached, or tries to be */
	bool removed;  /* a segment that lives while somebody is attached; it has no key any more */
	uint16_t seq, mode;
	int host;      /* the host's id */
	key_t key;     /* the session's; IPC_PRIVATE */
	pid_t creator; /* the session's number of a process */
	pid_t setter;  /* likewise, who called semctl(2) last to set a value */
	uint64_t size; /* bytes of a segment, semaphores of a set */
};

/*
 * 0, or -ENOMEM with @e set.  ipc_names_free takes what it made, or NULL, in each process for
 * itself.
 */
int ipc_names_create(struct ipc_names **ret, uint64_t tag, struct err *e);
void ipc_names_free(struct ipc_names *n);
uint64_t ipc_names_tag(const struct ipc_names *n);

/* ---- System V ------------------------------------------------------------------------------- */

/*
 * The slot that the next object gets, or -ENOSPC.  From then on ipc_names_high counts it.
 * ipc_names_skip: it can't be used, for a stranger has its key on the host.
 */
int ipc_names_next(struct ipc_names *n, enum ipc_sort sort);
void ipc_names_skip(struct ipc_names *n, enum ipc_sort sort, int slot);
/*
 * Takes the slot that ipc_names_next told.  The caller fills in what it is, but for the host's id.
 */
struct ipc_object *ipc_names_add(struct ipc_names *n, enum ipc_sort sort, int slot);
/* One that had @id before the session moved here; NULL if that can't be, or is taken. */
struct ipc_object *ipc_names_restore(struct ipc_names *n, enum ipc_sort sort, int id);
void ipc_names_set_host(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o, int host);
void ipc_names_remove(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o);

/*
 * The key on the host of the object in @slot; 0 (IPC_PRIVATE) for one slot in 2^32, which can't be
 * used.
 */
key_t ipc_names_host_key(uint64_t tag, int slot);

/* NULL if there is none; @id may be anything. */
struct ipc_object *ipc_names_find(struct ipc_names *n, enum ipc_sort sort, int id);
struct ipc_object *ipc_names_find_key(struct ipc_names *n, enum ipc_sort sort, key_t key);
struct ipc_object *ipc_names_find_host(struct ipc_names *n, enum ipc_sort sort, int host);
struct ipc_object *ipc_names_at(struct ipc_names *n, enum ipc_sort sort, int slot);
int ipc_names_slot(const struct ipc_names *n, enum ipc_sort sort, const struct ipc_object *o);
int ipc_names_id(const struct ipc_names *n, enum ipc_sort sort, const struct ipc_object *o);

/* A segment that somebody is still attached to has been removed; how many of those there are. */
void ipc_names_set_removed(struct ipc_names *n, struct ipc_object *o);
int ipc_names_removed(const struct ipc_names *n);

/* How many there are; the highest slot in use (-1: none); how many slots were ever used. */
int ipc_names_count(const struct ipc_names *n, enum ipc_sort sort);
int ipc_names_max(const struct ipc_names *n, enum ipc_sort sort);
int ipc_names_high(const struct ipc_names *n, enum ipc_sort sort);

/* ---- processes that have used an object ----------------------------------------------------- */

/* The kernel tells the host's numbers also of processes that have ended: these are remembered. */
void ipc_names_note_user(struct ipc_names *n, pid_t host, pid_t number);
/* 0: not known (any more). */
pid_t ipc_names_user(const struct ipc_names *n, pid_t host);

/* ---- POSIX message queues ------------------------------------------------------------------- */

#define IPC_HOST_NAME 40 /* with the final 0, without a slash */

/* The slot of the queue the session calls @name (without a slash), or -ENOENT. */
int ipc_names_find_queue(const struct ipc_names *n, const char *name);
/* Takes one for it; -ENOSPC.  @name is at most NAME_MAX long. */
int ipc_names_add_queue(struct ipc_names *n, const char *name);
void ipc_names_remove_queue(struct ipc_names *n, int slot);
/* It stays taken, without a name. */
void ipc_names_spoil_queue(struct ipc_names *n, int slot);
/* What the session calls it, or NULL if there is none. */
const char *ipc_names_queue(const struct ipc_names *n, int slot);
/* What it is called on the host, and the way back: -ENOENT for what is none of the session's. */
void ipc_names_host_queue(uint64_t tag, int slot, char ret[IPC_HOST_NAME]);
int ipc_names_host_slot(const struct ipc_names *n, const char *host_name);

#endif
