// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A viewer says which symbol was typed, whatever its keyboard looks like; the X server wants to
 * know which key was pressed, and finds the symbol by the modifiers that are down.  Modifiers are
 * keys like others, so the X server has those that the person holds.  If there is a key which
 * gives the symbol with just these modifiers, it is pressed: games and shortcuts see the right
 * one.  A scancode says which to look at first (there are two of some).
 *
 * If there is none - an AltGr symbol of a layout that the session does not have, a dead key, a
 * letter from a telephone - a *spare* key is given that symbol for all modifiers, and pressed.
 * Xvfb's usual keymap leaves some twenty keys without symbols; they are used in turns.  They keep
 * what they have been given, for a program may not have looked yet; who comes next knows them by
 * what they look like.
 *
 * The X server repeats keys that are held, so repetitions of the viewer are left out.
 *
 * Columns of the mapping (X Keyboard Extension, section 12.4): 0 and 1 are without and with Shift,
 * 4 and 5 the same with the third level's.
 */
#include "display/x/keyboard.h"

#include <string.h>
#include <xcb/xtest.h>

#include "base/base.h"

#define SYM_SHIFT_L	  0xffe1
#define SYM_SHIFT_R	  0xffe2
#define SYM_CAPS_LOCK	  0xffe5
#define SYM_HYPER_R	  0xffee /* the last of the modifiers from SHIFT_L on */
#define SYM_LEVEL3	  0xfe03
#define SYM_NUM_LOCK	  0xff7f
#define SYM_UNICODE	  0x01000000u
#define LEVEL3_COLUMN	  4
#define EVDEV_TO_X	  8 /* keycode less scancode */
#define MAX_COLUMNS	  32
#define SPARE_COLUMNS	  4
#define LOWEST_USED_SPARE 130 /* below it there are keys that say the same with and without Shift */

/* ---- the mapping ----------------------------------------------------------------------------- */

static xcb_keysym_t symbol(const struct display_x_keyboard *k, unsigned keycode, unsigned column)
{
	return column < k->columns ? k->map[(keycode - k->first) * k->columns + column]
				   : XCB_NO_SYMBOL;
}

static bool is_modifier(xcb_keysym_t s)
{
	return (s >= SYM_SHIFT_L && s <= SYM_HYPER_R) || s == SYM_LEVEL3 || s == SYM_NUM_LOCK;
}

/* Unused, or a spare one of a server before us: it says the same in four columns. */
static bool can_spare(const struct display_x_keyboard *k, unsigned keycode)
{
	xcb_keysym_t first = symbol(k, keycode, 0);

	if (first && keycode < LOWEST_USED_SPARE)
		return false;
	for (unsigned i = 0; i < k->columns; i++)
		if (symbol(k, keycode, i) != (i < SPARE_COLUMNS ? first : XCB_NO_SYMBOL))
			return false;
	return !is_modifier(first);
}

static int read_map(struct display_x_keyboard *k, struct err *e)
{
	xcb_get_keyboard_mapping_reply_t *r;
	size_t n = (size_t)(k->last - k->first + 1), have;
	xcb_keysym_t *map;

	r = xcb_get_keyboard_mapping_reply(
		k->c, xcb_get_keyboard_mapping(k->c, k->first, (uint8_t)n), NULL);
	have = r ? (size_t)xcb_get_keyboard_mapping_keysyms_length(r) : 0;
	if (!r || !r->keysyms_per_keycode || r->keysyms_per_keycode > MAX_COLUMNS ||
		have < n * r->keysyms_per_keycode) {
		free(r);
		return err_set(e, ERR_FAILED, -EIO, "the X server has no keyboard");
	}
	map = malloc(n * r->keysyms_per_keycode * sizeof(*map));
	if (map) {
		memcpy(map, xcb_get_keyboard_mapping_keysyms(r),
			n * r->keysyms_per_keycode * sizeof(*map));
		free(k->map);
		k->map = map;
		k->columns = r->keysyms_per_keycode;
	}
	free(r);
	return map ? 0 : err_errno(e, -ENOMEM, "keyboard");
}

static void find_spares(struct display_x_keyboard *k)
{
	k->n_spares = k->next_spare = 0;
	/* From above: the lowest have a meaning for some. */
	for (unsigned c = k->last; c > k->first && k->n_spares < DISPLAY_X_SPARES; c--)
		if (can_spare(k, c)) {
			k->spares[k->n_spares].keycode = (xcb_keycode_t)c;
			k->spares[k->n_spares++].keysym = symbol(k, c, 0);
		}
}

static bool read_lock(struct display_x_keyboard *k, xcb_window_t root)
{
	xcb_query_pointer_reply_t *r =
		xcb_query_pointer_reply(k->c, xcb_query_pointer(k->c, root), NULL);
	bool lock = r && r->mask & XCB_MOD_MASK_LOCK;

	free(r);
	return lock;
}

int display_x_keyboard_init(struct display_x_keyboard *k, xcb_connection_t *c, struct err *e)
{
	const xcb_setup_t *setup = xcb_get_setup(c);

	*k = (struct display_x_keyboard){
		.c = c, .first = setup->min_keycode, .last = setup->max_keycode};
	if (k->first < EVDEV_TO_X || k->last < k->first) {
		*k = (struct display_x_keyboard){0};
		return err_set(e, ERR_FAILED, -EIO, "the X server has no keys");
	}
	if (read_map(k, e) < 0) {
		*k = (struct display_x_keyboard){0};
		return e->error;
	}
	find_spares(k);
	k->lock = read_lock(k, xcb_setup_roots_iterator(setup).data->root);
	return 0;
}

static void give_spare(struct display_x_keyboard *k, unsigned i, xcb_keysym_t keysym)
{
	xcb_keysym_t all[MAX_COLUMNS];

	for (unsigned c = 0; c < k->columns; c++)
		all[c] = c < SPARE_COLUMNS ? keysym : XCB_NO_SYMBOL;
	xcb_change_keyboard_mapping(k->c, 1, k->spares[i].keycode, (uint8_t)k->columns, all);
	k->spares[i].keysym = keysym;
}

static bool is_spare(const struct display_x_keyboard *k, unsigned keycode)
{
	for (unsigned i = 0; i < k->n_spares; i++)
		if (k->spares[i].keycode == keycode)
			return true;
	return false;
}

void display_x_keyboard_mapped(
	struct display_x_keyboard *k, const xcb_mapping_notify_event_t *event)
{
	struct err ignored = {0};

	if (event->request != XCB_MAPPING_KEYBOARD ||
		(event->count == 1 && is_spare(k, event->first_keycode)))
		return;
	/* Another layout.  What was given to spare keys may be gone, or in nobody's way. */
	if (read_map(k, &ignored) == 0)
		find_spares(k);
}

/* ---- which key ------------------------------------------------------------------------------- */

static bool holds(const struct display_x_keyboard *k, xcb_keysym_t keysym)
{
	for (unsigned i = 0; i < k->n_down; i++)
		if (k->down[i].keysym == keysym)
			return true;
	return false;
}

/* A letter's two symbols, as the X server would tell: it follows Caps Lock. */
static bool is_letter(xcb_keysym_t lower, xcb_keysym_t upper)
{
	if (lower >= 'a' && lower <= 'z')
		return upper == lower - 'a' + 'A';
	if (lower >= 0xe0 && lower <= 0xfe && lower != 0xf7)
		return upper == lower - 0x20;
	return upper != lower && lower >= SYM_UNICODE && upper >= SYM_UNICODE;
}

/* What @keycode gives with the modifiers that are down. */
static xcb_keysym_t symbol_now(const struct display_x_keyboard *k, unsigned keycode)
{
	bool shift = holds(k, SYM_SHIFT_L) || holds(k, SYM_SHIFT_R);
	unsigned column =
		holds(k, SYM_LEVEL3) && symbol(k, keycode, LEVEL3_COLUMN) ? LEVEL3_COLUMN : 0;
	xcb_keysym_t lower = symbol(k, keycode, column), upper = symbol(k, keycode, column + 1);

	if (upper == XCB_NO_SYMBOL)
		upper = lower;
	if (is_letter(lower, upper) && k->lock)
		shift = !shift;
	return shift ? upper : lower;
}

static bool gives(const struct display_x_keyboard *k, unsigned keycode, xcb_keysym_t keysym)
{
	if (keycode < k->first || keycode > k->last || is_spare(k, keycode))
		return false;
	return is_modifier(keysym) ? symbol(k, keycode, 0) == keysym
				   : symbol_now(k, keycode) == keysym;
}

static xcb_keycode_t find_key(
	const struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode)
{
	if (scancode && gives(k, scancode + EVDEV_TO_X, keysym))
		return (xcb_keycode_t)(scancode + EVDEV_TO_X);
	for (unsigned c = k->first; c <= k->last; c++)
		if (gives(k, c, keysym))
			return (xcb_keycode_t)c;
	return 0;
}

static bool is_down(const struct display_x_keyboard *k, unsigned keycode)
{
	for (unsigned i = 0; i < k->n_down; i++)
		if (k->down[i].keycode == keycode)
			return true;
	return false;
}

/* One that has the symbol already, else the one that was not used for the longest time. */
static xcb_keycode_t take_spare(struct display_x_keyboard *k, xcb_keysym_t keysym)
{
	for (unsigned i = 0; i < k->n_spares; i++)
		if (k->spares[i].keysym == keysym)
			return k->spares[i].keycode;
	for (unsigned n = 0; n < k->n_spares; n++) {
		unsigned i = k->next_spare++ % k->n_spares;

		if (is_down(k, k->spares[i].keycode))
			continue;
		give_spare(k, i, keysym);
		return k->spares[i].keycode;
	}
	return 0;
}

/* ---- typing ---------------------------------------------------------------------------------- */

static void fake(struct display_x_keyboard *k, bool down, xcb_keycode_t keycode)
{
	xcb_test_fake_input(k->c, down ? XCB_KEY_PRESS : XCB_KEY_RELEASE, keycode, XCB_CURRENT_TIME,
		XCB_NONE, 0, 0, 0);
}

static void press(struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode)
{
	xcb_keycode_t keycode;

	if (k->n_down == DISPLAY_X_KEYS || holds(k, keysym))
		return;
	keycode = find_key(k, keysym, scancode);
	if (!keycode)
		keycode = take_spare(k, keysym);
	/* Two symbols of one key: it has to come up between them. */
	if (!keycode || is_down(k, keycode))
		return;
	k->down[k->n_down].keysym = keysym;
	k->down[k->n_down++].keycode = keycode;
	if (keysym == SYM_CAPS_LOCK)
		k->lock = !k->lock;
	fake(k, true, keycode);
}

static void let_up(struct display_x_keyboard *k, unsigned i)
{
	fake(k, false, k->down[i].keycode);
	k->down[i] = k->down[--k->n_down];
}

void display_x_keyboard_key(
	struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode, bool down)
{
	if (!k->c || keysym == XCB_NO_SYMBOL)
		return;
	if (down) {
		press(k, keysym, scancode);
	} else {
		for (unsigned i = 0; i < k->n_down; i++)
			if (k->down[i].keysym == keysym)
				let_up(k, i--);
	}
	xcb_flush(k->c);
}

void display_x_keyboard_fini(struct display_x_keyboard *k)
{
	while (k->c && k->n_down)
		let_up(k, 0);
	free(k->map);
	*k = (struct display_x_keyboard){0};
}
