/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * framebuffer - the picture of an Xvfb, mapped from the file that its -fbdir has.
 *
 * No pixel is copied and nobody is asked.  The file is the session's, which may do to it what it
 * likes: one that is cut short reads as black, and does not end who looks at it.
 */
#ifndef DISPLAY_X_FRAMEBUFFER_H
#define DISPLAY_X_FRAMEBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "display/pixels.h"

struct err;

struct display_x_framebuffer {
	void *map; /* NULL: none */
	size_t size;
	dev_t dev;
	ino_t ino;
	struct display_frame all; /* as large as the X server's screen may become */
};

/* @shm: the session's /dev/shm.  One at a time in a process can be mapped (SIGBUS). */
int display_x_framebuffer_map(struct display_x_framebuffer *ret, int shm, struct err *e);
/* Is it still the file that is there? */
bool display_x_framebuffer_current(const struct display_x_framebuffer *f, int shm);
/* Gives memory back that is not seen while the screen is of that size; it reads as black. */
void display_x_framebuffer_trim(
	const struct display_x_framebuffer *f, int shm, int width, int height);
/* One that is zeroed is fine. */
void display_x_framebuffer_unmap(struct display_x_framebuffer *f);

#endif
