/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * video - where on the screen a film plays.
 *
 * Nobody says so: a program that plays one draws pictures like any other.  What changes many times
 * a second, for a second, in a large piece, with pixels that are a picture's and not a text's, and
 * has not only moved, is taken for one, until it rests, or is something else.
 */
#ifndef DISPLAY_VIDEO_H
#define DISPLAY_VIDEO_H

#include <stdbool.h>
#include <stdint.h>

#include "display/command.h"
#include "display/pixels.h"

#define DISPLAY_VIDEO_FILMS   4		   /* at a time */
#define DISPLAY_VIDEO_LOOK_NS 100000000ull /* between two looks, also when nothing changes */

/* A film that plays; rects of different ones have no pixel in common. */
struct display_video_film {
	uint16_t id; /* 0: none; another one for each */
	struct display_rect rect;
	uint64_t frame; /* grows with each frame, and when rect does */
	uint64_t ns;	/* when that was */
};

struct display_video;

/* For a screen of this size.  NULL without memory. */
struct display_video *display_video_new(int width, int height);
/* Accepts NULL. */
void display_video_free(struct display_video *v);

/* At @now (nanoseconds) the screen has changed within @changed: films there have another frame. */
void display_video_change(struct display_video *v, uint64_t now, pixman_region32_t *changed);

/*
 * The screen is @f now.  To be called after each change, with its commands, of which COPYs tell
 * something, and every DISPLAY_VIDEO_LOOK_NS while a film plays, with none (NULL).  Returns true if
 * films have begun or ended or have other rects.
 */
bool display_video_look(struct display_video *v, uint64_t now, const struct display_frame *f,
	const struct display_commands *c);

/* Nobody wants to see films: none plays, and nothing is known of what has changed. */
void display_video_forget(struct display_video *v);

/* DISPLAY_VIDEO_FILMS of them, owned by @v. */
const struct display_video_film *display_video_films(const struct display_video *v);
/* Where they are, owned by @v; without memory for that it is empty for a while. */
pixman_region32_t *display_video_region(struct display_video *v);
/* Is there one? */
bool display_video_plays(const struct display_video *v);

#endif
