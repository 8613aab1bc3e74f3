/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control - clients of a session's control socket: their connections, and what is sent to them.
 */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

#include <stddef.h>

struct client;
struct err;
struct job;
struct session;
struct Pb__Control;

/* What is told to whoever knows what clients want: supervisor/requests.h. */
struct control_ops {
	/* One message of @c's, which may be freed meanwhile.  Descriptors that are left in @fds are
	 * closed afterwards. */
	void (*request)(struct session *s, struct client *c, const struct Pb__Control *m, int *fds,
		size_t n_fds);
	/* The client for whom an operation is under way went away. */
	void (*abandoned)(struct session *s);
	/* Begins a snapshot into the file @path, for nobody. */
	int (*snapshot)(struct session *s, char *path, struct err *e);
};

/* A connection that is there: the first client, or an accepted one (the socket is taken over). */
int control_adopt(struct client **ret, struct session *s, int sock, struct err *e);
/* Listens at the session's control socket, and at the one for --allow. */
int control_listen(struct session *s, struct err *e);
/* Whom --allow lets in finds it under its new name. */
void control_renamed(struct session *s);
void control_unlisten(struct session *s);
void control_free(struct client *c);

/* All of these may find that the client went away, and free it then or later. */
void control_send(struct client *c, const struct Pb__Control *m);
void control_send_done(struct client *c);
/* @exit_code: of run and exec, 0 for what the error's class says. */
void control_send_failure(struct client *c, const struct err *e, int exit_code);
void control_send_output(struct client *c, unsigned stream, const void *data, size_t n);
/* Nothing more is read from @c until control_take_up; then @m is its request once more, with @fds,
 * which are taken. */
int control_defer(struct client *c, const struct Pb__Control *m, int *fds, size_t n_fds,
	struct err *e);
/* The session's state is another: requests that waited for that are handled soon. */
void control_take_up(struct session *s);
/* The client's job takes input again. */
void control_feed(struct client *c);
void control_detach_job(struct session *s, struct job *j);

#endif
