/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modes - what a program has switched on in the terminal that its output goes to.
 *
 * A full-screen program that goes on without its terminal (suspended, moved, detached) does not put
 * it back, nor does one that is killed.  So its output is watched for what outlives a program: the
 * alternate screen, the cursor, the mouse and other reports, keys, margins and colours.  Of who is
 * attached the terminal is put back when he leaves, and put into these modes when he comes.
 *
 * Nothing is written for a program that has switched nothing on.
 */
#ifndef SUPERVISOR_MODES_H
#define SUPERVISOR_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define MODES_PARAMETERS 64 /* bytes of one control sequence; longer ones are none of ours */

/* All zeroes: as a terminal is at first. */
struct modes {
	uint32_t changed;    /* bits of private modes that are not as at first */
	unsigned keyboard;   /* flags of kitty's keyboard protocol */
	unsigned depth;	     /* of its stack */
	unsigned other_keys; /* xterm's modifyOtherKeys */
	bool keypad, margins, rendition;

	enum { MODES_TEXT, MODES_ESCAPE, MODES_CONTROL, MODES_STRING, MODES_STRING_ESCAPE } state;
	char sequence[MODES_PARAMETERS + 1];
	size_t len;
};

/* What was written to the terminal; sequences may be cut anywhere. */
void modes_feed(struct modes *m, const void *data, size_t n);
/* What puts a terminal back that is in these modes. */
void modes_leave(const struct modes *m, struct buf *out);
/* What puts another one into them, but for margins and colours: those are drawn anew. */
void modes_enter(const struct modes *m, struct buf *out);

#endif
