// SPDX-License-Identifier: GPL-2.0-or-later
/* What is told of an X server's windows: which place each covers, and covered before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/x/windows.h"

#define WIDTH  800
#define HEIGHT 600

static void event(struct display_x_windows *w, const void *e)
{
	assert_true(display_x_windows_event(w, e));
}

static void create(struct display_x_windows *w, xcb_window_t id, struct display_rect r)
{
	const xcb_create_notify_event_t e = {.response_type = XCB_CREATE_NOTIFY,
		.window = id,
		.x = (int16_t)r.x,
		.y = (int16_t)r.y,
		.width = (uint16_t)r.w,
		.height = (uint16_t)r.h};

	event(w, &e);
}

static void configure(struct display_x_windows *w, xcb_window_t id, struct display_rect r)
{
	const xcb_configure_notify_event_t e = {.response_type = XCB_CONFIGURE_NOTIFY,
		.window = id,
		.x = (int16_t)r.x,
		.y = (int16_t)r.y,
		.width = (uint16_t)r.w,
		.height = (uint16_t)r.h};

	event(w, &e);
}

static void map(struct display_x_windows *w, xcb_window_t id)
{
	const xcb_map_notify_event_t e = {.response_type = XCB_MAP_NOTIFY, .window = id};

	event(w, &e);
}

static void unmap(struct display_x_windows *w, xcb_window_t id)
{
	const xcb_unmap_notify_event_t e = {.response_type = XCB_UNMAP_NOTIFY, .window = id};

	event(w, &e);
}

static void destroy(struct display_x_windows *w, xcb_window_t id)
{
	const xcb_destroy_notify_event_t e = {.response_type = XCB_DESTROY_NOTIFY, .window = id};

	event(w, &e);
}

static void reparent(struct display_x_windows *w, xcb_window_t id, xcb_window_t to)
{
	const xcb_reparent_notify_event_t e = {
		.response_type = XCB_REPARENT_NOTIFY, .event = 1, .window = id, .parent = to};

	event(w, &e);
}

static void assert_rect(const struct display_rect *a, struct display_rect b)
{
	if (a->x != b.x || a->y != b.y || a->w != b.w || a->h != b.h)
		fail_msg("%dx%d+%d+%d is not %dx%d+%d+%d", a->w, a->h, a->x, a->y, b.w, b.h, b.x,
			b.y);
}

static void assert_none(struct display_x_windows *w)
{
	struct display_cover c[4];

	assert_int_equal(display_x_windows_covers(w, WIDTH, HEIGHT, c, ARRAY_SIZE(c)), 0);
}

/* One window, which covered @before and covers @now. */
static void assert_covers(
	struct display_x_windows *w, struct display_rect before, struct display_rect now)
{
	struct display_cover c[4];

	assert_int_equal(display_x_windows_covers(w, WIDTH, HEIGHT, c, ARRAY_SIZE(c)), 1);
	assert_rect(&c[0].before, before);
	assert_rect(&c[0].now, now);
	assert_none(w);
}

#define NOWHERE	  ((struct display_rect){0})
#define RECT(...) ((struct display_rect){__VA_ARGS__})

/* It is put somewhere, shown, dragged over the edge, made larger, and taken away. */
static void test_life(void **state)
{
	struct display_x_windows w = {0};

	create(&w, 7, RECT(0, 0, 100, 50));
	configure(&w, 7, RECT(20, 10, 100, 50));
	assert_none(&w);
	map(&w, 7);
	assert_covers(&w, NOWHERE, RECT(20, 10, 100, 50));
	configure(&w, 7, RECT(40, 10, 100, 50));
	configure(&w, 7, RECT(750, 20, 100, 50));
	assert_covers(&w, RECT(20, 10, 100, 50), RECT(750, 20, 50, 50));
	configure(&w, 7, RECT(700, 20, 90, 60));
	assert_covers(&w, RECT(750, 20, 50, 50), RECT(700, 20, 90, 60));
	unmap(&w, 7);
	assert_covers(&w, RECT(700, 20, 90, 60), NOWHERE);
	map(&w, 7);
	assert_covers(&w, NOWHERE, RECT(700, 20, 90, 60));
	unmap(&w, 7);
	destroy(&w, 7);
	assert_covers(&w, RECT(700, 20, 90, 60), NOWHERE);
	map(&w, 7);
	assert_none(&w);
}

/* One that was there before anybody listened is known from its second move on. */
static void test_older(void **state)
{
	struct display_x_windows w = {0};

	configure(&w, 7, RECT(20, 10, 100, 50));
	assert_none(&w);
	configure(&w, 7, RECT(25, 10, 100, 50));
	assert_covers(&w, RECT(20, 10, 100, 50), RECT(25, 10, 100, 50));
	unmap(&w, 9);
	assert_none(&w);
}

/* What a window manager takes into its frame is no longer of the root, until it lets it go. */
static void test_frame(void **state)
{
	struct display_x_windows w = {0};

	create(&w, 7, RECT(0, 0, 100, 50));
	reparent(&w, 7, 8);
	configure(&w, 8, RECT(0, 0, 110, 70));
	configure(&w, 8, RECT(5, 0, 110, 70));
	assert_covers(&w, RECT(0, 0, 110, 70), RECT(5, 0, 110, 70));
	map(&w, 7);
	assert_none(&w);
}

/* What a window has covered is told, also if another one has come since it went. */
static void test_successor(void **state)
{
	struct display_x_windows w = {0};

	create(&w, 7, RECT(10, 10, 100, 50));
	map(&w, 7);
	assert_covers(&w, RECT(0, 0, 0, 0), RECT(10, 10, 100, 50));
	destroy(&w, 7);
	create(&w, 8, RECT(300, 10, 20, 20));
	assert_covers(&w, RECT(10, 10, 100, 50), RECT(0, 0, 0, 0));
	map(&w, 8);
	assert_covers(&w, RECT(0, 0, 0, 0), RECT(300, 10, 20, 20));
}

/* More windows than are remembered, and more changes than are asked for. */
static void test_many(void **state)
{
	struct display_x_windows w = {0};
	struct display_cover c[3];
	size_t sum = 0, n;

	for (unsigned i = 0; i < 3 * DISPLAY_X_WINDOWS; i++) {
		create(&w, 10 + i, RECT(0, 0, 10, 10));
		map(&w, 10 + i);
	}
	while ((n = display_x_windows_covers(&w, WIDTH, HEIGHT, c, ARRAY_SIZE(c))) > 0)
		sum += n;
	assert_int_equal(sum, DISPLAY_X_WINDOWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_successor),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
