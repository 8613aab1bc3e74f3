// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A connection of its own, with a window that owns _XSETTINGS_S0 and has the settings as a
 * property.  It is made when a viewer says a scale other than 100 for the first time, and not if
 * somebody owns that already: a desktop has a manager of its own, which would not begin if it found
 * ours, and whose settings are its user's.  Then there are the resources only.
 *
 * The window outlives its connection (RetainTemporary), so that before a freeze nobody is told that
 * there are no settings any more; when there is another connection it has another window, which
 * those who watch the old one are told of (MANAGER), and then the old one is destroyed.  The scale
 * itself is a property of the root window, where the next display server finds it, maybe on another
 * host; an X server that was started in the place of one that ended is told it again.
 *
 * What the X server answers is anybody's: a scale out of range is cut, and resources that are too
 * long are left as they are.
 */
#include "display/x/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "display/x/patience.h"
#include "display/x/reach.h"
#include "display/x/x.h"

#define DPI	      96
#define CURSOR_SIZE   24
#define RESOURCES_MAX (64u << 10) /* bytes */
#define SETTINGS      4

enum atom { SELECTION, PROPERTY, MANAGER, SCALE, ATOMS };
static const char *const names[ATOMS] = {
	[SELECTION] = "_XSETTINGS_S0",
	[PROPERTY] = "_XSETTINGS_SETTINGS",
	[MANAGER] = "MANAGER",
	[SCALE] = "_PODRUN_SCALE",
};

static bool find_atoms(xcb_connection_t *c, xcb_atom_t ret[ATOMS])
{
	xcb_intern_atom_cookie_t asked[ATOMS];
	bool all = true;

	for (size_t i = 0; i < ATOMS; i++)
		asked[i] = xcb_intern_atom(c, false, (uint16_t)strlen(names[i]), names[i]);
	for (size_t i = 0; i < ATOMS; i++) {
		xcb_intern_atom_reply_t *r = xcb_intern_atom_reply(c, asked[i], NULL);

		all = all && r;
		ret[i] = r ? r->atom : XCB_NONE;
		free(r);
	}
	return all;
}

/* ---- XSETTINGS ------------------------------------------------------------------------------- */

static void put_u16(struct buf *b, size_t v)
{
	buf_put_u8(b, (uint8_t)v);
	buf_put_u8(b, (uint8_t)(v >> 8));
}

static void put_setting(struct buf *b, const char *name, uint32_t serial, int value)
{
	size_t n = strlen(name);

	buf_put_u8(b, 0); /* a number */
	buf_put_u8(b, 0);
	put_u16(b, n);
	buf_put(b, name, n);
	while (n++ % 4)
		buf_put_u8(b, 0);
	buf_put_u32(b, serial);
	buf_put_u32(b, (uint32_t)value);
}

/* Whole steps are the toolkit's windows, what is between them is the text's. */
static void put_settings(struct buf *b, int scale, uint32_t serial)
{
	int windows = scale / 100;

	buf_put_u32(b, 0); /* little endian */
	buf_put_u32(b, serial);
	buf_put_u32(b, SETTINGS);
	put_setting(b, "Gdk/UnscaledDPI", serial, DPI * 1024 * scale / 100 / windows);
	put_setting(b, "Gdk/WindowScalingFactor", serial, windows);
	put_setting(b, "Gtk/CursorThemeSize", serial, CURSOR_SIZE * scale / 100);
	put_setting(b, "Xft/DPI", serial, DPI * 1024 * scale / 100);
}

static xcb_window_t owner_of(xcb_connection_t *c, xcb_atom_t selection)
{
	xcb_get_selection_owner_reply_t *r =
		xcb_get_selection_owner_reply(c, xcb_get_selection_owner(c, selection), NULL);
	/* Whoever does not say is taken for somebody. */
	xcb_window_t owner = r ? r->owner : ~0u;

	free(r);
	return owner;
}

/* Those who watch the old manager, and those who wait for one. */
static void announce(struct display_x_settings *s, const xcb_atom_t *atoms)
{
	const xcb_client_message_event_t e = {.response_type = XCB_CLIENT_MESSAGE,
		.format = 32,
		.window = s->root,
		.type = atoms[MANAGER],
		.data.data32 = {XCB_CURRENT_TIME, atoms[SELECTION], s->window}};

	xcb_send_event(s->c, false, s->root, XCB_EVENT_MASK_STRUCTURE_NOTIFY, (const char *)&e);
	xcb_kill_client(s->c, XCB_KILL_ALL_TEMPORARY);
}

static void make_window(struct display_x_settings *s)
{
	if (s->window)
		return;
	s->window = xcb_generate_id(s->c);
	xcb_set_close_down_mode(s->c, XCB_CLOSE_DOWN_RETAIN_TEMPORARY);
	xcb_create_window(s->c, XCB_COPY_FROM_PARENT, s->window, s->root, -1, -1, 1, 1, 0,
		XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, 0, NULL);
}

static void tell_clients(struct display_x_settings *s, const xcb_atom_t *atoms)
{
	xcb_window_t owner = owner_of(s->c, atoms[SELECTION]);
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (owner != XCB_NONE && owner != s->window) {
		/* Nobody needs what an earlier connection has left, which has a client's place. */
		xcb_kill_client(s->c, XCB_KILL_ALL_TEMPORARY);
		return;
	}
	make_window(s);
	put_settings(&b, s->scale, ++s->serial);
	if (buf_error(&b) < 0)
		return;
	xcb_change_property(s->c, XCB_PROP_MODE_REPLACE, s->window, atoms[PROPERTY],
		atoms[PROPERTY], 8, (uint32_t)b.len, b.data);
	if (owner == s->window)
		return;
	xcb_set_selection_owner(s->c, s->window, atoms[SELECTION], XCB_CURRENT_TIME);
	if (owner_of(s->c, atoms[SELECTION]) == s->window)
		announce(s, atoms);
}

/* ---- resources ------------------------------------------------------------------------------- */

static bool is_ours(const char *line, size_t n)
{
	return (n >= 8 && memcmp(line, "Xft.dpi:", 8) == 0) ||
	       (n >= 13 && memcmp(line, "Xcursor.size:", 13) == 0);
}

static void tell_resources(struct display_x_settings *s)
{
	_cleanup_free_ xcb_get_property_reply_t *r = xcb_get_property_reply(s->c,
		xcb_get_property(s->c, false, s->root, XCB_ATOM_RESOURCE_MANAGER, XCB_ATOM_STRING,
			0, RESOURCES_MAX / 4),
		NULL);
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *text, *end;

	if (!r || r->bytes_after || (r->format && r->format != 8) ||
		(size_t)xcb_get_property_value_length(r) > (size_t)r->length * 4)
		return;
	text = xcb_get_property_value(r);
	end = text + (r->format ? xcb_get_property_value_length(r) : 0);
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (n && !is_ours(text, n)) {
			buf_put(&b, text, n);
			buf_put_u8(&b, '\n');
		}
		text += n + (newline != NULL);
	}
	buf_printf(&b, "Xft.dpi:\t%d\nXcursor.size:\t%d\n", DPI * s->scale / 100,
		CURSOR_SIZE * s->scale / 100);
	if (buf_error(&b) == 0)
		xcb_change_property(s->c, XCB_PROP_MODE_REPLACE, s->root, XCB_ATOM_RESOURCE_MANAGER,
			XCB_ATOM_STRING, 8, (uint32_t)b.len, b.data);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* 0: nothing was told, ever. */
static int last_scale(struct display_x_settings *s, xcb_atom_t property)
{
	_cleanup_free_ xcb_get_property_reply_t *r = xcb_get_property_reply(s->c,
		xcb_get_property(s->c, false, s->root, property, XCB_ATOM_CARDINAL, 0, 1), NULL);

	if (!r || r->format != 32 || r->length != 1 || xcb_get_property_value_length(r) != 4)
		return 0;
	return (int)MIN(*(const uint32_t *)xcb_get_property_value(r), DISPLAY_X_SCALE_MAX);
}

static bool connect_to(struct display_x_settings *s, unsigned ms)
{
	struct err e = {0};

	if (s->c)
		return true;
	if (display_x_reach(s->files, s->number, ms, &s->c, &e) < 0) {
		log_debug("display: %s", e.msg);
		return false;
	}
	s->root = xcb_setup_roots_iterator(xcb_get_setup(s->c)).data->root;
	return true;
}

static void tell(struct display_x_settings *s, int scale)
{
	xcb_atom_t atoms[ATOMS];
	xcb_get_input_focus_reply_t *done;
	xcb_generic_event_t *event;
	uint32_t value;
	int before;

	if (!find_atoms(s->c, atoms))
		return;
	before = last_scale(s, atoms[SCALE]);
	/* An X server that knows of none may be another one. */
	scale = scale ? scale : before ? before : s->kept;
	if (!before && scale == 100)
		scale = s->kept = 0; /* nothing was told, and nothing is to be */
	if (!scale)
		return;
	s->scale = s->kept = display_x_clamp(scale, DISPLAY_X_SCALE_MIN, DISPLAY_X_SCALE_MAX);
	value = (uint32_t)s->scale;
	xcb_change_property(s->c, XCB_PROP_MODE_REPLACE, s->root, atoms[SCALE], XCB_ATOM_CARDINAL,
		32, 1, &value);
	tell_resources(s);
	tell_clients(s, atoms);
	done = xcb_get_input_focus_reply(s->c, xcb_get_input_focus(s->c), NULL);
	free(done);
	while ((event = xcb_poll_for_event(s->c)))
		free(event);
}

bool display_x_settings_tell(struct display_x_settings *s, int scale, unsigned ms)
{
	bool broken;

	if (s->c && scale && scale == s->scale)
		return true;
	if (!connect_to(s, ms / 2))
		return false;
	display_x_patience_begin(xcb_get_file_descriptor(s->c), ms / 2);
	tell(s, scale);
	broken = display_x_patience_end() || xcb_connection_has_error(s->c);
	/* Where nothing was told nothing is kept, nor is a connection that has broken. */
	if (!s->scale || broken)
		display_x_settings_close(s);
	return !broken;
}

void display_x_settings_close(struct display_x_settings *s)
{
	if (s->c)
		xcb_disconnect(take_ptr(s->c));
	s->window = XCB_NONE;
	s->scale = 0;
}
