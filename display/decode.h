/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * decode - what a viewer does with a server's bytes: a picture, and calls for what is no picture.
 *
 * The reference of the protocol: tests, benchmarks, screenshots, replays and the native viewer
 * use it.  The bytes may be anybody's.
 */
#ifndef DISPLAY_DECODE_H
#define DISPLAY_DECODE_H

#include "display/film.h"
#include "display/pixels.h"
#include "display/wire.h"

struct err;
struct display_decoder;

/* Codecs that it decodes. */
#define DISPLAY_DECODER_CODECS ((1u << DISPLAY_CODECS) - 1)
/* Formats of VIDEO that it draws. */
#define DISPLAY_DECODER_VIDEO DISPLAY_FILM_FORMATS

/* All may be NULL.  The decoder must not be used or freed from within. */
struct display_decoder_ops {
	/* The picture has changed within @r. */
	void (*changed)(void *ctx, const struct display_rect *r);
	/* There is a picture of a new size, and it is black: after WELCOME, RESIZE. */
	void (*resized)(void *ctx, int width, int height);
	/*
	 * Every message that is known, after the picture has been changed by it; WELCOME, NOTICE
	 * and FILE as packed records.
	 */
	void (*message)(void *ctx, const struct display_message *m);
};

/* -ENOMEM or 0.  @ops is borrowed and may be NULL. */
int display_decoder_new(
	const struct display_decoder_ops *ops, void *ctx, struct display_decoder **ret_decoder);
/* Accepts NULL. */
void display_decoder_free(struct display_decoder *d);

/*
 * The next bytes of the stream, in pieces of any size.  0, or -EBADMSG, -EMSGSIZE (the server
 * breaks the protocol: no more may be fed), -ENOMEM.
 */
int display_decoder_feed(struct display_decoder *d, const void *data, size_t n, struct err *e);

/* The picture, owned by @d; no pixels before WELCOME. */
const struct display_frame *display_decoder_frame(const struct display_decoder *d);

#endif
