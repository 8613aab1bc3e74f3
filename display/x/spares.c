// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/x/spares.h"

#include "base/base.h"
#include "display/x/keymap.h"
#include "display/x/keysym.h"

void display_x_spares_find(
	struct display_x_spares *s, const struct display_x_keymap *m, uint64_t now_ns)
{
	s->n = 0;
	/* From above, and without the lowest: these have a meaning for some. */
	for (unsigned c = m->last; c > m->first; c--) {
		const xcb_keysym_t has = display_x_keymap_single(m, c);

		if (has ? display_x_keysym_is_modifier(has) : !display_x_keymap_is_empty(m, c))
			continue;
		s->all[s->n].keycode = (xcb_keycode_t)c;
		s->all[s->n++].keysym = has;
		if (has && now_ns)
			s->used_ns[c] = now_ns;
	}
}

bool display_x_spares_has(const struct display_x_spares *s, unsigned keycode)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->all[i].keycode == keycode)
			return true;
	return false;
}

void display_x_spares_used(struct display_x_spares *s, xcb_keycode_t keycode, uint64_t now_ns)
{
	s->used_ns[keycode] = now_ns;
}

struct display_x_spare *display_x_spares_take(struct display_x_spares *s, xcb_keysym_t keysym,
	const uint8_t down[32], uint64_t now_ns, uint64_t respite_ns, uint64_t *ret_ns)
{
	struct display_x_spare *oldest = NULL;
	uint64_t used;

	*ret_ns = 0;
	for (unsigned i = 0; i < s->n; i++) {
		struct display_x_spare *one = &s->all[i];

		if (one->keysym && display_x_keysym_same(one->keysym, keysym))
			return one;
		if (down[one->keycode / 8] >> one->keycode % 8 & 1)
			continue;
		if (!oldest || s->used_ns[one->keycode] < s->used_ns[oldest->keycode])
			oldest = one;
	}
	if (!oldest)
		return NULL;
	used = s->used_ns[oldest->keycode];
	if (!used || now_ns - used >= respite_ns)
		return oldest;
	*ret_ns = used + respite_ns;
	return NULL;
}
