/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream - pixels that are compressed with what the same viewer has been sent before.
 *
 * Letters repeat: within a rectangle, but as well from one to the next, and from page to page.  So
 * each connection has one zstd frame without an end, of which every message has the next piece,
 * and a palette that it keeps, so that a colour is the same byte each time.  The two ends have to
 * see the same pieces in the same order: what has been packed has to be sent.
 */
#ifndef DISPLAY_CODEC_STREAM_H
#define DISPLAY_CODEC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

struct buf;
struct cursor;

/* One end.  About 3 MiB where it packs, 1.2 where it unpacks; nothing before it is used. */
struct display_stream;

/* -ENOMEM or 0. */
int display_stream_new(struct display_stream **ret_stream);
/* Accepts NULL. */
void display_stream_free(struct display_stream *s);

/* Appends the piece for @n bytes (> 0).  0; or -ENOMEM, and then it is of no use any more. */
int display_stream_pack(struct display_stream *s, const void *data, size_t n, struct buf *out);
/* True if @data was a piece of exactly @n bytes, which are in @out then. */
bool display_stream_unpack(
	struct display_stream *s, const void *data, size_t len, void *out, size_t n);

/*
 * Indices of the palette that is kept, a byte for each pixel, into @indices, which has room for
 * them; appends to @out what tells the other end of new colours: 1 (the palette begins anew) or 0
 * (1 byte), how many (2), the colours (4 each).  1; or 0, and @out is as it was, if that would be
 * too many colours: then the palette is left empty.
 */
int display_stream_pack_colours(struct display_stream *s, const struct display_frame *f,
	const struct display_rect *r, uint8_t *indices, struct buf *out);
/* Reads that. */
bool display_stream_take_colours(struct display_stream *s, struct cursor *c);
/* False if an index has no colour; nothing is drawn then. */
bool display_stream_draw(const struct display_stream *s, const struct display_frame *f,
	const struct display_rect *r, const uint8_t *indices);

#endif
