// SPDX-License-Identifier: GPL-2.0-or-later
/* What several viewers hold, and what is held while the session is let go. */
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/command.h"
#include "display/memory.h"
#include "display/server.h"
#include "display/test_world.h"
#include "display/wire.h"
#include "proto/display.pb-c.h"

#define SHIFT 0xffe1

static int connect_viewer(struct world *w)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;

	h.codecs = 1u << DISPLAY_CODEC_LZ4;
	return world_connect(w, &h);
}

static void say(int fd, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_wire_put(&b, m);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(io_write_full(fd, b.data, b.len), 0);
}

static void key(int fd, uint32_t keysym, uint16_t scancode, bool down)
{
	struct display_message m = {.type = DISPLAY_KEY};

	m.key.keysym = keysym;
	m.key.scancode = scancode;
	m.key.down = down;
	say(fd, &m);
}

static void point(int fd, int x, uint8_t buttons)
{
	struct display_message m = {.type = DISPLAY_POINTER};

	m.pointer.x = x;
	m.pointer.buttons = buttons;
	say(fd, &m);
}

/* A turn of the server, whose bytes are thrown away. */
static void turn(struct world *w, int fd)
{
	static uint8_t bytes[65536];

	event_base_loop(w->base, EVLOOP_NONBLOCK);
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

#define UNTIL(w, fd, cond) \
	while (!(cond))    \
	turn(w, fd)

/* What two viewers hold is down until the second one lets go, whichever key it is there. */
static void test_two_hold(void **state)
{
	struct world w;
	int one, other;

	world_init(&w, 64, 64);
	one = connect_viewer(&w);
	other = connect_viewer(&w);
	key(one, SHIFT, 42, true);
	UNTIL(&w, one, w.source->n_down == 1);
	key(other, SHIFT, 0, true);
	key(other, 'A', 30, true);
	UNTIL(&w, one, w.source->n_down == 2);
	key(one, SHIFT, 42, false);
	key(one, 'b', 48, true);
	UNTIL(&w, one, w.source->n_down == 3);
	assert_int_equal(w.source->down[0], SHIFT);
	key(one, SHIFT, 42, true);
	key(one, 'b', 48, false);
	UNTIL(&w, one, w.source->n_down == 2);
	close_fd(other);
	UNTIL(&w, one, w.source->n_down == 1);
	assert_int_equal(w.source->down[0], SHIFT);
	key(one, SHIFT, 42, false);
	UNTIL(&w, one, w.source->n_down == 0);
	close_fd(one);
	world_fini(&w);
}

/* VNC viewers say no scancodes, and what a key gives without Shift when that came up first. */
static void test_shift_comes_up_first(void **state)
{
	struct world w;
	int one;

	world_init(&w, 64, 64);
	one = connect_viewer(&w);
	key(one, SHIFT, 0, true);
	key(one, 'A', 0, true);
	key(one, '!', 0, true);
	key(one, 'x', 0, true);
	UNTIL(&w, one, w.source->n_down == 4);
	key(one, SHIFT, 0, false);
	key(one, 'a', 0, false);
	UNTIL(&w, one, w.source->n_down == 2);
	assert_int_equal(w.source->down[0] + w.source->down[1], '!' + 'x');
	key(one, '1', 0, false);
	UNTIL(&w, one, w.source->n_down == 1);
	assert_int_equal(w.source->down[0], 'x');
	key(one, SHIFT, 0, false); /* which is not down */
	key(one, 'y', 21, false);
	key(one, 'x', 0, false);
	UNTIL(&w, one, w.source->n_down == 0);
	close_fd(one);
	world_fini(&w);
}

/* Buttons stay down over it, and are told of behind it if they have changed. */
static void test_let_go_with_a_button(void **state)
{
	struct world w;
	struct err e = {0};
	unsigned before;
	int one, other;

	world_init(&w, 64, 64);
	one = connect_viewer(&w);
	other = connect_viewer(&w);
	do {
		point(one, 3, 1); /* until there is a picture to be pointed at */
		turn(&w, one);
	} while (!w.source->buttons);
	before = w.source->n_pointers;
	display_server_let_go(w.server);
	assert_int_equal(display_server_take_up(w.server, &e), 0);
	assert_int_equal(w.source->n_pointers, before);
	assert_int_equal(w.source->buttons, 1);
	display_server_let_go(w.server);
	close_fd(one);
	UNTIL(&w, other, display_server_viewers(w.server) == 1);
	assert_int_equal(w.source->buttons, 1);
	assert_int_equal(display_server_take_up(w.server, &e), 0);
	assert_int_equal(w.source->buttons, 0);
	assert_int_equal(w.source->n_pointers, before + 1);
	close_fd(other);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_hold),
		cmocka_unit_test(test_shift_comes_up_first),
		cmocka_unit_test(test_let_go_with_a_button),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
