/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * server - a source's picture to any number of viewers, and their input to the source.
 */
#ifndef DISPLAY_SERVER_H
#define DISPLAY_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "display/notice.h"
#include "display/source.h"

struct err;
struct event_base;
struct display_server;

#define DISPLAY_SERVER_VIEWERS 16

/* All may be NULL. */
struct display_server_ops {
	/* The source is lost (source.h). */
	void (*lost)(void *arg);
	/* Somebody listens (display_server_audio), or nobody does any more. */
	void (*listened)(void *arg, bool anybody);
	/* Behind display_server_finish the last viewer is gone. */
	void (*finished)(void *arg);
};

/*
 * Attaches @source (owned if this succeeds).  @name of the session, @ops and @arg are borrowed.
 * The source counts as taken up.
 */
int display_server_new(struct event_base *base, struct display_source *source, const char *name,
	const struct display_server_ops *ops, void *arg, struct display_server **ret_server,
	struct err *e);
/* Closes all connections.  Accepts NULL. */
void display_server_free(struct display_server *s);

/*
 * A viewer has connected: @fd, a stream socket, is owned from the call on.  -EUSERS if there are
 * DISPLAY_SERVER_VIEWERS, or -ENOMEM.
 */
int display_server_add(struct display_server *s, int fd);
size_t display_server_viewers(const struct display_server *s);

/* Viewers are told, those that come later too; @text may be NULL. */
void display_server_tell(struct display_server *s, enum display_state state, const char *text);

/* An Opus packet of 20 ms, 48 kHz stereo; @us of the clock that video has, too. */
void display_server_audio(struct display_server *s, uint64_t us, const void *packet, size_t len);

/* Viewers may have files of the session's, and give it some: display_files_new. */
void display_server_share(struct display_server *s, int files);

/* Viewers are told @name, which is borrowed, those that come later too. */
void display_server_rename(struct display_server *s, const char *name);

/* The source's ops of the same names, with all keys up before, and the picture looked at again. */
void display_server_let_go(struct display_server *s);
int display_server_take_up(struct display_server *s, struct err *e);

/* For tests: the clock by which films are found and told, in nanoseconds; it doesn't go back. */
void display_server_clock(struct display_server *s, uint64_t (*now_ns)(void));

/* All are sent what they have yet to be sent, if they read it, and are gone then. */
void display_server_finish(struct display_server *s);

#endif
