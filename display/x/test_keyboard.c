// SPDX-License-Identifier: GPL-2.0-or-later
/* Which symbol a key gives, what X's names stand for, and which key is given a new symbol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/x/keymap.h"
#include "display/x/keysym.h"
#include "display/x/spares.h"

#define SHIFT	 XCB_MOD_MASK_SHIFT
#define LOCK	 XCB_MOD_MASK_LOCK
#define NUM_LOCK XCB_MOD_MASK_2
#define LEVEL3	 XCB_MOD_MASK_5

/* ---- symbols --------------------------------------------------------------------------------- */

/* The first, the last and some of each page, as keysymdef.h has them. */
static void test_characters(void **state)
{
	static const struct {
		xcb_keysym_t keysym;
		uint32_t character;
	} all[] = {{0x20, ' '}, {'~', '~'}, {0xe4, 0xe4}, {0x01000041, 'A'}, {0x0101f600, 0x1f600},
		{0x1a1, 0x104}, {0x1b1, 0x105}, {0x1ec, 0x11b}, {0x1ff, 0x2d9}, {0x2a1, 0x126},
		{0x2fe, 0x15d}, {0x3a2, 0x138}, {0x3bd, 0x14a}, {0x3fe, 0x16b}, {0x5ac, 0x60c},
		{0x5d4, 0x634}, {0x5f2, 0x652}, {0x6a1, 0x452}, {0x6ad, 0x491}, {0x6ca, 0x439},
		{0x6ff, 0x42a}, {0x7a1, 0x386}, {0x7e1, 0x3b1}, {0x7f9, 0x3c9}, {0x8bc, 0x2264},
		{0x8f6, 0x192}, {0xaa9, 0x2014}, {0xaae, 0x2026}, {0xad2, 0x201c}, {0xafe, 0x201e},
		{0xce0, 0x5d0}, {0xcf9, 0x5e9}, {0xcfa, 0x5ea}, {0xda1, 0xe01}, {0xddf, 0xe3f},
		{0xdf9, 0xe59}, {0x13bc, 0x152}, {0x13bd, 0x153}, {0x13be, 0x178}, {0x20a0, 0},
		{0x20ac, 0x20ac}, {0, 0}, {0x1a0, 0}, {0x1a4, 0}, {0x7ff, 0}, {0x13bf, 0},
		{0x01ffffff, 0}, {0xff0d, 0}, {0xffb7, 0}, {0xffffffff, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(
			display_x_keysym_character(all[i].keysym), all[i].character);
	assert_true(display_x_keysym_same(0x6ca, 0x01000439));
	assert_true(display_x_keysym_same(0x20ac, 0x010020ac));
	assert_true(display_x_keysym_same('a', 'a'));
	assert_true(display_x_keysym_same(0xffb7, 0xffb7));
	assert_false(display_x_keysym_same('7', 0xffb7));
	assert_false(display_x_keysym_same(0xff0d, 0xff8d));
	assert_false(display_x_keysym_same('a', 'A'));
}

/* ---- a map ----------------------------------------------------------------------------------- */

enum { ONE_LEVEL, TWO_LEVEL, ALPHABETIC, KEYPAD, FOUR_LEVEL, N_TYPES };
enum {
	FIRST = 8,
	Q = 24,	   /* Latin, and Cyrillic in another group */
	SEVEN = 79, /* of a keypad */
	E_ACUTE,
	CLAMPED, /* two groups, the last one for all above */
	SINGLE,
	SINGLE_EURO,
	EMPTY,
	NOTHING, /* it has symbols, and all are none */
	LAST
};

static void put(struct buf *b, const void *data, size_t n)
{
	buf_put(b, data, n);
}

static void put_type(struct buf *b, uint8_t mask, unsigned n_levels, const uint8_t *masks,
	const uint8_t *levels, unsigned n, bool preserve)
{
	const xcb_xkb_key_type_t t = {.mods_mask = mask,
		.numLevels = (uint8_t)n_levels,
		.nMapEntries = (uint8_t)n,
		.hasPreserve = preserve};
	const xcb_xkb_mod_def_t none = {0};

	put(b, &t, sizeof(t));
	for (unsigned i = 0; i < n; i++) {
		const xcb_xkb_kt_map_entry_t entry = {
			.active = 1, .mods_mask = masks[i], .level = levels[i]};

		put(b, &entry, sizeof(entry));
	}
	for (unsigned i = 0; preserve && i < n; i++)
		put(b, &none, sizeof(none));
}

static void put_types(struct buf *b)
{
	static const uint8_t shift[] = {SHIFT}, either[] = {SHIFT, LOCK},
			     keypad[] = {SHIFT, NUM_LOCK}, four[] = {SHIFT, LEVEL3, SHIFT | LEVEL3},
			     one[] = {1, 1}, levels[] = {1, 2, 3};

	put_type(b, 0, 1, NULL, NULL, 0, false);
	put_type(b, SHIFT, 2, shift, one, 1, false);
	put_type(b, SHIFT | LOCK, 2, either, one, 2, true);
	put_type(b, SHIFT | NUM_LOCK, 2, keypad, one, 2, false);
	put_type(b, SHIFT | LEVEL3, 4, four, levels, 3, false);
}

static void put_key(struct buf *b, uint8_t groups, uint8_t type, uint8_t width, unsigned n,
	const xcb_keysym_t *symbols)
{
	const xcb_xkb_key_sym_map_t k = {.kt_index = {type, type, type, type},
		.groupInfo = groups,
		.width = width,
		.nSyms = (uint16_t)n};

	put(b, &k, sizeof(k));
	for (unsigned i = 0; i < n; i++)
		put(b, &symbols[i], sizeof(symbols[i]));
}

static void put_keys(struct buf *b)
{
	static const xcb_keysym_t q[] = {'q', 'Q', 0x6ca, 0x6ea}, seven[] = {0xff95, 0xffb7},
				  e[] = {0xe9, '2', '~', 0x1ec}, single[] = {'x', 'x'},
				  nothing[2] = {0}, euro[] = {0x20ac};

	for (unsigned c = FIRST; c <= LAST; c++)
		if (c == Q)
			put_key(b, 2, ALPHABETIC, 2, 4, q);
		else if (c == SEVEN)
			put_key(b, 1, KEYPAD, 2, 2, seven);
		else if (c == E_ACUTE)
			put_key(b, 1, FOUR_LEVEL, 4, 4, e);
		else if (c == CLAMPED)
			put_key(b, 2 | 0x40, ALPHABETIC, 2, 4, q);
		else if (c == SINGLE)
			put_key(b, 1 | 0xb0, ALPHABETIC, 2, 2, single);
		else if (c == SINGLE_EURO)
			put_key(b, 1 | 0xb0, ONE_LEVEL, 1, 1, euro);
		else if (c == NOTHING)
			put_key(b, 1, TWO_LEVEL, 2, 2, nothing);
		else if (c == EMPTY)
			put_key(b, 0, 0, 0, 0, NULL);
		else
			put_key(b, 1, TWO_LEVEL, 2, 2, seven);
}

/* As it comes; all behind the first @len bytes is missing. */
static xcb_xkb_get_map_reply_t *reply_of(const struct buf *b, size_t len)
{
	xcb_xkb_get_map_reply_t *r = malloc(len);

	assert_non_null(r);
	memcpy(r, b->data, len);
	r->length = (uint32_t)(len - 32) / 4;
	return r;
}

static struct buf map_bytes(void)
{
	struct buf b = BUF_INIT;
	const xcb_xkb_get_map_reply_t head = {.response_type = 1,
		.minKeyCode = FIRST,
		.maxKeyCode = LAST,
		.present = DISPLAY_X_MAP_PARTS,
		.nTypes = N_TYPES,
		.totalTypes = N_TYPES,
		.firstKeySym = FIRST,
		.nKeySyms = LAST - FIRST + 1};

	put(&b, &head, sizeof(head));
	put_types(&b);
	put_keys(&b);
	assert_int_equal(buf_error(&b), 0);
	return b;
}

static struct display_x_keymap map_of(const struct buf *b)
{
	struct display_x_keymap m = {0};
	struct err e = {0};

	assert_int_equal(display_x_keymap_take(&m, reply_of(b, b->len), &e), 0);
	return m;
}

static xcb_keysym_t gives(const struct display_x_keymap *m, unsigned c, uint8_t mask, uint8_t group)
{
	return display_x_keymap_symbol(m, c, (struct display_x_modifiers){mask, group});
}

static void test_levels(void **state)
{
	struct buf b = map_bytes();
	struct display_x_keymap m = map_of(&b);

	assert_int_equal(gives(&m, Q, 0, 0), 'q');
	assert_int_equal(gives(&m, Q, SHIFT, 0), 'Q');
	assert_int_equal(gives(&m, Q, LOCK, 0), 'Q');
	assert_int_equal(gives(&m, Q, LOCK | SHIFT, 0), 'q');
	assert_int_equal(gives(&m, Q, XCB_MOD_MASK_CONTROL, 0), 'q');
	assert_int_equal(gives(&m, Q, 0, 1), 0x6ca);
	assert_int_equal(gives(&m, Q, SHIFT, 1), 0x6ea);
	assert_int_equal(gives(&m, Q, 0, 2), 'q');
	assert_int_equal(gives(&m, CLAMPED, 0, 3), 0x6ca);
	assert_int_equal(display_x_keymap_plain(&m, Q), 'q');
	assert_int_equal(gives(&m, SEVEN, 0, 3), 0xff95);
	assert_int_equal(gives(&m, SEVEN, NUM_LOCK, 0), 0xffb7);
	assert_int_equal(gives(&m, SEVEN, NUM_LOCK | SHIFT, 0), 0xff95);
	assert_int_equal(gives(&m, E_ACUTE, 0, 0), 0xe9);
	assert_int_equal(gives(&m, E_ACUTE, LEVEL3, 0), '~');
	assert_int_equal(gives(&m, E_ACUTE, LEVEL3 | SHIFT, 0), 0x1ec);
	/* Programs decide what Caps Lock makes of it. */
	assert_int_equal(gives(&m, E_ACUTE, LOCK, 0), XCB_NO_SYMBOL);
	assert_int_equal(gives(&m, E_ACUTE, LOCK | SHIFT, 0), '2');
	assert_int_equal(gives(&m, EMPTY, 0, 0), XCB_NO_SYMBOL);
	assert_int_equal(gives(&m, NOTHING, 0, 0), XCB_NO_SYMBOL);
	assert_int_equal(gives(&m, 255, 0, 0), XCB_NO_SYMBOL);
	for (unsigned mask = 0; mask < 256; mask++) {
		assert_int_equal(gives(&m, SINGLE, (uint8_t)mask, mask % 4), 'x');
		assert_int_equal(gives(&m, SINGLE_EURO, (uint8_t)mask, mask % 4), 0x20ac);
	}
	assert_int_equal(display_x_keymap_single(&m, SINGLE), 'x');
	assert_int_equal(display_x_keymap_single(&m, SINGLE_EURO), 0x20ac);
	assert_int_equal(display_x_keymap_single(&m, Q), XCB_NO_SYMBOL);
	assert_true(display_x_keymap_is_empty(&m, EMPTY));
	assert_true(display_x_keymap_is_empty(&m, NOTHING));
	assert_false(display_x_keymap_is_empty(&m, SINGLE));
	display_x_keymap_fini(&m);
	buf_fini(&b);
}

/* The X server is anybody's: what it has not sent is not there, and the last map stays. */
static void test_maps_that_are_none(void **state)
{
	struct buf b = map_bytes();
	struct display_x_keymap m = map_of(&b);
	xcb_xkb_get_map_reply_t *r;
	struct err e = {0};

	for (size_t len = 32; len < b.len; len += 4)
		assert_int_equal(
			display_x_keymap_take(&m, reply_of(&b, len), &e), -EBADMSG);
	r = reply_of(&b, b.len);
	r->nKeySyms = 255; /* 8 too many for a keycode */
	assert_int_equal(display_x_keymap_take(&m, r, &e), -EBADMSG);
	r = reply_of(&b, b.len);
	((xcb_xkb_key_type_t *)(r + 1))->nMapEntries = 255;
	assert_int_equal(display_x_keymap_take(&m, r, &e), -EBADMSG);
	for (size_t i = sizeof(*r); i < b.len; i++) {
		struct display_x_keymap other = {0};

		r = reply_of(&b, b.len);
		((uint8_t *)r)[i] ^= 0xff;
		if (display_x_keymap_take(&other, r, &e) == 0)
			for (unsigned c = 0; c < 256; c++)
				gives(&other, c, 0xff, 3);
		display_x_keymap_fini(&other);
	}
	assert_int_equal(gives(&m, Q, 0, 0), 'q');
	display_x_keymap_fini(&m);
	buf_fini(&b);
}

/* ---- spare keys ------------------------------------------------------------------------------ */

#define RESPITE 100u

static struct display_x_spares three_spares(void)
{
	return (struct display_x_spares){.all = {{10, 0}, {11, 0}, {12, 0}}, .n = 3};
}

/* Which key @keysym is pressed with at @now, 0: none, and *@at is when there will be one. */
static xcb_keycode_t taken(struct display_x_spares *s, xcb_keysym_t keysym, const uint8_t *down,
	uint64_t now, uint64_t *at)
{
	struct display_x_spare *one =
		display_x_spares_take(s, keysym, down, now, RESPITE, at);

	if (!one)
		return 0;
	one->keysym = keysym;
	display_x_spares_used(s, one->keycode, now);
	return one->keycode;
}

static void test_spares(void **state)
{
	struct display_x_spares s = three_spares();
	uint8_t down[32] = {0};
	uint64_t at;

	assert_int_equal(taken(&s, 'a', down, 1000, &at), 10);
	assert_int_equal(taken(&s, 'b', down, 1010, &at), 11);
	assert_int_equal(taken(&s, 'c', down, 1020, &at), 12);
	assert_int_equal(taken(&s, 'a', down, 1030, &at), 10);
	/* Each was just used: the oldest is waited for. */
	assert_int_equal(taken(&s, 'd', down, 1040, &at), 0);
	assert_int_equal(at, 1010 + RESPITE);
	assert_int_equal(taken(&s, 'd', down, at, &at), 11);
	assert_int_equal(taken(&s, 'b', down, 1110, &at), 0);
	assert_int_equal(at, 1020 + RESPITE);
	/* One that is held is nobody else's. */
	down[12 / 8] |= 1 << 12 % 8;
	assert_int_equal(taken(&s, 'b', down, 1120, &at), 0);
	assert_int_equal(at, 1030 + RESPITE);
	memset(down, 0xff, sizeof(down));
	assert_int_equal(taken(&s, 'b', down, 5000, &at), 0);
	assert_int_equal(at, 0);
	memset(down, 0, sizeof(down));
	assert_non_null(display_x_spares_take(&s, 'b', down, 1120, 0, &at));
}

/* They are told from the map, as are those that somebody else has given a symbol. */
static void test_spares_of_a_map(void **state)
{
	struct buf b = map_bytes();
	struct display_x_keymap m = map_of(&b);
	struct display_x_spares s = {0};
	const uint8_t down[32] = {0};
	uint64_t at;

	display_x_spares_find(&s, &m, 1000);
	assert_int_equal(s.n, 4);
	assert_true(display_x_spares_has(&s, SINGLE));
	assert_int_equal(taken(&s, 0x010020ac, down, 1000, &at), SINGLE_EURO);
	assert_true(display_x_spares_has(&s, EMPTY));
	assert_true(display_x_spares_has(&s, NOTHING));
	assert_false(display_x_spares_has(&s, Q));
	assert_int_equal(taken(&s, 'x', down, 1000, &at), SINGLE);
	assert_int_equal(taken(&s, 'a', down, 1000, &at), NOTHING);
	/* What it had was perhaps just used, by who was here before. */
	assert_int_equal(taken(&s, 'b', down, 1000, &at), EMPTY);
	assert_int_equal(taken(&s, 'c', down, 1000, &at), 0);
	/* The next map does not have what was given there. */
	display_x_spares_find(&s, &m, 0);
	assert_int_equal(taken(&s, 'x', down, 1050, &at), SINGLE);
	assert_int_equal(taken(&s, 'a', down, 1050, &at), 0);
	assert_int_equal(at, 1000 + RESPITE);
	display_x_keymap_fini(&m);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_maps_that_are_none),
		cmocka_unit_test(test_spares),
		cmocka_unit_test(test_spares_of_a_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
