// SPDX-License-Identifier: GPL-2.0-or-later
/* The steps are those of the paper's section 5.4.2 and 5.4.3, one line each. */
#include "vnet/tunnel/noise.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char construction[] = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
static const char identifier[] = "WireGuard v1 zx2c4 Jason@zx2c4.com";

int vnet_noise_identity(struct vnet_noise_identity *ret, const uint8_t private[VNET_KEY_LEN])
{
	memcpy(ret->private, private, VNET_KEY_LEN);
	ret->private[0] &= 248;
	ret->private[31] = (ret->private[31] & 127) | 64;
	return vnet_crypto_public(ret->private, ret->public);
}

int vnet_noise_remote(struct vnet_noise_remote *ret, const struct vnet_noise_identity *own,
	const uint8_t public[VNET_KEY_LEN], const uint8_t preshared[VNET_KEY_LEN])
{
	memcpy(ret->public, public, VNET_KEY_LEN);
	memcpy(ret->preshared, preshared, VNET_KEY_LEN);
	return vnet_crypto_shared(own->private, public, ret->shared);
}

static int mix_hash(struct vnet_noise_handshake *h, const void *data, size_t len)
{
	return vnet_crypto_hash(h->hash, sizeof(h->hash), data, len, h->hash);
}

/* C := KDF1(C, input). */
static int mix_chain(struct vnet_noise_handshake *h, const void *input)
{
	return vnet_crypto_derive(h->chain, input, VNET_KEY_LEN, 1, (uint8_t *[]){h->chain});
}

/* (C, key) := KDF2(C, input). */
static int mix_key(struct vnet_noise_handshake *h, const void *input, uint8_t key[VNET_KEY_LEN])
{
	return vnet_crypto_derive(h->chain, input, VNET_KEY_LEN, 2, (uint8_t *[]){h->chain, key});
}

/* C := KDF1(C, DH(private, public)). */
static int mix_shared(struct vnet_noise_handshake *h, const uint8_t *private, const uint8_t *public)
{
	uint8_t shared[VNET_KEY_LEN];
	int r = vnet_crypto_shared(private, public, shared);

	if (!r)
		r = mix_chain(h, shared);
	vnet_crypto_wipe(shared, sizeof(shared));
	return r;
}

static int start(struct vnet_noise_handshake *h, const uint8_t responder[VNET_KEY_LEN])
{
	int r = vnet_crypto_hash(construction, strlen(construction), NULL, 0, h->chain);

	memcpy(h->hash, h->chain, sizeof(h->hash));
	if (!r)
		r = mix_hash(h, identifier, strlen(identifier));
	if (!r)
		r = mix_hash(h, responder, VNET_KEY_LEN);
	return r;
}

/* An ephemeral public key goes into both. */
static int mix_ephemeral(struct vnet_noise_handshake *h, const uint8_t public[VNET_KEY_LEN])
{
	int r = mix_chain(h, public);

	return r ? r : mix_hash(h, public, VNET_KEY_LEN);
}

static int seal_and_mix(struct vnet_noise_handshake *h, const uint8_t key[VNET_KEY_LEN],
	const void *in, size_t len, uint8_t *ret)
{
	int r = vnet_crypto_seal(key, 0, h->hash, sizeof(h->hash), in, len, ret);

	return r ? r : mix_hash(h, ret, len + VNET_TAG_LEN);
}

/* @len counts the tag. */
static int open_and_mix(struct vnet_noise_handshake *h, const uint8_t key[VNET_KEY_LEN],
	const void *in, size_t len, uint8_t *ret)
{
	int r = vnet_crypto_open(key, 0, h->hash, sizeof(h->hash), in, len, ret);

	return r ? r : mix_hash(h, in, len);
}

int vnet_noise_initiate(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_noise_remote *to, const uint8_t ephemeral[VNET_KEY_LEN],
	const uint8_t stamp[VNET_STAMP_LEN], uint32_t local, struct vnet_initiation *m)
{
	uint8_t shared[VNET_KEY_LEN], key[VNET_KEY_LEN];
	int r;

	*h = (struct vnet_noise_handshake){.local = local};
	*m = (struct vnet_initiation){
		.type = htole32(VNET_INITIATION),
		.sender = htole32(local),
	};
	memcpy(h->ephemeral, ephemeral, sizeof(h->ephemeral));
	(void)((r = start(h, to->public)) || (r = vnet_crypto_public(ephemeral, m->ephemeral)) ||
		(r = mix_ephemeral(h, m->ephemeral)) ||
		(r = vnet_crypto_shared(ephemeral, to->public, shared)) ||
		(r = mix_key(h, shared, key)) ||
		(r = seal_and_mix(h, key, own->public, VNET_KEY_LEN, m->remote_static)) ||
		(r = mix_key(h, to->shared, key)) ||
		(r = seal_and_mix(h, key, stamp, VNET_STAMP_LEN, m->stamp)));
	vnet_crypto_wipe(shared, sizeof(shared));
	vnet_crypto_wipe(key, sizeof(key));
	return r;
}

int vnet_noise_consume(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_initiation *m)
{
	uint8_t shared[VNET_KEY_LEN], key[VNET_KEY_LEN];
	int r;

	*h = (struct vnet_noise_handshake){.remote = le32toh(m->sender)};
	memcpy(h->remote_ephemeral, m->ephemeral, sizeof(h->remote_ephemeral));
	(void)((r = start(h, own->public)) || (r = mix_ephemeral(h, m->ephemeral)) ||
		(r = vnet_crypto_shared(own->private, m->ephemeral, shared)) ||
		(r = mix_key(h, shared, key)) ||
		(r = open_and_mix(
			 h, key, m->remote_static, sizeof(m->remote_static), h->remote_static)));
	vnet_crypto_wipe(shared, sizeof(shared));
	vnet_crypto_wipe(key, sizeof(key));
	return r;
}

int vnet_noise_admit(struct vnet_noise_handshake *h, const struct vnet_noise_remote *from,
	const struct vnet_initiation *m)
{
	uint8_t key[VNET_KEY_LEN];
	int r = mix_key(h, from->shared, key);

	if (!r)
		r = open_and_mix(h, key, m->stamp, sizeof(m->stamp), h->stamp);
	vnet_crypto_wipe(key, sizeof(key));
	return r;
}

/* The last part of a response: the preshared key, and keys for data of what is left.  @first is
 * the initiator's direction. */
static int mix_preshared(struct vnet_noise_handshake *h, const uint8_t preshared[VNET_KEY_LEN],
	uint8_t key[VNET_KEY_LEN])
{
	uint8_t temporary[VNET_HASH_LEN];
	int r = vnet_crypto_derive(
		h->chain, preshared, VNET_KEY_LEN, 3, (uint8_t *[]){h->chain, temporary, key});

	if (!r)
		r = mix_hash(h, temporary, sizeof(temporary));
	vnet_crypto_wipe(temporary, sizeof(temporary));
	return r;
}

static int split(
	struct vnet_noise_handshake *h, uint8_t first[VNET_KEY_LEN], uint8_t second[VNET_KEY_LEN])
{
	int r = vnet_crypto_derive(h->chain, NULL, 0, 2, (uint8_t *[]){first, second});

	vnet_crypto_wipe(h->chain, sizeof(h->chain));
	vnet_crypto_wipe(h->hash, sizeof(h->hash));
	vnet_crypto_wipe(h->ephemeral, sizeof(h->ephemeral));
	return r;
}

int vnet_noise_respond(struct vnet_noise_handshake *h, const struct vnet_noise_remote *to,
	const uint8_t ephemeral[VNET_KEY_LEN], uint32_t local, struct vnet_response *m,
	struct vnet_noise_keys *ret)
{
	uint8_t key[VNET_KEY_LEN];
	int r;

	h->local = local;
	*m = (struct vnet_response){
		.type = htole32(VNET_RESPONSE),
		.sender = htole32(local),
		.receiver = htole32(h->remote),
	};
	(void)((r = vnet_crypto_public(ephemeral, m->ephemeral)) ||
		(r = mix_ephemeral(h, m->ephemeral)) ||
		(r = mix_shared(h, ephemeral, h->remote_ephemeral)) ||
		(r = mix_shared(h, ephemeral, to->public)) ||
		(r = mix_preshared(h, to->preshared, key)) ||
		(r = seal_and_mix(h, key, NULL, 0, m->nothing)) ||
		(r = split(h, ret->receive, ret->send)));
	vnet_crypto_wipe(key, sizeof(key));
	return r;
}

int vnet_noise_finish(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_noise_remote *from, const struct vnet_response *m,
	struct vnet_noise_keys *ret)
{
	struct vnet_noise_handshake next = *h;
	uint8_t key[VNET_KEY_LEN];
	int r;

	if (le32toh(m->receiver) != h->local)
		return -EBADMSG;
	next.remote = le32toh(m->sender);
	(void)((r = mix_ephemeral(&next, m->ephemeral)) ||
		(r = mix_shared(&next, h->ephemeral, m->ephemeral)) ||
		(r = mix_shared(&next, own->private, m->ephemeral)) ||
		(r = mix_preshared(&next, from->preshared, key)) ||
		(r = open_and_mix(&next, key, m->nothing, sizeof(m->nothing), key)) ||
		(r = split(&next, ret->send, ret->receive)));
	if (!r)
		*h = next;
	vnet_crypto_wipe(&next, sizeof(next));
	vnet_crypto_wipe(key, sizeof(key));
	return r;
}
