// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames that are put aside while a session stands still: they make the same image later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"
#include "proto/test_items.h"

static const struct item everything[] = {
	{false, PROTO_KIND_CONFIG, 0, 0, 100, true},
	{false, PROTO_KIND_WORLD, 0, 0, 0, true},
	{true, PROTO_KIND_TREE, 1, 0, 1, true},
	{true, PROTO_KIND_TREE, 2, 0, 32768, true},
	{false, PROTO_KIND_TASK, 1, 0, 3000, true},
	{true, PROTO_KIND_MM, 1, 0x7f0000000000, 9 * MIB + 5, true},
	{false, PROTO_KIND_TASK, 2, 0, 17 * 4096, true},
	{true, PROTO_KIND_MM, 2, 0x10000, 4 * MIB, true},
	{true, PROTO_KIND_MM, 2, 0x500000, 300000, true},
	{false, PROTO_KIND_TASK, 3, 0, 5 * MIB, true},
	{false, 100, UINT64_MAX, 0, 7, true},
	/* About as long as what is aligned, and as what is handed over with others. */
	{true, PROTO_KIND_MM, 3, 0, 32767, true},
	{true, PROTO_KIND_MM, 3, 0x10000, 32769, true},
	{true, PROTO_KIND_MM, 3, 0x100000, 256 * 1024 - 1, true},
	{true, PROTO_KIND_MM, 3, 0x200000, 256 * 1024, true},
	{true, PROTO_KIND_MM, 3, 0x300000, 256 * 1024 + 1, true},
};

static off_t length_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void write_one(struct proto_writer *w, const struct item *i)
{
	_cleanup_free_ uint8_t *p = malloc(i->len + 1);
	struct err e = {0};
	void *room;

	content(i, p);
	if (!i->data) {
		assert_int_equal(proto_write_record(w, i->kind, i->subject, p, i->len, &e), 0);
	} else if (i->len >= PROTO_LONG_DATA) {
		assert_int_equal(
			proto_write_data(w, i->kind, i->subject, i->offset, p, i->len, &e), 0);
	} else {
		/* Less is committed than was wanted. */
		assert_int_equal(proto_write_data_begin(w, i->len + 1, &room, &e), 0);
		memcpy(room, p, i->len);
		assert_int_equal(
			proto_write_data_commit(w, i->kind, i->subject, i->offset, i->len, &e), 0);
	}
}

static void *pages_of(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* Everything, @most bytes of it put aside, and taken up after @n items; 0: none is. */
static int aside_image(const struct proto_write_options *o, size_t most, size_t n)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_writer *w;
	struct err e = {0};
	off_t begun;

	assert_int_equal(proto_writer_open(&w, fd, o, &e), 0);
	begun = length_of(fd);
	if (most)
		proto_writer_put_aside(w, pages_of(most), most);
	for (size_t i = 0; i < ARRAY_SIZE(everything); i++) {
		if (i == n)
			assert_int_equal(proto_writer_take_up(w, &e), 0);
		write_one(w, &everything[i]);
		if (most > 64 * MIB && i < n)
			assert_int_equal(length_of(fd), begun);
	}
	assert_int_equal(proto_writer_finish(w, NULL, &e), 0);
	proto_writer_close(w);
	return fd;
}

static void put_aside_is_the_same(const struct proto_write_options *o, size_t most, size_t n)
{
	_cleanup_close_ int plain = aside_image(o, 0, n), fd = aside_image(o, most, n);
	size_t len = (size_t)length_of(plain);
	_cleanup_free_ uint8_t *a = malloc(len), *b = malloc(len);

	assert_int_equal(length_of(fd), len);
	assert_int_equal(pread(plain, a, len, 0), len);
	assert_int_equal(pread(fd, b, len, 0), len);
	assert_memory_equal(a, b, len);
}

static void frames_put_aside_are_the_same(void **state)
{
	const size_t all = 128 * MIB, n = ARRAY_SIZE(everything);
	struct fixture *fx = *state;
	struct proto_write_options o = {
		.key = fx->key, .image_id = "an image's name", .created = 1};

	put_aside_is_the_same(&o, all, 8);
	put_aside_is_the_same(&o, all, n);
	/* No more than a frame, some of them. */
	put_aside_is_the_same(&o, 4096, 8);
	put_aside_is_the_same(&o, 4 * MIB, n);
	o.zstd_level = 1;
	put_aside_is_the_same(&o, all, 8);
}

static void what_was_put_aside_can_fail(void **state)
{
	struct fixture *fx = *state;
	struct proto_write_options o = {.key = fx->key};
	struct proto_writer *w;
	struct err e = {0};
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(proto_writer_open(&w, fds[1], &o, &e), 0);
	close(fds[0]);
	proto_writer_put_aside(w, pages_of(128 * MIB), 128 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(everything); i++)
		write_one(w, &everything[i]);
	assert_int_equal(proto_writer_settle(w, &e), -EPIPE);
	proto_writer_close(w);
	/* and one that nobody takes up */
	close(fds[1]);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(proto_writer_open(&w, fds[1], &o, &e), 0);
	proto_writer_put_aside(w, pages_of(128 * MIB), 128 * MIB);
	write_one(w, &everything[0]);
	proto_writer_close(w);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_put_aside_are_the_same),
		cmocka_unit_test(what_was_put_aside_can_fail),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
