// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * warm - memory for a writer, from before there is one.
 *
 * To touch memory for the first time takes longer than to copy into it: it is cleared, and under a
 * hypervisor fetched.  Of what a writer needs that is up to 16 MiB, some 20 ms, and a session that stands
 * still would wait for it.  So a thread touches it while the session runs.  Forks don't copy it: whoever
 * writes to it then would touch copies, for the first time.
 */
#include "proto/warm.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/user.h>

#include "base/base.h"
#include "proto/pool.h"
#include "proto/proto.h"

struct proto_warm {
	pthread_t thread;
	bool has_thread;
	size_t (*expect)(void *ctx);
	void *ctx;

	pthread_mutex_t lock; /* of what follows */
	uint8_t *rooms[PROTO_ROOMS];
	unsigned n;
	bool enough;
};

static uint8_t *touch_room(void)
{
	uint8_t *p = proto_pages_alloc(PROTO_LONG_DATA);

	if (!p)
		return NULL;
	proto_pages_expect(p, PROTO_LONG_DATA);
	madvise(p, PROTO_LONG_DATA, MADV_DONTFORK);
	for (size_t i = 0; i < PROTO_LONG_DATA; i += PAGE_SIZE)
		*(volatile uint8_t *)(p + i) = 0;
	return p;
}

/* False when it is not wanted any more. */
static bool add(struct proto_warm *w, uint8_t *room)
{
	bool taken;

	pthread_mutex_lock(&w->lock);
	taken = room && !w->enough;
	if (taken)
		w->rooms[w->n++] = room;
	pthread_mutex_unlock(&w->lock);
	if (!taken)
		proto_pages_free(room, PROTO_LONG_DATA);
	return taken;
}

static void *touch(void *arg)
{
	struct proto_warm *w = arg;
	size_t rooms = w->expect(w->ctx) / PROTO_LONG_DATA + 1;

	for (size_t i = 0; i < MIN(rooms, (size_t)PROTO_ROOMS); i++)
		if (!add(w, touch_room()))
			break;
	return NULL;
}

struct proto_warm *proto_warm_begin(size_t (*expect)(void *ctx), void *ctx)
{
	struct proto_warm *w = calloc(1, sizeof(*w));
	sigset_t all, before;

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	w->expect = expect;
	w->ctx = ctx;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	w->has_thread = pthread_create(&w->thread, NULL, touch, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return w;
}

uint8_t *proto_warm_take(struct proto_warm *w)
{
	uint8_t *room = NULL;

	if (!w)
		return NULL;
	pthread_mutex_lock(&w->lock);
	/* what is not ready now is made by who needs it */
	w->enough = true;
	if (w->n)
		room = w->rooms[--w->n];
	pthread_mutex_unlock(&w->lock);
	return room;
}

void proto_warm_end(struct proto_warm *w)
{
	uint8_t *room;

	if (!w)
		return;
	do {
		room = proto_warm_take(w);
		proto_pages_free(room, PROTO_LONG_DATA);
	} while (room);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
