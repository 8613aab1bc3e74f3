// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the tests of images share: a directory with a key in it, and the records and data that an
 * image is written from.  For tests of cmocka, which includes come before this.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proto/proto.h"

#define MIB (1u << 20)

struct fixture {
	char dir[40]; /* of its own, removed in the end */
	struct proto_key *key;
};

/* One call of the writer; a whole image is a list of them. */
struct item {
	bool data; /* else a record */
	enum proto_kind kind;
	uint64_t subject;
	uint64_t offset;
	size_t len;
	bool random; /* else compressible */
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = {0};

	strcpy(f->dir, "/tmp/podrun-image-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(proto_key_open(&f->key, f->dir, &e), 0);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	proto_key_close(f->key);
	io_rm_rf(AT_FDCWD, f->dir);
	free(f);
	return 0;
}

/* The i->len bytes of an item, which are always the same, into p. */
static inline void content(const struct item *i, uint8_t *p)
{
	uint32_t x = (uint32_t)(i->len * 2654435761u + i->kind);

	for (size_t k = 0; k < i->len; k++) {
		x = x * 1664525u + 1013904223u;
		p[k] = i->random ? (uint8_t)(x >> 24) : (uint8_t)(k / 1000 + i->kind);
	}
}
