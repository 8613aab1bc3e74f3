/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keys - which keys of one viewer are down.
 */
#ifndef DISPLAY_KEYS_H
#define DISPLAY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISPLAY_KEYS 32 /* more than fingers are ignored, for they must come up some day */

struct display_key {
	uint32_t keysym;   /* of X, when it went down */
	uint16_t scancode; /* of evdev, or 0 */
};

struct display_keys {
	struct display_key all[DISPLAY_KEYS]; /* in the order in which they went down */
	size_t n;
};

/*
 * Of one physical key the symbol may be another one when it comes up, for Shift came up before, also
 * where no scancode says which key it is: @key becomes what it was when it went down.  False: it never went down, or there are too many.
 */
bool display_keys_take(struct display_keys *k, struct display_key *key, bool down);
/* One that gives this is down. */
bool display_keys_has(const struct display_keys *k, uint32_t keysym);

#endif
