/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen - the size of an X server's screen, by RandR.
 */
#ifndef DISPLAY_X_SCREEN_H
#define DISPLAY_X_SCREEN_H

#include <xcb/randr.h>
#include <xcb/xcb.h>

struct err;

/* Asks to be told of every other size of the screen (RRScreenChangeNotify). */
int display_x_screen_watch(xcb_connection_t *c, xcb_window_t root, struct err *e);

/* Offers usual sizes to programs (xrandr, a desktop's settings).  Best effort. */
void display_x_screen_offer(xcb_connection_t *c, xcb_window_t root);

/*
 * Gives the screen of @root another size, within what the X server's framebuffer can hold.  Waits
 * for the X server some times.  1 if it was so already.
 */
int display_x_screen_resize(
	xcb_connection_t *c, xcb_window_t root, int width, int height, struct err *e);

#endif
