/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * region - sets of pixels, where memory may run out.
 *
 * pixman takes a region that it had no memory for as empty, for ever: what is added to it later is
 * lost, too.  A display that goes on from there shows wrong pixels until the same place changes
 * again.  These make what pixman's functions of the same names do, and where there is no memory for
 * that the smallest rectangle around it, or around what it was to be made of: one rectangle needs
 * none.  So what they leave may be more than was asked for, never less, and is a region that
 * can be worked with.
 *
 * They say whether it is exact.  Who must not have more goes by that.
 */
#ifndef DISPLAY_REGION_H
#define DISPLAY_REGION_H

#include "display/pixels.h"

/* All may be given the same region twice. */
bool display_region_copy(pixman_region32_t *to, pixman_region32_t *from);
bool display_region_union(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b);
bool display_region_subtract(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b);
bool display_region_intersect(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b);

/* @to with @r as well.  An empty rectangle is none. */
bool display_region_add(pixman_region32_t *to, const struct display_rect *r);
/* @to without @r.  Needs no memory where one rectangle is left of one. */
bool display_region_remove(pixman_region32_t *to, const struct display_rect *r);
/* How many pixels it has. */
long display_region_area(pixman_region32_t *region);
/* What of @from is in @r. */
bool display_region_clip(
	pixman_region32_t *to, pixman_region32_t *from, const struct display_rect *r);

#endif
