/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve - `podrun display --serve`: the process that shows one session to its viewers.
 *
 * The supervisor starts it with two descriptors, and it lives until the second one is closed:
 *
 *      3   RUNTIME/SESSION/display, a listening stream socket (0600).  The supervisor keeps it too,
 *          so that viewers who come while there is no server wait for the next one
 *      4   a SOCK_SEQPACKET socket to the supervisor: packets of one byte of struct
 *          display_serve_word and text without a NUL, at most DISPLAY_SERVE_TEXT bytes
 */
#ifndef DISPLAY_SERVE_H
#define DISPLAY_SERVE_H

#include <stdbool.h>

#include "display/source.h"

struct err;

#define DISPLAY_SERVE_LISTENER 3
#define DISPLAY_SERVE_CONTROL  4
#define DISPLAY_SERVE_TEXT     4095

enum display_serve_word {
	/* From the supervisor. */
	DISPLAY_SERVE_LET_GO = 'L',  /* close what leads into the session; answered with GONE */
	DISPLAY_SERVE_TAKE_UP = 'T', /* it runs (again); answered with TAKEN, or FAILED and why */
	/* Viewers are told, and the text is shown to them: */
	DISPLAY_SERVE_RUNNING = 'R',
	DISPLAY_SERVE_PAUSED = 'P',
	DISPLAY_SERVE_SUSPENDED = 'S',
	DISPLAY_SERVE_MOVED = 'M', /* text: to which host */
	DISPLAY_SERVE_RENAMED =
		'N',		   /* text: the session's name from now on, for viewers that come */
	DISPLAY_SERVE_ENDED = 'E', /* and the server ends when they have been told */
	/* To the supervisor. */
	DISPLAY_SERVE_GONE = 'l',
	DISPLAY_SERVE_TAKEN = 't',
	DISPLAY_SERVE_FAILED = 'f',
	DISPLAY_SERVE_LOST = 'x', /* the source is lost (source.h): worth looking after Xvfb */
};

struct display_serve_options {
	const char *name;      /* of the session, told to viewers */
	int listener, control; /* the two descriptors, owned from the call on */
	int shm;	       /* O_PATH, owned: the session's /dev/shm, for its sound; -1: none */
	int files;	       /* O_PATH, owned: the session's own files, for viewers'; -1: none */
};

/* Serves @source (owned from the call on, taken up when the supervisor says so) until the end. */
int display_serve(
	const struct display_serve_options *o, struct display_source *source, struct err *e);

#endif
