// SPDX-License-Identifier: GPL-2.0-or-later
/* The only file of this room that knows OpenSSL's EVP interface. */
#include "proto/crypto.h"

#include <errno.h>
/* One of libcrypto's types has the name of one of our error classes. */
#define ERR_STATE OPENSSL_ERR_STATE
#include <openssl/crypto.h>
#include <openssl/evp.h>
#undef ERR_STATE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "proto/proto.h"

struct proto_sha {
	EVP_MD *md;
	EVP_MD_CTX *ctx;
	bool failed;
	const struct proto_lanes_library *library; /* NULL: no lanes, or they have been made */
	struct proto_lanes *lanes;
};

struct proto_sha *proto_sha_new(const struct proto_lanes_library *lanes)
{
	struct proto_sha *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->library = lanes;
	s->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	s->ctx = EVP_MD_CTX_new();
	if (!s->md || !s->ctx) {
		proto_sha_free(s);
		return NULL;
	}
	return s;
}

void proto_sha_free(struct proto_sha *s)
{
	if (!s)
		return;
	proto_lanes_free(s->lanes);
	EVP_MD_CTX_free(s->ctx);
	EVP_MD_free(s->md);
	free(s);
}

void proto_sha_begin(struct proto_sha *s)
{
	s->failed = EVP_DigestInit_ex2(s->ctx, s->md, NULL) != 1;
}

void proto_sha_add(struct proto_sha *s, const void *data, size_t len)
{
	if (len && EVP_DigestUpdate(s->ctx, data, len) != 1)
		s->failed = true;
}

int proto_sha_end(struct proto_sha *s, uint8_t ret[PROTO_DIGEST_LEN])
{
	if (EVP_DigestFinal_ex(s->ctx, ret, NULL) != 1)
		s->failed = true;
	return s->failed ? -EIO : 0;
}

/* How many of @n go side by side: not a rest that would leave half of the lanes idle. */
static size_t side_by_side(struct proto_sha *s, size_t n)
{
	size_t width, rest;

	if (n > 1 && s->library)
		s->lanes = proto_lanes_new(take_ptr(s->library));
	if (!s->lanes)
		return 0;
	width = proto_lanes_width(s->lanes);
	rest = n % width;
	return rest > width / 2 ? n : n - rest;
}

int proto_sha_each(struct proto_sha *s, struct proto_piece *pieces, size_t n)
{
	size_t done = side_by_side(s, n);

	if (done && proto_lanes_hash(s->lanes, pieces, done) < 0)
		done = 0;
	for (; done < n; done++) {
		proto_sha_begin(s);
		proto_sha_add(s, pieces[done].data, pieces[done].len);
		if (proto_sha_end(s, pieces[done].digest) < 0)
			return -EIO;
	}
	return 0;
}

int proto_random(void *ret, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t r = getrandom((uint8_t *)ret + done, len - done, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_errno(e, -errno, "cannot get random bytes");
		done += (size_t)r;
	}
	return 0;
}

int proto_ed25519_public(const uint8_t seed[PROTO_SEED_LEN], uint8_t ret_key[32], struct err *e)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, PROTO_SEED_LEN);
	size_t len = 32;
	int ok = key && EVP_PKEY_get_raw_public_key(key, ret_key, &len) == 1 && len == 32;

	EVP_PKEY_free(key);
	return ok ? 0 : err_set(e, ERR_FAILED, -EIO, "libcrypto cannot make an Ed25519 key");
}

int proto_ed25519_sign(const uint8_t seed[PROTO_SEED_LEN], const void *data, size_t len,
	uint8_t ret_sig[64], struct err *e)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, PROTO_SEED_LEN);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t sig_len = 64;
	int ok = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
		 EVP_DigestSign(ctx, ret_sig, &sig_len, data, len) == 1 && sig_len == 64;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	return ok ? 0 : err_set(e, ERR_FAILED, -EIO, "libcrypto cannot sign");
}

bool proto_ed25519_verify(
	const uint8_t key[32], const void *data, size_t len, const uint8_t sig[64])
{
	EVP_PKEY *pub = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, 32);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = pub && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pub) == 1 &&
		  EVP_DigestVerify(ctx, sig, 64, data, len) == 1;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pub);
	return ok;
}

void proto_base64_encode(const void *bytes, size_t n, char *ret)
{
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)n);
}

ssize_t proto_base64_decode(const char *text, size_t len, void *ret, size_t room)
{
	char again[PROTO_BASE64_SIZE(PROTO_BASE64_MAX)];
	uint8_t bytes[PROTO_BASE64_MAX];
	size_t n = len / 4 * 3;

	if (!len || len % 4 || n > sizeof(bytes) ||
		EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) != (int)n)
		return -EINVAL;
	n -= (size_t)(text[len - 1] == '=') + (text[len - 2] == '=');
	/* libcrypto forgives white space and stray bits; what is encoded has one spelling. */
	proto_base64_encode(bytes, n, again);
	if (memcmp(again, text, len) != 0 || n > room)
		return -EINVAL;
	memcpy(ret, bytes, n);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(again, sizeof(again));
	return (ssize_t)n;
}

void proto_wipe(void *p, size_t len)
{
	OPENSSL_cleanse(p, len);
}
