// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ipc/names.h. */
#include "supervisor/rewrite/ipc/names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>

#include "base/base.h"

#define SHIFT	  15	/* ipcmni_seq_shift() of the kernel's ipc/util.h */
#define SEQ_MAX	  65535 /* ipcid_seq_max() */
#define MIN_CYCLE 64	/* ipc_min_cycle */
#define USERS	  4096

struct family {
	int next; /* slot to begin looking at */
	int last; /* slot given last */
	int in_use;
	int high; /* slots above were never used */
	uint16_t seq;
	/*
	 * By the place in the host's own table, which is the low part of its id; if that has more
	 * places than ours (ipcmni_extend), two may be mixed up.
	 */
	bool mixed;
	uint16_t by_place[IPC_SLOTS];
	struct ipc_object objects[IPC_SLOTS];
};

struct past_user {
	pid_t host, number;
};

struct queue {
	bool used;
	char name[NAME_MAX + 1];
};

struct ipc_names {
	uint64_t tag;
	struct past_user users[USERS];
	struct queue queues[IPC_QUEUES];
	int removed;
	struct family families[IPC_SORTS];
};

/* As many objects as a fresh namespace allows. */
static const int limits[IPC_SORTS] = {[IPC_SHM] = 4096, [IPC_SEM] = 32000, [IPC_MSG] = 32000};

int ipc_names_create(struct ipc_names **ret, uint64_t tag, struct err *e)
{
	struct ipc_names *n = mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (n == MAP_FAILED)
		return err_errno(e, -errno, "names of IPC objects");
	n->tag = tag;
	for (int i = 0; i < IPC_SORTS; i++)
		n->families[i].last = -1;
	*ret = n;
	return 0;
}

void ipc_names_free(struct ipc_names *n)
{
	if (n)
		munmap(n, sizeof(*n));
}

uint64_t ipc_names_tag(const struct ipc_names *n)
{
	return n->tag;
}

/* ---- System V ------------------------------------------------------------------------------- */

/* ipc_idr_alloc() of the kernel's ipc/util.c. */
int ipc_names_next(struct ipc_names *n, enum ipc_sort sort)
{
	struct family *f = &n->families[sort];
	int wide = MAX(f->in_use * 3 / 2, MIN_CYCLE), end = MIN(wide, IPC_SLOTS);

	if (f->in_use >= limits[sort])
		return -ENOSPC;
	for (int i = 0, slot = f->next < end ? f->next : 0; i < end; i++) {
		if (!f->objects[slot].used) {
			f->high = MAX(f->high, slot + 1);
			return slot;
		}
		slot = slot + 1 < end ? slot + 1 : 0;
	}
	return -ENOSPC;
}

void ipc_names_skip(struct ipc_names *n, enum ipc_sort sort, int slot)
{
	n->families[sort].next = slot + 1;
}

static struct ipc_object *take(struct family *f, int slot, uint16_t seq)
{
	struct ipc_object *o = &f->objects[slot];

	*o = (struct ipc_object){.used = true, .seq = seq, .host = -1};
	f->high = MAX(f->high, slot + 1);
	f->in_use++;
	return o;
}

struct ipc_object *ipc_names_add(struct ipc_names *n, enum ipc_sort sort, int slot)
{
	struct family *f = &n->families[sort];

	if (slot <= f->last && ++f->seq >= SEQ_MAX)
		f->seq = 0;
	f->last = slot;
	f->next = slot + 1;
	return take(f, slot, f->seq);
}

struct ipc_object *ipc_names_restore(struct ipc_names *n, enum ipc_sort sort, int id)
{
	struct family *f = &n->families[sort];
	int slot = id & (IPC_SLOTS - 1);

	if (id < 0 || f->objects[slot].used || f->in_use >= limits[sort])
		return NULL;
	return take(f, slot, (uint16_t)(id >> SHIFT));
}

static struct ipc_object *at_place(struct family *f, int host)
{
	return &f->objects[f->by_place[host & (IPC_SLOTS - 1)]];
}

void ipc_names_set_host(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o, int host)
{
	struct family *f = &n->families[sort];
	const struct ipc_object *there = at_place(f, host);

	f->mixed |= there->used && there != o && there->host >= 0 &&
		    !((there->host ^ host) & (IPC_SLOTS - 1));
	f->by_place[host & (IPC_SLOTS - 1)] = (uint16_t)(o - f->objects);
	o->host = host;
}

void ipc_names_remove(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o)
{
	n->removed -= o->removed;
	o->used = false;
	n->families[sort].in_use--;
}

void ipc_names_set_removed(struct ipc_names *n, struct ipc_object *o)
{
	n->removed += !o->removed;
	o->removed = true;
}

int ipc_names_removed(const struct ipc_names *n)
{
	return n->removed;
}

/* A permutation of 32 bits for each tag, so that no two slots have one key. */
key_t ipc_names_host_key(uint64_t tag, int slot)
{
	uint32_t x = (uint32_t)slot ^ (uint32_t)tag;

	x = (x ^ x >> 16) * 0x7feb352dU;
	x ^= (uint32_t)(tag >> 32);
	x = (x ^ x >> 15) * 0x846ca68bU;
	return (key_t)(x ^ x >> 16);
}

struct ipc_object *ipc_names_find(struct ipc_names *n, enum ipc_sort sort, int id)
{
	struct ipc_object *o = &n->families[sort].objects[id & (IPC_SLOTS - 1)];

	return id >= 0 && o->used && o->seq == id >> SHIFT ? o : NULL;
}

struct ipc_object *ipc_names_at(struct ipc_names *n, enum ipc_sort sort, int slot)
{
	struct ipc_object *o;

	if (slot < 0 || slot >= IPC_SLOTS)
		return NULL;
	o = &n->families[sort].objects[slot];
	return o->used ? o : NULL;
}

struct ipc_object *ipc_names_find_key(struct ipc_names *n, enum ipc_sort sort, key_t key)
{
	struct family *f = &n->families[sort];

	for (int i = 0; i < f->high; i++)
		if (f->objects[i].used && f->objects[i].key == key && !f->objects[i].removed)
			return &f->objects[i];
	return NULL;
}

struct ipc_object *ipc_names_find_host(struct ipc_names *n, enum ipc_sort sort, int host)
{
	struct family *f = &n->families[sort];
	struct ipc_object *o = at_place(f, host);

	if (o->used && o->host == host)
		return o;
	for (int i = 0; f->mixed && i < f->high; i++)
		if (f->objects[i].used && f->objects[i].host == host)
			return &f->objects[i];
	return NULL;
}

int ipc_names_slot(const struct ipc_names *n, enum ipc_sort sort, const struct ipc_object *o)
{
	return (int)(o - n->families[sort].objects);
}

int ipc_names_id(const struct ipc_names *n, enum ipc_sort sort, const struct ipc_object *o)
{
	return o->seq << SHIFT | ipc_names_slot(n, sort, o);
}

int ipc_names_count(const struct ipc_names *n, enum ipc_sort sort)
{
	return n->families[sort].in_use;
}

int ipc_names_max(const struct ipc_names *n, enum ipc_sort sort)
{
	const struct family *f = &n->families[sort];

	for (int i = f->high - 1; i >= 0; i--)
		if (f->objects[i].used)
			return i;
	return -1;
}

int ipc_names_high(const struct ipc_names *n, enum ipc_sort sort)
{
	return n->families[sort].high;
}

/* ---- processes that have used an object ----------------------------------------------------- */

void ipc_names_note_user(struct ipc_names *n, pid_t host, pid_t number)
{
	n->users[(unsigned)host % USERS] = (struct past_user){host, number};
}

pid_t ipc_names_user(const struct ipc_names *n, pid_t host)
{
	const struct past_user *u = &n->users[(unsigned)host % USERS];

	return host > 0 && u->host == host ? u->number : 0;
}

/* ---- POSIX message queues ------------------------------------------------------------------- */

int ipc_names_find_queue(const struct ipc_names *n, const char *name)
{
	for (int i = 0; i < IPC_QUEUES; i++)
		if (n->queues[i].used && strcmp(n->queues[i].name, name) == 0)
			return i;
	return -ENOENT;
}

int ipc_names_add_queue(struct ipc_names *n, const char *name)
{
	for (int i = 0; i < IPC_QUEUES; i++) {
		if (n->queues[i].used)
			continue;
		snprintf(n->queues[i].name, sizeof(n->queues[i].name), "%s", name);
		n->queues[i].used = true;
		return i;
	}
	return -ENOSPC;
}

void ipc_names_remove_queue(struct ipc_names *n, int slot)
{
	n->queues[slot].used = false;
}

void ipc_names_spoil_queue(struct ipc_names *n, int slot)
{
	n->queues[slot].name[0] = '\0';
}

const char *ipc_names_queue(const struct ipc_names *n, int slot)
{
	return slot >= 0 && slot < IPC_QUEUES && n->queues[slot].used ? n->queues[slot].name : NULL;
}

void ipc_names_host_queue(uint64_t tag, int slot, char ret[IPC_HOST_NAME])
{
	snprintf(ret, IPC_HOST_NAME, "podrun-%016" PRIx64 "-%d", tag, slot);
}

int ipc_names_host_slot(const struct ipc_names *n, const char *host_name)
{
	const char *dash = strrchr(host_name, '-');
	char name[IPC_HOST_NAME];
	int slot = dash ? atoi(dash + 1) : -1;

	if (!ipc_names_queue(n, slot))
		return -ENOENT;
	ipc_names_host_queue(n->tag, slot, name);
	return strcmp(name, host_name) == 0 ? slot : -ENOENT;
}
