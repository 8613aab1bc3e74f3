/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * client - talking to the supervisor of a session.  The command line is built on this; nothing
 * here prints.
 *
 * A session is named NAME, or OWNER/NAME for one of another user who allowed us in.  (OWNER/NAME of
 * one of ours is NAME before that: cli/command.c.)
 */
#ifndef SUPERVISOR_CLIENT_H
#define SUPERVISOR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/disk/paths.h"

struct err;
struct proto_conn;
struct Pb__Control;
struct Pb__Info;
struct Pb__Record;

/*
 * Connects to a live session.  ERR_NOT_FOUND without such a name, ERR_STATE when it is known but
 * has no supervisor (ended, suspended ...).
 */
int client_connect(struct proto_conn **ret, const struct paths *p, const char *name, struct err *e);
/* Starts a supervisor and connects to it as its first client. */
int client_start(struct proto_conn **ret, struct err *e);

/*
 * Sends @m and waits for the next message.  A `failure` is turned into an error; so is the end of
 * the connection.  *ret is freed with message_free.
 */
int client_call(struct proto_conn *c, const struct Pb__Control *m, const int *fds, size_t n_fds,
	struct Pb__Control **ret, struct err *e);
int client_receive(struct proto_conn *c, struct Pb__Control **ret, struct err *e);
/*
 * Sends @m, an answer to which is to be read.  That nobody takes it is no failure: what the
 * supervisor said before it ended, or that it has ended, is read next.
 */
int client_send(struct proto_conn *c, const struct Pb__Control *m, const int *fds, size_t n_fds,
	struct err *e);
/* The connection's end (-ECONNRESET in @e) becomes what it was if session @name has ended, moved
 * or been suspended meanwhile.  Returns e->error. */
int client_lost(const struct paths *p, const char *name, struct err *e);
/* The same for a request whose answer holds nothing but success. */
int client_simple(const struct paths *p, const char *name, const struct Pb__Control *m,
	struct err *e);

/* True while a supervisor answers for @name. */
bool client_is_live(const struct paths *p, const char *name);
/* Asks for its end without waiting for it. */
void client_ask_kill(const struct paths *p, const char *name);

/* One session as ps shows it: what the supervisor says, or what the record says. */
struct client_session {
	char *name;
	bool live;
	char state[16];
	struct Pb__Record *record;
	struct Pb__Control *info; /* the supervisor's reply, NULL unless live, or where it is too busy */
};
int client_look(struct client_session *ret, const struct paths *p, const char *name, struct err *e);
void client_session_fini(struct client_session *s);
/* All sessions of this user, by name.  One that does not answer is waited for some seconds. */
int client_list(const struct paths *p, struct client_session **ret, size_t *ret_n, struct err *e);
void client_list_free(struct client_session *s, size_t n);

#endif
