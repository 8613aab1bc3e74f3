// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The test vectors of proto/SPEC.md: what this podrun writes with a fixed key is, byte for byte,
 * what is in proto/vectors, and it reads what is there.
 *
 *     test_vectors DIR           checks
 *     test_vectors --make DIR    writes them anew, for a new version of the format only; the old ones
 *                                go into a directory of their own first
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/crypto.h"
#include "proto/frame.h"
#include "proto/proto.h"

#define LONG_LEN 40000u

struct fixture {
	const char *vectors;
	char dir[40];
	struct proto_key *key;
};

/* The key whose seed is 00 01 02 ... 1f. */
static const char key_file[] = "ed25519-private:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";

static void check(int r, const struct err *e)
{
	if (r < 0)
		fail_msg("%s", e->msg);
}

static int setup(void **state)
{
	struct fixture *f = *state;
	char path[64];
	struct err e = {0};

	strcpy(f->dir, "/tmp/podrun-vectors-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(path, sizeof(path), "%s/key", f->dir);
	assert_int_equal(io_write_file(AT_FDCWD, path, key_file, strlen(key_file), 0600), 0);
	check(proto_key_open(&f->key, f->dir, &e), &e);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	proto_key_close(f->key);
	io_rm_rf(AT_FDCWD, f->dir);
	return 0;
}

/* ---- what the vectors contain ---------------------------------------------------------------- */

static void fill(uint8_t *p)
{
	for (size_t i = 0; i < LONG_LEN; i++)
		p[i] = (uint8_t)(i >> 8);
}

static void write_small(struct proto_writer *w, struct err *e)
{
	check(proto_write_record(w, PROTO_KIND_CONFIG, 0, "hello", 5, e), e);
	check(proto_write_record(w, PROTO_KIND_PIPE, 7, "", 0, e), e);
	check(proto_write_data(w, PROTO_KIND_PIPE, 7, 3, "in flight", 9, e), e);
}

static void write_long(struct proto_writer *w, struct err *e)
{
	static uint8_t data[LONG_LEN];

	fill(data);
	check(proto_write_record(w, PROTO_KIND_MM, 1, "mm", 2, e), e);
	check(proto_write_data(w, PROTO_KIND_MM, 1, 0x7f0000001000, data, sizeof(data), e), e);
}

/* Two pages, then the second one anew. */
static void write_ahead(struct proto_writer *w, struct err *e)
{
	static uint8_t data[8192];

	memset(data, 'a', 8192);
	check(proto_write_record(w, PROTO_KIND_AHEAD, 1, "", 0, e), e);
	check(proto_write_data(w, PROTO_KIND_AHEAD, 1, 0x7f0000001000, data, 8192, e), e);
	memset(data, 'b', 4096);
	check(proto_write_data(w, PROTO_KIND_AHEAD, 1, 0x7f0000002000, data, 4096, e), e);
	check(proto_write_record(w, PROTO_KIND_CONFIG, 0, "hello", 5, e), e);
}

static void expect(struct proto_reader *r, enum proto_frame_type type, uint32_t kind,
	uint64_t subject, uint64_t offset, const void *data, size_t len)
{
	struct proto_frame f;
	struct err e = {0};

	check(proto_read(r, &f, &e), &e);
	assert_int_equal(f.type, type);
	assert_int_equal(f.kind, kind);
	assert_int_equal(f.subject, subject);
	assert_int_equal(f.offset, offset);
	assert_int_equal(f.len, len);
	if (len)
		assert_memory_equal(f.data, data, len);
}

static void read_small(struct proto_reader *r)
{
	expect(r, PROTO_RECORD, PROTO_KIND_CONFIG, 0, 0, "hello", 5);
	expect(r, PROTO_RECORD, PROTO_KIND_PIPE, 7, 0, "", 0);
	expect(r, PROTO_DATA, PROTO_KIND_PIPE, 7, 3, "in flight", 9);
	expect(r, PROTO_END, 0, 0, 0, NULL, 0);
}

static void read_long(struct proto_reader *r)
{
	static uint8_t data[LONG_LEN];

	fill(data);
	expect(r, PROTO_RECORD, PROTO_KIND_MM, 1, 0, "mm", 2);
	expect(r, PROTO_DATA, PROTO_KIND_MM, 1, 0x7f0000001000, data, sizeof(data));
	expect(r, PROTO_END, 0, 0, 0, NULL, 0);
}

static void read_ahead(struct proto_reader *r)
{
	uint8_t data[8192];

	memset(data, 'a', 8192);
	expect(r, PROTO_RECORD, PROTO_KIND_AHEAD, 1, 0, "", 0);
	expect(r, PROTO_DATA, PROTO_KIND_AHEAD, 1, 0x7f0000001000, data, 8192);
	memset(data, 'b', 4096);
	expect(r, PROTO_DATA, PROTO_KIND_AHEAD, 1, 0x7f0000002000, data, 4096);
	expect(r, PROTO_RECORD, PROTO_KIND_CONFIG, 0, 0, "hello", 5);
	expect(r, PROTO_END, 0, 0, 0, NULL, 0);
}

static const struct vector {
	const char *file;
	void (*write)(struct proto_writer *w, struct err *e);
	void (*read)(struct proto_reader *r);
	int zstd_level; /* its bytes depend on the library: only read */
} images[] = {
	{"small.image", write_small, read_small, 0},
	{"long.image", write_long, read_long, 0},
	{"ahead.image", write_ahead, read_ahead, 0},
	{"compressed.image", write_long, read_long, 3},
};

/* Where they are: those of the newest version, which are written, too, and those of older ones. */
static const char *const versions[] = {".", "1"};

static const char control_body[] = "\xa2\x06\x00"; /* any bytes do */

/* ---- making and comparing -------------------------------------------------------------------- */

static void make_image(const struct fixture *f, const struct vector *v, struct buf *b)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = f->key,
		.zstd_level = v->zstd_level,
		.copy = true,
		.created = 1700000000,
		.image_id = "podrun's vector"};
	struct proto_writer *w;
	uint64_t bytes;
	struct err e = {0};

	check(proto_writer_open(&w, fd, &o, &e), &e);
	v->write(w, &e);
	check(proto_writer_finish(w, &bytes, &e), &e);
	proto_writer_close(w);
	assert_non_null(buf_grow(b, bytes));
	assert_int_equal(io_pread_full(fd, b->data, b->len, 0), bytes);
}

static void make_control(struct buf *b)
{
	struct proto_conn *c;
	struct err e = {0};
	ssize_t n;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	check(proto_conn_new(&c, sv[0], &e), &e);
	check(proto_conn_send(c, control_body, 3, NULL, 0, &e), &e);
	check(proto_conn_send(c, NULL, 0, NULL, 0, &e), &e);
	proto_conn_free(c);
	n = io_read_full(sv[1], buf_reserve(b, 100), 100);
	assert_true(n > 0);
	b->len += (size_t)n;
	close(sv[1]);
}

static void load(const struct fixture *f, const char *file, struct buf *b)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", f->vectors, file);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, b), 0);
}

static void compare(const struct fixture *f, const char *file, const struct buf *b)
{
	_cleanup_buf_ struct buf known = BUF_INIT;

	load(f, file, &known);
	assert_int_equal(known.len, b->len);
	assert_memory_equal(known.data, b->data, b->len);
}

static void images_are_written_so(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		make_image(*state, &images[i], &b);
		if (!images[i].zstd_level)
			compare(*state, images[i].file, &b);
	}
}

static void image_is_read_so(const struct fixture *f, const char *version, const struct vector *v)
{
	struct proto_read_options o = {.config_dir = f->dir};
	struct proto_image_info info;
	struct proto_reader *r;
	char path[4096];
	struct err e = {0};
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", f->vectors, version, v->file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	check(proto_reader_open(&r, fd, &o, &e), &e);
	proto_reader_info(r, &info);
	assert_int_equal(info.version, atoi(version) ? atoi(version) : PROTO_VERSION);
	assert_int_equal(info.created, 1700000000);
	assert_true(info.copy);
	v->read(r);
	proto_reader_close(r);
	close(fd);
}

static void images_are_read_so(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++)
		for (size_t i = 0; i < ARRAY_SIZE(images); i++)
			image_is_read_so(*state, versions[v], &images[i]);
}

static void control_messages_are_so(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	make_control(&b);
	compare(*state, "control.bin", &b);
}

static void store(const struct fixture *f, const char *file, const struct buf *b)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", f->vectors, file);
	assert_int_equal(io_write_file(AT_FDCWD, path, b->data, b->len, 0644), 0);
}

static void make_all(void **state)
{
	_cleanup_buf_ struct buf control = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		make_image(*state, &images[i], &b);
		store(*state, images[i].file, &b);
	}
	make_control(&control);
	store(*state, "control.bin", &control);
}

int main(int argc, char **argv)
{
	struct fixture f = {.vectors = argv[argc - 1]};
	const struct CMUnitTest making[] = {
		cmocka_unit_test_prestate_setup_teardown(make_all, setup, teardown, &f),
	};
	const struct CMUnitTest checking[] = {
		cmocka_unit_test_prestate_setup_teardown(
			images_are_written_so, setup, teardown, &f),
		cmocka_unit_test_prestate_setup_teardown(images_are_read_so, setup, teardown, &f),
		cmocka_unit_test_prestate_setup_teardown(
			control_messages_are_so, setup, teardown, &f),
	};

	if (argc == 3 && !strcmp(argv[1], "--make"))
		return cmocka_run_group_tests(making, NULL, NULL);
	return cmocka_run_group_tests(checking, NULL, NULL);
}
