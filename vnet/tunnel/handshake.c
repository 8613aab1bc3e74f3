// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who we are talking to, and with which keys (paper, sections 5.4 and 6.1; the three key pairs
 * are 6.3's).
 *
 * A handshake of ours and one of the peer's may be under way at once; both may come to an
 * end, and either pair of keys works.  A message that anybody could have sent - a
 * forged one, a repeated one - changes nothing: not the endpoint, not the timers, not the keys.
 */
#include "vnet/tunnel/device.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void keypair_free(struct vnet_tunnel *t, struct vnet_keypair **slot)
{
	struct vnet_keypair *k = *slot;

	*slot = NULL;
	if (!k)
		return;
	vnet_index_remove(&t->index, &k->index);
	vnet_cipher_free(k->send);
	vnet_cipher_free(k->receive);
	free(k);
}

static struct vnet_keypair *keypair_new(
	struct vnet_tunnel *t, const struct vnet_noise_keys *keys, uint32_t remote, bool initiator)
{
	struct vnet_keypair *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->remote = remote;
	k->initiator = initiator;
	k->since = t->now;
	k->send = vnet_cipher_new(keys->send, true);
	k->receive = vnet_cipher_new(keys->receive, false);
	if (!k->send || !k->receive)
		keypair_free(t, &k);
	return k;
}

/* The same cookie is right for the same address and port, however they are written. */
struct address {
	uint8_t bytes[18];
	size_t len;
};

static struct address address_of(const struct vnet_endpoint *from)
{
	const uint16_t port = htobe16(from->port);
	struct address a = {.len = from->family == AF_INET ? 4 : 16};

	memcpy(a.bytes, from->family == AF_INET ? (const void *)&from->v4 : &from->v6, a.len);
	memcpy(a.bytes + a.len, &port, sizeof(port));
	a.len += sizeof(port);
	return a;
}

static void send_message(
	struct vnet_tunnel *t, const struct vnet_endpoint *to, const void *message, size_t len)
{
	uint8_t *room = vnet_socket_put(t->udp, to, len);

	if (!room)
		return; /* lost, as a datagram may be */
	memcpy(room, message, len);
	vnet_socket_flush(t->udp);
}

static int initiate(struct vnet_peer *p)
{
	struct vnet_tunnel *t = p->tunnel;
	uint8_t ephemeral[VNET_KEY_LEN], stamp[VNET_STAMP_LEN];
	struct vnet_initiation m;
	int r;

	vnet_index_remove(&t->index, &p->handshake_index);
	(void)((r = vnet_stamp_next(&t->stamp, t->clock.real(t->clock.ctx), stamp)) ||
		(r = vnet_crypto_random(ephemeral, sizeof(ephemeral))) ||
		(r = vnet_index_add(&t->index, &p->handshake_index, VNET_INDEX_HANDSHAKE, p)) ||
		(r = vnet_noise_initiate(&p->handshake, &t->own, &p->remote, ephemeral, stamp,
			 p->handshake_index.number, &m)) ||
		(r = vnet_cookie_sign(&p->jar, &m, sizeof(m), t->now)));
	vnet_crypto_wipe(ephemeral, sizeof(ephemeral));
	if (!r)
		send_message(t, &p->at, &m, sizeof(m));
	return r;
}

void vnet_handshake_start(struct vnet_peer *p, bool again)
{
	struct vnet_tunnel *t = p->tunnel;
	int r;

	if (!again)
		p->attempts = 0;
	if (!p->at.family || (p->initiated && t->now - p->initiated < VNET_REKEY_TIMEOUT))
		return;
	p->initiated = t->now;
	r = initiate(p);
	if (r < 0)
		log_warn("tunnel: no handshake: %s", strerror(-r));
	vnet_timers_any_sent(p);
	vnet_timers_initiated(p);
}

/* Keys of a handshake that was answered by them. */
static void begin_as_initiator(struct vnet_peer *p, struct vnet_keypair *k)
{
	struct vnet_tunnel *t = p->tunnel;

	keypair_free(t, &p->previous);
	if (p->next) {
		p->previous = take_ptr(p->next);
		keypair_free(t, &p->current);
	} else {
		p->previous = p->current;
	}
	p->current = k;
}

void vnet_handshake_confirm(struct vnet_peer *p)
{
	keypair_free(p->tunnel, &p->previous);
	p->previous = p->current;
	p->current = take_ptr(p->next);
	vnet_timers_complete(p);
	vnet_data_send_staged(p);
}

void vnet_handshake_forget(struct vnet_peer *p)
{
	struct vnet_tunnel *t = p->tunnel;

	keypair_free(t, &p->previous);
	keypair_free(t, &p->current);
	keypair_free(t, &p->next);
	vnet_index_remove(&t->index, &p->handshake_index);
	vnet_crypto_wipe(&p->handshake, sizeof(p->handshake));
}

static struct vnet_peer *peer_of(struct vnet_tunnel *t, const uint8_t public[VNET_KEY_LEN])
{
	/* A thousand comparisons cost a tenth of what made us look. */
	for (uint32_t i = 0; i < t->n_peers; i++)
		if (!memcmp(t->peers[i].remote.public, public, VNET_KEY_LEN))
			return &t->peers[i];
	return NULL;
}

static void respond(
	struct vnet_peer *p, struct vnet_noise_handshake *h, const struct vnet_endpoint *from)
{
	struct vnet_tunnel *t = p->tunnel;
	uint8_t ephemeral[VNET_KEY_LEN];
	struct vnet_index_entry index = {0};
	struct vnet_noise_keys keys;
	struct vnet_keypair *k = NULL;
	struct vnet_response m;
	int r;

	(void)((r = vnet_crypto_random(ephemeral, sizeof(ephemeral))) ||
		(r = vnet_index_add(&t->index, &index, VNET_INDEX_KEYS, p)) ||
		(r = vnet_noise_respond(h, &p->remote, ephemeral, index.number, &m, &keys)) ||
		(r = vnet_cookie_sign(&p->jar, &m, sizeof(m), t->now)));
	if (!r)
		k = keypair_new(t, &keys, h->remote, false);
	vnet_crypto_wipe(ephemeral, sizeof(ephemeral));
	vnet_crypto_wipe(&keys, sizeof(keys));
	if (!k) {
		vnet_index_remove(&t->index, &index);
		return;
	}
	vnet_index_move(&t->index, &index, &k->index, VNET_INDEX_KEYS, p);
	keypair_free(t, &p->next);
	keypair_free(t, &p->previous);
	p->next = k;
	p->at = *from;
	p->initiated = t->now; /* no need to begin one of our own */
	vnet_timers_any_received(p);
	vnet_timers_derived(p);
	vnet_timers_any_sent(p);
	send_message(t, from, &m, sizeof(m));
}

static void take_initiation(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const struct vnet_initiation *m)
{
	struct vnet_noise_handshake h;
	struct vnet_peer *p;

	if (vnet_noise_consume(&h, &t->own, m) < 0)
		return;
	p = peer_of(t, h.remote_static);
	if (p && vnet_noise_admit(&h, &p->remote, m) == 0 &&
		memcmp(h.stamp, p->newest_stamp, sizeof(h.stamp)) > 0 &&
		(!p->consumed || t->now - p->consumed >= VNET_INITIATION_PAUSE)) {
		memcpy(p->newest_stamp, h.stamp, sizeof(h.stamp));
		p->consumed = t->now;
		respond(p, &h, from);
	}
	vnet_crypto_wipe(&h, sizeof(h));
}

static void take_response(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const struct vnet_response *m)
{
	struct vnet_index_entry *index = vnet_index_find(&t->index, le32toh(m->receiver));
	struct vnet_noise_keys keys;
	struct vnet_keypair *k;
	struct vnet_peer *p;

	if (!index || index->kind != VNET_INDEX_HANDSHAKE)
		return;
	p = index->owner;
	if (vnet_noise_finish(&p->handshake, &t->own, &p->remote, m, &keys) < 0)
		return;
	k = keypair_new(t, &keys, p->handshake.remote, true);
	vnet_crypto_wipe(&keys, sizeof(keys));
	vnet_crypto_wipe(&p->handshake, sizeof(p->handshake));
	if (!k) {
		vnet_index_remove(&t->index, index);
		return;
	}
	vnet_index_move(&t->index, index, &k->index, VNET_INDEX_KEYS, p);
	begin_as_initiator(p, k);
	p->at = *from;
	vnet_timers_any_received(p);
	vnet_timers_derived(p);
	vnet_timers_complete(p);
	vnet_data_keepalive(p); /* so that they can use the keys, too; what waits does as well */
}

static void take_cookie(struct vnet_tunnel *t, const struct vnet_cookie_reply *m)
{
	struct vnet_index_entry *index = vnet_index_find(&t->index, le32toh(m->receiver));

	if (index)
		(void)vnet_cookie_take(&((struct vnet_peer *)index->owner)->jar, m, t->now);
}

/* May we compute for whoever has sent this? */
static bool worth_it(struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data,
	size_t len, uint32_t sender)
{
	const struct address a = address_of(from);
	struct vnet_cookie_reply reply;
	enum vnet_cookie_verdict v =
		vnet_cookie_check(&t->guard, data, len, a.bytes, a.len, t->now);

	if (v == VNET_COOKIE_FALSE)
		return false;
	if (!vnet_flood_count(&t->flood, t->now))
		return true;
	if (v == VNET_COOKIE_WITH)
		return vnet_flood_allow(&t->flood, from, t->now);
	if (vnet_cookie_answer(&t->guard, data, len, sender, a.bytes, a.len, t->now, &reply) == 0)
		send_message(t, from, &reply, sizeof(reply));
	return false;
}

void vnet_handshake_receive(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data, size_t len)
{
	union { /* at an address as they need it */
		uint32_t type;
		struct vnet_initiation initiation;
		struct vnet_response response;
		struct vnet_cookie_reply cookie;
	} m;

	if (len < sizeof(m.type) || len > sizeof(m))
		return;
	memcpy(&m, data, len);
	switch (le32toh(m.type)) {
	case VNET_INITIATION:
		if (len == sizeof(m.initiation) &&
			worth_it(t, from, data, len, le32toh(m.initiation.sender)))
			take_initiation(t, from, &m.initiation);
		return;
	case VNET_RESPONSE:
		if (len == sizeof(m.response) &&
			worth_it(t, from, data, len, le32toh(m.response.sender)))
			take_response(t, from, &m.response);
		return;
	case VNET_COOKIE_REPLY:
		if (len == sizeof(m.cookie))
			take_cookie(t, &m.cookie);
		return;
	default:
		return;
	}
}
