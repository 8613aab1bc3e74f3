/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keymap - which symbol a key of an X server gives, with the modifiers and the group of a moment.
 *
 * It is the X Keyboard Extension's own map (section 12 of its protocol): each key has up to four
 * groups (layouts), in each of them a type, and a type says which modifiers lead to which level.
 */
#ifndef DISPLAY_X_KEYMAP_H
#define DISPLAY_X_KEYMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>
#include <xcb/xkb.h>

#define DISPLAY_X_MAP_PARTS (XCB_XKB_MAP_PART_KEY_TYPES | XCB_XKB_MAP_PART_KEY_SYMS)

#define DISPLAY_X_GROUPS 4

struct err;

struct display_x_keymap {
	xcb_xkb_get_map_reply_t *reply; /* owned; NULL: none, and then no key gives anything */
	uint8_t first, last;		/* keycodes */
	/* In the reply, with what belongs to each behind it; NULL: not there. */
	const xcb_xkb_key_type_t *types[256];
	unsigned n_types;
	const xcb_xkb_key_sym_map_t *keys[256]; /* by keycode */
};

/* What is held, latched and locked together. */
struct display_x_modifiers {
	uint8_t mask; /* XCB_MOD_MASK_* */
	uint8_t group;
};

/*
 * Takes the answer to a GetMap of all of DISPLAY_X_MAP_PARTS; @reply is owned from the call on, and
 * anybody's.  @m is zeroed or has another one, which stays if this one is none: -EBADMSG.
 */
int display_x_keymap_take(
	struct display_x_keymap *m, xcb_xkb_get_map_reply_t *reply, struct err *e);
void display_x_keymap_fini(struct display_x_keymap *m);

/* What programs take it for; XCB_NO_SYMBOL also where Caps Lock makes that their own decision. */
xcb_keysym_t display_x_keymap_symbol(
	const struct display_x_keymap *m, unsigned keycode, struct display_x_modifiers now);
/* What is written on the key: without modifiers, in its first group. */
xcb_keysym_t display_x_keymap_plain(const struct display_x_keymap *m, unsigned keycode);
/* It gives nothing, whatever is down. */
bool display_x_keymap_is_empty(const struct display_x_keymap *m, unsigned keycode);

/*
 * The key has one symbol from now on, in every group and with all modifiers and locks.  It is made
 * as no layout has any, so that it can be told from others later, also by another client.
 */
void display_x_keymap_set_single(xcb_connection_t *c, const struct display_x_keymap *m,
	xcb_keycode_t keycode, xcb_keysym_t s);
/* What such a key has; XCB_NO_SYMBOL: it is none. */
xcb_keysym_t display_x_keymap_single(const struct display_x_keymap *m, unsigned keycode);

#endif
