// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Pixels are never asked for: the framebuffer is mapped (framebuffer.h).  What the X server is
 * asked is where they may have changed, by XDamage, and nobody waits for the answer:
 *
 *      something is drawn       DamageNotify, once ("non-empty")
 *      we                       Subtract into a region, Fetch that region    reset: what is drawn
 *      the reply                the region; the server is told          from here on is told again
 *      the server               damage() takes it, and reads pixels          only now another Fetch
 *
 * Reading comes after the reset, so nothing is missed; what is drawn between the two is reported
 * once more, and found unchanged.  Not asking before the last answer was taken makes
 * a server that is behind take larger regions instead of more of them.
 *
 * Before a freeze the connection is closed, and what only the connection holds - keys that are
 * down, the clipboard - is released or kept for the next one.  Buttons stay down, for what is
 * dragged would be dropped: a display server that begins lets go of those it finds.  The mapping
 * leads to a file, which no image minds: it stays, and so viewers can be shown the picture of a
 * frozen session.
 *
 * The X server may answer anything: numbers out of range are cut, and a broken connection is told
 * as lost.  Or it answers nothing.  Whatever waits for it has an end (patience.h), behind which the
 * connection is a broken one; and input is followed by a question.  If that has no answer for
 * SILENCE_MS, viewers are told.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <xcb/damage.h>
#include <xcb/randr.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>
#include <xcb/xfixes.h>
#include <xcb/xtest.h>

#include "base/base.h"
#include "display/region.h"
#include "display/x/clipboard.h"
#include "display/x/cursor.h"
#include "display/x/framebuffer.h"
#include "display/x/keyboard.h"
#include "display/x/patience.h"
#include "display/x/reach.h"
#include "display/x/screen.h"
#include "display/x/settings.h"
#include "display/x/windows.h"
#include "display/x/x.h"

#define MAX_RECTS   4096 /* of a region: beyond it everything is damaged */
#define MAX_NOTCHES 32	 /* of a wheel, at once */
#define N_BUTTONS   5	 /* of the wire's mask */
#define ALL_BUTTONS ((1u << N_BUTTONS) - 1)

#define PATIENCE_MS	2000  /* of all that one call waits */
#define MAX_PATIENCE_MS 8000  /* it grows: the machine may be busy */
#define SILENCE_MS	10000 /* until viewers are told */
#define LEAVE_NS	1000000000ull /* for what is still to be typed; less than PATIENCE_MS */
#define SCALE_MOST_S	32    /* a scale it has no time for is told again after 1 s, 2, 4, ... */

struct source {
	struct display_source base;
	struct display_x_options options;
	struct event_base *loop;
	const struct display_source_events *events;
	void *arg;

	struct display_x_framebuffer framebuffer;
	int width, height; /* of the screen, within the framebuffer; 0: none yet */
	bool sized;	   /* it had the size of the options once */

	xcb_connection_t *c;	       /* NULL: none */
	struct event *readable, *soon; /* `soon`: something may be queued already */
	xcb_window_t root;
	uint8_t damage_event, fixes_event, randr_event;
	xcb_damage_damage_t damage;
	xcb_xfixes_region_t region;
	bool drawn;	   /* DamageNotify that was not answered yet */
	unsigned fetching; /* sequence number, 0: no */
	pixman_region32_t damaged;
	bool told;
	unsigned cursor_asked; /* sequence number, 0: no */
	struct buf cursor;
	uint8_t buttons;
	bool buttons_known; /* none is down that is not in `buttons` */
	struct display_x_keyboard keyboard;
	struct event *typing; /* when more of it may be typed */
	struct display_x_clipboard clipboard;
	struct display_x_windows windows;
	struct display_x_settings settings;
	int scale;	  /* that is still to be told; 0: what was told last */
	unsigned scale_s; /* to the next time, if this one is in vain */
	struct event *rescale;

	unsigned patience_ms; /* of the next take_up */
	unsigned asked;	      /* whether it is there: sequence number, 0: no */
	struct event *doubt;  /* since something was not answered */
	bool silent;	      /* told so */
};

static struct source *of(struct display_source *s)
{
	return (struct source *)s;
}

/* ---- whether it answers ---------------------------------------------------------------------- */

static void doubt(struct source *s)
{
	const struct timeval then = {.tv_sec = SILENCE_MS / 1000};

	if (!event_pending(s->doubt, EV_TIMEOUT, NULL))
		event_add(s->doubt, &then);
}

static void on_doubt(evutil_socket_t fd, short what, void *ctx)
{
	struct source *s = ctx;

	s->silent = true;
	s->events->silent(s->arg, true);
}

static void answered(struct source *s)
{
	event_del(s->doubt);
	if (s->silent)
		s->events->silent(s->arg, false);
	s->silent = false;
}

/* Around all that may wait for the X server, with a connection. */
static void begin(struct source *s, unsigned ms)
{
	display_x_patience_begin(xcb_get_file_descriptor(s->c), ms);
}

static void end(struct source *s)
{
	if (display_x_patience_end())
		doubt(s);
}

/*
 * Whoever has sent something, or waited for a reply, may have read events and replies that no
 * socket tells of any more: to be called by all but look().
 */
static void look_soon(struct source *s)
{
	if (s->soon)
		event_active(s->soon, EV_TIMEOUT, 0);
}

/* Behind input. */
static void ask(struct source *s)
{
	if (!s->asked) {
		s->asked = xcb_get_input_focus(s->c).sequence;
		doubt(s);
	}
	xcb_flush(s->c);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void fetch(struct source *s)
{
	if (!s->drawn || s->fetching || s->told)
		return;
	s->drawn = false;
	xcb_damage_subtract(s->c, s->damage, XCB_NONE, s->region);
	s->fetching = xcb_xfixes_fetch_region(s->c, s->region).sequence;
	xcb_flush(s->c);
}

static void tell_damaged(struct source *s)
{
	if (s->told || !pixman_region32_not_empty(&s->damaged))
		return;
	s->told = true;
	s->events->damaged(s->arg);
}

static void add_damage(struct source *s, int x, int y, int width, int height)
{
	pixman_box32_t box = {
		MAX(x, 0), MAX(y, 0), MIN(x + width, s->width), MIN(y + height, s->height)};
	const struct display_rect r = display_rect_of(&box);

	display_region_add(&s->damaged, &r);
}

static void take_region(struct source *s, const xcb_xfixes_fetch_region_reply_t *r)
{
	const xcb_rectangle_t *rects = xcb_xfixes_fetch_region_rectangles(r);
	int n = xcb_xfixes_fetch_region_rectangles_length(r);

	if (n > MAX_RECTS)
		add_damage(s, r->extents.x, r->extents.y, r->extents.width, r->extents.height);
	for (int i = 0; i < n && n <= MAX_RECTS; i++)
		add_damage(s, rects[i].x, rects[i].y, rects[i].width, rects[i].height);
	tell_damaged(s);
}

/* ---- size ------------------------------------------------------------------------------------ */

/* @width, @height are the X server's word; what is not in the framebuffer is not there. */
static void take_size(struct source *s, int width, int height)
{
	width = display_x_clamp(width, 1, s->framebuffer.all.width);
	height = display_x_clamp(height, 1, s->framebuffer.all.height);
	if (width == s->width && height == s->height)
		return;
	s->width = width;
	s->height = height;
	display_x_framebuffer_trim(&s->framebuffer, s->options.shm, width, height);
	/*
	 * Whoever has had that size before, and none of those between, has another picture of it.
	 */
	pixman_region32_fini(&s->damaged);
	pixman_region32_init_rect(&s->damaged, 0, 0, (unsigned)width, (unsigned)height);
	s->events->resized(s->arg);
}

/* ---- what the X server says ------------------------------------------------------------------ */

static void ask_cursor(struct source *s)
{
	if (!s->cursor_asked)
		s->cursor_asked = xcb_xfixes_get_cursor_image(s->c).sequence;
	xcb_flush(s->c);
}

static void on_event(struct source *s, const xcb_generic_event_t *event)
{
	uint8_t type = event->response_type & 0x7f;
	const xcb_randr_screen_change_notify_event_t *screen = (const void *)event;

	if (display_x_clipboard_event(&s->clipboard, event) ||
		display_x_keyboard_event(&s->keyboard, event) ||
		display_x_windows_event(&s->windows, event))
		return;
	if (type == s->damage_event + XCB_DAMAGE_NOTIFY) {
		s->drawn = true;
		fetch(s);
	} else if (type == s->fixes_event + XCB_XFIXES_CURSOR_NOTIFY) {
		ask_cursor(s);
	} else if (type == s->randr_event + XCB_RANDR_SCREEN_CHANGE_NOTIFY) {
		take_size(s, screen->width, screen->height);
	}
}

/* The answer to request @*sequence, if it is there; the number is cleared then. */
static void *take_reply(struct source *s, unsigned *sequence)
{
	xcb_generic_error_t *error = NULL;
	void *reply = NULL;

	if (!*sequence || !xcb_poll_for_reply(s->c, *sequence, &reply, &error))
		return NULL;
	*sequence = 0;
	free(error);
	return reply;
}

/* True if there was one. */
static bool take_replies(struct source *s)
{
	bool was_fetching = s->fetching;
	xcb_xfixes_fetch_region_reply_t *region = take_reply(s, &s->fetching);
	xcb_xfixes_get_cursor_image_reply_t *image = take_reply(s, &s->cursor_asked);
	struct display_cursor cursor;
	void *there = take_reply(s, &s->asked);
	bool any = region || image || there || (was_fetching && !s->fetching);

	any |= display_x_keyboard_look(&s->keyboard);
	if (there)
		answered(s);
	free(there);
	if (region)
		take_region(s, region);
	free(region);
	if (was_fetching && !s->fetching)
		fetch(s);
	if (image) {
		display_x_cursor_take(image, &s->cursor, &cursor);
		s->events->cursor(s->arg, &cursor);
	}
	free(image);
	return any;
}

/* ---- scale ----------------------------------------------------------------------------------- */

/* There is a connection.  What waits for another one does not wait long, so it may be in vain. */
static void tell_scale(struct source *s)
{
	const struct timeval then = {.tv_sec = (time_t)s->scale_s};

	if (display_x_settings_tell(&s->settings, s->scale, PATIENCE_MS)) {
		s->scale = 0;
		event_del(s->rescale);
	} else if (s->scale_s <= SCALE_MOST_S) {
		s->scale_s *= 2;
		event_add(s->rescale, &then);
	}
}

static void on_rescale(evutil_socket_t fd, short what, void *ctx)
{
	tell_scale(ctx);
}

/* From the beginning, for there is another connection or a new scale. */
static void begin_scale(struct source *s)
{
	s->scale_s = 1;
	tell_scale(s);
}

static void disconnect(struct source *s)
{
	if (s->rescale)
		event_del(s->rescale);
	if (s->readable)
		event_free(take_ptr(s->readable));
	if (s->soon)
		event_free(take_ptr(s->soon));
	if (s->typing)
		event_del(s->typing);
	display_x_keyboard_fini(&s->keyboard);
	display_x_clipboard_close(&s->clipboard);
	display_x_settings_close(&s->settings);
	if (s->c)
		xcb_disconnect(take_ptr(s->c));
	s->fetching = s->cursor_asked = s->asked = 0;
	s->drawn = false;
}

/* Keys that wait for the time. */
static void type_later(struct source *s)
{
	const uint64_t now = io_now_ns(), us = (MAX(s->keyboard.next_ns, now) - now) / 1000;
	const struct timeval then = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};

	if (s->keyboard.next_ns)
		event_add(s->typing, &then);
}

static void look(struct source *s)
{
	xcb_generic_event_t *event;
	bool more = true;

	/* What is sent meanwhile may read more, so until nothing is left. */
	while (s->c && more) {
		more = false;
		while (s->c && (event = xcb_poll_for_event(s->c))) {
			if (event->response_type)
				on_event(s, event);
			free(event);
			more = true;
		}
		if (s->c && take_replies(s))
			more = true;
	}
	if (!s->c)
		return;
	if (!xcb_connection_has_error(s->c)) {
		type_later(s);
		return;
	}
	disconnect(s);
	s->buttons = 0;
	s->events->lost(s->arg);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct source *s = ctx;

	begin(s, PATIENCE_MS);
	look(s);
	end(s);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int begin_extensions(struct source *s, struct err *e)
{
	const xcb_query_extension_reply_t *damage = xcb_get_extension_data(s->c, &xcb_damage_id);
	const xcb_query_extension_reply_t *fixes = xcb_get_extension_data(s->c, &xcb_xfixes_id);
	const xcb_query_extension_reply_t *randr = xcb_get_extension_data(s->c, &xcb_randr_id);
	const xcb_query_extension_reply_t *test = xcb_get_extension_data(s->c, &xcb_test_id);
	void *damage_version, *fixes_version;

	if (!damage || !damage->present || !fixes || !fixes->present || !randr || !randr->present ||
		!test || !test->present)
		return err_set(e, ERR_HOST, -EOPNOTSUPP,
			"the X server lacks one of DAMAGE, XFIXES, RANDR, XTEST");
	damage_version =
		xcb_damage_query_version_reply(s->c, xcb_damage_query_version(s->c, 1, 1), NULL);
	fixes_version =
		xcb_xfixes_query_version_reply(s->c, xcb_xfixes_query_version(s->c, 5, 0), NULL);
	s->damage_event = damage->first_event;
	s->fixes_event = fixes->first_event;
	s->randr_event = randr->first_event;
	if (!damage_version || !fixes_version)
		err_set(e, ERR_HOST, -EOPNOTSUPP, "the X server is too old");
	free(damage_version);
	free(fixes_version);
	return err_is(e) ? e->error : 0;
}

static int watch(struct source *s, struct err *e)
{
	if (begin_extensions(s, e) < 0 || display_x_screen_watch(s->c, s->root, e) < 0 ||
		display_x_keyboard_init(&s->keyboard, s->c, e) < 0 ||
		display_x_clipboard_open(&s->clipboard, s->c, e) < 0)
		return e->error;
	s->damage = xcb_generate_id(s->c);
	s->region = xcb_generate_id(s->c);
	xcb_xfixes_create_region(s->c, s->region, 0, NULL);
	xcb_damage_create(s->c, s->damage, s->root, XCB_DAMAGE_REPORT_LEVEL_NON_EMPTY);
	xcb_xfixes_select_cursor_input(s->c, s->root, XCB_XFIXES_CURSOR_NOTIFY_MASK_DISPLAY_CURSOR);
	/* Else Xvfb paints it into the picture, where viewers have one of their own. */
	xcb_xfixes_hide_cursor(s->c, s->root);
	display_x_windows_watch(&s->windows, s->c, s->root);
	ask_cursor(s);
	return 0;
}

static int map(struct source *s, struct err *e)
{
	struct display_x_framebuffer old = s->framebuffer;

	if (display_x_framebuffer_current(&old, s->options.shm))
		return 0;
	if (display_x_framebuffer_map(&s->framebuffer, s->options.shm, e) < 0)
		return e->error;
	/* Another X server is to have the size that the last one had. */
	if (s->width) {
		s->options.width = s->width;
		s->options.height = s->height;
		s->sized = false;
	}
	/* take_size tells of it, as soon as the size is known. */
	s->width = s->height = 0;
	s->told = false;
	display_x_framebuffer_unmap(&old);
	return 0;
}

static int measure(struct source *s, struct err *e)
{
	xcb_get_geometry_reply_t *g;
	int r = 0;

	if (!s->sized && s->options.width)
		r = display_x_screen_resize(s->c, s->root, s->options.width, s->options.height, e);
	if (r < 0)
		return r;
	if (!s->sized && s->options.width)
		display_x_screen_offer(s->c, s->root);
	g = xcb_get_geometry_reply(s->c, xcb_get_geometry(s->c, s->root), NULL);
	if (!g)
		return err_set(e, ERR_FAILED, -EIO, "the X server has no screen");
	s->sized = true;
	take_size(s, g->width, g->height);
	free(g);
	return 0;
}

static int listen_to(struct source *s, struct err *e)
{
	s->readable = event_new(
		s->loop, xcb_get_file_descriptor(s->c), EV_READ | EV_PERSIST, on_readable, s);
	s->soon = event_new(s->loop, -1, 0, on_readable, s);
	if (!s->readable || !s->soon || event_add(s->readable, NULL) < 0)
		return err_errno(e, -ENOMEM, "display");
	look_soon(s);
	return 0;
}

/* There is a connection. */
static int begin_all(struct source *s, struct err *e)
{
	xcb_screen_t *screen;
	int r;

	screen = xcb_setup_roots_iterator(xcb_get_setup(s->c)).data;
	r = screen ? 0 : err_set(e, ERR_FAILED, -EIO, "the X server has no screen");
	if (r == 0) {
		s->root = screen->root;
		r = map(s, e);
	}
	if (r == 0)
		r = watch(s, e);
	if (r == 0)
		r = measure(s, e);
	return r == 0 ? listen_to(s, e) : r;
}

static void fake_button(struct source *s, uint8_t button, bool down)
{
	xcb_test_fake_input(s->c, down ? XCB_BUTTON_PRESS : XCB_BUTTON_RELEASE, button,
		XCB_CURRENT_TIME, XCB_NONE, 0, 0, 0);
}

/* Those of @changed to what they are in @buttons: masks as the wire has them. */
static void change_buttons(struct source *s, unsigned changed, uint8_t buttons)
{
	/* Left, middle, right, back, forward. */
	static const uint8_t numbers[N_BUTTONS] = {1, 2, 3, 8, 9};

	for (unsigned i = 0; i < N_BUTTONS; i++)
		if (changed & 1u << i)
			fake_button(s, numbers[i], buttons & 1u << i);
	s->buttons = buttons;
}

static int take_up(struct display_source *base, struct err *e)
{
	struct source *s = of(base);
	bool over = false;
	int r;

	if (s->c)
		return 0;
	r = display_x_reach(s->options.files, s->options.number, s->patience_ms, &s->c, e);
	if (r == 0) {
		begin(s, s->patience_ms);
		r = begin_all(s, e);
		over = display_x_patience_end();
	}
	if (over)
		r = err_set(e, ERR_FAILED, -ETIMEDOUT, "the X server does not answer");
	if (r == -ETIMEDOUT) {
		s->patience_ms = MIN(s->patience_ms * 2, MAX_PATIENCE_MS);
		doubt(s);
	}
	if (r < 0) {
		disconnect(s);
		return r;
	}
	s->patience_ms = PATIENCE_MS;
	answered(s);
	if (!s->buttons_known)
		change_buttons(s, ALL_BUTTONS, 0);
	s->buttons_known = true;
	begin_scale(s);
	/* What was drawn while nobody looked. */
	add_damage(s, 0, 0, s->width, s->height);
	tell_damaged(s);
	return 0;
}

/* Keys come up; the X server has got it all when we leave. */
static void release(struct source *s)
{
	xcb_get_input_focus_reply_t *r;

	begin(s, PATIENCE_MS);
	display_x_keyboard_leave(&s->keyboard, io_now_ns() + LEAVE_NS);
	r = xcb_get_input_focus_reply(s->c, xcb_get_input_focus(s->c), NULL);
	free(r);
	end(s);
}

static void let_go(struct display_source *base)
{
	struct source *s = of(base);

	if (s->c) {
		release(s);
		disconnect(s);
	}
	event_del(s->doubt);
}

/* ---- what the server asks for ---------------------------------------------------------------- */

static int attach(struct display_source *base, struct event_base *loop,
	const struct display_source_events *events, void *arg, struct err *e)
{
	struct source *s = of(base);

	s->loop = loop;
	s->events = events;
	s->arg = arg;
	s->doubt = event_new(loop, -1, 0, on_doubt, s);
	s->rescale = event_new(loop, -1, 0, on_rescale, s);
	s->typing = event_new(loop, -1, 0, on_readable, s);
	return s->doubt && s->rescale && s->typing ? 0 : err_errno(e, -ENOMEM, "display");
}

static struct display_frame frame(struct display_source *base)
{
	struct source *s = of(base);
	struct display_frame f = s->framebuffer.all;

	f.width = s->width;
	f.height = s->height;
	return s->width ? f : (struct display_frame){0};
}

static void take_damage(struct display_source *base, pixman_region32_t *region)
{
	struct source *s = of(base);

	display_region_union(region, region, &s->damaged);
	pixman_region32_fini(&s->damaged);
	pixman_region32_init(&s->damaged);
	s->told = false;
	if (!s->c)
		return;
	begin(s, PATIENCE_MS);
	fetch(s);
	end(s);
	look_soon(s);
}

static size_t moves(struct display_source *base, struct display_move *ret, size_t max)
{
	struct source *s = of(base);

	return display_x_windows_moves(&s->windows, s->width, s->height, ret, max);
}

static size_t covers(struct display_source *base, struct display_cover *ret, size_t max)
{
	struct source *s = of(base);

	return display_x_windows_covers(&s->windows, s->width, s->height, ret, max);
}

static void key(struct display_source *base, uint32_t keysym, uint16_t scancode, bool down)
{
	struct source *s = of(base);

	if (!s->c)
		return;
	begin(s, PATIENCE_MS);
	display_x_keyboard_key(&s->keyboard, keysym, scancode, down);
	ask(s);
	end(s);
	look_soon(s);
}

/* A notch is a click of @less or @more. */
static void turn(struct source *s, int notches, uint8_t less, uint8_t more)
{
	int n = MIN(notches < 0 ? -notches : notches, MAX_NOTCHES);

	while (n-- > 0) {
		fake_button(s, notches < 0 ? less : more, true);
		fake_button(s, notches < 0 ? less : more, false);
	}
}

static void pointer(
	struct display_source *base, int x, int y, uint8_t buttons, int wheel_x, int wheel_y)
{
	struct source *s = of(base);

	if (!s->c)
		return;
	begin(s, PATIENCE_MS);
	xcb_test_fake_input(s->c, XCB_MOTION_NOTIFY, 0, XCB_CURRENT_TIME, s->root,
		(int16_t)display_x_clamp(x, 0, s->width - 1),
		(int16_t)display_x_clamp(y, 0, s->height - 1), 0);
	change_buttons(s, buttons ^ s->buttons, buttons);
	turn(s, wheel_y, 4, 5);
	turn(s, wheel_x, 6, 7);
	ask(s);
	end(s);
	look_soon(s);
}

static void clipboard(struct display_source *base, const char *text, size_t len)
{
	struct source *s = of(base);

	if (s->c)
		begin(s, PATIENCE_MS);
	display_x_clipboard_set(&s->clipboard, text, len);
	if (s->c) {
		end(s);
		look_soon(s);
	}
}

static void resize(struct display_source *base, int width, int height)
{
	struct source *s = of(base);
	struct err e = {0};

	if (!s->c)
		return;
	begin(s, PATIENCE_MS);
	if (display_x_screen_resize(s->c, s->root, width, height, &e) < 0)
		log_warn("display: %s", e.msg);
	end(s);
	look_soon(s);
}

static void scale(struct display_source *base, int percent)
{
	struct source *s = of(base);

	s->scale = MAX(percent, DISPLAY_X_SCALE_MIN);
	if (s->c)
		begin_scale(s);
}

static void on_text(void *arg, const char *text, size_t len)
{
	struct source *s = arg;

	s->events->clipboard(s->arg, text, len);
}

static void destroy(struct display_source *base)
{
	struct source *s = of(base);

	if (s->c)
		release(s);
	disconnect(s);
	if (s->doubt)
		event_free(s->doubt);
	if (s->rescale)
		event_free(s->rescale);
	if (s->typing)
		event_free(s->typing);
	display_x_clipboard_fini(&s->clipboard);
	display_x_framebuffer_unmap(&s->framebuffer);
	pixman_region32_fini(&s->damaged);
	buf_fini(&s->cursor);
	close_fd(s->options.files);
	close_fd(s->options.shm);
	free(s);
}

static const struct display_source_ops ops = {
	.attach = attach,
	.frame = frame,
	.damage = take_damage,
	.moves = moves,
	.covers = covers,
	.key = key,
	.pointer = pointer,
	.clipboard = clipboard,
	.resize = resize,
	.scale = scale,
	.let_go = let_go,
	.take_up = take_up,
	.destroy = destroy,
};

int display_x_create(struct display_source **ret, const struct display_x_options *o, struct err *e)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s) {
		close_fd(o->files);
		close_fd(o->shm);
		return err_errno(e, -ENOMEM, "display");
	}
	s->base.ops = &ops;
	s->options = *o;
	s->settings.files = o->files;
	s->settings.number = o->number;
	s->patience_ms = PATIENCE_MS;
	s->clipboard.text = on_text;
	s->clipboard.arg = s;
	pixman_region32_init(&s->damaged);
	*ret = &s->base;
	return 0;
}
