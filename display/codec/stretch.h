/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stretch - a picture in another size: larger as viewers do it with frames of VIDEO (bilinear, and
 * exactly as in proto/SPEC.md), smaller as the server makes them.
 */
#ifndef DISPLAY_CODEC_STRETCH_H
#define DISPLAY_CODEC_STRETCH_H

#include "display/pixels.h"

/*
 * Draws all of @from, a frame of our own, in @r of @to, in any ratio.  0 or -ENOMEM; if they are
 * equally large it is copied, and takes no memory.
 */
int display_stretch(const struct display_frame *to, const struct display_rect *r,
	const struct display_frame *from);

/*
 * The means of @by x @by pixels of @r of @f to the upper left of @to, which has @r's sides divided
 * by @by (rounded up) at least; what of a square is outside of @r does not count.
 */
void display_shrink(const struct display_frame *to, const struct display_frame *f,
	const struct display_rect *r, int by);

#endif
