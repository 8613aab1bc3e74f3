/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cover - what windows hide, kept by viewers until it is seen again.
 *
 * A window that comes, or is dragged, covers what is still there when it has gone on.  A viewer that
 * can (proto/SPEC.md, KEEP and UNCOVER) keeps that in a second picture, place by place; this is the
 * server's copy of it.  Each place has one layer: what was covered last.
 *
 * That something is covered is a hint, as moves are.  Kept is what is seen at that time, and only
 * what is equal, pixel by pixel, is brought back.
 */
#ifndef DISPLAY_COVER_H
#define DISPLAY_COVER_H

#include <stddef.h>

#include "display/command.h"
#include "display/pixels.h"

/* Where a window is said to have been, and where it is now.  Empty: nowhere. */
struct display_cover {
	struct display_rect before, now;
};

struct display_kept {
	struct display_frame frame; /* of 0x0 until something is kept */
};

void display_kept_fini(struct display_kept *k);

/*
 * Keeps what of @shadow, the picture before, these windows have newly covered, and appends the
 * KEEPs for that.  -ENOMEM or 0.
 */
int display_kept_keep(struct display_kept *k, const struct display_frame *shadow,
	const struct display_cover *covers, size_t n, struct display_commands *out);

/*
 * What these windows no longer cover and is in @now as it was kept: takes it out of @rest, which is
 * to be drawn, and appends UNCOVERs, but nothing in @left.  What is brought back with it, but is not
 * so, is added to @wrong: that is to be drawn behind them, whatever else is.  -ENOMEM or 0.
 */
int display_kept_uncover(const struct display_kept *k, const struct display_frame *now,
	const struct display_cover *covers, size_t n, pixman_region32_t *left,
	pixman_region32_t *rest, pixman_region32_t *wrong, struct display_commands *out);

#endif
