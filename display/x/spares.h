/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spares - keys without a meaning, which are given symbols that the layout has no key for.
 *
 * A program finds out what a key means when it reads that it was pressed, and then asks for the map
 * of that moment.  So a key that was used is not given another symbol for a *respite*, within which
 * programs will have looked.  All are used before one is used again, the oldest first.
 *
 * They keep what they have been given; who comes next knows them by display_x_keymap_single.
 */
#ifndef DISPLAY_X_SPARES_H
#define DISPLAY_X_SPARES_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>

struct display_x_keymap;

struct display_x_spares {
	struct display_x_spare {
		xcb_keycode_t keycode;
		xcb_keysym_t keysym; /* XCB_NO_SYMBOL: none yet */
	} all[256];
	unsigned n;
	uint64_t used_ns[256]; /* by keycode; 0: not yet */
};

/* The map is another one, or (@now_ns of not 0) the first: what has a symbol may just be used. */
void display_x_spares_find(
	struct display_x_spares *s, const struct display_x_keymap *m, uint64_t now_ns);
bool display_x_spares_has(const struct display_x_spares *s, unsigned keycode);
/* It was pressed or has come up. */
void display_x_spares_used(struct display_x_spares *s, xcb_keycode_t keycode, uint64_t now_ns);
/*
 * The one for @keysym; its symbol may be another one yet, then it is to be given this one.  NULL:
 * there is none; *@ret_ns then is when there will be one, or 0 if a key has to come up before.
 * @down: a set of keycodes, a bit each.  @respite_ns of 0: none.
 */
struct display_x_spare *display_x_spares_take(struct display_x_spares *s, xcb_keysym_t keysym,
	const uint8_t down[32], uint64_t now_ns, uint64_t respite_ns, uint64_t *ret_ns);

#endif
