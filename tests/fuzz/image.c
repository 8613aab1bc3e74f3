// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as an image, read to the end by somebody who trusts every signer.
 *
 * A fuzzer can't make signatures and digests, and would never get behind them.  So the first byte
 * of the input chooses:
 *
 *      0  the rest is an image as it is
 *      1  the rest is frames: they get a signed image head in front, and each frame the sequence
 *         number and digest it should have, as a hostile author would do it
 *      2  the same, through a pipe in place of a file
 */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/crypto.h"
#include "proto/digest.h"
#include "proto/frame.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t seed[PROTO_SEED_LEN] = {1};

/* proto_head_encode wants a key file; this has the same bytes. */
static void put_head(struct buf *b)
{
	static const char purpose[] = "podrun image head";
	uint8_t text[sizeof(purpose) + PROTO_HEAD_SIGNED] = {0};
	uint8_t *head = text + sizeof(purpose);
	uint8_t signature[PROTO_SIG_LEN];

	memcpy(text, purpose, sizeof(purpose));
	memcpy(head, PROTO_MAGIC, PROTO_MAGIC_LEN);
	head[PROTO_MAGIC_LEN] = PROTO_VERSION;
	if (proto_ed25519_public(seed, head + 48, NULL) < 0 ||
		proto_ed25519_sign(seed, text, sizeof(text), signature, NULL) < 0)
		abort();
	buf_put(b, head, PROTO_HEAD_SIGNED);
	buf_put(b, signature, sizeof(signature));
}

/* What @head has as its digest, if it is one that can be read. */
static void seal(struct proto_sha *sha, uint8_t *head, const uint8_t *payload, size_t len)
{
	struct proto_frame_head h;

	memset(head + PROTO_FRAME_HASHED, 0, PROTO_DIGEST_LEN);
	if (proto_frame_decode(head, &h, NULL) < 0 || h.stored > len)
		return;
	if (proto_frame_digest(sha, &h, payload, head + PROTO_FRAME_HASHED) < 0)
		abort();
}

/*
 * Copies one frame from the input with what it should say; returns how much of the input it took.
 */
static size_t put_frame(
	struct buf *b, struct proto_sha *sha, uint64_t sequence, const uint8_t *data, size_t size)
{
	uint8_t head[PROTO_FRAME_HEAD_LEN];
	uint32_t pad, stored;
	size_t room, body;

	if (size < PROTO_FRAME_HASHED) {
		buf_put(b, data, size);
		return size;
	}
	memcpy(head, data, PROTO_FRAME_HASHED);
	sequence = htole64(sequence);
	memcpy(head + 16, &sequence, sizeof(sequence));
	memcpy(&pad, head + 12, sizeof(pad));
	memcpy(&stored, head + 40, sizeof(stored));
	room = size - PROTO_FRAME_HASHED;
	pad = MIN(le32toh(pad), PROTO_ALIGN);
	body = MIN((size_t)le32toh(stored), room);
	seal(sha, head, data + PROTO_FRAME_HASHED, body);
	buf_put(b, head, sizeof(head));
	if (buf_grow(b, pad))
		memset(b->data + b->len - pad, 0, pad);
	buf_put(b, data + PROTO_FRAME_HASHED, body);
	return PROTO_FRAME_HASHED + body;
}

static void put_frames(struct buf *b, const uint8_t *data, size_t size)
{
	struct proto_sha *sha = proto_sha_new(NULL);

	put_head(b);
	for (uint64_t sequence = 0; size > 0; sequence++) {
		size_t n = put_frame(b, sha, sequence, data, size);

		data += n;
		size -= n;
	}
	proto_sha_free(sha);
}

/* Reads both ends of what was given, so that a sanitizer sees where they lie. */
static void touch(const uint8_t *p, size_t n)
{
	volatile uint8_t first = p[0], last = p[n - 1];

	(void)first;
	(void)last;
}

static void read_all(int fd)
{
	struct proto_read_options o = {.threads = PROTO_NO_THREADS};
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};

	if (proto_reader_open(&r, fd, &o, &e) < 0)
		return;
	while (proto_read(r, &f, &e) == 0) {
		if (f.len)
			touch(f.data, f.len);
		if (f.type == PROTO_END)
			break;
	}
	proto_reader_close(r);
}

static void by_file(const struct buf *b)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);

	if (io_write_full(fd, b->data, b->len) < 0)
		abort();
	lseek(fd, 0, SEEK_SET);
	read_all(fd);
}

/* A pipe takes so much without a reader; the rest is cut off. */
static void by_pipe(const struct buf *b)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	if (io_write_full(fds[1], b->data, MIN(b->len, (size_t)65536)) < 0)
		abort();
	close(fds[1]);
	read_all(fds[0]);
	close(fds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (size == 0)
		return 0;
	if (data[0] == 0)
		buf_put(&b, data + 1, size - 1);
	else
		put_frames(&b, data + 1, size - 1);
	if (buf_error(&b) == 0) {
		if (data[0] == 2)
			by_pipe(&b);
		else
			by_file(&b);
	}
	return 0;
}
