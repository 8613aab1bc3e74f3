/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lanes - many SHA-256 side by side.
 *
 * SHA-256 is a chain in which each step waits for the one before, so one message leaves most of a
 * CPU idle, also with instructions made for it.  Several messages are worked at at once by vector
 * instructions: sixteen with AVX-512 in the time of seven, two with the SHA instructions in the
 * time of one and a half.  The library that does it is Intel's multi-buffer cryptography
 * (libIPSec_MB), the files of this name are the only ones that know it; where podrun was built
 * without it, or it is not there, there are no lanes and libcrypto hashes one after the other.
 */
#ifndef PROTO_LANES_H
#define PROTO_LANES_H

#include <stddef.h>
#include <stdint.h>

#define PROTO_LANES_MOST 32768u /* bytes of one message: the library counts them in 16 bits */

struct proto_lanes_library;
struct proto_lanes;

/* A message and, once it is hashed, its SHA-256. */
struct proto_piece {
	const void *data; /* the caller's, until it is hashed */
	size_t len;
	uint8_t digest[32];
};

/*
 * Loads the library, for good; what is returned is the caller's to free(3).  NULL: there is none
 * here.  Not by who has gone into a session's root: it would be a library of the session's.
 */
struct proto_lanes_library *proto_lanes_load(void);
/* Belongs to one thread, and can be made anywhere.  NULL: no memory, or no such CPU. */
struct proto_lanes *proto_lanes_new(const struct proto_lanes_library *library);
void proto_lanes_free(struct proto_lanes *l);
/* How many messages are worked at at once. */
unsigned proto_lanes_width(const struct proto_lanes *l);
/* Hashes @n messages of at most PROTO_LANES_MOST bytes each.  -EIO from the library. */
int proto_lanes_hash(struct proto_lanes *l, struct proto_piece *pieces, size_t n);

#endif
