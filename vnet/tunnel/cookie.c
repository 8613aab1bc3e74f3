// SPDX-License-Identifier: GPL-2.0-or-later
/* The keys are hashes of a label and the responder's public key, so that both know them. */
#include "vnet/tunnel/cookie.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define LIFE_NS (VNET_COOKIE_SECONDS * 1000000000ULL)

static const char label_mac1[] = "mac1----", label_cookie[] = "cookie--";

static int labelled(const char *label, const uint8_t key[VNET_KEY_LEN], uint8_t ret[VNET_HASH_LEN])
{
	return vnet_crypto_hash(label, strlen(label), key, VNET_KEY_LEN, ret);
}

int vnet_cookie_guard_init(struct vnet_cookie_guard *g, const uint8_t own[VNET_KEY_LEN])
{
	int r;

	*g = (struct vnet_cookie_guard){0};
	r = labelled(label_mac1, own, g->mac1_key);
	return r ? r : labelled(label_cookie, own, g->seal_key);
}

int vnet_cookie_jar_init(struct vnet_cookie_jar *j, const uint8_t peer[VNET_KEY_LEN])
{
	int r;

	*j = (struct vnet_cookie_jar){0};
	r = labelled(label_mac1, peer, j->mac1_key);
	return r ? r : labelled(label_cookie, peer, j->seal_key);
}

static bool fresh(uint64_t since, uint64_t now)
{
	return since && now - since < LIFE_NS;
}

int vnet_cookie_sign(struct vnet_cookie_jar *j, void *message, size_t len, uint64_t now)
{
	const size_t body = len - sizeof(struct vnet_macs);
	struct vnet_macs *macs = (void *)((uint8_t *)message + body);
	int r = vnet_crypto_mac(j->mac1_key, sizeof(j->mac1_key), message, body, macs->mac1);

	if (r)
		return r;
	memcpy(j->last_mac1, macs->mac1, sizeof(j->last_mac1));
	j->asked = true;
	if (!fresh(j->cookie_since, now)) {
		memset(macs->mac2, 0, sizeof(macs->mac2));
		return 0;
	}
	return vnet_crypto_mac(
		j->cookie, sizeof(j->cookie), message, body + sizeof(macs->mac1), macs->mac2);
}

enum vnet_cookie_verdict vnet_cookie_check(struct vnet_cookie_guard *g, const void *message,
	size_t len, const void *from, size_t from_len, uint64_t now)
{
	const size_t body = len - sizeof(struct vnet_macs);
	const struct vnet_macs *macs = (const void *)((const uint8_t *)message + body);
	uint8_t mac[VNET_MAC_LEN], cookie[VNET_MAC_LEN];

	if (vnet_crypto_mac(g->mac1_key, sizeof(g->mac1_key), message, body, mac) < 0 ||
		!vnet_crypto_equal(mac, macs->mac1, sizeof(mac)))
		return VNET_COOKIE_FALSE;
	if (!fresh(g->secret_since, now) ||
		vnet_crypto_mac(g->secret, sizeof(g->secret), from, from_len, cookie) < 0 ||
		vnet_crypto_mac(cookie, sizeof(cookie), message, body + sizeof(macs->mac1), mac) <
			0 ||
		!vnet_crypto_equal(mac, macs->mac2, sizeof(mac)))
		return VNET_COOKIE_WITHOUT;
	return VNET_COOKIE_WITH;
}

int vnet_cookie_answer(struct vnet_cookie_guard *g, const void *message, size_t len,
	uint32_t receiver, const void *from, size_t from_len, uint64_t now,
	struct vnet_cookie_reply *ret)
{
	const struct vnet_macs *macs =
		(const void *)((const uint8_t *)message + len - sizeof(*macs));
	uint8_t cookie[VNET_MAC_LEN];
	int r;

	if (!fresh(g->secret_since, now)) {
		if ((r = vnet_crypto_random(g->secret, sizeof(g->secret))) < 0)
			return r;
		g->secret_since = now ? now : 1;
	}
	*ret = (struct vnet_cookie_reply){
		.type = htole32(VNET_COOKIE_REPLY),
		.receiver = htole32(receiver),
	};
	(void)((r = vnet_crypto_random(ret->nonce, sizeof(ret->nonce))) ||
		(r = vnet_crypto_mac(g->secret, sizeof(g->secret), from, from_len, cookie)) ||
		(r = vnet_crypto_xseal(g->seal_key, ret->nonce, macs->mac1, sizeof(macs->mac1),
			 cookie, sizeof(cookie), ret->cookie)));
	return r;
}

int vnet_cookie_take(struct vnet_cookie_jar *j, const struct vnet_cookie_reply *m, uint64_t now)
{
	uint8_t cookie[VNET_MAC_LEN];
	int r;

	if (!j->asked)
		return -EBADMSG;
	r = vnet_crypto_xopen(j->seal_key, m->nonce, j->last_mac1, sizeof(j->last_mac1), m->cookie,
		sizeof(m->cookie), cookie);
	if (r)
		return r;
	/* One answer for each question: what is repeated later must not put an old cookie back. */
	j->asked = false;
	memcpy(j->cookie, cookie, sizeof(j->cookie));
	j->cookie_since = now ? now : 1;
	return 0;
}
