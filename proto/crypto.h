/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crypto - SHA-256 and Ed25519 (RFC 8032), the only file of this room that knows OpenSSL.
 *
 * libcrypto picks the CPU's SHA instructions itself; a digest object is made once per thread and
 * reused, because looking an algorithm up costs more than hashing a small record.
 */
#ifndef PROTO_CRYPTO_H
#define PROTO_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/lanes.h"

#define PROTO_DIGEST_LEN 32
#define PROTO_SEED_LEN	 32 /* an Ed25519 private key as RFC 8032 has it */

struct err;
struct proto_sha; /* a running SHA-256 */

/* @lanes: for proto_sha_each; borrowed, or NULL.  NULL when memory is gone. */
struct proto_sha *proto_sha_new(const struct proto_lanes_library *lanes);
void proto_sha_free(struct proto_sha *s);
/* Starts over. */
void proto_sha_begin(struct proto_sha *s);
void proto_sha_add(struct proto_sha *s, const void *data, size_t len);
/* Any failure since proto_sha_begin is told here: -EIO. */
int proto_sha_end(struct proto_sha *s, uint8_t ret[PROTO_DIGEST_LEN]);
/* Each of @n messages of at most PROTO_LANES_MOST bytes gets its digest, side by side if that is
 * faster.  Nothing may have been begun.  -EIO. */
int proto_sha_each(struct proto_sha *s, struct proto_piece *pieces, size_t n);

/* getrandom(2). */
int proto_random(void *ret, size_t len, struct err *e);

/* RFC 8032.  The public key of @seed, and the signature of @data with it; -EIO from the library. */
int proto_ed25519_public(const uint8_t seed[PROTO_SEED_LEN], uint8_t ret_key[32], struct err *e);
int proto_ed25519_sign(const uint8_t seed[PROTO_SEED_LEN], const void *data, size_t len,
	uint8_t ret_sig[64], struct err *e);
/* True if @sig of @data was made with the private half of @key. */
bool proto_ed25519_verify(
	const uint8_t key[32], const void *data, size_t len, const uint8_t sig[64]);

/* Overwrites a secret so that the compiler keeps it. */
void proto_wipe(void *p, size_t len);

#endif
