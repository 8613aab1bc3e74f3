// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The reply is kept as it came, and where each type and each key begins in it.  All that is counted
 * there is compared with the reply's length once, when it comes; later it is taken for true.
 *
 *      types    key_type, n map entries, as many preserved masks if it has any
 *      keys     key_sym_map, n symbols: of each group `width`, one for each level
 */
#include "display/x/keymap.h"

#include <string.h>

#include "base/base.h"
#include "display/x/keysym.h"

#define REPLY_BYTES	 32 /* at least, of any; more is counted by its length */
#define TYPE_ONE_LEVEL	 0 /* the first four are always the same */
#define TYPE_ALPHABETIC	 2
#define N_REQUIRED_TYPES 4
/* Of groupInfo: what becomes of groups that the key has not. */
#define OUT_OF_RANGE	0xc0
#define OUT_CLAMPS	0x40
#define OUT_REDIRECTS	0x80
#define REDIRECTED_TO(i) ((i) >> 4 & 3)
/* One group, and all others lead to the fourth, which there is not: that is the first again. */
#define SINGLE_GROUP_INFO (1 | OUT_REDIRECTS | 3 << 4)

/* ---- what has come --------------------------------------------------------------------------- */

static unsigned n_groups(const xcb_xkb_key_sym_map_t *k)
{
	return k ? k->groupInfo & 0xf : 0;
}

static bool take_types(struct display_x_keymap *m, struct cursor *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const xcb_xkb_key_type_t *t = cursor_take(c, sizeof(*t));

		if (!t || !cursor_take(c, t->nMapEntries * sizeof(xcb_xkb_kt_map_entry_t)))
			return false;
		if (t->hasPreserve && !cursor_take(c, t->nMapEntries * sizeof(xcb_xkb_mod_def_t)))
			return false;
		m->types[i] = t;
	}
	m->n_types = n;
	return true;
}

static bool take_keys(struct display_x_keymap *m, struct cursor *c, unsigned first, unsigned n)
{
	if (first + n > ARRAY_SIZE(m->keys))
		return false;
	for (unsigned i = first; i < first + n; i++) {
		const xcb_xkb_key_sym_map_t *k = cursor_take(c, sizeof(*k));

		if (!k || !cursor_take(c, k->nSyms * sizeof(xcb_keysym_t)) ||
			n_groups(k) > DISPLAY_X_GROUPS || n_groups(k) * k->width > k->nSyms)
			return false;
		for (unsigned g = 0; g < n_groups(k); g++)
			if (k->kt_index[g] >= m->n_types)
				return false;
		m->keys[i] = k;
	}
	return true;
}

int display_x_keymap_take(
	struct display_x_keymap *m, xcb_xkb_get_map_reply_t *reply, struct err *e)
{
	struct display_x_keymap now = {
		.reply = reply, .first = reply->minKeyCode, .last = reply->maxKeyCode};
	struct cursor c = cursor_of(reply, REPLY_BYTES + (size_t)reply->length * 4);

	if (!cursor_take(&c, sizeof(*reply)) || reply->present != DISPLAY_X_MAP_PARTS ||
		reply->firstType || reply->nTypes < N_REQUIRED_TYPES || now.first > now.last ||
		!take_types(&now, &c, reply->nTypes) ||
		!take_keys(&now, &c, reply->firstKeySym, reply->nKeySyms)) {
		free(reply);
		return err_set(e, ERR_FAILED, -EBADMSG, "the X server has no keyboard");
	}
	free(m->reply);
	*m = now;
	return 0;
}

void display_x_keymap_fini(struct display_x_keymap *m)
{
	free(m->reply);
	*m = (struct display_x_keymap){0};
}

/* ---- what a key gives ------------------------------------------------------------------------ */

static xcb_keysym_t symbol_at(const xcb_xkb_key_sym_map_t *k, unsigned group, unsigned level)
{
	xcb_keysym_t s = XCB_NO_SYMBOL;

	if (group < n_groups(k) && level < k->width)
		memcpy(&s, (const xcb_keysym_t *)(k + 1) + group * k->width + level, sizeof(s));
	return s;
}

static unsigned group_of(const xcb_xkb_key_sym_map_t *k, unsigned group)
{
	const unsigned n = n_groups(k);

	if (group < n)
		return group;
	if ((k->groupInfo & OUT_OF_RANGE) == OUT_CLAMPS)
		return n - 1;
	if ((k->groupInfo & OUT_OF_RANGE) == OUT_REDIRECTS)
		return REDIRECTED_TO(k->groupInfo) < n ? REDIRECTED_TO(k->groupInfo) : 0;
	return group % n;
}

static unsigned level_of(const xcb_xkb_key_type_t *t, uint8_t mask)
{
	const xcb_xkb_kt_map_entry_t *entries = (const void *)(t + 1);

	for (unsigned i = 0; i < t->nMapEntries; i++)
		if (entries[i].active && entries[i].mods_mask == (mask & t->mods_mask))
			return entries[i].level;
	return 0;
}

xcb_keysym_t display_x_keymap_symbol(
	const struct display_x_keymap *m, unsigned keycode, struct display_x_modifiers now)
{
	const xcb_xkb_key_sym_map_t *k = m->keys[keycode & 0xff];
	const xcb_xkb_key_type_t *t;
	unsigned group;
	xcb_keysym_t s;

	if (!n_groups(k))
		return XCB_NO_SYMBOL;
	group = group_of(k, now.group);
	t = m->types[k->kt_index[group]];
	s = symbol_at(k, group, level_of(t, now.mask));
	if (now.mask & ~t->mods_mask & XCB_MOD_MASK_LOCK && display_x_keysym_may_have_case(s))
		return XCB_NO_SYMBOL;
	return s;
}

xcb_keysym_t display_x_keymap_plain(const struct display_x_keymap *m, unsigned keycode)
{
	return symbol_at(m->keys[keycode & 0xff], 0, 0);
}

bool display_x_keymap_is_empty(const struct display_x_keymap *m, unsigned keycode)
{
	const xcb_xkb_key_sym_map_t *k = m->keys[keycode & 0xff];

	for (unsigned g = 0; g < n_groups(k); g++)
		for (unsigned level = 0; level < k->width; level++)
			if (symbol_at(k, g, level) != XCB_NO_SYMBOL)
				return false;
	return true;
}

/* ---- keys with one symbol -------------------------------------------------------------------- */

/*
 * ONE_LEVEL minds no modifiers, so that programs do.  ALPHABETIC is for letters, for it is the type
 * that minds Caps Lock: of others' keys programs make capitals by themselves.
 */
static uint8_t single_type(xcb_keysym_t s)
{
	return display_x_keysym_may_have_case(s) ? TYPE_ALPHABETIC : TYPE_ONE_LEVEL;
}

void display_x_keymap_set_single(xcb_connection_t *c, const struct display_x_keymap *m,
	xcb_keycode_t keycode, xcb_keysym_t s)
{
	const uint8_t type = single_type(s), n = type == TYPE_ALPHABETIC ? 2 : 1;
	const struct {
		xcb_xkb_key_sym_map_t key;
		xcb_keysym_t symbols[2];
	} wire = {.key = {.kt_index = {type},
			  .groupInfo = SINGLE_GROUP_INFO,
			  .width = n,
			  .nSyms = n},
		.symbols = {s, s}};

	xcb_xkb_set_map(c, XCB_XKB_ID_USE_CORE_KBD, XCB_XKB_MAP_PART_KEY_SYMS,
		XCB_XKB_SET_MAP_FLAGS_RECOMPUTE_ACTIONS, m->first, m->last, 0, 0, keycode, 1, n, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, &wire);
}

xcb_keysym_t display_x_keymap_single(const struct display_x_keymap *m, unsigned keycode)
{
	const xcb_xkb_key_sym_map_t *k = m->keys[keycode & 0xff];
	const xcb_keysym_t s = symbol_at(k, 0, 0);

	if (!k || k->groupInfo != SINGLE_GROUP_INFO || k->kt_index[0] != single_type(s))
		return XCB_NO_SYMBOL;
	for (unsigned level = 1; level < k->width; level++)
		if (symbol_at(k, 0, level) != s)
			return XCB_NO_SYMBOL;
	return s;
}
