// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/test_world.h"
#include "proto/display.pb-c.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/memory.h"
#include "display/server.h"

uint64_t world_now_ns;

static uint64_t clock_ns(void)
{
	return world_now_ns;
}

void world_init(struct world *w, int width, int height)
{
	struct err e = {0};

	*w = (struct world){.base = event_base_new(), .seed = 5};
	assert_int_equal(display_memory_new(width, height, &w->source), 0);
	assert_int_equal(
		display_server_new(w->base, &w->source->source, "work", NULL, NULL, &w->server, &e),
		0);
}

void world_fini(struct world *w)
{
	display_server_free(w->server);
	event_base_free(w->base);
}

int world_connect(struct world *w, Pb__DisplayHello *hello)
{
	struct display_message m = {.type = DISPLAY_HELLO};
	_cleanup_buf_ struct buf b = BUF_INIT;
	uint8_t bytes[64];
	int pair[2];

	hello->version = DISPLAY_VERSION;
	assert_true(pb__display_hello__get_packed_size(hello) <= sizeof(bytes));
	m.data = (struct display_bytes){bytes, pb__display_hello__pack(hello, bytes)};
	display_wire_put(&b, &m);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	io_set_nonblock(pair[1], true);
	assert_int_equal(display_server_add(w->server, pair[1]), 0);
	assert_int_equal(io_write_full(pair[0], b.data, b.len), 0);
	return pair[0];
}

void world_own_clock(struct world *w)
{
	display_server_clock(w->server, clock_ns);
}

uint32_t world_random(struct world *w)
{
	w->seed = w->seed * 1664525 + 1013904223;
	return w->seed >> 8;
}
