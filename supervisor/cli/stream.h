/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream - a client at the stdio of a command in a session: run, exec, attach, resume.
 */
#ifndef SUPERVISOR_CLI_STREAM_H
#define SUPERVISOR_CLI_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct proto_conn;
struct Pb__Started;

struct stream_options {
	bool input;	 /* our stdin is the command's */
	bool forward;	 /* signals we get go to the command */
	bool own_tty;	 /* not where it has a terminal, which is ours then */
	bool cancel;	 /* SIGINT, SIGTERM and SIGHUP before the session is there give it up */
	bool detachable; /* ctrl-p ctrl-q leaves a terminal */
	bool quiet;	 /* nothing about processes that live on */
	/* The session is there, and called @name.  May be NULL. */
	void (*started)(void *ctx, const char *name);
	void *ctx;
};

/*
 * Relays between our stdio and the command until it ends, after the request has been sent: first
 * comes `started`.  Returns the command's exit code, 126 or 127 where it could not be run, 128 + N
 * where signal N has given it up, or negative errno with @e.  @c is made non-blocking.
 */
int stream_run(struct proto_conn *c, const struct stream_options *o, struct err *e);

/* Our terminal's size, zeroes without one. */
void stream_size(uint32_t *ret_rows, uint32_t *ret_cols);
/* What a wait(2) status is as an exit code: 128 + n for signal n. */
int stream_exit_code(int status);

#endif
