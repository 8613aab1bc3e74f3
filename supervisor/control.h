/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control - clients of a session's control socket, and the table of what they may ask.
 */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct err;
struct event;
struct job;
struct proto_conn;
struct session;
struct Pb__Control;

struct client {
	struct client *next;
	struct session *session;
	struct proto_conn *conn;
	struct event *readable, *writable;
	uid_t uid;
	bool stuffed;  /* its socket takes no more now */
	bool waiting;  /* for the end of the session's command */
	bool leaving;  /* is freed when its output has gone out */
	uint64_t lost; /* bytes of output it could not take */
	struct job *job; /* attached to */
	struct buf input; /* read, and more than the job could take */
	bool input_end;
};

/* A connection that is there: the first client, or an accepted one (the socket is taken over). */
int control_adopt(struct client **ret, struct session *s, int sock, struct err *e);
/* Listens at the session's control socket, and at the one for --allow. */
int control_listen(struct session *s, struct err *e);
void control_unlisten(struct session *s);
void control_free(struct client *c);

/* All of these may find that the client went away, and free it then or later. */
void control_send(struct client *c, const struct Pb__Control *m);
void control_send_done(struct client *c);
/* @exit_code: of run and exec, 0 for what the error's class says. */
void control_send_failure(struct client *c, const struct err *e, int exit_code);
void control_send_output(struct client *c, unsigned stream, const void *data, size_t n);
/* The client's job takes input again. */
void control_feed(struct client *c);
void control_detach_job(struct session *s, struct job *j);

#endif
