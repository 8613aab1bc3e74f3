// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages as bytes and back, and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "display/wire.h"

static const uint8_t some[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

#define RECT                     \
	{                        \
		1, 2, 300, 65535 \
	}
#define DATA                       \
	{                          \
		some, sizeof(some) \
	}

/* One of each, and how long its body is. */
static const struct {
	struct display_message m;
	size_t len;
} messages[] = {
	{{.type = DISPLAY_WELCOME, .data = DATA}, 16},
	{{.type = DISPLAY_RAW, .rect = RECT, .codec = DISPLAY_CODEC_LEFT_ZSTD, .data = DATA}, 26},
	{{.type = DISPLAY_COPY, .rect = RECT, .sx = 65535, .sy = 7}, 12},
	{{.type = DISPLAY_SFILL, .rect = RECT, .colour = {0x123456}}, 12},
	{{.type = DISPLAY_BITMAP, .rect = RECT, .colour = {0xffffff, 1}, .data = DATA}, 32},
	{{.type = DISPLAY_PFILL, .rect = RECT, .tw = 64, .th = 1, .data = DATA}, 28},
	{{.type = DISPLAY_VIDEO,
		 .rect = RECT,
		 .video = {.stream = 9, .fw = 352, .fh = 240, .format = 1, .time = 1ull << 60},
		 .data = DATA},
		42},
	{{.type = DISPLAY_CURSOR, .cursor = {1, 65535, 2, 2}, .data = DATA}, 24},
	{{.type = DISPLAY_POINTER_AT, .at = {5, 6}}, 4},
	{{.type = DISPLAY_AUDIO, .time = 77, .data = DATA}, 24},
	{{.type = DISPLAY_CLIPBOARD, .data = DATA}, 16},
	{{.type = DISPLAY_RESIZE, .size = {1280, 800}}, 4},
	{{.type = DISPLAY_NOTICE, .data = DATA}, 16},
	{{.type = DISPLAY_UPDATED, .serial = 0xfffffffe}, 4},
	{{.type = DISPLAY_FILE, .data = DATA}, 16},
	{{.type = DISPLAY_MARK, .serial = 3}, 4},
	{{.type = DISPLAY_KEEP, .rect = RECT}, 8},
	{{.type = DISPLAY_UNCOVER, .rect = RECT}, 8},
	{{.type = DISPLAY_HELLO, .data = DATA}, 16},
	{{.type = DISPLAY_KEY, .key = {0x10020ac, 57, true}}, 8},
	{{.type = DISPLAY_POINTER, .pointer = {-3, 32767, 17, -1, 1}}, 8},
	{{.type = DISPLAY_CLIPBOARD_IN, .data = {some, 0}}, 0},
	{{.type = DISPLAY_RESIZE_IN, .size = {1, 65535}}, 4},
	{{.type = DISPLAY_REFRESH, .rect = RECT}, 8},
	{{.type = DISPLAY_ACK, .serial = 5}, 4},
	{{.type = DISPLAY_SCALE_IN, .percent = 65535}, 4},
	{{.type = DISPLAY_FILE_IN, .data = DATA}, 16},
};

static bool from_server(const struct display_message *m)
{
	return m->type < DISPLAY_HELLO;
}

static void put(struct buf *out, const struct display_message *m)
{
	buf_clear(out);
	display_wire_put(out, m);
	assert_false(out->failed);
}

static void test_each(void **state)
{
	_cleanup_buf_ struct buf out = BUF_INIT, again = BUF_INIT;
	struct display_message m;
	struct err e = {0};
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		put(&out, &messages[i].m);
		assert_int_equal(out.len, DISPLAY_WIRE_HEAD + messages[i].len);
		assert_int_equal(display_wire_take(out.data, out.len, from_server(&messages[i].m),
					 &m, &used, &e),
			1);
		assert_int_equal(used, out.len);
		assert_int_equal(m.type, messages[i].m.type);
		assert_int_equal(m.data.len, messages[i].m.data.len);
		put(&again, &m);
		assert_int_equal(again.len, out.len);
		assert_memory_equal(again.data, out.data, out.len);
	}
}

/* It waits for the rest; cut short where the head says so, it is malformed, or has less data. */
static void test_cut(void **state)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_message m;
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		size_t data = messages[i].m.data.len;
		bool server = from_server(&messages[i].m);

		put(&out, &messages[i].m);
		for (size_t n = 0; n < out.len; n++)
			assert_int_equal(
				display_wire_take(out.data, n, server, &m, &used, NULL), 0);
		for (size_t n = 0; n < messages[i].len; n++) {
			int expected =
				n < messages[i].len - data || messages[i].m.type == DISPLAY_CURSOR
					? -EBADMSG
					: 1;

			out.data[4] = (uint8_t)n;
			assert_int_equal(
				display_wire_take(out.data, out.len, server, &m, &used, NULL),
				expected);
		}
		if (!data && messages[i].len) {
			buf_put_u8(&out, 0);
			out.data[4] = (uint8_t)(messages[i].len + 1);
			assert_int_equal(
				display_wire_take(out.data, out.len, server, &m, &used, NULL),
				-EBADMSG);
		}
	}
}

/* What one does not know is skipped: it may be of a later version. */
static void test_unknown(void **state)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_message m;
	size_t used;

	for (int type = 0; type < 256; type++)
		for (int server = 0; server < 2; server++) {
			bool known = false;

			for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
				known |= messages[i].m.type == type &&
					 from_server(&messages[i].m) == server;
			if (known)
				continue;
			buf_clear(&out);
			buf_put(&out, (uint8_t[]){(uint8_t)type, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3}, 11);
			assert_int_equal(
				display_wire_take(out.data, out.len, server, &m, &used, NULL), 1);
			assert_int_equal(m.type, DISPLAY_SKIP);
			assert_int_equal(used, 11);
		}
}

static void test_limits(void **state)
{
	uint8_t head[DISPLAY_WIRE_HEAD] = {DISPLAY_CLIPBOARD, 0, 0, 0, 0, 0, 0, 1};
	struct display_message m;
	struct err e = {0};
	size_t used;

	assert_int_equal(display_wire_take(head, 8, true, &m, &used, &e), 0);
	assert_int_equal(used, 8 + DISPLAY_WIRE_SERVER_MAX);
	head[4] = 1;
	assert_int_equal(display_wire_take(head, 8, true, &m, &used, &e), -EMSGSIZE);
	assert_int_equal(e.error, -EMSGSIZE);
	memcpy(head, (uint8_t[]){DISPLAY_CLIPBOARD_IN, 0, 0, 0, 0, 0, 16, 0}, 8);
	assert_int_equal(display_wire_take(head, 8, false, &m, &used, &e), 0);
	head[4] = 1;
	assert_int_equal(display_wire_take(head, 8, false, &m, &used, &e), -EMSGSIZE);
}

/* Rectangles and sizes of nothing, tiles and cursors that are too large. */
static void test_empty(void **state)
{
	const struct display_message bad[] = {
		{.type = DISPLAY_SFILL, .rect = {1, 1, 0, 1}},
		{.type = DISPLAY_COPY, .rect = {1, 1, 1, 0}},
		{.type = DISPLAY_REFRESH},
		{.type = DISPLAY_KEEP, .rect = {1, 1, 1, 0}},
		{.type = DISPLAY_UNCOVER, .rect = {1, 1, 0, 1}},
		{.type = DISPLAY_RESIZE, .size = {0, 1}},
		{.type = DISPLAY_RESIZE_IN, .size = {1, 0}},
		{.type = DISPLAY_PFILL, .rect = {0, 0, 1, 1}, .tw = 0, .th = 1},
		{.type = DISPLAY_PFILL, .rect = {0, 0, 1, 1}, .tw = 1, .th = 65},
		{.type = DISPLAY_VIDEO, .rect = {0, 0, 1, 1}},
		{.type = DISPLAY_CURSOR, .cursor = {0, 0, 513, 1}},
	};
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_message m;
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(&out, &bad[i]);
		assert_int_equal(
			display_wire_take(out.data, out.len, from_server(&bad[i]), &m, &used, NULL),
			-EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
