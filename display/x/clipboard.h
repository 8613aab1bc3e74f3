/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clipboard - text between an X server's CLIPBOARD and viewers; theirs is PRIMARY, too.
 */
#ifndef DISPLAY_X_CLIPBOARD_H
#define DISPLAY_X_CLIPBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xcb/xcb.h>

#include "base/base.h"

struct err;

#define DISPLAY_X_REQUESTS 8 /* being answered in pieces at the same time */

enum display_x_atom {
	DISPLAY_X_CLIPBOARD,
	DISPLAY_X_UTF8_STRING,
	DISPLAY_X_TEXT_PLAIN,
	DISPLAY_X_TEXT,
	DISPLAY_X_TARGETS,
	DISPLAY_X_TIMESTAMP,
	DISPLAY_X_INCR,
	DISPLAY_X_PROPERTY, /* where we have text put for us */
	DISPLAY_X_ATOMS
};

struct display_x_clipboard {
	xcb_connection_t *c; /* borrowed; NULL: none */
	xcb_window_t window;
	xcb_atom_t atoms[DISPLAY_X_ATOMS];
	uint8_t first_event; /* of XFixes */
	uint32_t max;	     /* bytes of a property, at once */
	struct buf own;	     /* what a viewer has put there; survives the connection */
	bool owner, primary; /* of CLIPBOARD; of PRIMARY, also when it is closed */
	bool fresh;	     /* `own` has come while it was closed */
	struct buf told;     /* what the session had copied last, likewise */
	bool told_long;	     /* the last was too long, which has been told */
	bool again;	     /* it is asked for only because the connection is new */
	struct buf incoming;
	bool incremental; /* incoming comes in pieces */
	struct {
		xcb_window_t window; /* XCB_NONE: unused */
		xcb_atom_t property, type;
		struct buf text;
		size_t sent;
		uint64_t begun; /* which of all it is */
	} requests[DISPLAY_X_REQUESTS];
	uint64_t n_begun;
	/* Somebody in the session has copied; NULL: more than DISPLAY_CLIPBOARD_MAX. */
	void (*text)(void *arg, const char *text, size_t len);
	void *arg;
};

/*
 * Watches the clipboard of @c's X server, and gives it what a viewer had put there before, unless
 * somebody else has it; what came since the last one was closed replaces that.  @b is zeroed but
 * for `text`, `arg`, or was closed.  Waits for the X server.
 */
int display_x_clipboard_open(struct display_x_clipboard *b, xcb_connection_t *c, struct err *e);
/* The connection is gone, or about to. */
void display_x_clipboard_close(struct display_x_clipboard *b);
void display_x_clipboard_fini(struct display_x_clipboard *b);

/* A viewer has copied @text: it is the session's from now on. */
void display_x_clipboard_set(struct display_x_clipboard *b, const char *text, size_t len);
/* True if @event was about the clipboard. */
bool display_x_clipboard_event(struct display_x_clipboard *b, const xcb_generic_event_t *event);

#endif
