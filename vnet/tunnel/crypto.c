// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handshakes are rare, so they look their algorithms up each time.  A cipher for data is a context
 * whose key is set once; only the nonce changes from packet to packet.
 *
 * libcrypto has no XChaCha20, but its ChaCha20 gives everything that is needed: HChaCha20 is a
 * block of key stream from which the block's input is subtracted again.
 */
#include "vnet/tunnel/crypto.h"

#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#define NONCE_LEN 12
#define JOINED	  256 /* the longest text that is hashed in two parts */

int vnet_crypto_random(void *ret, size_t len)
{
	return RAND_bytes(ret, (int)len) == 1 ? 0 : -EIO;
}

void vnet_crypto_wipe(void *p, size_t len)
{
	OPENSSL_cleanse(p, len);
}

bool vnet_crypto_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

int vnet_crypto_public(const uint8_t private[VNET_KEY_LEN], uint8_t ret_public[VNET_KEY_LEN])
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private, VNET_KEY_LEN);
	size_t len = VNET_KEY_LEN;
	int ok = key && EVP_PKEY_get_raw_public_key(key, ret_public, &len) == 1;

	EVP_PKEY_free(key);
	return ok ? 0 : -EIO;
}

int vnet_crypto_shared(const uint8_t private[VNET_KEY_LEN], const uint8_t public[VNET_KEY_LEN],
	uint8_t ret[VNET_KEY_LEN])
{
	EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private, VNET_KEY_LEN);
	EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public, VNET_KEY_LEN);
	EVP_PKEY_CTX *ctx = own && other ? EVP_PKEY_CTX_new(own, NULL) : NULL;
	size_t len = VNET_KEY_LEN;
	int r = -EIO;

	/* The library refuses a result of zeros, which points of small order give. */
	if (ctx && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, other) == 1)
		r = EVP_PKEY_derive(ctx, ret, &len) == 1 && len == VNET_KEY_LEN ? 0 : -EBADMSG;
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(own);
	EVP_PKEY_free(other);
	return r;
}

int vnet_crypto_hash(
	const void *a, size_t a_len, const void *b, size_t b_len, uint8_t ret[VNET_HASH_LEN])
{
	uint8_t text[JOINED];

	if (a_len + b_len > sizeof(text))
		return -EIO;
	if (a_len)
		memcpy(text, a, a_len);
	if (b_len)
		memcpy(text + a_len, b, b_len);
	return EVP_Digest(text, a_len + b_len, ret, NULL, EVP_blake2s256(), NULL) == 1 ? 0 : -EIO;
}

int vnet_crypto_mac(
	const void *key, size_t key_len, const void *data, size_t len, uint8_t ret[VNET_MAC_LEN])
{
	size_t size = VNET_MAC_LEN, got = 0;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_end()};

	return EVP_Q_mac(NULL, "BLAKE2SMAC", NULL, NULL, params, key, key_len, data, len, ret, size,
		       &got) && got == size
		       ? 0
		       : -EIO;
}

int vnet_crypto_derive(const uint8_t chain[VNET_HASH_LEN], const void *input, size_t len,
	unsigned n, uint8_t *ret[])
{
	uint8_t secret[VNET_HASH_LEN], text[VNET_HASH_LEN + 1], last[VNET_HASH_LEN];
	size_t text_len = 0;
	int r = 0;

	if (!HMAC(EVP_blake2s256(), chain, VNET_HASH_LEN, len ? input : "", len, secret, NULL))
		return -EIO;
	for (unsigned i = 0; i < n && !r; i++) {
		text[text_len] = (uint8_t)(i + 1);
		if (!HMAC(EVP_blake2s256(), secret, sizeof(secret), text, text_len + 1, last, NULL))
			r = -EIO;
		memcpy(text, last, sizeof(last));
		text_len = sizeof(last);
		memcpy(ret[i], last, sizeof(last));
	}
	vnet_crypto_wipe(secret, sizeof(secret));
	vnet_crypto_wipe(text, sizeof(text));
	vnet_crypto_wipe(last, sizeof(last));
	return r;
}

int vnet_crypto_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t ret[32])
{
	unsigned n = 0;

	return HMAC(EVP_sha256(), key, (int)key_len, data, len, ret, &n) && n == 32 ? 0 : -EIO;
}

ssize_t vnet_crypto_base64(const char *text, uint8_t *ret, size_t room)
{
	size_t n = strlen(text), padding = 0;
	uint8_t out[768];
	int len;

	while (padding < n && padding < 2 && text[n - 1 - padding] == '=')
		padding++;
	if (n % 4 || n / 4 * 3 > sizeof(out))
		return -EINVAL;
	len = EVP_DecodeBlock(out, (const unsigned char *)text, (int)n);
	if (len < (int)padding || (size_t)len - padding > room)
		return -EINVAL;
	memcpy(ret, out, (size_t)len - padding);
	OPENSSL_cleanse(out, sizeof(out));
	return (ssize_t)((size_t)len - padding);
}

static void nonce_of(uint64_t counter, uint8_t ret[NONCE_LEN])
{
	counter = htole64(counter);
	memset(ret, 0, NONCE_LEN - sizeof(counter));
	memcpy(ret + NONCE_LEN - sizeof(counter), &counter, sizeof(counter));
}

static int seal(EVP_CIPHER_CTX *c, const uint8_t nonce[NONCE_LEN], const void *ad, size_t ad_len,
	const void *in, size_t len, uint8_t *ret)
{
	int n;

	if (EVP_EncryptInit_ex(c, NULL, NULL, NULL, nonce) != 1 ||
		(ad_len && EVP_EncryptUpdate(c, NULL, &n, ad, (int)ad_len) != 1) ||
		(len && EVP_EncryptUpdate(c, ret, &n, in, (int)len) != 1) ||
		EVP_EncryptFinal_ex(c, ret + len, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, VNET_TAG_LEN, ret + len) != 1)
		return -EIO;
	return 0;
}

static int open_sealed(EVP_CIPHER_CTX *c, const uint8_t nonce[NONCE_LEN], const void *ad,
	size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	uint8_t tag[VNET_TAG_LEN];
	int n;

	if (len < VNET_TAG_LEN)
		return -EBADMSG;
	len -= VNET_TAG_LEN;
	memcpy(tag, (const uint8_t *)in + len, sizeof(tag));
	if (EVP_DecryptInit_ex(c, NULL, NULL, NULL, nonce) != 1 ||
		EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, VNET_TAG_LEN, tag) != 1 ||
		(ad_len && EVP_DecryptUpdate(c, NULL, &n, ad, (int)ad_len) != 1) ||
		(len && EVP_DecryptUpdate(c, ret, &n, in, (int)len) != 1))
		return -EIO;
	return EVP_DecryptFinal_ex(c, ret + len, &n) == 1 ? 0 : -EBADMSG;
}

static EVP_CIPHER_CTX *keyed(const uint8_t key[VNET_KEY_LEN], bool sealing)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	if (c && EVP_CipherInit_ex(c, EVP_chacha20_poly1305(), NULL, key, NULL, sealing) != 1) {
		EVP_CIPHER_CTX_free(c);
		c = NULL;
	}
	return c;
}

static int seal_once(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[NONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	EVP_CIPHER_CTX *c = keyed(key, true);
	int r = c ? seal(c, nonce, ad, ad_len, in, len, ret) : -EIO;

	EVP_CIPHER_CTX_free(c);
	return r;
}

static int open_once(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[NONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	EVP_CIPHER_CTX *c = keyed(key, false);
	int r = c ? open_sealed(c, nonce, ad, ad_len, in, len, ret) : -EIO;

	EVP_CIPHER_CTX_free(c);
	return r;
}

int vnet_crypto_seal(const uint8_t key[VNET_KEY_LEN], uint64_t counter, const void *ad,
	size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	uint8_t nonce[NONCE_LEN];

	nonce_of(counter, nonce);
	return seal_once(key, nonce, ad, ad_len, in, len, ret);
}

int vnet_crypto_open(const uint8_t key[VNET_KEY_LEN], uint64_t counter, const void *ad,
	size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	uint8_t nonce[NONCE_LEN];

	nonce_of(counter, nonce);
	return open_once(key, nonce, ad, ad_len, in, len, ret);
}

/* A word of the block's output without what the last round added. */
static void subtract(uint8_t *word, const void *input)
{
	uint32_t out, in;

	memcpy(&out, word, sizeof(out));
	memcpy(&in, input, sizeof(in));
	out = htole32(le32toh(out) - le32toh(in));
	memcpy(word, &out, sizeof(out));
}

/* draft-irtf-cfrg-xchacha-03, section 2.2. */
static int hchacha20(
	const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[16], uint8_t ret[VNET_KEY_LEN])
{
	static const char constants[] = "expand 32-byte k";
	uint8_t block[64] = {0};
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n, ok = c && EVP_EncryptInit_ex(c, EVP_chacha20(), NULL, key, nonce) == 1 &&
		    EVP_EncryptUpdate(c, block, &n, block, sizeof(block)) == 1;

	EVP_CIPHER_CTX_free(c);
	for (int i = 0; i < 16; i += 4) {
		subtract(block + i, constants + i);
		subtract(block + 48 + i, nonce + i);
	}
	memcpy(ret, block, 16);
	memcpy(ret + 16, block + 48, 16);
	vnet_crypto_wipe(block, sizeof(block));
	return ok ? 0 : -EIO;
}

static int long_nonce(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[VNET_XNONCE_LEN],
	uint8_t ret_key[VNET_KEY_LEN], uint8_t ret_nonce[NONCE_LEN])
{
	memset(ret_nonce, 0, 4);
	memcpy(ret_nonce + 4, nonce + 16, 8);
	return hchacha20(key, nonce, ret_key);
}

int vnet_crypto_xseal(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[VNET_XNONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	uint8_t sub[VNET_KEY_LEN], short_nonce[NONCE_LEN];
	int r = long_nonce(key, nonce, sub, short_nonce);

	if (!r)
		r = seal_once(sub, short_nonce, ad, ad_len, in, len, ret);
	vnet_crypto_wipe(sub, sizeof(sub));
	return r;
}

int vnet_crypto_xopen(const uint8_t key[VNET_KEY_LEN], const uint8_t nonce[VNET_XNONCE_LEN],
	const void *ad, size_t ad_len, const void *in, size_t len, uint8_t *ret)
{
	uint8_t sub[VNET_KEY_LEN], short_nonce[NONCE_LEN];
	int r = long_nonce(key, nonce, sub, short_nonce);

	if (!r)
		r = open_once(sub, short_nonce, ad, ad_len, in, len, ret);
	vnet_crypto_wipe(sub, sizeof(sub));
	return r;
}

/* The type is the library's own; nothing else is to be kept. */
struct vnet_cipher *vnet_cipher_new(const uint8_t key[VNET_KEY_LEN], bool sealing)
{
	return (struct vnet_cipher *)keyed(key, sealing);
}

void vnet_cipher_free(struct vnet_cipher *c)
{
	EVP_CIPHER_CTX_free((EVP_CIPHER_CTX *)c);
}

int vnet_cipher_seal(
	struct vnet_cipher *c, uint64_t counter, const uint8_t *in, size_t len, uint8_t *ret)
{
	uint8_t nonce[NONCE_LEN];

	nonce_of(counter, nonce);
	return seal((EVP_CIPHER_CTX *)c, nonce, NULL, 0, in, len, ret);
}

int vnet_cipher_open(
	struct vnet_cipher *c, uint64_t counter, const uint8_t *in, size_t len, uint8_t *ret)
{
	uint8_t nonce[NONCE_LEN];

	nonce_of(counter, nonce);
	return open_sealed((EVP_CIPHER_CTX *)c, nonce, NULL, 0, in, len, ret);
}
