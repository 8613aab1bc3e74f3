/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * orders - what the supervisor has the rewriter do: freeze the session, or tell where its threads
 * stand.
 *
 * Under kernel names a forked worker does that, since it can become the tracer of all tasks for a
 * while.  Here the rewriter is, for all their lives; so it plays the worker's part
 * (supervisor/worker/worker.h), and nothing but stops waits meanwhile.
 */
#ifndef SUPERVISOR_REWRITE_ORDERS_H
#define SUPERVISOR_REWRITE_ORDERS_H

#include "supervisor/worker/dump.h"

struct err;
struct rewriter;

/*
 * The supervisor's end: @sock leads to the rewriter, @to_worker is the worker's end of a
 * conversation as worker.h has it.  Both are borrowed.  -E2BIG: too many edges.
 */
int orders_send_dump(int sock, const struct worker_dump *what, int to_worker, struct err *e);

/*
 * Of all threads, to the file @fds[0], which must not be one that makes its writer wait; @fds[1] is
 * a socket for the answer (ended or failure).  Both are borrowed.
 */
int orders_send_stacks(int sock, bool json, const int fds[2], struct err *e);

/*
 * The rewriter's end: a thread which waits for orders at w->order, and has the thread that traces
 * carry each of them out.
 */
int orders_start(struct rewriter *w);
/* In that thread, whenever waitpid(2) has come back. */
void orders_look(struct rewriter *w);

#endif
