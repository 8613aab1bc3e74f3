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
/*
 * Of one as VP8, whose encoder has up to 37 bytes for each (24 of them for what a macroblock may
 * come to): larger ones are made smaller, so that a viewer has 32 MiB at most.
 */
#define DISPLAY_FILM_VP8_PIXELS (512 << 10)
/* Formats that are made and drawn, 1 << format each. */
#define DISPLAY_FILM_FORMATS \
	(1u << DISPLAY_VIDEO_I420 | 1u << DISPLAY_VIDEO_MJPEG | 1u << DISPLAY_VIDEO_VP8)
/* Viewers that are sent VP8 at a time: each has an encoder of its own, for each misses others. */
#define DISPLAY_FILM_STREAMS 4

struct buf;
struct display_vp8_packer;
/* Scratch memory and compressors, for any number of films. */
struct display_film;

/* How a frame is to be sent. */
struct display_film_kind {
	enum display_video_format format;
	int quality; /* MJPEG: 1..100 */
	int shrink;  /* 1: as large as it is shown, 2: half as wide, ...; VP8: at least */
	int kbit;    /* VP8: so many kilobits a second */
	enum display_video_format instead; /* of VP8, if that can't be made; I420 or MJPEG */
	int instead_shrink;
};

/*
 * What one viewer has of the one film that it is sent as VP8, whose frames need all those before
 * them.  Zero: of none.
 */
struct display_film_stream {
	struct display_vp8_packer *packer;
	uint16_t id;
};

/* -ENOMEM or 0. */
int display_film_new(struct display_film **ret_film);
/* Accepts NULL. */
void display_film_free(struct display_film *film);

/* The size of such a frame of @r. */
void display_film_size(const struct display_rect *r, const struct display_film_kind *kind,
	int *ret_width, int *ret_height);

/*
 * Appends the message for @r of @f, a frame of our own, as it is at @us microseconds.  @vp8 is the
 * viewer's, who is sent all of these messages, and may be NULL if none of them is to be VP8.
 * Returns 0, -EMSGSIZE if there are more than DISPLAY_FILM_PIXELS, or -ENOMEM; then @out is as it
 * was.
 */
int display_film_put(struct display_film *film, struct buf *out, uint16_t stream, uint64_t us,
	const struct display_frame *f, const struct display_rect *r,
	const struct display_film_kind *kind, struct display_film_stream *vp8);

/* The film plays no more, or not for this viewer: gives the memory back. */
void display_film_end(struct display_film *film, struct display_film_stream *vp8);

/*
 * Draws a VIDEO whose rect lies in @f.  0, -EBADMSG if it is not as it says or of a format that is
 * not in DISPLAY_FILM_FORMATS, or -ENOMEM.
 */
int display_film_draw(
	struct display_film *film, const struct display_frame *f, const struct display_message *m);
/* The picture is another one: forgets what frames to come may need. */
void display_film_forget(struct display_film *film);

#endif
