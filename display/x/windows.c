// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A window that is dragged is drawn anew by nobody: its pixels are copied.  Which way it went is
 * told by ConfigureNotify of the root's children (a window manager's frames), and spares the search
 * for it in the picture.  These are hints: whoever takes them compares pixels (move.h), so one
 * that is wrong, late or missing costs time at most.
 */
#include "display/x/windows.h"

#include "base/base.h"

void display_x_windows_watch(struct display_x_windows *w, xcb_connection_t *c, xcb_window_t root)
{
	const uint32_t events = XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY;

	*w = (struct display_x_windows){0};
	xcb_change_window_attributes(c, root, XCB_CW_EVENT_MASK, &events);
}

static void configured(struct display_x_windows *w, const xcb_configure_notify_event_t *n)
{
	const struct display_rect now = {n->x, n->y, n->width, n->height};
	size_t free_one = DISPLAY_X_WINDOWS, i;

	for (i = 0; i < DISPLAY_X_WINDOWS && w->all[i].id != n->window; i++)
		if (!w->all[i].id && free_one == DISPLAY_X_WINDOWS)
			free_one = i;
	if (i < DISPLAY_X_WINDOWS && w->all[i].now.w == now.w && w->all[i].now.h == now.h) {
		w->all[i].now = now;
		return;
	}
	if (i == DISPLAY_X_WINDOWS)
		i = free_one < DISPLAY_X_WINDOWS ? free_one : w->next++ % DISPLAY_X_WINDOWS;
	w->all[i].id = n->window;
	w->all[i].now = now;
	w->all[i].sx = now.x;
	w->all[i].sy = now.y;
}

static void destroyed(struct display_x_windows *w, xcb_window_t id)
{
	for (size_t i = 0; i < DISPLAY_X_WINDOWS; i++)
		if (w->all[i].id == id)
			w->all[i].id = XCB_NONE;
}

bool display_x_windows_event(struct display_x_windows *w, const xcb_generic_event_t *event)
{
	switch (event->response_type & 0x7f) {
	case XCB_CONFIGURE_NOTIFY:
		configured(w, (const void *)event);
		return true;
	case XCB_DESTROY_NOTIFY:
		destroyed(w, ((const xcb_destroy_notify_event_t *)event)->window);
		return true;
	case XCB_CREATE_NOTIFY:
	case XCB_MAP_NOTIFY:
	case XCB_UNMAP_NOTIFY:
	case XCB_REPARENT_NOTIFY:
	case XCB_GRAVITY_NOTIFY:
	case XCB_CIRCULATE_NOTIFY:
		return true;
	default:
		return false;
	}
}

size_t display_x_windows_moves(
	struct display_x_windows *w, int width, int height, struct display_move *ret, size_t max)
{
	const struct display_rect screen = {0, 0, width, height};
	size_t n = 0;

	for (size_t i = 0; i < DISPLAY_X_WINDOWS; i++) {
		const struct display_rect before = {
			w->all[i].sx, w->all[i].sy, w->all[i].now.w, w->all[i].now.h};
		int dx = w->all[i].now.x - before.x, dy = w->all[i].now.y - before.y;
		struct display_rect seen, moved;

		if (!w->all[i].id || (!dx && !dy))
			continue;
		w->all[i].sx = w->all[i].now.x;
		w->all[i].sy = w->all[i].now.y;
		if (n == max || !display_rect_intersect(&before, &screen, &seen))
			continue;
		moved = (struct display_rect){seen.x + dx, seen.y + dy, seen.w, seen.h};
		if (display_rect_intersect(&moved, &screen, &moved))
			ret[n++] = (struct display_move){moved, moved.x - dx, moved.y - dy};
	}
	return n;
}
