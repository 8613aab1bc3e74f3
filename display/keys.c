// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/keys.h"

static bool same_key(const struct display_key *a, const struct display_key *b)
{
	return a->scancode || b->scancode ? a->scancode == b->scancode : a->keysym == b->keysym;
}

bool display_keys_take(struct display_keys *k, struct display_key *key, bool down)
{
	size_t i = 0;

	while (i < k->n && !same_key(&k->all[i], key))
		i++;
	if (i == (down ? DISPLAY_KEYS : k->n))
		return false;
	if (i == k->n)
		k->all[k->n++] = *key;
	*key = k->all[i];
	if (!down)
		k->all[i] = k->all[--k->n];
	return true;
}

bool display_keys_has(const struct display_keys *k, uint32_t keysym)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->all[i].keysym == keysym)
			return true;
	return false;
}
