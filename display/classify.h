/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * classify - pixels as commands: the shortest that draw them.
 */
#ifndef DISPLAY_CLASSIFY_H
#define DISPLAY_CLASSIFY_H

#include "display/command.h"
#include "display/pixels.h"

/*
 * Appends commands (SFILL, BITMAP, PFILL, RAW; they don't overlap, so their order does not matter)
 * which draw @region of @f, a frame of our own, and possibly some pixels around it as they are in
 * @f.  The region lies in the frame. -ENOMEM or 0.
 */
int display_classify(
	const struct display_frame *f, pixman_region32_t *region, struct display_commands *out);

/*
 * True if @r of @f, a frame of our own, has many colours and few pixels like their neighbours.
 * Meant for rectangles of some hundred pixels.
 */
bool display_classify_is_picture(const struct display_frame *f, const struct display_rect *r);

#endif
