/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * settings - how large things are drawn, told to the programs of an X server: XSETTINGS
 * (specifications.freedesktop.org/xsettings-spec) and the resources Xft.dpi and Xcursor.size.
 */
#ifndef DISPLAY_X_SETTINGS_H
#define DISPLAY_X_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <xcb/xcb.h>

/* Per cent of 96 pixels an inch. */
#define DISPLAY_X_SCALE_MIN 100
#define DISPLAY_X_SCALE_MAX 400

struct display_x_settings {
	int files; /* as display_x_options, borrowed */
	unsigned number;
	xcb_connection_t *c; /* of its own; NULL: none */
	xcb_window_t root, window;
	uint32_t serial;
	int scale; /* that was told on this connection; 0: none */
	int kept;  /* that was told last, also to an X server that has ended */
};

/*
 * Programs are told to draw at @scale per cent; 0: what was told last, if anything was, after
 * another connection, also to another X server.  Whatever waits for the X server waits for @ms at
 * most.  False if it had no time for that, or can't be reached.
 */
bool display_x_settings_tell(struct display_x_settings *s, int scale, unsigned ms);
/* What was told stays. */
void display_x_settings_close(struct display_x_settings *s);

#endif
