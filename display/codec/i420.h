/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * i420 - pixels as brightness and colour (JPEG's own: BT.601, all of 0 to 255), colours at half the
 * resolution: 12 bits a pixel.  The arithmetic is exact and in proto/SPEC.md, section "Display".
 */
#ifndef DISPLAY_CODEC_I420_H
#define DISPLAY_CODEC_I420_H

#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

/* Planes of a frame, borrowed; u and v have rows of the same length. */
struct display_i420 {
	const uint8_t *y, *u, *v;
	int stride, stride_uv; /* bytes */
};

/* Bytes of a frame of @w x @h. */
size_t display_i420_size(int w, int h);
/* @r of @f, a frame of our own, to display_i420_size bytes. */
void display_i420_pack(const struct display_frame *f, const struct display_rect *r, uint8_t *to);
/* The other way, to the upper left @w x @h of @f. */
void display_i420_draw(
	const struct display_frame *f, int w, int h, const struct display_i420 *planes);
/* Likewise, of what display_i420_pack makes. */
void display_i420_unpack(const struct display_frame *f, int w, int h, const uint8_t *from);

#endif
