/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * message - `Control` and `Worker` messages over a proto_conn, and struct err and
 * struct ckpt_report as messages.
 */
#ifndef SUPERVISOR_MESSAGE_H
#define SUPERVISOR_MESSAGE_H

#include <stddef.h>

struct err;
struct ckpt_report;
struct proto_conn;
struct Pb__Control;
struct Pb__Worker;
struct Pb__Failure;
struct Pb__Report;

/* As proto_conn_send: 1 when something is left to flush. */
int message_send(struct proto_conn *c, const struct Pb__Control *m, const int *fds, size_t n_fds,
	struct err *e);
int message_send_worker(struct proto_conn *c, const struct Pb__Worker *m, const int *fds,
	size_t n_fds, struct err *e);

#define MESSAGE_MAX_FDS 16
/*
 * As proto_conn_recv: 1 and a message the caller frees, 0 when there is none yet.  Descriptors
 * nobody asked for (more than @max) are an error.
 */
int message_recv(struct proto_conn *c, struct Pb__Control **ret, int *fds, size_t max, size_t *ret_n,
	struct err *e);
int message_recv_worker(struct proto_conn *c, struct Pb__Worker **ret, int *fds, size_t max,
	size_t *ret_n, struct err *e);
void message_free(struct Pb__Control *m);
void message_free_worker(struct Pb__Worker *m);

/* A message of its own, all of it; NULL without memory.  Freed as one that was unpacked. */
struct ProtobufCMessage *message_copy(const struct ProtobufCMessage *m);

/* Strings of *ret are borrowed from @e, and the other way round they are copied. */
void message_of_err(struct Pb__Failure *ret, const struct err *e);
int message_to_err(const struct Pb__Failure *f, struct err *ret);

/*
 * Fills *ret with pointers into @scratch, which has room for the stages of any report.
 */
struct message_report {
	void *stages[16];
	char room[16 * 64] __attribute__((aligned(8)));
};
void message_of_report(struct Pb__Report *ret, const struct ckpt_report *r,
	struct message_report *scratch);

#endif
