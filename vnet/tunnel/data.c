// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets under keys (paper, section 5.4.6).
 *
 * Out: each segment of a super-packet is written right behind its message's head in the buffer of
 * datagrams and sealed there.  In: a datagram is opened into the buffer in which the coalescer
 * wants it.  So payload is copied once in each direction besides what the kernel does.
 */
#include "vnet/tunnel/device.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/tunnel/segment.h"

#define PAD 16

static bool usable(const struct vnet_keypair *k, uint64_t now)
{
	return k && now - k->since < VNET_REJECT_AFTER && k->counter < VNET_REJECT_AFTER_MESSAGES;
}

/* A packet's length does not say all of the length of what is in it. */
static size_t padded(const struct vnet_tunnel *t, size_t len)
{
	return len >= t->mtu ? len : MIN(ALIGN_UP(len, (size_t)PAD), (size_t)t->mtu);
}

/* Room for a message with @len bytes in it, whose head is written.  NULL: not now. */
static uint8_t *begin(struct vnet_peer *p, size_t len)
{
	struct vnet_keypair *k = p->current;
	uint8_t *room = vnet_socket_put(p->tunnel->udp, &p->at, len + VNET_DATA_OVERHEAD);
	const struct vnet_data head = {
		.type = htole32(VNET_DATA),
		.receiver = htole32(k->remote),
		.counter = htole64(k->counter),
	};

	if (!room)
		return NULL;
	memcpy(room, &head, sizeof(head));
	return room + sizeof(head);
}

static int seal(struct vnet_keypair *k, uint8_t *data, size_t len)
{
	return vnet_cipher_seal(k->send, k->counter++, data, len, data);
}

static void keep_fresh_sending(struct vnet_peer *p)
{
	const struct vnet_keypair *k = p->current;

	if (k->counter > VNET_REKEY_AFTER_MESSAGES ||
		(k->initiator && p->tunnel->now - k->since >= VNET_REKEY_AFTER))
		vnet_handshake_start(p, false);
}

/* Keys that are about to end, and nothing that goes out of ours would renew them. */
static void keep_fresh_receiving(struct vnet_peer *p)
{
	const struct vnet_keypair *k = p->current;

	if (p->last_minute || !k || !k->initiator ||
		p->tunnel->now - k->since <
			VNET_REJECT_AFTER - VNET_KEEPALIVE_TIMEOUT - VNET_REKEY_TIMEOUT)
		return;
	p->last_minute = true;
	vnet_handshake_start(p, false);
}

void vnet_data_keepalive(struct vnet_peer *p)
{
	uint8_t *room;

	if (p->staged) {
		vnet_data_send_staged(p);
		return;
	}
	if (!usable(p->current, p->tunnel->now)) {
		vnet_handshake_start(p, false);
		return;
	}
	room = begin(p, 0);
	if (!room || seal(p->current, room, 0) < 0)
		return;
	vnet_socket_flush(p->tunnel->udp);
	vnet_timers_any_sent(p);
	keep_fresh_sending(p);
}

/* With keys.  -EAGAIN only before anything of the packet has gone. */
static int send_now(struct vnet_peer *p, const struct vnet_packet *packet)
{
	const struct vnet_tunnel *t = p->tunnel;
	const unsigned n = vnet_segment_count(packet);

	for (unsigned i = 0; i < n; i++) {
		const size_t len = vnet_segment_length(packet, i), full = padded(t, len);
		uint8_t *room = begin(p, full);

		if (!room)
			return i ? 0
				 : -EAGAIN; /* the rest is lost, and sent again by who sent it */
		vnet_segment_write(packet, i, room);
		memset(room + len, 0, full - len);
		if (seal(p->current, room, full) < 0)
			return -EIO;
	}
	p->stats.sent += packet->len;
	vnet_timers_any_sent(p);
	vnet_timers_data_sent(p);
	keep_fresh_sending(p);
	return 0;
}

static void unstage(struct vnet_peer *p)
{
	struct vnet_staged *first = p->staged;

	p->staged = first->next;
	if (!p->staged)
		p->staged_end = &p->staged;
	p->n_staged--;
	p->staged_bytes -= first->p.len;
	free(first);
}

void vnet_data_drop_staged(struct vnet_peer *p)
{
	while (p->staged)
		unstage(p);
}

/* The oldest give way: what is newer is more likely to be still wanted. */
static int stage(struct vnet_peer *p, const struct vnet_packet *packet)
{
	struct vnet_staged *s = malloc(sizeof(*s) + packet->len);

	if (!s)
		return -ENOMEM;
	s->next = NULL;
	s->p = *packet;
	s->p.data = s->data;
	memcpy(s->data, packet->data, packet->len);
	while (p->staged && (p->n_staged == VNET_STAGED_PACKETS ||
				    p->staged_bytes + packet->len > VNET_STAGED_BYTES))
		unstage(p);
	*p->staged_end = s;
	p->staged_end = &s->next;
	p->n_staged++;
	p->staged_bytes += packet->len;
	return 0;
}

void vnet_data_send_staged(struct vnet_peer *p)
{
	if (!p->staged)
		return;
	if (!usable(p->current, p->tunnel->now)) {
		vnet_handshake_start(p, false);
		return;
	}
	while (p->staged && send_now(p, &p->staged->p) == 0)
		unstage(p);
	vnet_socket_flush(p->tunnel->udp);
}

int vnet_data_send(struct vnet_peer *p, const struct vnet_packet *packet)
{
	int r;

	if (!p->at.family)
		return p->named ? stage(p, packet) : -EHOSTUNREACH;
	if (usable(p->current, p->tunnel->now) && !p->staged)
		return send_now(p, packet);
	if ((r = stage(p, packet)) < 0)
		return r;
	vnet_data_send_staged(p);
	return 0;
}

static void take_packet(struct vnet_peer *p, uint8_t *data, size_t len)
{
	struct vnet_tunnel *t = p->tunnel;
	struct vnet_packet packet = {.data = data, .len = len, .room = VNET_PACKET_MAX};

	if (vnet_packet_parse(&packet) < 0 ||
		vnet_allowed_find(&t->allowed, &packet.src) != p->number) {
		p->stats.datagrams_refused++;
		return;
	}
	p->stats.received += packet.len;
	vnet_coalesce_add(t->coalesce, p->number, &packet);
}

void vnet_data_receive(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data, size_t len)
{
	uint8_t *room = vnet_coalesce_room(t->coalesce);
	struct vnet_index_entry *index;
	struct vnet_keypair *k;
	struct vnet_data head;
	struct vnet_peer *p;
	uint64_t counter;

	if (len < VNET_DATA_OVERHEAD || len > VNET_PACKET_MAX)
		return;
	memcpy(&head, data, sizeof(head));
	counter = le64toh(head.counter);
	index = vnet_index_find(&t->index, le32toh(head.receiver));
	if (!index || index->kind != VNET_INDEX_KEYS)
		return;
	p = index->owner;
	k = (void *)((char *)index - offsetof(struct vnet_keypair, index));
	if (t->now - k->since >= VNET_REJECT_AFTER || counter >= VNET_REJECT_AFTER_MESSAGES ||
		vnet_cipher_open(
			k->receive, counter, data + sizeof(head), len - sizeof(head), room) < 0)
		return;
	if (!vnet_replay_accept(&k->replay, counter)) {
		p->stats.datagrams_refused++;
		return;
	}
	p->at = *from;
	if (k == p->next)
		vnet_handshake_confirm(p);
	keep_fresh_receiving(p);
	vnet_timers_any_received(p);
	len -= VNET_DATA_OVERHEAD;
	if (!len)
		return; /* a keepalive */
	vnet_timers_data_received(p);
	take_packet(p, room, len);
}
