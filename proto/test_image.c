// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Images through writer and reader: what goes in comes out, by file and by pipe, and nothing that
 * was changed on the way is accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/digest.h"
#include "proto/frame.h"
#include "proto/proto.h"
#include "proto/test_items.h"

/* ---- what is written, and that it is what is read ------------------------------------------- */

static const struct item everything[] = {
	{false, PROTO_KIND_CONFIG, 0, 0, 100},
	{false, PROTO_KIND_WORLD, 0, 0, 0},
	{true, PROTO_KIND_TREE, 1, 0, 1},
	{true, PROTO_KIND_TREE, 1, 1, 4096},
	{true, PROTO_KIND_TREE, 2, 0, 32768},
	{true, PROTO_KIND_TREE, 3, 12345, 40001, true},
	{false, PROTO_KIND_TASK, 1, 0, 3000},
	{true, PROTO_KIND_MM, 1, 0x7f0000000000, 9 * MIB + 5},
	{false, PROTO_KIND_TASK, 2, 0, 17 * 4096},
	{true, PROTO_KIND_MM, 2, 0x10000, 4 * MIB, true},
	{true, PROTO_KIND_MM, 2, 0x500000, 300000},
	{false, PROTO_KIND_TASK, 3, 0, 5 * MIB},
	{true, PROTO_KIND_MM, 3, 0x500000, 18 * MIB, true},
	{false, 100, UINT64_MAX, 0, 7},
	{true, PROTO_KIND_MM, 4, 0x10000, 32767, true},
	{true, PROTO_KIND_MM, 4, 0x20000, 36864},
	{true, PROTO_KIND_MM, 4, 0x100000, 256 * 1024, true},
	{true, PROTO_KIND_MM, 4, 0x200000, 256 * 1024 + 1, true},
};

static const struct item little[] = {
	{false, PROTO_KIND_CONFIG, 0, 0, 20},
	{true, PROTO_KIND_PIPE, 7, 3, 33},
	{false, PROTO_KIND_TASK, 1, 0, 0},
};

static void write_items(
	int fd, const struct proto_write_options *o, const struct item *items, size_t n)
{
	struct proto_writer *w;
	struct err e = {0};
	uint64_t bytes;

	assert_int_equal(proto_writer_open(&w, fd, o, &e), 0);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ uint8_t *p = malloc(items[i].len + 1);
		int r;

		content(&items[i], p);
		if (items[i].data)
			r = proto_write_data(w, items[i].kind, items[i].subject, items[i].offset, p,
				items[i].len, &e);
		else
			r = proto_write_record(
				w, items[i].kind, items[i].subject, p, items[i].len, &e);
		if (r < 0)
			fail_msg("%s", e.msg);
	}
	if (proto_writer_finish(w, &bytes, &e) < 0)
		fail_msg("%s", e.msg);
	proto_writer_close(w);
}

static void next(struct proto_reader *r, struct proto_frame *f)
{
	struct err e = {0};

	if (proto_read(r, f, &e) < 0)
		fail_msg("%s", e.msg);
}

static int left_in = -1; /* the file that data may be left in */
static size_t n_left;

static void check_data(const struct proto_frame *f, const uint8_t *expected)
{
	_cleanup_free_ uint8_t *copy = NULL;

	if (f->data || !f->len) {
		assert_memory_equal(f->data, expected, f->len);
		return;
	}
	copy = malloc(f->len);
	assert_int_equal(pread(left_in, copy, f->len, f->file_offset), f->len);
	assert_memory_equal(copy, expected, f->len);
	n_left++;
}

static void read_items(struct proto_reader *r, const struct item *items, size_t n, bool aligned)
{
	struct proto_frame f;
	struct err e = {0};

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ uint8_t *p = malloc(items[i].len + 1);
		size_t done = 0;

		content(&items[i], p);
		do {
			next(r, &f);
			if (i % 2) {
				proto_unread(r);
				next(r, &f);
			}
			assert_int_equal(f.type, items[i].data ? PROTO_DATA : PROTO_RECORD);
			assert_int_equal(f.kind, items[i].kind);
			assert_int_equal(f.subject, items[i].subject);
			assert_int_equal(f.offset, items[i].offset + done);
			assert_true(f.len <= items[i].len - done);
			check_data(&f, p + done);
			if (f.type == PROTO_DATA && aligned && f.len >= PROTO_ALIGN_MIN)
				assert_int_equal(f.file_offset % 4096, 0);
			done += f.len;
		} while (done < items[i].len);
	}
	next(r, &f);
	assert_int_equal(f.type, PROTO_END);
	assert_int_equal(proto_read(r, &f, &e), -EINVAL);
}

static void by_file(struct fixture *fx, struct proto_write_options o, struct proto_read_options ro)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_reader *r;
	struct err e = {0};

	o.key = fx->key;
	ro.config_dir = fx->dir;
	write_items(fd, &o, everything, ARRAY_SIZE(everything));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	read_items(r, everything, ARRAY_SIZE(everything), o.zstd_level == 0);
	proto_reader_close(r);
}

static void file_keeps_everything(void **state)
{
	by_file(*state, (struct proto_write_options){0}, (struct proto_read_options){0});
}

static void file_without_threads(void **state)
{
	by_file(*state, (struct proto_write_options){.threads = PROTO_NO_THREADS},
		(struct proto_read_options){.threads = PROTO_NO_THREADS});
}

static void file_with_four_threads(void **state)
{
	by_file(*state, (struct proto_write_options){.threads = 4},
		(struct proto_read_options){.threads = 4});
}

/* More than there are slots for, which are handed over together, some behind long ones. */
static void small_frames_are_the_same_by_any_threads(void **state)
{
	static const unsigned threads[] = {PROTO_NO_THREADS, 1, 4};
	struct fixture *fx = *state;
	struct item items[2000];
	off_t len[ARRAY_SIZE(threads)];
	uint8_t *image[ARRAY_SIZE(threads)];
	struct proto_read_options ro = {.config_dir = fx->dir};

	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		items[i] = (struct item){.data = i % 3,
			.kind = i % 3 ? PROTO_KIND_MM : PROTO_KIND_TASK,
			.subject = i,
			.offset = i % 3 ? i << 16 : 0,
			.len = i % 100 == 50 ? 40000
			       : i % 3	     ? i * 7 + 1
					     : i,
			.random = i % 2};
	for (size_t k = 0; k < ARRAY_SIZE(threads); k++) {
		struct proto_write_options o = {
			.key = fx->key, .image_id = {1}, .created = 1, .threads = threads[k]};
		_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
		struct proto_reader *r;
		struct err e = {0};

		write_items(fd, &o, items, ARRAY_SIZE(items));
		len[k] = lseek(fd, 0, SEEK_END);
		image[k] = malloc((size_t)len[k]);
		assert_int_equal(pread(fd, image[k], (size_t)len[k], 0), len[k]);
		assert_int_equal(len[k], len[0]);
		assert_memory_equal(image[k], image[0], (size_t)len[0]);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
		read_items(r, items, ARRAY_SIZE(items), true);
		proto_reader_close(r);
	}
	for (size_t k = 0; k < ARRAY_SIZE(threads); k++)
		free(image[k]);
}

static void file_without_digests(void **state)
{
	by_file(*state, (struct proto_write_options){0},
		(struct proto_read_options){.skip_digests = true});
}

/* How many frames of everything[] are pages, and long. */
static unsigned long_ones(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(everything); i++)
		if (everything[i].data && everything[i].kind == PROTO_KIND_MM)
			n += everything[i].len / PROTO_LONG_DATA +
			     (everything[i].len % PROTO_LONG_DATA >= PROTO_ALIGN_MIN);
	return n;
}

/* Long data is passed over, and lies where the frame says. */
static void file_with_long_data_left(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = fx->key};
	struct proto_read_options ro = {
		.config_dir = fx->dir, .skip_digests = true, .leave_long = PROTO_KIND_MM};
	struct proto_reader *r;
	struct proto_frame f = {0};
	struct err e = {0};
	off_t last = 0;

	write_items(fd, &o, everything, ARRAY_SIZE(everything));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	left_in = fd;
	n_left = 0;
	read_items(r, everything, ARRAY_SIZE(everything), true);
	assert_true(n_left > 1);
	assert_int_equal(n_left, long_ones());
	proto_reader_close(r);

	/* its end must be there */
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	for (next(r, &f); f.type != PROTO_END; next(r, &f))
		last = f.data ? last : f.file_offset;
	proto_reader_close(r);
	assert_int_equal(ftruncate(fd, last + 5), 0);
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	while (proto_read(r, &f, &e) == 0)
		assert_int_not_equal(f.type, PROTO_END);
	assert_int_equal(e.error, -EBADMSG);
	proto_reader_close(r);
}

static void file_compressed(void **state)
{
	by_file(*state, (struct proto_write_options){.zstd_level = 1},
		(struct proto_read_options){0});
	by_file(*state, (struct proto_write_options){.zstd_level = 3, .threads = PROTO_NO_THREADS},
		(struct proto_read_options){.threads = PROTO_NO_THREADS});
}

struct pipe_writer {
	struct proto_write_options o;
	int fd;
};

static void *write_pipe(void *arg)
{
	struct pipe_writer *w = arg;

	write_items(w->fd, &w->o, everything, ARRAY_SIZE(everything));
	close(w->fd);
	return NULL;
}

static void by_pipe(struct fixture *fx, int zstd_level, int flags)
{
	struct proto_read_options ro = {.config_dir = fx->dir};
	struct pipe_writer w = {.o = {.key = fx->key, .zstd_level = zstd_level}};
	struct proto_reader *r;
	struct err e = {0};
	pthread_t t;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | flags), 0);
	w.fd = fds[1];
	pthread_create(&t, NULL, write_pipe, &w);
	assert_int_equal(proto_reader_open(&r, fds[0], &ro, &e), 0);
	read_items(r, everything, ARRAY_SIZE(everything), false);
	proto_reader_close(r);
	pthread_join(t, NULL);
	close(fds[0]);
}

static void pipe_keeps_everything(void **state)
{
	by_pipe(*state, 0, 0);
	by_pipe(*state, 1, 0);
}

static void pipe_without_blocking(void **state)
{
	by_pipe(*state, 0, O_NONBLOCK);
}

static void header_says_what_was_asked(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {
		.key = fx->key, .copy = true, .created = 1234567890, .image_id = "an image's name"};
	struct proto_read_options ro = {0};
	struct proto_image_info info;
	struct proto_reader *r;
	uint8_t own[PROTO_KEY_LEN];
	struct err e = {0};

	write_items(fd, &o, little, ARRAY_SIZE(little));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	proto_reader_info(r, &info);
	proto_key_public(fx->key, own);
	assert_int_equal(info.version, PROTO_VERSION);
	assert_true(info.copy);
	assert_int_equal(info.created, 1234567890);
	assert_memory_equal(info.image_id, "an image's name", 16);
	assert_memory_equal(info.signer, own, sizeof(own));
	proto_reader_close(r);
}

static void forked_reader_goes_on(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = fx->key};
	struct proto_read_options ro = {.config_dir = fx->dir, .threads = 2};
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};
	int status, n = 0;
	pid_t pid;

	write_items(fd, &o, everything, ARRAY_SIZE(everything));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &ro, &e), 0);
	do
		next(r, &f);
	while (f.kind != PROTO_KIND_MM);
	pid = fork();
	if (pid == 0)
		_exit(proto_read(r, &f, &e) == -EINVAL ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	proto_reader_settle(r);
	pid = fork();
	if (pid == 0) {
		while (proto_read(r, &f, &e) == 0 && f.type != PROTO_END)
			n++;
		_exit(f.type == PROTO_END && n > 10 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	proto_reader_close(r);
}

static void writer_settles_and_goes_on(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = fx->key};
	struct proto_writer *w;
	struct proto_reader *r;
	struct err e = {0};
	_cleanup_free_ uint8_t *p = malloc(everything[7].len);
	int status;
	pid_t pid;

	content(&everything[7], p);
	assert_int_equal(proto_writer_open(&w, fd, &o, &e), 0);
	assert_int_equal(proto_write_data(w, everything[7].kind, everything[7].subject,
				 everything[7].offset, p, everything[7].len, &e),
		0);
	assert_int_equal(proto_writer_settle(w, &e), 0);
	pid = fork();
	if (pid == 0) {
		int r1 = proto_write_data(w, everything[7].kind, everything[7].subject,
			everything[7].offset, p, everything[7].len, &e);

		_exit(r1 < 0 || proto_writer_finish(w, NULL, &e) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	proto_writer_close(w);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &(struct proto_read_options){0}, &e), 0);
	read_items(r, (struct item[]){everything[7], everything[7]}, 2, true);
	proto_reader_close(r);
}

/* ---- who gives up early ---------------------------------------------------------------------- */

/* Writes the first and then later frames of these many bytes, until it is told. */
static void write_to_nobody(const struct fixture *fx, size_t first, size_t later)
{
	struct proto_write_options o = {.key = fx->key};
	_cleanup_free_ void *p = calloc(1, MAX(first, later));
	struct proto_writer *w;
	struct err e = {0};
	int fds[2], r = 0;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(proto_writer_open(&w, fds[1], &o, &e), 0);
	close(fds[0]);
	for (int i = 0; i < 1000 && r == 0; i++)
		r = proto_write_data(w, PROTO_KIND_MM, 1, 0, p, i ? later : first, &e);
	assert_int_equal(r, -EPIPE);
	assert_int_equal(proto_writer_finish(w, NULL, &e), -EPIPE);
	proto_writer_close(w);
	close(fds[1]);
}

static void closed_pipe_is_told(void **state)
{
	write_to_nobody(*state, 4 * MIB, 4 * MIB);
}

/* Of small frames as well, which are hashed and written some at a time. */
static void closed_pipe_is_told_of_small_frames(void **state)
{
	/* the first has threads write all, who get no SIGPIPE */
	write_to_nobody(*state, PROTO_ALIGN_MIN, 4096);
}

static void stalled_pipe_does_not_hold_close(void **state)
{
	struct fixture *fx = *state;
	struct proto_write_options o = {.key = fx->key};
	_cleanup_free_ void *p = calloc(1, 4 * MIB);
	struct proto_writer *w;
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(proto_writer_open(&w, fds[1], &o, &e), 0);
	assert_int_equal(proto_write_data(w, PROTO_KIND_MM, 1, 0, p, 4 * MIB, &e), 0);
	assert_int_equal(proto_write_data(w, PROTO_KIND_MM, 1, 0, p, 4 * MIB, &e), 0);
	assert_int_equal(proto_write_data(w, PROTO_KIND_MM, 1, 0, p, 4 * MIB, &e), 0);
	assert_int_equal(proto_reader_open(&r, fds[0], &(struct proto_read_options){0}, &e), 0);
	next(r, &f); /* starts the reader's threads, which will soon wait for more */
	proto_writer_close(w);
	proto_reader_close(r);
	close(fds[0]);
	close(fds[1]);
}

/* ---- what was changed is refused ------------------------------------------------------------- */

/* Reads all of an image: 0, or the error. */
static int read_all(int fd, const struct proto_read_options *o, struct err *e)
{
	struct proto_reader *r;
	struct proto_frame f;
	int res = proto_reader_open(&r, fd, o, e);

	if (res < 0)
		return res;
	do
		res = proto_read(r, &f, e);
	while (res == 0 && f.type != PROTO_END);
	proto_reader_close(r);
	return res;
}

static int read_bytes(const void *data, size_t n, const struct proto_read_options *o, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);

	assert_int_equal(io_write_full(fd, data, n), 0);
	lseek(fd, 0, SEEK_SET);
	return read_all(fd, o, e);
}

static void make(struct fixture *fx, const struct item *items, size_t n, int zstd, struct buf *b)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = fx->key, .zstd_level = zstd};
	off_t len;

	write_items(fd, &o, items, n);
	len = lseek(fd, 0, SEEK_END);
	assert_non_null(buf_grow(b, (size_t)len));
	assert_int_equal(io_pread_full(fd, b->data, b->len, 0), len);
}

/* Accepting any signer: what is refused here is refused by signatures and digests alone. */
static void every_bit_counts(void **state)
{
	struct fixture *fx = *state;
	struct proto_read_options o = {0};
	_cleanup_buf_ struct buf b = BUF_INIT;

	make(fx, little, ARRAY_SIZE(little), 0, &b);
	for (size_t i = 0; i < b.len * 8; i++) {
		struct err e = {0};

		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_true(read_bytes(b.data, b.len, &o, &e) < 0);
		if (e.class != ERR_IMAGE)
			fail_msg("bit %zu: %s", i, e.msg);
		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(read_bytes(b.data, b.len, &o, NULL), 0);
}

static void every_truncation_is_told(void **state)
{
	struct fixture *fx = *state;
	struct proto_read_options o = {0};
	_cleanup_buf_ struct buf b = BUF_INIT;

	make(fx, little, ARRAY_SIZE(little), 0, &b);
	for (size_t n = 0; n < b.len; n++) {
		struct err e = {0};
		int fds[2];

		assert_true(read_bytes(b.data, n, &o, &e) < 0);
		assert_int_equal(e.class, ERR_IMAGE);
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(io_write_full(fds[1], b.data, n), 0);
		close(fds[1]);
		e = (struct err){0};
		assert_true(read_all(fds[0], &o, &e) < 0);
		assert_int_equal(e.class, ERR_IMAGE);
		close(fds[0]);
	}
	buf_put_u8(&b, 0);
	assert_true(read_bytes(b.data, b.len, &o, NULL) < 0);
}

/* The same for a long image, where threads are at work: at random places. */
static void long_images_are_checked(void **state)
{
	static const struct item items[] = {
		{false, PROTO_KIND_CONFIG, 0, 0, 100},
		{true, PROTO_KIND_MM, 1, 0, 40000, true},
		{true, PROTO_KIND_MM, 1, 0, 3 * 40000},
		{false, PROTO_KIND_TASK, 1, 0, 1000},
	};
	struct fixture *fx = *state;
	struct proto_read_options o = {.config_dir = fx->dir, .threads = 2};
	uint32_t x = 1;

	for (int zstd = 0; zstd < 2; zstd++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		make(fx, items, ARRAY_SIZE(items), zstd, &b);
		for (int i = 0; i < 300; i++) {
			struct err e = {0};
			size_t at;

			x = x * 1664525u + 1013904223u;
			at = (x >> 4) % b.len;
			b.data[at] ^= 0x10;
			assert_true(read_bytes(b.data, b.len, &o, &e) < 0);
			assert_int_equal(e.class, ERR_IMAGE);
			b.data[at] ^= 0x10;
			assert_true(read_bytes(b.data, at, &o, &e) < 0);
			assert_int_equal(e.class, ERR_IMAGE);
		}
		assert_int_equal(read_bytes(b.data, b.len, &o, NULL), 0);
	}
}

static void shrinking_file_is_an_error(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_write_options o = {.key = fx->key};
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};
	int res;

	write_items(fd, &o, everything, ARRAY_SIZE(everything));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&r, fd, &(struct proto_read_options){0}, &e), 0);
	next(r, &f);
	assert_int_equal(ftruncate(fd, 100000), 0);
	do
		res = proto_read(r, &f, &e);
	while (res == 0);
	assert_int_equal(e.class, ERR_IMAGE);
	assert_int_equal(proto_read(r, &f, &e), res);
	proto_reader_close(r);
}

static void strangers_are_refused(void **state)
{
	struct fixture *fx = *state, *other = NULL;
	struct proto_read_options o = {.config_dir = fx->dir};
	_cleanup_buf_ struct buf b = BUF_INIT;
	char text[PROTO_KEY_TEXT_LEN];
	uint8_t key[PROTO_KEY_LEN];
	struct err e = {0};

	setup((void **)&other);
	make(other, little, ARRAY_SIZE(little), 0, &b);
	proto_key_public(other->key, key);
	proto_key_format(key, text);
	teardown((void **)&other);

	assert_int_equal(read_bytes(b.data, b.len, &o, &e), -EKEYREJECTED);
	assert_int_equal(e.class, ERR_IMAGE);
	assert_non_null(strstr(e.msg, text));
	assert_non_null(strstr(e.hint, "podrun key trust ed25519:"));
	o.also_trust = key;
	assert_int_equal(read_bytes(b.data, b.len, &o, &e), 0);
	o.also_trust = NULL;
	assert_int_equal(proto_trust_add(fx->dir, key, "a friend", &e), 0);
	assert_int_equal(read_bytes(b.data, b.len, &o, &e), 0);
	assert_int_equal(proto_trust_remove(fx->dir, key, &e), 0);
	assert_int_equal(read_bytes(b.data, b.len, &o, &e), -EKEYREJECTED);
}

static void other_versions_are_named(void **state)
{
	struct fixture *fx = *state;
	struct proto_read_options o = {0};
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct err e = {0};

	make(fx, little, ARRAY_SIZE(little), 0, &b);
	b.data[PROTO_MAGIC_LEN] = 99;
	assert_true(read_bytes(b.data, b.len, &o, &e) < 0);
	assert_string_equal(e.msg, "images of version 99 can't be read");
	assert_true(read_bytes("\x7f"
			       "ELF and so on",
			    14, &o, &e) < 0);
	assert_string_equal(e.msg, "this is not a podrun image");
	assert_true(read_bytes("", 0, &o, &e) < 0);
	assert_string_equal(e.msg, "this is not a podrun image");
}

/* ---- frames whose author knows how to sign --------------------------------------------------- */

static const struct proto_frame_head hostile[] = {
	{.type = 0, .stored = 8, .length = 8},
	{.type = 4, .stored = 8, .length = 8},
	{.type = UINT32_MAX, .stored = 8, .length = 8},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 8, .flags = 2},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 8, .pad = 4096},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 8, .sequence = 1},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 8, .offset = UINT64_MAX - 3},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 9},
	{.type = PROTO_WIRE_DATA, .stored = 0, .length = 0},
	{.type = PROTO_WIRE_DATA, .stored = PROTO_MAX_DATA, .length = PROTO_MAX_DATA},
	{.type = PROTO_WIRE_DATA, .stored = PROTO_MAX_DATA + 1, .length = PROTO_MAX_DATA + 1},
	{.type = PROTO_WIRE_DATA, .stored = UINT32_MAX, .length = UINT32_MAX},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 7, .flags = PROTO_FRAME_ZSTD},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = 9, .flags = PROTO_FRAME_ZSTD},
	{.type = PROTO_WIRE_DATA, .stored = 8, .length = UINT32_MAX, .flags = PROTO_FRAME_ZSTD},
	{.type = PROTO_WIRE_RECORD, .stored = 8, .length = 9, .flags = PROTO_FRAME_ZSTD},
	{.type = PROTO_WIRE_RECORD, .stored = 8, .length = 8, .offset = 1},
	{.type = PROTO_WIRE_RECORD, .stored = 8, .length = 8, .pad = 1},
	{.type = PROTO_WIRE_RECORD, .stored = PROTO_MAX_RECORD, .length = PROTO_MAX_RECORD},
	{.type = PROTO_WIRE_RECORD, .stored = PROTO_MAX_RECORD + 1, .length = PROTO_MAX_RECORD + 1},
	{.type = PROTO_WIRE_END, .stored = 8, .length = 8},
	{.type = PROTO_WIRE_END, .stored = PROTO_END_LEN, .length = PROTO_END_LEN},
	{.type = PROTO_WIRE_END, .stored = PROTO_END_LEN, .length = PROTO_END_LEN, .kind = 1},
};

/* A well signed image head, then one frame with a right digest and not all it promises. */
static int read_hostile(struct fixture *fx, struct proto_frame_head h, struct err *e)
{
	static const uint8_t payload[4096] = {1, 2, 3};
	struct proto_read_options o = {.config_dir = fx->dir};
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct proto_sha *sha = proto_sha_new(NULL);

	proto_head_encode(&(struct proto_image_info){0}, fx->key, buf_grow(&b, PROTO_HEAD_LEN), e);
	if (h.stored <= sizeof(payload))
		proto_frame_digest(sha, &h, payload, h.digest);
	proto_frame_encode(&h, buf_grow(&b, PROTO_FRAME_HEAD_LEN));
	buf_put(&b, payload, MIN((size_t)h.stored, sizeof(payload)));
	proto_sha_free(sha);
	return read_bytes(b.data, b.len, &o, e);
}

static void hostile_heads_are_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		struct err e = {0};

		assert_true(read_hostile(*state, hostile[i], &e) < 0);
		if (e.class != ERR_IMAGE || strncmp(e.msg, "frame 0 at byte 144: ", 21))
			fail_msg("head %zu: %s", i, e.msg);
	}
}

/* Longer than this writer makes them: it is what older ones made. */
static void longest_data_is_read(void **state)
{
	struct fixture *fx = *state;
	struct proto_read_options o = {.config_dir = fx->dir};
	struct proto_frame_head h = {
		.type = PROTO_WIRE_DATA, .stored = PROTO_MAX_DATA, .length = PROTO_MAX_DATA};
	struct proto_frame_head last = {.type = PROTO_WIRE_END,
		.sequence = 1,
		.stored = PROTO_END_LEN,
		.length = PROTO_END_LEN};
	struct proto_end end = {
		.frames = 1, .bytes = PROTO_HEAD_LEN + PROTO_FRAME_HEAD_LEN + PROTO_MAX_DATA};
	_cleanup_free_ uint8_t *payload = calloc(1, PROTO_MAX_DATA);
	uint8_t head[PROTO_HEAD_LEN], bytes[PROTO_FRAME_HEAD_LEN], ends[PROTO_END_LEN];
	struct proto_sha *sha = proto_sha_new(NULL);
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct err e = {0};

	payload[PROTO_MAX_DATA - 1] = 1;
	assert_int_equal(proto_head_encode(&(struct proto_image_info){0}, fx->key, head, &e), 0);
	assert_int_equal(proto_frame_digest(sha, &h, payload, h.digest), 0);
	proto_sha_begin(sha);
	proto_sha_add(sha, head, sizeof(head));
	proto_sha_add(sha, h.digest, sizeof(h.digest));
	assert_int_equal(proto_sha_end(sha, end.list), 0);
	assert_int_equal(proto_end_encode(&end, fx->key, ends, &e), 0);
	assert_int_equal(proto_frame_digest(sha, &last, ends, last.digest), 0);
	proto_sha_free(sha);
	buf_put(&b, head, sizeof(head));
	proto_frame_encode(&h, bytes);
	buf_put(&b, bytes, sizeof(bytes));
	buf_put(&b, payload, PROTO_MAX_DATA);
	proto_frame_encode(&last, bytes);
	buf_put(&b, bytes, sizeof(bytes));
	buf_put(&b, ends, sizeof(ends));
	assert_int_equal(read_bytes(b.data, b.len, &o, &e), 0);
	b.data[end.bytes - 1] = 2;
	assert_true(read_bytes(b.data, b.len, &o, &e) < 0);
	assert_string_equal(e.msg, "frame 0 at byte 144: its digest does not match");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_keeps_everything),
		cmocka_unit_test(file_without_threads),
		cmocka_unit_test(file_with_four_threads),
		cmocka_unit_test(small_frames_are_the_same_by_any_threads),
		cmocka_unit_test(file_without_digests),
		cmocka_unit_test(file_with_long_data_left),
		cmocka_unit_test(file_compressed),
		cmocka_unit_test(longest_data_is_read),
		cmocka_unit_test(pipe_keeps_everything),
		cmocka_unit_test(pipe_without_blocking),
		cmocka_unit_test(header_says_what_was_asked),
		cmocka_unit_test(forked_reader_goes_on),
		cmocka_unit_test(writer_settles_and_goes_on),
		cmocka_unit_test(closed_pipe_is_told),
		cmocka_unit_test(closed_pipe_is_told_of_small_frames),
		cmocka_unit_test(stalled_pipe_does_not_hold_close),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(every_truncation_is_told),
		cmocka_unit_test(long_images_are_checked),
		cmocka_unit_test(shrinking_file_is_an_error),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(other_versions_are_named),
		cmocka_unit_test(hostile_heads_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
