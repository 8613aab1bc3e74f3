/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keyboard - keysyms that viewers type, as keys of an X server.
 */
#ifndef DISPLAY_X_KEYBOARD_H
#define DISPLAY_X_KEYBOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>

#include "display/x/keymap.h"
#include "display/x/spares.h"

struct err;

#define DISPLAY_X_KEYS	  64   /* held down at the same time */
#define DISPLAY_X_WAITING 4096 /* presses and releases that are still to be typed */

struct display_x_keyboard {
	xcb_connection_t *c; /* borrowed; NULL: none */
	uint8_t event;	     /* that of the X Keyboard Extension */
	struct display_x_keymap map;
	struct display_x_spares spares;
	struct display_x_modifiers now;
	bool map_old, now_old;		/* they may have changed, and have to be asked for */
	unsigned map_asked, now_asked;	/* sequence numbers, 0: no */
	uint64_t now_asked_ns, slow_ns; /* how long answers take */
	xcb_keycode_t last_spare;	/* typed since `now` was asked for, 0: none */
	struct display_x_down {
		xcb_keysym_t keysym;
		xcb_keycode_t keycode;
	} down[DISPLAY_X_KEYS];
	unsigned n_down;
	struct display_x_typed {
		xcb_keysym_t keysym;
		uint16_t scancode;
		bool down;
	} waiting[DISPLAY_X_WAITING]; /* a ring */
	unsigned first_waiting, n_waiting;
	uint64_t next_ns; /* when a key will be free, of io_now_ns; 0: no key waits for that */
};

/*
 * Reads the map; @k is zeroed or was finished.  Waits for the X server.  -EOPNOTSUPP, -EIO or
 * -EBADMSG: it has no keyboard that can be typed on, and @k does nothing.
 */
int display_x_keyboard_init(struct display_x_keyboard *k, xcb_connection_t *c, struct err *e);
/*
 * Types what waits, and lets go of what is held down.  It waits for the X server and for spare keys
 * until @until_ns (io_now_ns); what is left then is typed without.
 */
void display_x_keyboard_leave(struct display_x_keyboard *k, uint64_t until_ns);
/* Sends nothing, so that a broken connection is fine. */
void display_x_keyboard_fini(struct display_x_keyboard *k);

/* As display_source_ops.key has it.  It is typed by display_x_keyboard_look. */
void display_x_keyboard_key(
	struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode, bool down);
/* True if it was for the keyboard. */
bool display_x_keyboard_event(struct display_x_keyboard *k, const xcb_generic_event_t *event);
/*
 * To be called behind a key, behind events when something has come, and at next_ns: takes answers,
 * asks for others, and types what may be typed.  True if there was any.
 */
bool display_x_keyboard_look(struct display_x_keyboard *k);

#endif
