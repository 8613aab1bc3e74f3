/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen/server - the process outside a session that shows its display: `podrun display --serve`.
 *
 * It ends with the supervisor, or when it is told to (display/serve.h has the words).
 */
#ifndef SUPERVISOR_SCREEN_SERVER_H
#define SUPERVISOR_SCREEN_SERVER_H

#include "display/display.h"

struct screen_server;
struct err;
struct event_base;

/* What it begins with besides the descriptors of display/serve.h; all O_PATH. */
#define SCREEN_SERVER_FILES 5 /* the session's own files: tmp/, run/ */
#define SCREEN_SERVER_SHM   6 /* the session's /dev/shm */

struct screen_server_config {
	const char *name;		/* of the session */
	unsigned number, width, height; /* of the display; of a new screen, else 0 */
	int listener, files, shm;	/* borrowed */
	int program;			/* borrowed: PROGRAMS_DISPLAY */
};

struct screen_server_ops {
	/* It has said @word.  @text is its own, "" for none. */
	void (*heard)(void *ctx, enum display_serve_word word, const char *text);
	/* It has ended, and is to be freed: last call. */
	void (*gone)(void *ctx);
};

int screen_server_start(struct screen_server **ret, struct event_base *loop,
	const struct screen_server_config *c, const struct screen_server_ops *ops, void *ctx,
	struct err *e);
/* A word without text may have NULL.  One that can't be told is the server's end, soon. */
void screen_server_say(struct screen_server *d, enum display_serve_word word, const char *text);
/* Nobody is called any more; it is told that nobody is there. */
void screen_server_leave(struct screen_server *d);
/* NULL is fine.  Waits for its end: for a moment if it was left before, else it is killed. */
void screen_server_free(struct screen_server *d);

#endif
