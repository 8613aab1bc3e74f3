/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * raw24 - pixels as three bytes each: B, G, R; rows without padding.
 *
 * *Left* is the same with each byte minus that of the same colour of the pixel to the left (of the
 * first pixel of a row: minus 0), which makes gradients and photographs, and text on them, compress
 * better.
 */
#ifndef DISPLAY_CODEC_RAW24_H
#define DISPLAY_CODEC_RAW24_H

#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

static inline size_t display_raw24_size(const struct display_rect *r)
{
	return (size_t)r->w * (size_t)r->h * 3;
}

/* @out has room for display_raw24_size(r) bytes. @r lies in the frame, which is one of ours. */
void display_raw24_pack(const struct display_frame *f, const struct display_rect *r, uint8_t *out);
void display_raw24_pack_left(
	const struct display_frame *f, const struct display_rect *r, uint8_t *out);

/* The other way; @in has display_raw24_size(r) bytes. */
void display_raw24_unpack(
	const struct display_frame *f, const struct display_rect *r, const uint8_t *in);
void display_raw24_unpack_left(
	const struct display_frame *f, const struct display_rect *r, const uint8_t *in);

#endif
