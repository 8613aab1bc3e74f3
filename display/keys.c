// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/keys.h"

#include <string.h>

#include "base/base.h"
#include "display/x/keysym.h"

#define ALT_LEFT   0xffe9
#define ALT_RIGHT  0xffea
#define META_LEFT  0xffe7
#define META_RIGHT 0xffe8

static bool same_key(const struct display_key *a, const struct display_key *b)
{
	return a->scancode || b->scancode ? a->scancode == b->scancode : a->keysym == b->keysym;
}

static bool is_letter(uint32_t s)
{
	return (s >= 'A' && s <= 'Z') || (s >= 'a' && s <= 'z') || (s >= 0xc0 && s <= 0xfe);
}

/* With Shift the one is the other, on any keyboard. */
static bool are_a_pair(uint32_t a, uint32_t b)
{
	return ((a ^ b) == 0x20 && is_letter(a) && is_letter(b)) ||
	       (MIN(a, b) == META_LEFT && MAX(a, b) == ALT_LEFT) ||
	       (MIN(a, b) == META_RIGHT && MAX(a, b) == ALT_RIGHT);
}

/*
 * Who says no scancodes names the key by what it gives at the end.  It is the one that gives this
 * with another Shift, if that is known; or else the one that is down for longest, so that what
 * comes up as often as it went down leaves nothing down.
 */
static size_t find_other(const struct display_keys *k, const struct display_key *key)
{
	size_t i;

	if (key->scancode)
		return k->n;
	for (i = 0; i < k->n; i++)
		if (!k->all[i].scancode && are_a_pair(k->all[i].keysym, key->keysym))
			return i;
	if (display_x_keysym_is_modifier(key->keysym))
		return k->n;
	for (i = 0; i < k->n; i++)
		if (!k->all[i].scancode && !display_x_keysym_is_modifier(k->all[i].keysym))
			return i;
	return k->n;
}

bool display_keys_take(struct display_keys *k, struct display_key *key, bool down)
{
	size_t i = 0;

	while (i < k->n && !same_key(&k->all[i], key))
		i++;
	if (i == k->n && !down)
		i = find_other(k, key);
	if (i == (down ? DISPLAY_KEYS : k->n))
		return false;
	if (i == k->n)
		k->all[k->n++] = *key;
	*key = k->all[i];
	if (!down)
		memmove(k->all + i, k->all + i + 1, (--k->n - i) * sizeof(*k->all));
	return true;
}

bool display_keys_has(const struct display_keys *k, uint32_t keysym)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->all[i].keysym == keysym)
			return true;
	return false;
}
