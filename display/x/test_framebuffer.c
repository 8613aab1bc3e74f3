// SPDX-License-Identifier: GPL-2.0-or-later
/* An Xvfb's file as it should be, and as a session could make it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/x/framebuffer.h"
#include "display/x/x.h"

#define WORDS	25
#define WIDTH	64
#define HEIGHT	48
#define COLOURS 2
#define SIZE	(WORDS * 4 + COLOURS * 12 + WIDTH * HEIGHT * 4)
#define FILE_AT DISPLAY_PICTURES "/Xvfb_screen0"

/* As Xvfb writes it: XWDFile.h. */
static const uint32_t header[WORDS] = {WORDS * 4, 7, 2, 24, WIDTH, HEIGHT, 0, 0, 32, 0, 32, 32,
	WIDTH * 4, 4, 0xff0000, 0xff00, 0xff, 8, 256, COLOURS, WIDTH, HEIGHT, 0, 0, 0};

static char place[] = "/tmp/podrun-framebuffer-XXXXXX";
static int dir = -1;

static void write_file(const uint32_t words[WORDS], size_t size)
{
	_cleanup_free_ uint8_t *data = calloc(1, SIZE);
	uint32_t raw[WORDS];

	for (int i = 0; i < WORDS; i++)
		raw[i] = htonl(words[i]);
	memcpy(data, raw, sizeof(raw));
	memset(data + sizeof(raw) + COLOURS * 12, 0x5a, WIDTH * HEIGHT * 4);
	unlinkat(dir, FILE_AT, 0);
	assert_int_equal(io_write_file(dir, FILE_AT, data, size, 0600), 0);
}

static int map(struct display_x_framebuffer *ret)
{
	struct err e = {0};

	return display_x_framebuffer_map(ret, dir, &e);
}

static void is_mapped(void **state)
{
	struct display_x_framebuffer f;

	write_file(header, SIZE);
	assert_int_equal(map(&f), 0);
	assert_int_equal(f.all.width, WIDTH);
	assert_int_equal(f.all.height, HEIGHT);
	assert_int_equal(*display_frame_at(&f.all, WIDTH - 1, HEIGHT - 1), 0x5a5a5a5a);
	assert_true(display_x_framebuffer_current(&f, dir));
	/* Another X server's, though it lies in the same place. */
	assert_int_equal(renameat(dir, FILE_AT, dir, "before"), 0);
	write_file(header, SIZE);
	assert_false(display_x_framebuffer_current(&f, dir));
	unlinkat(dir, "before", 0);
	display_x_framebuffer_unmap(&f);
	assert_null(f.map);
}

/* Each word with values that would lead somewhere else. */
static void others_are_refused(void **state)
{
	static const struct {
		int word;
		uint32_t value;
	} wrong[] = {{0, 0}, {0, 0xffffffff}, {1, 8}, {2, 1}, {4, 0}, {4, 0x80000000},
		{4, WIDTH + 1}, {5, 0}, {5, HEIGHT + 1}, {5, 0xffffffff}, {7, 1}, {11, 24}, {12, 0},
		{12, 2}, {12, 0xfffffffc}, {14, 0xff}, {16, 0xff0000}, {19, 0xffffffff},
		{19, COLOURS + 1}};
	struct display_x_framebuffer f;
	uint32_t words[WORDS];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memcpy(words, header, sizeof(words));
		words[wrong[i].word] = wrong[i].value;
		write_file(words, SIZE);
		assert_int_equal(map(&f), -EBADMSG);
	}
	write_file(header, SIZE - 1);
	assert_int_equal(map(&f), -EBADMSG);
	write_file(header, 10);
	assert_int_equal(map(&f), -EBADMSG);
}

/* Larger than Xvfb was started with: it would be our memory, not the session's. */
static void too_large_is_refused(void **state)
{
	static const uint32_t sizes[][2] = {{DISPLAY_MAX_WIDTH, DISPLAY_MAX_HEIGHT},
		{DISPLAY_MAX_WIDTH + 1, 1}, {1, DISPLAY_MAX_HEIGHT + 1}};
	struct display_x_framebuffer f;
	uint32_t words[WORDS];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_close_ int fd = -1;

		memcpy(words, header, sizeof(words));
		words[4] = sizes[i][0];
		words[5] = sizes[i][1];
		words[12] = sizes[i][0] * 4;
		write_file(words, SIZE);
		fd = openat(dir, FILE_AT, O_RDWR | O_CLOEXEC);
		assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
		assert_int_equal(map(&f), i == 0 ? 0 : -EBADMSG);
		if (i == 0)
			display_x_framebuffer_unmap(&f);
	}
}

static void links_are_not_followed(void **state)
{
	struct display_x_framebuffer f;

	write_file(header, SIZE);
	assert_int_equal(renameat(dir, FILE_AT, dir, "elsewhere"), 0);
	assert_int_equal(symlinkat("../elsewhere", dir, FILE_AT), 0);
	assert_true(map(&f) < 0);
	unlinkat(dir, "elsewhere", 0);
}

/* A file cut short below the mapping reads as black. */
static void cut_short_is_black(void **state)
{
	struct display_x_framebuffer f;
	_cleanup_close_ int fd = -1;

	write_file(header, SIZE);
	assert_int_equal(map(&f), 0);
	fd = openat(dir, FILE_AT, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(*display_frame_at(&f.all, WIDTH - 1, HEIGHT - 1), 0);
	assert_int_equal(*display_frame_at(&f.all, 0, 0), 0);
	display_x_framebuffer_unmap(&f);
}

static int begin(void **state)
{
	if (!mkdtemp(place))
		return -1;
	dir = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return mkdirat(dir, DISPLAY_PICTURES, 0700);
}

static int end(void **state)
{
	close(dir);
	return io_rm_rf(AT_FDCWD, place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_mapped),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(too_large_is_refused),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(cut_short_is_black),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
