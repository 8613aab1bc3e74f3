/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keysym - what is told from the number of a symbol.
 */
#ifndef DISPLAY_X_KEYSYM_H
#define DISPLAY_X_KEYSYM_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>

/* Of Unicode; 0: it writes nothing, or is none that layouts have. */
uint32_t display_x_keysym_character(xcb_keysym_t s);
/* Names of one symbol.  What a keypad writes is another symbol than what other keys write. */
bool display_x_keysym_same(xcb_keysym_t a, xcb_keysym_t b);
/* Its key changes what other keys give. */
bool display_x_keysym_is_modifier(xcb_keysym_t s);
/* Programs may turn it into a capital by Caps Lock.  True of a few letters too many. */
bool display_x_keysym_may_have_case(xcb_keysym_t s);

#endif
