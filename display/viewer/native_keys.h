/* SPDX-License-Identifier: GPL-2.0-or-later */
/* native_keys - SDL's keys in X's words. */
#ifndef DISPLAY_VIEWER_NATIVE_KEYS_H
#define DISPLAY_VIEWER_NATIVE_KEYS_H

#include <SDL.h>
#include <stdint.h>

/* The evdev scancode (linux/input-event-codes.h) of where the key is; 0: none is known. */
uint16_t display_native_scancode(SDL_Scancode scancode);
/* The keysym of what is on the key, without modifiers; 0: none. */
uint32_t display_native_keysym(const SDL_Keysym *key);
/* The keysym of the first character of @text (UTF-8), which moves behind it; 0 at the end, or
 * for what can't be typed. */
uint32_t display_native_keysym_of_text(const char **text);

#endif
