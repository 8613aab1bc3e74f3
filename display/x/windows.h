/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * windows - where an X server's top-level windows are, to know which have moved, come or gone.
 */
#ifndef DISPLAY_X_WINDOWS_H
#define DISPLAY_X_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <xcb/xcb.h>

#include "display/cover.h"
#include "display/move.h"

#define DISPLAY_X_WINDOWS 128 /* that are remembered; of others no moves are told */

struct display_x_windows {
	struct {
		xcb_window_t id; /* XCB_NONE: unused */
		struct display_rect now;
		int sx, sy; /* where it was when moves were last taken */
		bool shown;
		struct display_rect covers; /* when that was last taken; empty: nothing */
	} all[DISPLAY_X_WINDOWS];
	size_t next; /* is replaced when there is no room */
};

/* Asks to be told of the windows of @root; forgets all others.  Answers come as events. */
void display_x_windows_watch(struct display_x_windows *w, xcb_connection_t *c, xcb_window_t root);
/* True if @event was about a window's place. */
bool display_x_windows_event(struct display_x_windows *w, const xcb_generic_event_t *event);
/* What has moved since the last call, within a screen of that size; at most @max. */
size_t display_x_windows_moves(
	struct display_x_windows *w, int width, int height, struct display_move *ret, size_t max);
/* What covers another place than at the last call, or nothing any more; likewise. */
size_t display_x_windows_covers(
	struct display_x_windows *w, int width, int height, struct display_cover *ret, size_t max);

#endif
