/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * change - where two frames differ.
 */
#ifndef DISPLAY_CHANGE_H
#define DISPLAY_CHANGE_H

#include "display/pixels.h"

/*
 * Makes @changed (initialised by the caller) the places within @damage where the colours of @now
 * differ from the shadow's: whole rows are compared first, and what differs is cropped to its
 * columns.  Unchanged pixels may be in it where changes are close together.  @damage is clipped to
 * the frames, which are equally large.  Copies nothing.
 */
void display_change_find(const struct display_frame *shadow, const struct display_frame *now,
	pixman_region32_t *damage, pixman_region32_t *changed);

#endif
