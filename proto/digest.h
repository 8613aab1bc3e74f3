/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * digest - the digests of frames, of many at a time.
 *
 * A frame of data is hashed in pieces, which can be worked at side by side (lanes.h), and its
 * digest is made of those of its pieces; in version 1 of the format it was made of all of the
 * payload at once, as that of a record is today (proto/SPEC.md, "Digests").  So digests are made in
 * three steps: all frames of a batch are added, what can be hashed beforehand is, and then each
 * frame's digest is taken, in the order in which they were added.
 */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "base/base.h"
#include "proto/crypto.h"
#include "proto/frame.h"

#define PROTO_PIECE (16u << 10) /* of a payload as stored; the last one may be shorter */

struct proto_digests {
	struct proto_sha *sha; /* borrowed */
	uint32_t version;      /* of the format */
	struct buf pieces;     /* struct proto_piece, those of all frames added */
	size_t taken;	       /* of them, by frames whose digest was made */
};

/* Forgets what was added; frames of @version follow. */
void proto_digests_begin(struct proto_digests *d, struct proto_sha *sha, uint32_t version);
/* @payload has h->stored bytes, which stay as they are until the digest is taken. */
void proto_digests_add(
	struct proto_digests *d, const struct proto_frame_head *h, const void *payload);
/* Once all are added: -ENOMEM, -EIO. */
int proto_digests_make(struct proto_digests *d);
/* The digest of the next frame, the same that was added: -EIO. */
int proto_digests_take(struct proto_digests *d, const struct proto_frame_head *h,
	const void *payload, uint8_t ret[PROTO_DIGEST_LEN]);
void proto_digests_fini(struct proto_digests *d);

/* All of it for a single frame, of the newest version: -ENOMEM, -EIO. */
int proto_frame_digest(struct proto_sha *sha, const struct proto_frame_head *h, const void *payload,
	uint8_t ret[PROTO_DIGEST_LEN]);

#endif
