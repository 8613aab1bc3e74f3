// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A viewer says which symbol was typed, whatever its keyboard looks like; the X server wants to
 * know which key was pressed, and finds the symbol by the modifiers that are down, by what is
 * locked and by the group (the layout) that it is switched to.  Modifiers are keys like others, so
 * the X server has those that the person holds.  If there is a key which gives the symbol as things
 * are, it is pressed: games and shortcuts see the right one.  A scancode says which to look at
 * first (there are two of some).
 *
 * If there is none - an AltGr symbol of a layout that the session does not have, a dead key, a
 * letter from a telephone - a *spare* key (spares.h) is given that symbol, whatever is down or
 * locked, and pressed.  Xvfb's usual map leaves some twenty keys for that.
 *
 * What the X server has is not modelled but asked: its map and its state.  It tells when a program
 * has changed them; and behind everything that is typed here it is asked for the state, for any key
 * may switch something.  Nobody waits for answers.  What is pressed while one is missing, or while
 * each spare key was just used, gets into a queue with all that comes behind it, and is typed when
 * the answer comes, or the time:
 *
 *      key() --> waiting --> type() -- press, release --> X server -- its state, or its map --.
 *                              ^------------------------------------------------- look() <----'
 *
 * A full queue does not wait any longer, nor one that is left: then it is typed by what is known.
 *
 * The X server repeats keys that are held, so repetitions of the viewer are left out.
 */
#include "display/x/keyboard.h"

#include <poll.h>
#include <string.h>
#include <xcb/xcbext.h>
#include <xcb/xtest.h>

#include "base/base.h"
#include "display/x/keysym.h"

#define EVDEV_TO_X   8 /* keycode less scancode */
#define RESPITE_NS   300000000ull
#define RESPITE_SLOW 16 /* and so many answers' time, for where these take long programs do, too; */
#define MAX_SLOW_NS  2000000000ull /* but no more */
#define CORE	     XCB_XKB_ID_USE_CORE_KBD
/* Who holds one means a shortcut; some keys have another level with them, for X's own. */
#define SHORTCUT (XCB_MOD_MASK_CONTROL | XCB_MOD_MASK_1 | XCB_MOD_MASK_4)

/* ---- map and state --------------------------------------------------------------------------- */

static xcb_xkb_get_map_cookie_t ask_map(struct display_x_keyboard *k)
{
	return xcb_xkb_get_map(
		k->c, CORE, DISPLAY_X_MAP_PARTS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static int begin(struct display_x_keyboard *k, struct err *e)
{
	const xcb_query_extension_reply_t *there = xcb_get_extension_data(k->c, &xcb_xkb_id);
	const uint16_t events = XCB_XKB_EVENT_TYPE_STATE_NOTIFY | XCB_XKB_EVENT_TYPE_MAP_NOTIFY |
				XCB_XKB_EVENT_TYPE_NEW_KEYBOARD_NOTIFY;
	xcb_xkb_use_extension_reply_t *use = NULL;
	bool supported;

	if (there && there->present)
		use = xcb_xkb_use_extension_reply(k->c,
			xcb_xkb_use_extension(
				k->c, XCB_XKB_MAJOR_VERSION, XCB_XKB_MINOR_VERSION),
			NULL);
	supported = use && use->supported;
	free(use);
	if (!supported)
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "the X server lacks XKEYBOARD");
	k->event = there->first_event;
	xcb_xkb_select_events(k->c, CORE, events, 0, events, DISPLAY_X_MAP_PARTS,
		DISPLAY_X_MAP_PARTS, NULL);
	return 0;
}

int display_x_keyboard_init(struct display_x_keyboard *k, xcb_connection_t *c, struct err *e)
{
	xcb_xkb_get_map_reply_t *map;
	xcb_xkb_get_state_reply_t *state;

	*k = (struct display_x_keyboard){.c = c};
	if (begin(k, e) == 0) {
		map = xcb_xkb_get_map_reply(c, ask_map(k), NULL);
		state = xcb_xkb_get_state_reply(c, xcb_xkb_get_state(c, CORE), NULL);
		if (state)
			k->now = (struct display_x_modifiers){state->mods, state->group};
		free(state);
		if (!map)
			err_set(e, ERR_FAILED, -EIO, "the X server has no keyboard");
		else
			display_x_keymap_take(&k->map, map, e);
	}
	if (err_is(e)) {
		k->c = NULL;
		return e->error;
	}
	display_x_spares_find(&k->spares, &k->map, io_now_ns());
	return 0;
}

void display_x_keyboard_fini(struct display_x_keyboard *k)
{
	display_x_keymap_fini(&k->map);
	*k = (struct display_x_keyboard){0};
}

bool display_x_keyboard_event(struct display_x_keyboard *k, const xcb_generic_event_t *event)
{
	const xcb_xkb_state_notify_event_t *state = (const void *)event;

	if (!k->c || (event->response_type & 0x7f) != k->event)
		return false;
	if (event->pad0 == XCB_XKB_STATE_NOTIFY)
		k->now = (struct display_x_modifiers){state->mods, state->group};
	else
		k->map_old = true;
	return true;
}

/* Also what was asked already, for that may be from before. */
static bool ask(struct display_x_keyboard *k)
{
	const bool any = k->map_old || k->now_old;

	if (k->map_old) {
		if (k->map_asked)
			xcb_discard_reply(k->c, k->map_asked);
		k->map_asked = ask_map(k).sequence;
	}
	if (k->now_old) {
		if (k->now_asked)
			xcb_discard_reply(k->c, k->now_asked);
		k->now_asked = xcb_xkb_get_state(k->c, CORE).sequence;
		k->now_asked_ns = io_now_ns();
	}
	k->map_old = k->now_old = false;
	return any;
}

static bool take_answer(struct display_x_keyboard *k, unsigned *asked, void **ret)
{
	xcb_generic_error_t *error = NULL;

	*ret = NULL;
	if (!*asked || !xcb_poll_for_reply(k->c, *asked, ret, &error))
		return false;
	*asked = 0;
	free(error);
	return true;
}

static void take_state(struct display_x_keyboard *k, const xcb_xkb_get_state_reply_t *state)
{
	const uint64_t now = io_now_ns();

	k->slow_ns = MAX(now - k->now_asked_ns, k->slow_ns / 2);
	k->now = (struct display_x_modifiers){state->mods, state->group};
	/* It has been pressed not before. */
	if (k->last_spare)
		display_x_spares_used(&k->spares, k->last_spare, now);
	k->last_spare = 0;
}

static bool take_answers(struct display_x_keyboard *k)
{
	struct err ignored = {0};
	void *map, *state;
	bool any = take_answer(k, &k->map_asked, &map);

	/* Another layout, or other spare keys: these may be gone, or in nobody's way. */
	if (map && display_x_keymap_take(&k->map, map, &ignored) == 0)
		display_x_spares_find(&k->spares, &k->map, 0);
	any |= take_answer(k, &k->now_asked, &state);
	if (state)
		take_state(k, state);
	free(state);
	return any;
}

static bool knows(const struct display_x_keyboard *k)
{
	return !k->map_old && !k->map_asked && !k->now_old && !k->now_asked;
}

/* ---- which key ------------------------------------------------------------------------------- */

static bool holds(const struct display_x_keyboard *k, xcb_keysym_t keysym)
{
	for (unsigned i = 0; i < k->n_down; i++)
		if (k->down[i].keysym == keysym)
			return true;
	return false;
}

static bool is_down(const struct display_x_keyboard *k, unsigned keycode)
{
	for (unsigned i = 0; i < k->n_down; i++)
		if (k->down[i].keycode == keycode)
			return true;
	return false;
}

static bool gives(const struct display_x_keyboard *k, unsigned keycode, xcb_keysym_t keysym,
	struct display_x_modifiers with)
{
	if (keycode < k->map.first || keycode > k->map.last ||
		display_x_spares_has(&k->spares, keycode))
		return false;
	if (display_x_keysym_is_modifier(keysym))
		return display_x_keymap_plain(&k->map, keycode) == keysym;
	return display_x_keysym_same(display_x_keymap_symbol(&k->map, keycode, with), keysym);
}

static xcb_keycode_t find_with(const struct display_x_keyboard *k, xcb_keysym_t keysym,
	uint16_t scancode, struct display_x_modifiers with)
{
	if (scancode && gives(k, scancode + EVDEV_TO_X, keysym, with))
		return (xcb_keycode_t)(scancode + EVDEV_TO_X);
	for (unsigned c = k->map.first; c <= k->map.last; c++)
		if (gives(k, c, keysym, with))
			return (xcb_keycode_t)c;
	return 0;
}

/*
 * A shortcut is looked for in all groups, the current one first: programs do that as well, and
 * those that grab one do it by its key.
 */
static xcb_keycode_t find_key(
	const struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode)
{
	xcb_keycode_t keycode = find_with(k, keysym, scancode, k->now);
	struct display_x_modifiers with = k->now;

	if (!(k->now.mask & SHORTCUT))
		return keycode;
	with.mask &= (uint8_t)~SHORTCUT;
	for (unsigned i = 0; !keycode && i < DISPLAY_X_GROUPS; i++) {
		with.group = (uint8_t)((k->now.group + i) % DISPLAY_X_GROUPS);
		keycode = find_with(k, keysym, scancode, with);
	}
	return keycode;
}

/* 0: none; then next_ns says whether there will be one. */
static xcb_keycode_t take_spare(struct display_x_keyboard *k, xcb_keysym_t keysym, bool at_once)
{
	const uint64_t respite = RESPITE_NS + MIN(k->slow_ns * RESPITE_SLOW, MAX_SLOW_NS);
	struct display_x_spare *one;
	uint8_t down[32] = {0};

	for (unsigned i = 0; i < k->n_down; i++)
		down[k->down[i].keycode / 8] |= (uint8_t)(1 << k->down[i].keycode % 8);
	one = display_x_spares_take(
		&k->spares, keysym, down, io_now_ns(), at_once ? 0 : respite, &k->next_ns);
	if (!one)
		return 0;
	if (!display_x_keysym_same(one->keysym, keysym))
		display_x_keymap_set_single(k->c, &k->map, one->keycode, keysym);
	one->keysym = keysym;
	return one->keycode;
}

/* ---- typing ---------------------------------------------------------------------------------- */

static void fake(struct display_x_keyboard *k, bool down, xcb_keycode_t keycode)
{
	xcb_test_fake_input(k->c, down ? XCB_KEY_PRESS : XCB_KEY_RELEASE, keycode, XCB_CURRENT_TIME,
		XCB_NONE, 0, 0, 0);
	k->now_old = true;
	if (!display_x_spares_has(&k->spares, keycode))
		return;
	display_x_spares_used(&k->spares, keycode, io_now_ns());
	k->last_spare = keycode;
}

/* False: not yet. */
static bool press(struct display_x_keyboard *k, const struct display_x_typed *t, bool at_once)
{
	xcb_keycode_t keycode;

	if (k->n_down == DISPLAY_X_KEYS || holds(k, t->keysym))
		return true;
	if (!at_once && !knows(k) && !display_x_keysym_is_modifier(t->keysym))
		return false;
	keycode = find_key(k, t->keysym, t->scancode);
	if (!keycode)
		keycode = take_spare(k, t->keysym, at_once);
	if (!keycode && k->next_ns)
		return false;
	/* Two symbols of one key: it has to come up between them. */
	if (!keycode || is_down(k, keycode))
		return true;
	k->down[k->n_down].keysym = t->keysym;
	k->down[k->n_down++].keycode = keycode;
	fake(k, true, keycode);
	return true;
}

static void let_up(struct display_x_keyboard *k, unsigned i)
{
	fake(k, false, k->down[i].keycode);
	k->down[i] = k->down[--k->n_down];
}

/* The one that has waited longest.  False: it has to wait on. */
static bool type_one(struct display_x_keyboard *k, bool at_once)
{
	const struct display_x_typed *t = &k->waiting[k->first_waiting];

	if (t->down && !press(k, t, at_once))
		return false;
	for (unsigned i = 0; !t->down && i < k->n_down; i++)
		if (k->down[i].keysym == t->keysym)
			let_up(k, i--);
	k->first_waiting = (k->first_waiting + 1) % DISPLAY_X_WAITING;
	k->n_waiting--;
	return true;
}

/* What may be, and asks what is to be known for the rest.  True if there was any. */
static bool type(struct display_x_keyboard *k)
{
	bool any = false;

	k->next_ns = 0;
	while (k->n_waiting && type_one(k, false))
		any = true;
	any |= ask(k);
	xcb_flush(k->c);
	return any;
}

void display_x_keyboard_key(
	struct display_x_keyboard *k, xcb_keysym_t keysym, uint16_t scancode, bool down)
{
	if (!k->c || keysym == XCB_NO_SYMBOL)
		return;
	if (k->n_waiting == DISPLAY_X_WAITING)
		type_one(k, true);
	k->waiting[(k->first_waiting + k->n_waiting++) % DISPLAY_X_WAITING] =
		(struct display_x_typed){keysym, scancode, down};
}

bool display_x_keyboard_look(struct display_x_keyboard *k)
{
	bool any;

	if (!k->c)
		return false;
	any = take_answers(k);
	return type(k) || any;
}

/* Until something has come that was asked for, or a key may be free. */
static void wait_for_it(struct display_x_keyboard *k, uint64_t until_ns)
{
	struct pollfd p = {.fd = xcb_get_file_descriptor(k->c), .events = POLLIN};
	const uint64_t now = io_now_ns(), at = k->next_ns ? MIN(k->next_ns, until_ns) : until_ns;

	if (at > now)
		poll(&p, knows(k) ? 0 : 1, (int)((at - now) / 1000000) + 1);
}

void display_x_keyboard_leave(struct display_x_keyboard *k, uint64_t until_ns)
{
	while (k->c && k->n_waiting && io_now_ns() < until_ns && !xcb_connection_has_error(k->c)) {
		while (display_x_keyboard_look(k))
			;
		if (k->n_waiting)
			wait_for_it(k, until_ns);
	}
	while (k->c && k->n_waiting)
		type_one(k, true);
	while (k->c && k->n_down)
		let_up(k, 0);
}
