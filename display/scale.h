/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scale - a frame made smaller for a viewer that has few pixels, or a slow line.
 */
#ifndef DISPLAY_SCALE_H
#define DISPLAY_SCALE_H

#include "display/pixels.h"

struct display_scale;

/*
 * The largest size of the same shape that fits; never larger than it is.  True if that is another
 * one.  A @max of 0 does not limit.
 */
bool display_scale_fit(
	int width, int height, int max_width, int max_height, int *ret_width, int *ret_height);

/* From frames of one size to a smaller one of its own, black at first.  -ENOMEM or 0. */
int display_scale_new(
	int from_width, int from_height, int width, int height, struct display_scale **ret_scale);
/* Accepts NULL. */
void display_scale_free(struct display_scale *s);

/* Owned by @s. */
const struct display_frame *display_scale_frame(const struct display_scale *s);

/*
 * @from, a frame of our own, has changed in @changed: the smaller one follows, and @ret_changed
 * (initialised) becomes where.  -ENOMEM or 0.
 */
int display_scale_run(struct display_scale *s, const struct display_frame *from,
	pixman_region32_t *changed, pixman_region32_t *ret_changed);

#endif
