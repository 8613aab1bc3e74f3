// SPDX-License-Identifier: GPL-2.0-or-later
/* Digests side by side are what they are one by one, and what proto/SPEC.md says they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/base.h"
#include "proto/digest.h"

#define MOST 300u /* more than any library has room for at once */

static uint8_t data[MOST * 64 + PROTO_LANES_MOST];

static struct proto_lanes_library *lanes;

static int setup(void **state)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof(data); i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
	lanes = proto_lanes_load();
	*state = proto_sha_new(lanes);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	proto_sha_free(*state);
	free(take_ptr(lanes));
	return 0;
}

static void alone(struct proto_sha *sha, const void *p, size_t n, uint8_t ret[PROTO_DIGEST_LEN])
{
	proto_sha_begin(sha);
	proto_sha_add(sha, p, n);
	assert_int_equal(proto_sha_end(sha, ret), 0);
}

/* Of messages as long as @len says of each. */
static void compare(struct proto_sha *sha, size_t n, size_t (*len)(size_t i))
{
	struct proto_piece pieces[MOST];
	uint8_t digest[PROTO_DIGEST_LEN];

	for (size_t i = 0; i < n; i++)
		pieces[i] = (struct proto_piece){.data = data + i * 64, .len = len(i)};
	assert_int_equal(proto_sha_each(sha, pieces, n), 0);
	for (size_t i = 0; i < n; i++) {
		alone(sha, pieces[i].data, pieces[i].len, digest);
		assert_memory_equal(pieces[i].digest, digest, sizeof(digest));
	}
}

static size_t as_many(size_t i)
{
	return i;
}

static size_t around_blocks(size_t i)
{
	return 64 * (i / 4) + 53 + i % 4; /* 55 is the last that the length fits behind */
}

static size_t long_and_short(size_t i)
{
	return i % 3 ? PROTO_PIECE : 1 + i * 7;
}

static size_t longest(size_t i)
{
	return PROTO_LANES_MOST - i % 2;
}

static void side_by_side_as_alone(void **state)
{
	size_t (*const lens[])(size_t) = {as_many, around_blocks, long_and_short, longest};

	for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
		for (size_t n = 0; n < 40; n++)
			compare(*state, n, lens[l]);
		compare(*state, MOST, lens[l]);
	}
}

/* A frame's digest by hand. */
static void by_hand(struct proto_sha *sha, uint32_t version, const struct proto_frame_head *h,
	const uint8_t *payload, uint8_t ret[PROTO_DIGEST_LEN])
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	uint8_t digest[PROTO_DIGEST_LEN];
	size_t n;

	proto_frame_encode_hashed(h, buf_grow(&all, PROTO_FRAME_HASHED));
	if (version == 1 || h->type != PROTO_WIRE_DATA) {
		buf_put(&all, payload, h->stored);
	} else {
		for (size_t at = 0; at < h->stored; at += n) {
			n = MIN(h->stored - at, (size_t)16384);
			alone(sha, payload + at, n, digest);
			buf_put(&all, digest, sizeof(digest));
		}
	}
	alone(sha, all.data, all.len, ret);
}

static const struct proto_frame_head frames[] = {
	{.type = PROTO_WIRE_RECORD, .kind = PROTO_KIND_MM, .subject = 1},
	{.type = PROTO_WIRE_DATA, .kind = PROTO_KIND_MM, .stored = 1, .length = 1},
	{.type = PROTO_WIRE_RECORD, .kind = PROTO_KIND_MM, .stored = 30000, .length = 30000},
	{.type = PROTO_WIRE_DATA, .kind = PROTO_KIND_MM, .stored = 16384, .length = 16384},
	{.type = PROTO_WIRE_DATA, .kind = PROTO_KIND_MM, .stored = 16385, .length = 16385},
	{.type = PROTO_WIRE_DATA, .kind = PROTO_KIND_MM, .stored = 40000, .length = 50000,
		.flags = PROTO_FRAME_ZSTD},
	{.type = PROTO_WIRE_END, .stored = PROTO_END_LEN, .length = PROTO_END_LEN},
};

static void frames_as_the_format_says(void **state)
{
	struct proto_digests d = {0};
	uint8_t got[PROTO_DIGEST_LEN], want[PROTO_DIGEST_LEN];

	for (uint32_t version = 1; version <= PROTO_VERSION; version++) {
		proto_digests_begin(&d, *state, version);
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
			proto_digests_add(&d, &frames[i], data + i);
		assert_int_equal(proto_digests_make(&d), 0);
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
			by_hand(*state, version, &frames[i], data + i, want);
			assert_int_equal(proto_digests_take(&d, &frames[i], data + i, got), 0);
			assert_memory_equal(got, want, sizeof(want));
		}
	}
	proto_digests_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(side_by_side_as_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_as_the_format_says, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
