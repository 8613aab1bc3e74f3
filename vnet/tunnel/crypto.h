/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crypto - what the WireGuard protocol is made of: X25519 (RFC 7748), BLAKE2s (RFC 7693), HKDF
 * over it, ChaCha20-Poly1305 (RFC 8439) and XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha).
 *
 * The only file of the tunnel that knows OpenSSL.  Functions return 0, -EBADMSG where somebody
 * else's bytes are not what they should be, and -EIO when the library fails.
 */
#ifndef VNET_TUNNEL_CRYPTO_H
#define VNET_TUNNEL_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VNET_KEY_LEN	32
#define VNET_HASH_LEN	32
#define VNET_MAC_LEN	16
#define VNET_TAG_LEN	16
#define VNET_XNONCE_LEN 24

/* Unpredictable bytes (getrandom(2) by way of the library). */
int vnet_crypto_random(void *ret, size_t len);
/* Overwrites a secret so that the compiler keeps it. */
void vnet_crypto_wipe(void *p, size_t len);
/* In a time that does not depend on the bytes. */
bool vnet_crypto_equal(const void *a, const void *b, size_t len);

/* The public key of @private, and the secret shared with @public; -EBADMSG if that is all zeros. */
int vnet_crypto_public(const uint8_t private[VNET_KEY_LEN], uint8_t ret_public[VNET_KEY_LEN]);
int vnet_crypto_shared(const uint8_t private[VNET_KEY_LEN], const uint8_t public[VNET_KEY_LEN],
	uint8_t ret[VNET_KEY_LEN]);

/* BLAKE2s-256 of @a followed by @b (either may be empty). */
int vnet_crypto_hash(
	const void *a, size_t a_len, const void *b, size_t b_len, uint8_t ret[VNET_HASH_LEN]);
/* BLAKE2s keyed with @key (at most 32 bytes), 16 bytes long. */
int vnet_crypto_mac(
	const void *key, size_t key_len, const void *data, size_t len, uint8_t ret[VNET_MAC_LEN]);
/* KDF1 to KDF3 of the protocol: @n keys of 32 bytes each, of HKDF with HMAC-BLAKE2s.  @ret may be
 * where @chain or @input are. */
int vnet_crypto_derive(const uint8_t chain[VNET_HASH_LEN], const void *input, size_t len,
	unsigned n, uint8_t *ret[]);

/* HMAC-SHA256 (RFC 2104), 32 bytes; for DNS. */
int vnet_crypto_hmac(
	const void *key, size_t key_len, const void *data, size_t len, uint8_t ret[32]);
/* The bytes of @text, or -EINVAL: no base64, or more than @room. */
ssize_t vnet_crypto_base64(const char *text, uint8_t *ret, size_t room);

/* One message under a key used once: the nonce is @counter.  @ret has @len + 16 bytes (of
 * open: @len - 16), and may be @in. */
int vnet_crypto_seal(const uint8_t key[VNET_KEY_LEN], uint64_t counter, const void *ad,
	size_t ad_len, const void *in, size_t len, uint8_t *ret);
int vnet_crypto_open(const uint8_t key[VNET_KEY_LEN], uint64_t counter, const void *ad,
	size_t ad_len, const void *in, size_t len, uint8_t *ret);
/* The same with the long nonce of XChaCha20-Poly1305. */
int vnet_crypto_xseal(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[VNET_XNONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret);
int vnet_crypto_xopen(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[VNET_XNONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret);

/* A key for many messages without associated data, in one direction; NULL when memory is gone. */
struct vnet_cipher;
struct vnet_cipher *vnet_cipher_new(const uint8_t key[VNET_KEY_LEN], bool seal);
void vnet_cipher_free(struct vnet_cipher *c);
/* @len bytes become @len + 16, or the other way round (-EBADMSG: not ours).  @ret may be @in. */
int vnet_cipher_seal(
	struct vnet_cipher *c, uint64_t counter, const uint8_t *in, size_t len, uint8_t *ret);
int vnet_cipher_open(
	struct vnet_cipher *c, uint64_t counter, const uint8_t *in, size_t len, uint8_t *ret);

#endif
