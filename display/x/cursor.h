/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cursor - what the pointer of an X server looks like, by XFixes.
 */
#ifndef DISPLAY_X_CURSOR_H
#define DISPLAY_X_CURSOR_H

#include <xcb/xcb.h>
#include <xcb/xfixes.h>

struct buf;
struct display_cursor;

/* Turns @reply into what viewers take; its pixels are in @b.  What is too large is cut. */
void display_x_cursor_take(const xcb_xfixes_get_cursor_image_reply_t *reply, struct buf *b,
	struct display_cursor *ret);

#endif
