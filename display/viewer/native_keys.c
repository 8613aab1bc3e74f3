// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/native_keys.h"

#include <linux/input-event-codes.h>

#include "base/base.h"

/* SDL's scancodes are USB's usages; letters, digits and keypad come in rows. */
static const uint16_t scancodes[SDL_NUM_SCANCODES] = {
	[SDL_SCANCODE_A] = KEY_A,
	[SDL_SCANCODE_B] = KEY_B,
	[SDL_SCANCODE_C] = KEY_C,
	[SDL_SCANCODE_D] = KEY_D,
	[SDL_SCANCODE_E] = KEY_E,
	[SDL_SCANCODE_F] = KEY_F,
	[SDL_SCANCODE_G] = KEY_G,
	[SDL_SCANCODE_H] = KEY_H,
	[SDL_SCANCODE_I] = KEY_I,
	[SDL_SCANCODE_J] = KEY_J,
	[SDL_SCANCODE_K] = KEY_K,
	[SDL_SCANCODE_L] = KEY_L,
	[SDL_SCANCODE_M] = KEY_M,
	[SDL_SCANCODE_N] = KEY_N,
	[SDL_SCANCODE_O] = KEY_O,
	[SDL_SCANCODE_P] = KEY_P,
	[SDL_SCANCODE_Q] = KEY_Q,
	[SDL_SCANCODE_R] = KEY_R,
	[SDL_SCANCODE_S] = KEY_S,
	[SDL_SCANCODE_T] = KEY_T,
	[SDL_SCANCODE_U] = KEY_U,
	[SDL_SCANCODE_V] = KEY_V,
	[SDL_SCANCODE_W] = KEY_W,
	[SDL_SCANCODE_X] = KEY_X,
	[SDL_SCANCODE_Y] = KEY_Y,
	[SDL_SCANCODE_Z] = KEY_Z,
	[SDL_SCANCODE_1] = KEY_1,
	[SDL_SCANCODE_2] = KEY_2,
	[SDL_SCANCODE_3] = KEY_3,
	[SDL_SCANCODE_4] = KEY_4,
	[SDL_SCANCODE_5] = KEY_5,
	[SDL_SCANCODE_6] = KEY_6,
	[SDL_SCANCODE_7] = KEY_7,
	[SDL_SCANCODE_8] = KEY_8,
	[SDL_SCANCODE_9] = KEY_9,
	[SDL_SCANCODE_0] = KEY_0,
	[SDL_SCANCODE_RETURN] = KEY_ENTER,
	[SDL_SCANCODE_ESCAPE] = KEY_ESC,
	[SDL_SCANCODE_BACKSPACE] = KEY_BACKSPACE,
	[SDL_SCANCODE_TAB] = KEY_TAB,
	[SDL_SCANCODE_SPACE] = KEY_SPACE,
	[SDL_SCANCODE_MINUS] = KEY_MINUS,
	[SDL_SCANCODE_EQUALS] = KEY_EQUAL,
	[SDL_SCANCODE_LEFTBRACKET] = KEY_LEFTBRACE,
	[SDL_SCANCODE_RIGHTBRACKET] = KEY_RIGHTBRACE,
	[SDL_SCANCODE_BACKSLASH] = KEY_BACKSLASH,
	[SDL_SCANCODE_NONUSHASH] = KEY_BACKSLASH,
	[SDL_SCANCODE_SEMICOLON] = KEY_SEMICOLON,
	[SDL_SCANCODE_APOSTROPHE] = KEY_APOSTROPHE,
	[SDL_SCANCODE_GRAVE] = KEY_GRAVE,
	[SDL_SCANCODE_COMMA] = KEY_COMMA,
	[SDL_SCANCODE_PERIOD] = KEY_DOT,
	[SDL_SCANCODE_SLASH] = KEY_SLASH,
	[SDL_SCANCODE_CAPSLOCK] = KEY_CAPSLOCK,
	[SDL_SCANCODE_F1] = KEY_F1,
	[SDL_SCANCODE_F2] = KEY_F2,
	[SDL_SCANCODE_F3] = KEY_F3,
	[SDL_SCANCODE_F4] = KEY_F4,
	[SDL_SCANCODE_F5] = KEY_F5,
	[SDL_SCANCODE_F6] = KEY_F6,
	[SDL_SCANCODE_F7] = KEY_F7,
	[SDL_SCANCODE_F8] = KEY_F8,
	[SDL_SCANCODE_F9] = KEY_F9,
	[SDL_SCANCODE_F10] = KEY_F10,
	[SDL_SCANCODE_F11] = KEY_F11,
	[SDL_SCANCODE_F12] = KEY_F12,
	[SDL_SCANCODE_PRINTSCREEN] = KEY_SYSRQ,
	[SDL_SCANCODE_SCROLLLOCK] = KEY_SCROLLLOCK,
	[SDL_SCANCODE_PAUSE] = KEY_PAUSE,
	[SDL_SCANCODE_INSERT] = KEY_INSERT,
	[SDL_SCANCODE_HOME] = KEY_HOME,
	[SDL_SCANCODE_PAGEUP] = KEY_PAGEUP,
	[SDL_SCANCODE_DELETE] = KEY_DELETE,
	[SDL_SCANCODE_END] = KEY_END,
	[SDL_SCANCODE_PAGEDOWN] = KEY_PAGEDOWN,
	[SDL_SCANCODE_RIGHT] = KEY_RIGHT,
	[SDL_SCANCODE_LEFT] = KEY_LEFT,
	[SDL_SCANCODE_DOWN] = KEY_DOWN,
	[SDL_SCANCODE_UP] = KEY_UP,
	[SDL_SCANCODE_NUMLOCKCLEAR] = KEY_NUMLOCK,
	[SDL_SCANCODE_KP_DIVIDE] = KEY_KPSLASH,
	[SDL_SCANCODE_KP_MULTIPLY] = KEY_KPASTERISK,
	[SDL_SCANCODE_KP_MINUS] = KEY_KPMINUS,
	[SDL_SCANCODE_KP_PLUS] = KEY_KPPLUS,
	[SDL_SCANCODE_KP_ENTER] = KEY_KPENTER,
	[SDL_SCANCODE_KP_1] = KEY_KP1,
	[SDL_SCANCODE_KP_2] = KEY_KP2,
	[SDL_SCANCODE_KP_3] = KEY_KP3,
	[SDL_SCANCODE_KP_4] = KEY_KP4,
	[SDL_SCANCODE_KP_5] = KEY_KP5,
	[SDL_SCANCODE_KP_6] = KEY_KP6,
	[SDL_SCANCODE_KP_7] = KEY_KP7,
	[SDL_SCANCODE_KP_8] = KEY_KP8,
	[SDL_SCANCODE_KP_9] = KEY_KP9,
	[SDL_SCANCODE_KP_0] = KEY_KP0,
	[SDL_SCANCODE_KP_PERIOD] = KEY_KPDOT,
	[SDL_SCANCODE_NONUSBACKSLASH] = KEY_102ND,
	[SDL_SCANCODE_APPLICATION] = KEY_COMPOSE,
	[SDL_SCANCODE_LCTRL] = KEY_LEFTCTRL,
	[SDL_SCANCODE_LSHIFT] = KEY_LEFTSHIFT,
	[SDL_SCANCODE_LALT] = KEY_LEFTALT,
	[SDL_SCANCODE_LGUI] = KEY_LEFTMETA,
	[SDL_SCANCODE_RCTRL] = KEY_RIGHTCTRL,
	[SDL_SCANCODE_RSHIFT] = KEY_RIGHTSHIFT,
	[SDL_SCANCODE_RALT] = KEY_RIGHTALT,
	[SDL_SCANCODE_RGUI] = KEY_RIGHTMETA,
	[SDL_SCANCODE_MUTE] = KEY_MUTE,
	[SDL_SCANCODE_VOLUMEUP] = KEY_VOLUMEUP,
	[SDL_SCANCODE_VOLUMEDOWN] = KEY_VOLUMEDOWN,
};

/* What keys that write nothing are (X11/keysymdef.h). */
static const struct {
	SDL_Keycode key;
	uint32_t keysym;
} named[] = {
	{SDLK_BACKSPACE, 0xff08},
	{SDLK_TAB, 0xff09},
	{SDLK_RETURN, 0xff0d},
	{SDLK_ESCAPE, 0xff1b},
	{SDLK_DELETE, 0xffff},
	{SDLK_HOME, 0xff50},
	{SDLK_LEFT, 0xff51},
	{SDLK_UP, 0xff52},
	{SDLK_RIGHT, 0xff53},
	{SDLK_DOWN, 0xff54},
	{SDLK_PAGEUP, 0xff55},
	{SDLK_PAGEDOWN, 0xff56},
	{SDLK_END, 0xff57},
	{SDLK_INSERT, 0xff63},
	{SDLK_PAUSE, 0xff13},
	{SDLK_SCROLLLOCK, 0xff14},
	{SDLK_PRINTSCREEN, 0xff61},
	{SDLK_APPLICATION, 0xff67},
	{SDLK_NUMLOCKCLEAR, 0xff7f},
	{SDLK_CAPSLOCK, 0xffe5},
	{SDLK_LSHIFT, 0xffe1},
	{SDLK_RSHIFT, 0xffe2},
	{SDLK_LCTRL, 0xffe3},
	{SDLK_RCTRL, 0xffe4},
	{SDLK_LALT, 0xffe9},
	{SDLK_RALT, 0xffea},
	{SDLK_MODE, 0xfe03},
	{SDLK_LGUI, 0xffeb},
	{SDLK_RGUI, 0xffec},
	{SDLK_KP_ENTER, 0xff8d},
	{SDLK_KP_PLUS, 0xffab},
	{SDLK_KP_MINUS, 0xffad},
	{SDLK_KP_MULTIPLY, 0xffaa},
	{SDLK_KP_DIVIDE, 0xffaf},
	{SDLK_KP_PERIOD, 0xffae},
	{SDLK_KP_0, 0xffb0},
	{SDLK_MUTE, 0x1008ff12},
	{SDLK_VOLUMEDOWN, 0x1008ff11},
	{SDLK_VOLUMEUP, 0x1008ff13},
};

uint16_t display_native_scancode(SDL_Scancode scancode)
{
	return (unsigned)scancode < ARRAY_SIZE(scancodes) ? scancodes[scancode] : 0;
}

/* Latin-1 is its own keysym, everything else is counted from 0x01000000. */
static uint32_t of_character(uint32_t c)
{
	if (c == '\n' || c == '\r')
		return 0xff0d;
	if (c < 32 || (c >= 127 && c < 160) || c > 0x10ffff)
		return 0;
	return c < 256 ? c : 0x01000000 + c;
}

uint32_t display_native_keysym(const SDL_Keysym *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (named[i].key == key->sym)
			return named[i].keysym;
	if (key->sym >= SDLK_F1 && key->sym <= SDLK_F12)
		return 0xffbe + (uint32_t)(key->sym - SDLK_F1);
	if (key->sym >= SDLK_KP_1 && key->sym <= SDLK_KP_9)
		return 0xffb1 + (uint32_t)(key->sym - SDLK_KP_1);
	return key->sym & SDLK_SCANCODE_MASK ? 0 : of_character((uint32_t)key->sym);
}

uint32_t display_native_keysym_of_text(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	uint32_t c = *p;
	int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

	if (!c)
		return 0;
	c &= more ? 0x3fu >> more : 0x7f;
	for (p++; more > 0 && (*p & 0xc0) == 0x80; more--, p++)
		c = c << 6 | (*p & 0x3f);
	*text = (const char *)p;
	return of_character(c);
}
