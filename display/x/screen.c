// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Xvfb has one output, on one CRTC, and a framebuffer as large as it was started with, whose upper
 * left part is what is seen: its lines stay as long as they were.  A size is a mode that has to be
 * made first (xrandr --newmode, --addmode).  As the screen must hold its CRTC's mode at any
 * moment, the CRTC is off while the screen changes (RandR 1.2, section 7).  A mode that is not
 * used any more is removed, unless it is one of those that are offered.
 */
#include "display/x/screen.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "display/x/x.h"

#define MAX_NAME 32
#define DPI	 96
#define MIN_SIDE 64

static const struct {
	uint16_t width, height;
} usual[] = {
	{800, 600},
	{1024, 768},
	{1280, 720},
	{1280, 800},
	{1280, 1024},
	{1366, 768},
	{1440, 900},
	{1600, 900},
	{1680, 1050},
	{1920, 1080},
	{1920, 1200},
	{2560, 1440},
};

struct screen {
	xcb_connection_t *c;
	xcb_window_t root;
	xcb_randr_get_screen_resources_reply_t *resources;
	xcb_randr_crtc_t crtc;
	xcb_randr_output_t output;
	xcb_randr_mode_t before; /* what the CRTC has */
};

int display_x_screen_watch(xcb_connection_t *c, xcb_window_t root, struct err *e)
{
	const xcb_query_extension_reply_t *x = xcb_get_extension_data(c, &xcb_randr_id);
	xcb_randr_query_version_reply_t *version = NULL;

	if (x && x->present)
		version = xcb_randr_query_version_reply(c, xcb_randr_query_version(c, 1, 3), NULL);
	if (!version)
		return err_set(e, ERR_HOST, -EOPNOTSUPP, "the X server has no RandR");
	free(version);
	xcb_randr_select_input(c, root, XCB_RANDR_NOTIFY_MASK_SCREEN_CHANGE);
	return 0;
}

/* XCB takes their numbers for granted. */
static bool adds_up(const xcb_randr_get_screen_resources_reply_t *r)
{
	size_t needed = ((size_t)r->num_crtcs + r->num_outputs) * sizeof(uint32_t) +
			r->num_modes * sizeof(xcb_randr_mode_info_t);

	return needed <= (size_t)r->length * 4;
}

/* The first of each: Xvfb has no more. */
static int look(struct screen *s, struct err *e)
{
	xcb_randr_get_crtc_info_reply_t *info;

	s->resources = xcb_randr_get_screen_resources_reply(
		s->c, xcb_randr_get_screen_resources(s->c, s->root), NULL);
	if (s->resources && !adds_up(s->resources))
		return err_set(e, ERR_FAILED, -EBADMSG, "the X server's outputs make no sense");
	if (!s->resources || !s->resources->num_crtcs || !s->resources->num_outputs)
		return err_set(e, ERR_FAILED, -ENODEV, "the X server has no output");
	s->crtc = xcb_randr_get_screen_resources_crtcs(s->resources)[0];
	s->output = xcb_randr_get_screen_resources_outputs(s->resources)[0];
	info = xcb_randr_get_crtc_info_reply(
		s->c, xcb_randr_get_crtc_info(s->c, s->crtc, XCB_CURRENT_TIME), NULL);
	if (!info)
		return err_set(e, ERR_FAILED, -ENODEV, "the X server has no CRTC");
	s->before = info->mode;
	free(info);
	return 0;
}

/* One of that size; 0 if there is none. */
static xcb_randr_mode_t find_mode(const struct screen *s, int width, int height)
{
	xcb_randr_mode_info_t *modes = xcb_randr_get_screen_resources_modes(s->resources);
	int n = xcb_randr_get_screen_resources_modes_length(s->resources);

	for (int i = 0; i < n; i++)
		if (modes[i].width == width && modes[i].height == height)
			return modes[i].id;
	return XCB_NONE;
}

static xcb_randr_mode_t make_mode(const struct screen *s, int width, int height)
{
	char name[MAX_NAME];
	xcb_randr_mode_info_t mode = {.width = (uint16_t)width,
		.height = (uint16_t)height,
		.htotal = (uint16_t)width,
		.vtotal = (uint16_t)height,
		.name_len = (uint16_t)snprintf(name, sizeof(name), "%dx%d", width, height)};
	xcb_randr_create_mode_reply_t *made;
	xcb_randr_mode_t id;

	made = xcb_randr_create_mode_reply(
		s->c, xcb_randr_create_mode(s->c, s->root, mode, mode.name_len, name), NULL);
	if (!made)
		return XCB_NONE;
	id = made->mode;
	free(made);
	return id;
}

static bool is_usual(const struct screen *s, xcb_randr_mode_t mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (find_mode(s, usual[i].width, usual[i].height) == mode)
			return true;
	return false;
}

void display_x_screen_offer(xcb_connection_t *c, xcb_window_t root)
{
	struct screen s = {.c = c, .root = root};
	struct err ignored = {0};
	bool known = look(&s, &ignored) == 0;

	for (size_t i = 0; known && i < ARRAY_SIZE(usual); i++) {
		xcb_randr_mode_t mode = find_mode(&s, usual[i].width, usual[i].height);

		if (!mode)
			mode = make_mode(&s, usual[i].width, usual[i].height);
		if (mode)
			xcb_randr_add_output_mode(c, s.output, mode);
	}
	xcb_flush(c);
	free(s.resources);
}

static bool set_crtc(struct screen *s, xcb_randr_mode_t mode)
{
	xcb_randr_set_crtc_config_reply_t *done;
	bool ok;

	done = xcb_randr_set_crtc_config_reply(s->c,
		xcb_randr_set_crtc_config(s->c, s->crtc, XCB_CURRENT_TIME, XCB_CURRENT_TIME, 0, 0,
			mode, XCB_RANDR_ROTATION_ROTATE_0, mode ? 1 : 0, &s->output),
		NULL);
	ok = done && done->status == XCB_RANDR_SET_CONFIG_SUCCESS;
	free(done);
	return ok;
}

static uint32_t millimetres(int pixels)
{
	return (uint32_t)(pixels * 254 / (DPI * 10));
}

static int change(struct screen *s, int width, int height, struct err *e)
{
	xcb_randr_mode_t mode = find_mode(s, width, height);
	xcb_generic_error_t *error;
	bool ok;

	if (mode && mode == s->before)
		return 1;
	if (!mode)
		mode = make_mode(s, width, height);
	if (!mode)
		return err_set(
			e, ERR_FAILED, -EIO, "the X server makes no mode of %dx%d", width, height);
	xcb_randr_add_output_mode(s->c, s->output, mode);
	/* Nothing else is drawn while it is neither the one nor the other. */
	xcb_grab_server(s->c);
	set_crtc(s, XCB_NONE);
	error = xcb_request_check(
		s->c, xcb_randr_set_screen_size_checked(s->c, s->root, (uint16_t)width,
			      (uint16_t)height, millimetres(width), millimetres(height)));
	ok = !error && set_crtc(s, mode);
	free(error);
	if (!ok)
		set_crtc(s, s->before);
	else if (s->before && !is_usual(s, s->before)) {
		/* Modes of the X server itself are refused, which does no harm. */
		xcb_randr_delete_output_mode(s->c, s->output, s->before);
		xcb_randr_destroy_mode(s->c, s->before);
	}
	xcb_ungrab_server(s->c);
	xcb_flush(s->c);
	return ok ? 0 : err_set(e, ERR_FAILED, -EIO, "the X server refuses %dx%d", width, height);
}

int display_x_screen_resize(
	xcb_connection_t *c, xcb_window_t root, int width, int height, struct err *e)
{
	struct screen s = {.c = c, .root = root};
	int r;

	width = display_x_clamp(width, MIN_SIDE, DISPLAY_MAX_WIDTH);
	height = display_x_clamp(height, MIN_SIDE, DISPLAY_MAX_HEIGHT);
	r = look(&s, e);
	if (r == 0)
		r = change(&s, width, height, e);
	free(s.resources);
	return r;
}
