/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x - the X server of a session as a source of its display (display/source.h).
 *
 * The X server is the session's: it is reached through the session's own directories, which are
 * given as descriptors, so that no path and no symbolic link in there leads anywhere else.
 */
#ifndef DISPLAY_X_X_H
#define DISPLAY_X_X_H

#include "display/source.h"

struct err;

/* @v, or what is nearest to it from @low to @high. */
static inline int display_x_clamp(int v, int low, int high)
{
	return v < low ? low : v > high ? high : v;
}

/* The X server's framebuffer, which can't grow: what a screen may become (Xvfb -screen). */
#define DISPLAY_MAX_WIDTH  3840
#define DISPLAY_MAX_HEIGHT 2160
/* What it is where nobody says. */
#define DISPLAY_WIDTH  1280
#define DISPLAY_HEIGHT 800

/* Below the session's /dev/shm: the directory that Xvfb -fbdir has. */
#define DISPLAY_PICTURES ".podrun-display"
/* Below its /run: the cookie of its clients, as its only entry (Xau(3)). */
#define DISPLAY_AUTHORITY "podrun-display/Xauthority"

struct display_x_options {
	unsigned number;   /* of the display */
	int width, height; /* of the screen when it is taken up for the first time; 0: as it is */
	int files;	   /* O_PATH, owned: the session's own files, with tmp/ and run/ */
	int shm;	   /* O_PATH, owned: its /dev/shm */
};

/* Not attached yet.  The descriptors are owned from the call on. */
int display_x_create(struct display_source **ret, const struct display_x_options *o, struct err *e);

#endif
