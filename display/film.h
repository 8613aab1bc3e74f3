/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * film - frames of VIDEO: a part of the screen whole, in formats that are quick and lose something,
 * and possibly smaller than it is shown.
 */
#ifndef DISPLAY_FILM_H
#define DISPLAY_FILM_H

#include <stdint.h>

#include "display/pixels.h"
#include "display/wire.h"

/* Pixels of one frame at most. */
#define DISPLAY_FILM_PIXELS (4 << 20)
/* Formats that are made and drawn, 1 << format each. */
#define DISPLAY_FILM_FORMATS (1u << DISPLAY_VIDEO_I420 | 1u << DISPLAY_VIDEO_MJPEG)

struct buf;
/* Scratch memory and compressors, for any number of films. */
struct display_film;

/* How a frame is to be sent. */
struct display_film_kind {
	enum display_video_format format; /* I420 or MJPEG */
	int quality;			  /* MJPEG: 1..100 */
	int shrink;			  /* 1: as large as it is shown, 2: half as wide, ... */
};

/* -ENOMEM or 0. */
int display_film_new(struct display_film **ret_film);
/* Accepts NULL. */
void display_film_free(struct display_film *film);

/*
 * Appends the message for @r of @f, a frame of our own, as it is at @us microseconds.  Returns 0,
 * -EMSGSIZE if there are more than DISPLAY_FILM_PIXELS, or -ENOMEM; then @out is as it was.
 */
int display_film_put(struct display_film *film, struct buf *out, uint16_t stream, uint64_t us,
	const struct display_frame *f, const struct display_rect *r,
	const struct display_film_kind *kind);

/*
 * Draws a VIDEO whose rect lies in @f.  0, -EBADMSG if it is not as it says or of a format that is
 * not in DISPLAY_FILM_FORMATS, or -ENOMEM.
 */
int display_film_draw(
	struct display_film *film, const struct display_frame *f, const struct display_message *m);

#endif
