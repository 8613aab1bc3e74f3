/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame - the bytes of an image stream: its header, the heads of frames, the end.
 *
 *      image head   144 bytes, signed
 *      frame        head (80 bytes) | zero padding | payload         any number of them
 *      end          a frame whose payload signs the digests of all before it
 *
 * Every number is little endian.  A frame's digest (digest.h) covers its head, up to the digest
 * itself, and its payload; padding is checked to be zero.  proto/SPEC.md has the layout field by
 * field.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "proto/crypto.h"
#include "proto/proto.h"

#define PROTO_VERSION 2

#define PROTO_MAGIC	     "\x89podrun\n"
#define PROTO_MAGIC_LEN	     8
#define PROTO_PREFIX_LEN     12 /* magic and version: what every version begins with */
#define PROTO_HEAD_LEN	     144
#define PROTO_HEAD_SIGNED    80 /* of it, in front of the signature */
#define PROTO_FRAME_HEAD_LEN 80
#define PROTO_FRAME_HASHED   48 /* of it, in front of the digest */
#define PROTO_END_LEN	     112
#define PROTO_ALIGN	     4096u
#define PROTO_ALIGN_MIN	     (32u << 10) /* shorter payloads are not worth the padding */

enum { PROTO_HEAD_COPY = 1 };

enum proto_wire_type { PROTO_WIRE_RECORD = 1, PROTO_WIRE_DATA = 2, PROTO_WIRE_END = 3 };
enum { PROTO_FRAME_ZSTD = 1 };

struct proto_frame_head {
	uint32_t type; /* enum proto_wire_type */
	uint32_t flags;
	uint32_t kind;
	uint32_t pad;	   /* zero bytes between head and payload */
	uint64_t sequence; /* 0, 1, 2 ... */
	uint64_t subject;
	uint64_t offset;
	uint32_t stored; /* bytes of payload in the stream */
	uint32_t length; /* bytes of payload once decompressed */
	uint8_t digest[PROTO_DIGEST_LEN];
};

/* What the end frame says about everything before it. */
struct proto_end {
	uint64_t frames;		/* in front of it */
	uint64_t bytes;			/* in front of it, image head included */
	uint8_t list[PROTO_DIGEST_LEN]; /* SHA-256 of the image head and of all digests in order */
	uint8_t signature[PROTO_SIG_LEN];
};

/* As it stands in an image: proto/SPEC.md, "Frames". */
void proto_frame_encode(const struct proto_frame_head *h, uint8_t ret[PROTO_FRAME_HEAD_LEN]);
/* Checks every field that can be checked without what follows; ERR_IMAGE says which was wrong. */
int proto_frame_decode(
	const uint8_t bytes[PROTO_FRAME_HEAD_LEN], struct proto_frame_head *ret, struct err *e);
/* The part of it that its digest covers (digest.h). */
void proto_frame_encode_hashed(const struct proto_frame_head *h, uint8_t ret[PROTO_FRAME_HASHED]);

/* Encodes and signs, as the newest version; i->signer and i->version are ignored. */
int proto_head_encode(const struct proto_image_info *i, const struct proto_key *key,
	uint8_t ret[PROTO_HEAD_LEN], struct err *e);
/* Checks the signature, not whether the signer is trusted. */
int proto_head_decode(
	const uint8_t bytes[PROTO_HEAD_LEN], struct proto_image_info *ret, struct err *e);

/* Fills end->signature and encodes. */
int proto_end_encode(struct proto_end *end, const struct proto_key *key, uint8_t ret[PROTO_END_LEN],
	struct err *e);
/* Checks the signature; what is signed is the caller's to compare. */
int proto_end_decode(const uint8_t bytes[PROTO_END_LEN], const uint8_t signer[PROTO_KEY_LEN],
	struct proto_end *ret, struct err *e);

#endif
