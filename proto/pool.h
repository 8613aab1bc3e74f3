/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool - a few threads that turn a ring of slots, for the writer and the reader alike.
 *
 * The owner has a lock, a ring under it and one function, `step`, which finds one thing to do,
 * does it (without the lock) and says whether there was any.  Threads call step until there is
 * nothing; where there are no threads, whoever waits calls it, so the same code runs both ways.
 * Who is to be woken is for step to say: each time costs a sleeping CPU more than a short frame.
 */
#ifndef PROTO_POOL_H
#define PROTO_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/compress.h"
#include "proto/crypto.h"
#include "proto/digest.h"

#define PROTO_POOL_MAX 4

struct err;
struct proto_pool;

/* What a thread needs for itself. */
struct proto_worker {
	struct proto_pool *pool;
	struct proto_sha *sha;
	struct proto_digests digests;
	struct proto_zstd *zstd;
	uint8_t *scratch; /* PROTO_MAX_DATA bytes once asked for */
	bool thread;	  /* one of the pool's, not the owner's own */
};

struct proto_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;				 /* there may be something to do */
	pthread_cond_t done;				 /* something was done */
	bool (*step)(void *ctx, struct proto_worker *w); /* called with the lock held */
	void *ctx;
	unsigned wanted; /* threads to start; 0: none ever */
	unsigned running;
	pid_t pid; /* whose threads they are */
	struct proto_lanes_library *lanes; /* or NULL */
	bool stop;
	pthread_t threads[PROTO_POOL_MAX];
	struct proto_worker workers[PROTO_POOL_MAX];
	struct proto_worker own; /* the owner's */
};

/*
 * @threads as in the options: 0 automatic, PROTO_NO_THREADS none.  @hashes: much data, maybe, for
 * which a library is loaded here, not by a thread, which may be in a session's root by then.
 */
int proto_pool_init(struct proto_pool *p, unsigned threads, bool hashes,
	bool (*step)(void *ctx, struct proto_worker *w), void *ctx, struct err *e);
/* Starts the threads unless they run or are not wanted.  Failing is no error: the owner does
 * the work. */
void proto_pool_start(struct proto_pool *p);
/* Ends the threads after their present step; they can be started again. */
void proto_pool_settle(struct proto_pool *p);
/*
 * Ends the threads at once, in the middle of a blocked read or write if need be, and frees.  Not by
 * who has gone into a session's root: for pthread_cancel(3) the C library loads another.
 */
void proto_pool_fini(struct proto_pool *p);
/* With the lock held: waits until something was done, or does it. */
void proto_pool_wait(struct proto_pool *p);
/* With the lock held: one more thing may be done now, by a thread other than the present one. */
void proto_pool_kick(struct proto_pool *p);
/* With the lock held: something was done that the owner may wait for. */
void proto_pool_did(struct proto_pool *p);
/* False in a process forked while threads were running: its copy of the ring is lost. */
bool proto_pool_usable(const struct proto_pool *p);

/* Around a system call that may block for ever, without the lock: proto_pool_fini can end it. */
void proto_worker_may_block(struct proto_worker *w);
void proto_worker_blocked(struct proto_worker *w);
/* PROTO_MAX_DATA bytes of the worker's own, or NULL. */
uint8_t *proto_worker_scratch(struct proto_worker *w);

/* Memory for payloads, page aligned.  NULL if there is none. */
void *proto_pages_alloc(size_t len);
/*
 * From the beginning of such memory on @len bytes will be put there, which it is to have on huge pages
 * where the host does.  Not for little: the first byte of one has the kernel clear 2 MiB, which takes
 * milliseconds on a virtual machine whose host has to find them first.
 */
void proto_pages_expect(void *p, size_t len);
void proto_pages_free(void *p, size_t len);

#endif
