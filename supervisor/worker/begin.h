/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker/begin - what all workers have in common: how they begin, and how they answer.
 *
 * A worker begins as a copy of the supervisor.  It first closes every descriptor that it was not
 * given, or a client's connection would stay open as long as the worker lives.  Then it is an
 * ordinary, blocking program: do one step, answer, wait for what to do next.
 */
#ifndef SUPERVISOR_WORKER_BEGIN_H
#define SUPERVISOR_WORKER_BEGIN_H

#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct err;
struct ProtobufCMessage;
struct proto_conn;

/* The descriptors of a `world` message behind pidfd, root, proc: user pid mnt net ipc uts time. */
#define WORKER_N_NS 7
void worker_ns_slots(struct ckpt_world *w, int *ret_slots[WORKER_N_NS]);

/* Nothing stays open but @sock, @w (or NULL) and @fds; the process is called @name. */
struct proto_conn *worker_begin(int sock, const struct ckpt_world *w, const int *fds, size_t n_fds,
	const char *name);

/*
 * One message to the supervisor (@what: Pb__Worker__BodyCase); that it can't be sent is only
 * logged.  @body NULL: it is empty.
 */
void worker_reply(struct proto_conn *conn, int what, struct ProtobufCMessage *body);
void worker_reply_failure(struct proto_conn *conn, const struct err *e);
/* @image_id (16 bytes) and @held (one) may be NULL. */
void worker_reply_report(struct proto_conn *conn, int what,
	const struct ckpt_report *report, const uint8_t *image_id, const uint8_t *held);

#endif
