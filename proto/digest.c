// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in digest.h. */
#include "proto/digest.h"

#include <assert.h>
#include <errno.h>

#include "base/base.h"

static_assert(PROTO_PIECE <= PROTO_LANES_MOST, "a piece is too long for lanes");

static size_t pieces_of(const struct proto_digests *d, const struct proto_frame_head *h)
{
	if (d->version == 1 || h->type != PROTO_WIRE_DATA)
		return 0;
	return ((size_t)h->stored + PROTO_PIECE - 1) / PROTO_PIECE;
}

void proto_digests_begin(struct proto_digests *d, struct proto_sha *sha, uint32_t version)
{
	d->sha = sha;
	d->version = version;
	d->taken = 0;
	buf_clear(&d->pieces);
}

void proto_digests_add(
	struct proto_digests *d, const struct proto_frame_head *h, const void *payload)
{
	const size_t n = pieces_of(d, h);
	struct proto_piece *p = buf_grow(&d->pieces, n * sizeof(*p));

	for (size_t i = 0; p && i < n; i++) {
		const size_t at = i * PROTO_PIECE;

		p[i].data = (const uint8_t *)payload + at;
		p[i].len = MIN(h->stored - at, (size_t)PROTO_PIECE);
	}
}

int proto_digests_make(struct proto_digests *d)
{
	if (d->pieces.failed)
		return -ENOMEM;
	return proto_sha_each(d->sha, (struct proto_piece *)d->pieces.data,
		d->pieces.len / sizeof(struct proto_piece));
}

int proto_digests_take(struct proto_digests *d, const struct proto_frame_head *h,
	const void *payload, uint8_t ret[PROTO_DIGEST_LEN])
{
	const struct proto_piece *p = (const struct proto_piece *)d->pieces.data + d->taken;
	const size_t n = pieces_of(d, h);
	uint8_t head[PROTO_FRAME_HASHED];

	proto_frame_encode_hashed(h, head);
	proto_sha_begin(d->sha);
	proto_sha_add(d->sha, head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		proto_sha_add(d->sha, p[i].digest, PROTO_DIGEST_LEN);
	if (n == 0)
		proto_sha_add(d->sha, payload, h->stored);
	d->taken += n;
	return proto_sha_end(d->sha, ret);
}

void proto_digests_fini(struct proto_digests *d)
{
	buf_fini(&d->pieces);
}

int proto_frame_digest(struct proto_sha *sha, const struct proto_frame_head *h, const void *payload,
	uint8_t ret[PROTO_DIGEST_LEN])
{
	struct proto_digests d = {0};
	int r;

	proto_digests_begin(&d, sha, PROTO_VERSION);
	proto_digests_add(&d, h, payload);
	r = proto_digests_make(&d);
	if (r == 0)
		r = proto_digests_take(&d, h, payload, ret);
	proto_digests_fini(&d);
	return r;
}
