/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * move - what has only changed its place: scrolled text, dragged windows.
 */
#ifndef DISPLAY_MOVE_H
#define DISPLAY_MOVE_H

#include "display/pixels.h"

#define DISPLAY_MOVES 4 /* at most, in one update */

/* The pixels at @sx, @sy before are in @rect now. */
struct display_move {
	struct display_rect rect;
	int sx, sy;
};

/* Memory for the search. */
struct display_mover;

/* -ENOMEM or 0. */
int display_mover_new(struct display_mover **ret_mover);
/* Accepts NULL. */
void display_mover_free(struct display_mover *m);

/*
 * Looks in @changed for the largest rectangle that was elsewhere in @before, and is in @after now;
 * both are frames of our own and equally large, and equal outside of @changed.  Every pixel of
 * what is found has been compared. @hints (may be NULL) are moves that somebody has heard of, of
 * which only the distance counts; they are tried first. Returns 1 with *ret_move, or 0 if there is
 * nothing that is worth a command.
 */
int display_move_find(struct display_mover *m, const struct display_frame *before,
	const struct display_frame *after, pixman_region32_t *changed,
	const struct display_move *hints, size_t n_hints, struct display_move *ret_move);

#endif
