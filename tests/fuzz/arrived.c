// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any memory that comes ahead of a session (images.h): what was taken of it is found again, in
 * pieces that are there.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "ckpt/memory/arrived.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/images.h"

#define SPACES 8 /* that are asked for; others may be there */

/* Reads both ends of what is said to be there, so that a sanitizer sees where they lie. */
static void touch(const uint8_t *p, uint64_t n)
{
	volatile uint8_t first = p[0], last = p[n - 1];

	(void)first;
	(void)last;
}

static void look(void *ctx, uint64_t addr, unsigned pages)
{
	const uint64_t end = addr + CKPT_ARRIVED_CHUNK;
	struct ckpt_arrived *a = ctx;
	uint64_t offset;

	for (uint64_t space = 0; space < SPACES; space++) {
		const void *p;

		if (!ckpt_arrived_has(a, space))
			continue;
		for (uint64_t at = addr, n; at < end; at += n) {
			n = ckpt_arrived_find(a, space, at, end, &p);
			if (!n || n > end - at || n % PAGE_SIZE ||
				(p && ckpt_arrived_place(a, space, at, &offset) < 0))
				abort();
			if (p)
				touch(p, n);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proto_read_options any = {.threads = PROTO_NO_THREADS};
	struct cursor in = cursor_of(data, size);
	struct ckpt_arrived *a = NULL;
	struct proto_reader *reader;
	struct err e = {0};
	int fd = fuzz_image(&in);

	if (proto_reader_open(&reader, fd, &any, &e) < 0)
		abort();
	if (ckpt_arrived_read(&a, reader, "/tmp", &e) == 0 && a) {
		ckpt_arrived_each(a, look, a);
		ckpt_arrived_clear(a, 1, 0, CKPT_ARRIVED_CHUNK, &e);
	}
	ckpt_arrived_free(a);
	proto_reader_close(reader);
	close(fd);
	return 0;
}
