/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - the forked process in which a session is frozen and written, or rebuilt.
 *
 * A worker is the tracer; it may wait and die without harm to the supervisor, which goes on
 * answering the session's notifications and its clients.  Both talk `Worker` messages
 * (control.proto) over a socket pair:
 *
 *      dump      < ahead (image descriptor)  if memory is to be copied ahead: progress > ..., ready >
 *                < freeze
 *                frozen >                    session is frozen, supervisor may take its time
 *                < write (image descriptor)  written > (or failure >, still frozen)
 *                < thaw                      thawed >, exits
 *                < end                       kills pid 1 while all is frozen, reaps, ended >
 *      restore   image >                     the front of the image
 *                < unpack (directory)        watch >, unpacked >
 *                < world (descriptors)       seed > < seeded, edge >, filters > ...,
 *                                            pieces >, restored >
 *                < take                      (the image is ours)
 *                < release                   released >, exits
 *                < undo                      exits
 *      convert   < held, hurry               cleared > or repeated >, for each that was held
 *                                            converted >, exits
 *
 * failure > may come instead of any answer.  When the supervisor's end closes, a dump worker ends
 * what is frozen and a restore worker undoes.
 */
#ifndef SUPERVISOR_WORKER_WORKER_H
#define SUPERVISOR_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/worker/dump.h"
#include "supervisor/worker/main.h"

struct err;
struct event_base;
struct worker;
struct Pb__Worker;

struct worker_ops {
	/* One message; descriptors are closed afterwards unless replaced by -1. */
	void (*message)(void *ctx, struct Pb__Worker *m, int *fds, size_t n_fds);
	/* The process has ended (status as wait(2)), after its last message.  The worker may be
	 * freed in here, and must be before another is started. */
	void (*gone)(void *ctx, int status);
};

/* Fork a worker (see above).  What @what points to is needed until the call returns. */
int worker_start_dump(struct worker **ret, struct event_base *loop, const struct worker_dump *what,
	const struct worker_ops *ops, void *ctx, struct err *e);
/*
 * The same in the process @rewriter, at the other end of @orders (rewrite/orders.h).  It has gone,
 * with status 0, when that is done with it.
 */
int worker_start_order(struct worker **ret, struct event_base *loop, pid_t rewriter, int orders,
	const struct worker_dump *what, const struct worker_ops *ops, void *ctx, struct err *e);
/* Removes what a dump worker that was killed has left. */
int worker_start_mend(struct worker **ret, struct event_base *loop, const struct worker_dump *what,
	const struct worker_ops *ops, void *ctx, struct err *e);
int worker_start_restore(struct worker **ret, struct event_base *loop,
	const struct worker_restore *what, const struct worker_ops *ops, void *ctx, struct err *e);
int worker_start_convert(struct worker **ret, struct event_base *loop,
	const struct worker_convert *what, const struct worker_ops *ops, void *ctx, struct err *e);
/* Queues the message; descriptors are duplicated.  It is never waited for. */
int worker_send(
	struct worker *w, const struct Pb__Worker *m, const int *fds, size_t n_fds, struct err *e);
/* The same, all of it: for who does nothing but receive it.  It is waited for. */
int worker_send_all(
	struct worker *w, const struct Pb__Worker *m, const int *fds, size_t n_fds, struct err *e);
/*
 * A restore worker has become the rewriter of its session: whoever has that kills and awaits the
 * process from now on.
 */
void worker_become_rewriter(struct worker *w);
/* The story of one that has gone too early: with that @status; @rewriter: it was (one). */
int worker_say_end(struct err *e, int status, bool rewriter);
/* On this host. */
pid_t worker_pid(const struct worker *w);
/* SIGKILL; ops.gone follows. */
void worker_kill(struct worker *w);
/* NULL is fine.  A process still there is killed and reaped. */
void worker_free(struct worker *w);
/*
 * The same for one that has done everything, and only has much memory to give back: it is reaped
 * when it has, and kept in *@slot until then, which is NULL before and afterwards.
 */
void worker_leave(struct worker **slot, struct worker *w);

#endif
