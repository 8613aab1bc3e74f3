/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vp8 - frames that say what has changed since the one before (RFC 6386); by libvpx.
 *
 * The first frame of a stream is a *key frame*, which stands alone; each later one needs all that
 * came before it.  Colours are I420 as in codec/i420.h, whatever VP8 says of them, and a decoder
 * has no choice: what comes out is the same everywhere.
 *
 * A frame of another's is looked at before the library is: it must be of profile 0, shown, and in
 * its own size, and memory is taken for that size alone.
 */
#ifndef DISPLAY_CODEC_VP8_H
#define DISPLAY_CODEC_VP8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

struct buf;
struct display_vp8_packer;
struct display_vp8_unpacker;

/* What is in front of a frame. */
struct display_vp8_head {
	bool key;
	int w, h; /* of a key frame, else 0 */
};

/* For a stream of frames of @w x @h.  -ENOMEM or 0. */
int display_vp8_packer_new(int w, int h, struct display_vp8_packer **ret_packer);
/* Accepts NULL. */
void display_vp8_packer_free(struct display_vp8_packer *p);
bool display_vp8_packer_fits(const struct display_vp8_packer *p, int w, int h);

/*
 * Appends @r of @f, as large as was said, which is to be seen at @us microseconds, as a part of
 * @kbit kilobits a second.  Each frame must be sent: behind one that was not, or after a failure,
 * the next is a key frame if display_vp8_packer_restart was called.  0, or -ENOMEM; then @out is as
 * it was.
 */
int display_vp8_pack(struct display_vp8_packer *p, const struct display_frame *f,
	const struct display_rect *r, uint64_t us, int kbit, struct buf *out);
/* The next one is a key frame. */
void display_vp8_packer_restart(struct display_vp8_packer *p);

/* True if it begins as a frame that may be drawn. */
bool display_vp8_look(const void *data, size_t len, struct display_vp8_head *ret);

/* -ENOMEM or 0.  Memory for frames is taken by the first of them. */
int display_vp8_unpacker_new(struct display_vp8_unpacker **ret_unpacker);
/* Accepts NULL. */
void display_vp8_unpacker_free(struct display_vp8_unpacker *u);
/* Forgets the stream, and gives its memory back. */
void display_vp8_unpacker_clear(struct display_vp8_unpacker *u);

/*
 * The next frame, to @r of @f, if it is as large.  A key frame begins another stream.  0, -EBADMSG
 * if it is none, or none of this stream, which has ended then, or -ENOMEM.
 */
int display_vp8_unpack(struct display_vp8_unpacker *u, uint16_t stream, const void *data,
	size_t len, const struct display_frame *f, const struct display_rect *r);

#endif
