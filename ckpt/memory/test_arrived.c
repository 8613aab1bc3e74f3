// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory that came ahead: what is found of it, and nonsense that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/arrived.h"
#include "proto/proto.h"

#define BASE  0x7f0000000000UL
#define PAGES 300UL

static char dir[] = "/tmp/podrun-arrived-XXXXXX";
static struct proto_key *key;

static int begin(struct proto_writer **w)
{
	struct proto_write_options o = {.key = key, .threads = PROTO_NO_THREADS};
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct err e = {0};

	assert_int_equal(proto_writer_open(w, fd, &o, &e), 0);
	return fd;
}

/* @n pages of byte @c at page @page. */
static void put(struct proto_writer *w, uint64_t space, size_t page, size_t n, int c)
{
	_cleanup_free_ uint8_t *data = malloc(n * PAGE_SIZE);
	struct err e = {0};

	memset(data, c, n * PAGE_SIZE);
	assert_int_equal(proto_write_data(w, PROTO_KIND_AHEAD, space, BASE + page * PAGE_SIZE, data,
				 n * PAGE_SIZE, &e),
		0);
}

static int end(struct proto_writer *w, int fd, struct ckpt_arrived **ret, struct err *e)
{
	struct proto_read_options o = {.threads = PROTO_NO_THREADS};
	struct proto_reader *in;
	struct proto_frame f;
	int r;

	assert_int_equal(proto_write_record(w, PROTO_KIND_CONFIG, 0, "x", 1, e), 0);
	assert_int_equal(proto_writer_finish(w, NULL, e), 0);
	proto_writer_close(w);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&in, fd, &o, e), 0);
	r = ckpt_arrived_read(ret, in, "/tmp", e);
	if (r == 0) {
		assert_int_equal(proto_read(in, &f, e), 0);
		assert_int_equal(f.kind, PROTO_KIND_CONFIG);
	}
	proto_reader_close(in);
	close(fd);
	return r;
}

static int at(const struct ckpt_arrived *a, uint64_t space, size_t page)
{
	const void *p;

	assert_int_equal(ckpt_arrived_find(a, space, BASE + page * PAGE_SIZE,
				 BASE + (page + 1) * PAGE_SIZE, &p),
		PAGE_SIZE);
	return p ? *(const uint8_t *)p : -1;
}

/* Whatever comes in whatever order: the last of it counts, and of nothing nothing is found. */
static void the_last_counts(void **state)
{
	int want[2][PAGES];
	struct ckpt_arrived *a;
	struct proto_writer *w;
	struct err e = {0};
	int fd = begin(&w);
	const void *p;

	memset(want, -1, sizeof(want));
	srand(7);
	for (int s = 0; s < 2; s++)
		assert_int_equal(
			proto_write_record(w, PROTO_KIND_AHEAD, 5 + (uint64_t)s, "", 0, &e), 0);
	for (int i = 0; i < 200; i++) {
		size_t page = (size_t)rand() % (PAGES - 20), n = 1 + (size_t)rand() % 20;
		int s = rand() % 2;

		put(w, 5 + (uint64_t)s, page, n, i);
		for (size_t k = page; k < page + n; k++)
			want[s][k] = i;
	}
	if (end(w, fd, &a, &e) < 0)
		fail_msg("%s", e.msg);
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < PAGES; i++)
			assert_int_equal(at(a, 5 + (uint64_t)s, i), want[s][i]);
	/* in pieces as long as they lie together */
	for (uint64_t i = BASE, n; i < BASE + PAGES * PAGE_SIZE; i += n) {
		n = ckpt_arrived_find(a, 5, i, BASE + PAGES * PAGE_SIZE, &p);
		assert_in_range(n, PAGE_SIZE, BASE + PAGES * PAGE_SIZE - i);
		for (uint64_t k = 0; k < n; k += PAGE_SIZE) {
			int c = want[0][(i + k - BASE) / PAGE_SIZE];

			assert_int_equal(p ? ((const uint8_t *)p)[k] : -1, c);
		}
	}
	assert_true(ckpt_arrived_has(a, 5) && ckpt_arrived_has(a, 6) && !ckpt_arrived_has(a, 7));
	assert_false(ckpt_arrived_has(NULL, 5));
	ckpt_arrived_free(a);
}

/* As it does in memory, by the chunk; and what is cleared is zero. */
static void it_lies_together(void **state)
{
	const uint64_t chunk = CKPT_ARRIVED_CHUNK / PAGE_SIZE;
	uint64_t first, offset;
	struct ckpt_arrived *a;
	struct proto_writer *w;
	struct err e = {0};
	int fd = begin(&w);
	const void *p;

	assert_int_equal(proto_write_record(w, PROTO_KIND_AHEAD, 1, "", 0, &e), 0);
	put(w, 1, 3 * chunk, 1, 1);
	put(w, 1, 40, 100, 2);
	put(w, 1, 0, 1, 3);
	put(w, 1, chunk - 2, 4, 4); /* over the edge */
	put(w, 1, 40, 1, 5);
	if (end(w, fd, &a, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(ckpt_arrived_place(a, 1, BASE, &first), 0);
	for (uint64_t i = 0; i < 2 * chunk; i++) {
		assert_int_equal(ckpt_arrived_place(a, 1, BASE + i * PAGE_SIZE, &offset), 0);
		assert_int_equal(offset, first + i * PAGE_SIZE);
	}
	assert_int_equal(ckpt_arrived_place(a, 1, BASE + 2 * CKPT_ARRIVED_CHUNK, &offset), -ENOENT);
	assert_int_equal(ckpt_arrived_place(a, 2, BASE, &offset), -ENOENT);
	assert_int_equal(at(a, 1, 40), 5);
	assert_int_equal(at(a, 1, chunk + 1), 4);
	assert_int_equal(
		ckpt_arrived_clear(a, 1, BASE + 30 * PAGE_SIZE, BASE + 139 * PAGE_SIZE, &e), 0);
	assert_int_equal(at(a, 1, 39), -1);
	for (size_t i = 40; i < 139; i++)
		assert_int_equal(at(a, 1, i), 0);
	assert_int_equal(at(a, 1, 139), 2);
	/* a hole on both sides of an edge is one */
	assert_int_equal(ckpt_arrived_find(a, 1, BASE + 2 * CKPT_ARRIVED_CHUNK - PAGE_SIZE,
				 BASE + 3 * CKPT_ARRIVED_CHUNK, &p),
		CKPT_ARRIVED_CHUNK + PAGE_SIZE);
	assert_null(p);
	ckpt_arrived_free(a);
}

/* Anywhere in a chunk, also where nothing came, in pieces of any size; who has it mapped sees it. */
static void what_comes_later_is_there(void **state)
{
	const size_t len = 70 * PAGE_SIZE;
	uint8_t *data = malloc(len), *seen = malloc(CKPT_ARRIVED_CHUNK), *mapped;
	struct ckpt_arrived *a;
	struct proto_writer *w;
	struct err e = {0};
	int fd = begin(&w), image;
	uint64_t offset;

	assert_int_equal(proto_write_record(w, PROTO_KIND_AHEAD, 1, "", 0, &e), 0);
	put(w, 1, 40, 100, 2);
	if (end(w, fd, &a, &e) < 0)
		fail_msg("%s", e.msg);
	image = ckpt_arrived_image(a);
	assert_int_equal(ckpt_arrived_place(a, 1, BASE + 101 * PAGE_SIZE, &offset), 0);
	mapped = mmap(NULL, CKPT_ARRIVED_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE, image, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	memset(data, 9, len);
	assert_int_equal(ckpt_arrived_write(a, offset, data, len, &e), 0);
	assert_int_equal(pread(image, seen, CKPT_ARRIVED_CHUNK, 0), CKPT_ARRIVED_CHUNK);
	for (size_t i = 0; i < CKPT_ARRIVED_CHUNK / PAGE_SIZE; i++) {
		int want = i >= 101 && i < 171 ? 9 : i >= 40 && i < 140 ? 2 : 0;

		assert_int_equal(seen[i * PAGE_SIZE], want);
		assert_int_equal(seen[(i + 1) * PAGE_SIZE - 1], want);
		assert_int_equal(mapped[i * PAGE_SIZE], want);
	}
	munmap(mapped, CKPT_ARRIVED_CHUNK);
	close(image);
	free(data);
	free(seen);
	ckpt_arrived_free(a);
}

static void nothing_came(void **state)
{
	struct ckpt_arrived *a = (void *)1;
	struct proto_writer *w;
	struct err e = {0};
	int fd = begin(&w);

	assert_int_equal(end(w, fd, &a, &e), 0);
	assert_null(a);
}

static void nonsense_is_refused(void **state)
{
	for (int what = 0; what < 5; what++) {
		struct ckpt_arrived *a;
		struct proto_writer *w;
		struct err e = {0};
		int fd = begin(&w);

		assert_int_equal(proto_write_record(w, PROTO_KIND_AHEAD, what != 4, "", 0, &e), 0);
		if (what == 0)
			put(w, 2, 0, 1, 1); /* a space that has no record */
		else if (what == 1)
			proto_write_record(w, PROTO_KIND_AHEAD, 1, "", 0, &e);
		else if (what == 2)
			proto_write_data(w, PROTO_KIND_AHEAD, 1, BASE, "half", 4, &e);
		else if (what == 3) /* behind all addresses */
			proto_write_data(w, PROTO_KIND_AHEAD, 1, 0x7ffffffff000,
				(char[PAGE_SIZE]){1}, PAGE_SIZE, &e);
		assert_int_equal(end(w, fd, &a, &e), -EBADMSG);
		assert_int_equal(e.class, ERR_IMAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_counts),
		cmocka_unit_test(it_lies_together),
		cmocka_unit_test(what_comes_later_is_there),
		cmocka_unit_test(nothing_came),
		cmocka_unit_test(nonsense_is_refused),
	};
	struct err e = {0};
	int r;

	if (!mkdtemp(dir) || proto_key_open(&key, dir, &e) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	proto_key_close(key);
	io_rm_rf(AT_FDCWD, dir);
	return r;
}
