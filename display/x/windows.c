// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A window that is dragged is drawn anew by nobody: its pixels are copied.  Which way it went is
 * told by ConfigureNotify of the root's children (a window manager's frames), and spares the search
 * for it in the picture.  What a window hides where it comes, and shows again where it goes, is told
 * likewise: of windows that were there before, as soon as they move.  These are hints: whoever takes
 * them compares pixels (move.h, cover.h), so one that is wrong, late or missing costs time, or bytes,
 * at most.
 */
#include "display/x/windows.h"

#include <string.h>

#include "base/base.h"

void display_x_windows_watch(struct display_x_windows *w, xcb_connection_t *c, xcb_window_t root)
{
	const uint32_t events = XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY;

	*w = (struct display_x_windows){0};
	xcb_change_window_attributes(c, root, XCB_CW_EVENT_MASK, &events);
}

static size_t find(const struct display_x_windows *w, xcb_window_t id)
{
	size_t i = 0;

	while (i < DISPLAY_X_WINDOWS && w->all[i].id != id)
		i++;
	return i;
}

/* A place for one that is new. */
static size_t place(struct display_x_windows *w, xcb_window_t id)
{
	size_t i = 0;

	/* What one that is gone has covered is yet to be told. */
	while (i < DISPLAY_X_WINDOWS && (w->all[i].id || w->all[i].covers.w))
		i++;
	if (i == DISPLAY_X_WINDOWS)
		i = find(w, XCB_NONE);
	if (i == DISPLAY_X_WINDOWS)
		i = w->next++ % DISPLAY_X_WINDOWS;
	memset(&w->all[i], 0, sizeof(w->all[i]));
	w->all[i].id = id;
	return i;
}

static void created(struct display_x_windows *w, const xcb_create_notify_event_t *n)
{
	size_t i = place(w, n->window);

	w->all[i].now = (struct display_rect){n->x, n->y, n->width, n->height};
	w->all[i].sx = n->x;
	w->all[i].sy = n->y;
}

static void shown(struct display_x_windows *w, xcb_window_t id, bool is_shown)
{
	size_t i = find(w, id);

	if (i < DISPLAY_X_WINDOWS)
		w->all[i].shown = is_shown;
}

static void configured(struct display_x_windows *w, const xcb_configure_notify_event_t *n)
{
	const struct display_rect now = {n->x, n->y, n->width, n->height};
	size_t i = find(w, n->window);

	if (i < DISPLAY_X_WINDOWS && w->all[i].now.w == now.w && w->all[i].now.h == now.h) {
		w->all[i].now = now;
		return;
	}
	if (i == DISPLAY_X_WINDOWS) {
		/* It was there before: where, and whether it is shown, nobody has said. */
		i = place(w, n->window);
		w->all[i].shown = true;
		w->all[i].covers = now;
	}
	w->all[i].now = now;
	w->all[i].sx = now.x;
	w->all[i].sy = now.y;
}

static void destroyed(struct display_x_windows *w, xcb_window_t id)
{
	size_t i = find(w, id);

	if (i == DISPLAY_X_WINDOWS)
		return;
	w->all[i].id = XCB_NONE;
	w->all[i].shown = false;
}

/* Into another window, mostly a window manager's frame: that is what is seen from now on. */
static void reparented(struct display_x_windows *w, const xcb_reparent_notify_event_t *n)
{
	if (n->parent != n->event)
		destroyed(w, n->window);
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
		created(w, (const void *)event);
		return true;
	case XCB_MAP_NOTIFY:
		shown(w, ((const xcb_map_notify_event_t *)event)->window, true);
		return true;
	case XCB_UNMAP_NOTIFY:
		shown(w, ((const xcb_unmap_notify_event_t *)event)->window, false);
		return true;
	case XCB_REPARENT_NOTIFY:
		reparented(w, (const void *)event);
		return true;
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

static bool is_same(const struct display_rect *a, const struct display_rect *b)
{
	return a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h;
}

size_t display_x_windows_covers(
	struct display_x_windows *w, int width, int height, struct display_cover *ret, size_t max)
{
	const struct display_rect screen = {0, 0, width, height};
	size_t n = 0;

	for (size_t i = 0; i < DISPLAY_X_WINDOWS && n < max; i++) {
		struct display_rect seen = {0};

		if (!w->all[i].shown || !display_rect_intersect(&w->all[i].now, &screen, &seen))
			seen = (struct display_rect){0};
		if (is_same(&seen, &w->all[i].covers))
			continue;
		ret[n++] = (struct display_cover){w->all[i].covers, seen};
		w->all[i].covers = seen;
	}
	return n;
}
