/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keyboard - keysyms that viewers type, as keys of an X server.
 */
#ifndef DISPLAY_X_KEYBOARD_H
#define DISPLAY_X_KEYBOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>

struct err;

#define DISPLAY_X_KEYS	 64 /* held down at the same time */
#define DISPLAY_X_SPARES 12

struct display_x_keyboard {
	xcb_connection_t *c; /* borrowed; NULL: none */
	uint8_t first, last; /* keycodes */
	unsigned columns;    /* keysyms of each */
	xcb_keysym_t *map;
	bool lock; /* Caps Lock is on */
	struct {
		xcb_keysym_t keysym;
		xcb_keycode_t keycode;
	} down[DISPLAY_X_KEYS];
	unsigned n_down;
	struct {
		xcb_keycode_t keycode;
		xcb_keysym_t keysym; /* XCB_NO_SYMBOL: none yet */
	} spares[DISPLAY_X_SPARES];
	unsigned n_spares, next_spare;
};

/* Reads the mapping; @k is zeroed or was finished.  Waits for the X server. */
int display_x_keyboard_init(struct display_x_keyboard *k, xcb_connection_t *c, struct err *e);
/* Lets go of what is held down.  A broken connection is fine. */
void display_x_keyboard_fini(struct display_x_keyboard *k);

/* As display_source_ops.key has it. */
void display_x_keyboard_key(
	struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode, bool down);
/* Somebody has changed the mapping. */
void display_x_keyboard_mapped(
	struct display_x_keyboard *k, const xcb_mapping_notify_event_t *event);

#endif
