// SPDX-License-Identifier: GPL-2.0-or-later
/* References to pages of another image: as they are written, and nonsense that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/base.h"
#include "ckpt/ckpt.h"
#include "proto/proto.h"

#define SUBJECT 7
#define ADDR	0x10000UL
#define PAGES	16UL
#define MOST	ALIGN_DOWN(UINT64_MAX, PAGE_SIZE)

static char dir[] = "/tmp/podrun-base-XXXXXX";
static struct proto_key *key;
static struct ckpt_base *base;
static uint64_t image_len, first; /* of the image; where in it the page at ADDR is */

/* @ref: an entry of REFS, or NULL. */
static void write_image(int dirfd, const char *name, const uint8_t *ref)
{
	struct proto_write_options o = {.key = key, .threads = PROTO_NO_THREADS};
	_cleanup_close_ int fd =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_free_ uint8_t *pages = malloc(PAGES * PAGE_SIZE);
	struct proto_writer *w;
	struct err e = {0};

	for (size_t i = 0; i < PAGES; i++)
		memset(pages + i * PAGE_SIZE, 'a' + (int)i, PAGE_SIZE);
	assert_int_equal(proto_writer_open(&w, fd, &o, &e), 0);
	assert_int_equal(proto_write_record(w, PROTO_KIND_CONFIG, 0, "x", 1, &e), 0);
	assert_int_equal(
		proto_write_data(w, PROTO_KIND_MM, SUBJECT, ADDR, pages, PAGES * PAGE_SIZE, &e), 0);
	if (ref)
		assert_int_equal(
			proto_write_data(w, PROTO_KIND_REFS, SUBJECT, 0, ref, CKPT_REF_LEN, &e), 0);
	assert_int_equal(proto_writer_finish(w, ref ? NULL : &image_len, &e), 0);
	proto_writer_close(w);
}

static int setup(void **state)
{
	_cleanup_close_ int dirfd = open(dir, O_PATH | O_CLOEXEC);
	struct err e = {0};
	uint32_t number;

	write_image(dirfd, "image", NULL);
	if (ckpt_base_open(&base, dirfd, "image", &e) < 0)
		fail_msg("%s", e.msg);
	assert_non_null(ckpt_base_find(base, SUBJECT, ADDR, &number, &first));
	assert_int_equal(number, 1);
	return 0;
}

static int teardown(void **state)
{
	ckpt_base_free(base);
	return 0;
}

static int read_one(const struct ckpt_base *b, struct ckpt_ref r)
{
	uint8_t entry[CKPT_REF_LEN];
	const uint8_t *pages = NULL;
	struct ckpt_ref got;
	struct err e = {0};
	size_t at = 0;
	int rc;

	ckpt_ref_encode(&r, entry);
	rc = ckpt_ref_read(b, entry, sizeof(entry), &at, &got, &pages, &e);
	if (rc < 0)
		assert_int_equal(e.class, ERR_IMAGE);
	assert_int_equal(at, rc > 0 ? CKPT_REF_LEN : 0);
	return rc;
}

/* proto/SPEC.md: four numbers, little endian. */
static void as_it_is_written(void **state)
{
	const struct ckpt_ref r = {0x0102030405060708, 2 * PAGE_SIZE, 3, 0x1122};
	uint8_t entry[CKPT_REF_LEN];
	struct ckpt_ref got;

	ckpt_ref_encode(&r, entry);
	assert_memory_equal(entry, "\x08\x07\x06\x05\x04\x03\x02\x01\x00\x20\0\0\0\0\0\0", 16);
	assert_memory_equal(entry + 16, "\x03\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0", 16);
	ckpt_ref_decode(entry, &got);
	assert_memory_equal(&got, &r, sizeof(r));
}

static void one_after_the_other(void **state)
{
	uint8_t entries[2 * CKPT_REF_LEN];
	struct ckpt_ref got, r = {ADDR, 2 * PAGE_SIZE, 1, first};
	struct err e = {0};
	const uint8_t *p;
	size_t at = 0;

	ckpt_ref_encode(&r, entries);
	r = (struct ckpt_ref){ADDR + 9 * PAGE_SIZE, PAGE_SIZE, 1, first + 3 * PAGE_SIZE};
	ckpt_ref_encode(&r, entries + CKPT_REF_LEN);
	assert_int_equal(ckpt_ref_read(base, entries, sizeof(entries), &at, &got, &p, &e), 1);
	assert_int_equal(got.len, 2 * PAGE_SIZE);
	assert_int_equal(p[0], 'a');
	assert_int_equal(p[2 * PAGE_SIZE - 1], 'b');
	assert_int_equal(ckpt_ref_read(base, entries, sizeof(entries), &at, &got, &p, &e), 1);
	assert_int_equal(got.addr, ADDR + 9 * PAGE_SIZE);
	assert_int_equal(p[0], 'd');
	assert_int_equal(ckpt_ref_read(base, entries, sizeof(entries), &at, &got, &p, &e), 0);
	/* what is left is no entry */
	at = CKPT_REF_LEN;
	assert_int_equal(
		ckpt_ref_read(base, entries, sizeof(entries) - 1, &at, &got, &p, &e), -EBADMSG);
}

static void nonsense_is_refused(void **state)
{
	const struct ckpt_ref wrong[] = {
		/* no image, or one that there is not, also where only 32 bits are looked at */
		{ADDR, PAGE_SIZE, 0, first},
		{ADDR, PAGE_SIZE, 2, first},
		{ADDR, PAGE_SIZE, 1UL << 32 | 1, first},
		{ADDR, PAGE_SIZE, UINT64_MAX, first},
		/* no pages */
		{ADDR, 0, 1, first},
		{ADDR, 8, 1, first},
		{ADDR + 8, PAGE_SIZE, 1, first},
		/* behind the end of the image, and of all addresses */
		{ADDR, PAGE_SIZE, 1, image_len},
		{ADDR, PAGE_SIZE, 1, image_len - 8},
		{ADDR, PAGE_SIZE, 1, UINT64_MAX - 8},
		{ADDR, MOST, 1, first},
		{MOST, 2 * PAGE_SIZE, 1, first},
	};

	assert_int_equal(read_one(base, (struct ckpt_ref){ADDR, PAGE_SIZE, 1, first}), 1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (read_one(base, wrong[i]) != -EBADMSG)
			fail_msg("entry %zu was not refused", i);
	assert_int_equal(read_one(NULL, (struct ckpt_ref){ADDR, PAGE_SIZE, 1, first}), -EBADMSG);
}

/* An image that refers to others may be a base itself; it is none of those. */
static void of_a_base(void **state)
{
	for (uint64_t number = 0; number < 2; number++) {
		const struct ckpt_ref r = {ADDR, PAGE_SIZE, number, 0};
		_cleanup_close_ int dirfd = open(dir, O_PATH | O_CLOEXEC);
		uint8_t entry[CKPT_REF_LEN];
		struct ckpt_base *b;
		struct err e = {0};

		ckpt_ref_encode(&r, entry);
		write_image(dirfd, "refers", entry);
		assert_int_equal(ckpt_base_open(&b, dirfd, "refers", &e), -EBADMSG);
		assert_int_equal(e.class, ERR_IMAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_is_written),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(of_a_base),
	};
	struct err e = {0};
	int r;

	if (!mkdtemp(dir) || proto_key_open(&key, dir, &e) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, setup, teardown);
	proto_key_close(key);
	io_rm_rf(AT_FDCWD, dir);
	return r;
}
