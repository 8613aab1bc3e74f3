// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A packet that can't be written is lost, as on any wire, and its sender tries again.  For a
 * session that is frozen for a moment that would cost more than the moment (a retransmission takes
 * 200 ms and more), so packets for it are held, up to HELD_PACKETS and HELD_BYTES; beyond that the
 * newest are lost.  They are in the worker's own memory: with it they are lost as well.
 */
#include "vnet/gateway/wire.h"

#include <string.h>

#include "base/base.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/gateway.h"
#include "vnet/tun.h"

#define HELD_PACKETS 1024u
#define HELD_BYTES   (8u << 20)

struct held {
	struct held *next;
	struct virtio_net_hdr vh;
	size_t len;
	_Alignas(4) uint8_t data[];
};

struct gateway_wire {
	struct queue {
		struct held *first, **last;
		uint32_t packets;
		size_t bytes;
	} held[GATEWAY_MAX_SESSIONS];
};

int gateway_wire_start(struct vnet_gateway *g, struct err *e)
{
	g->wire = calloc(1, sizeof(*g->wire));
	if (!g->wire)
		return err_errno(e, -ENOMEM, "gateway");
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		g->wire->held[i].last = &g->wire->held[i].first;
	return 0;
}

void gateway_wire_to_inner(struct vnet_gateway *g, const struct vnet_packet *p)
{
	vnet_tun_write(g->arena->gw_tun, p);
}

static void write_to(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];

	gateway_capture_packet(g, session, p);
	if (vnet_tun_write(s->tun, p) < 0) {
		s->counts.dropped++;
		return;
	}
	s->counts.to_packets++;
	s->counts.to_bytes += p->len;
}

static void hold(struct gateway_session *s, struct queue *q, const struct vnet_packet *p)
{
	struct held *h = NULL;

	if (q->packets < HELD_PACKETS && q->bytes + p->len <= HELD_BYTES)
		h = malloc(sizeof(*h) + p->len);
	if (!h) {
		s->counts.dropped++;
		return;
	}
	h->next = NULL;
	h->vh = p->vh;
	h->len = p->len;
	memcpy(h->data, p->data, p->len);
	*q->last = h;
	q->last = &h->next;
	q->packets++;
	q->bytes += p->len;
}

void vnet_gateway_to_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];

	if (s->state != GATEWAY_SESSION_ATTACHED)
		return;
	if (s->held)
		hold(s, &g->wire->held[session], p);
	else
		write_to(g, session, p);
}

static struct held *take_first(struct queue *q)
{
	struct held *h = q->first;

	if (!h)
		return NULL;
	q->first = h->next;
	if (!q->first)
		q->last = &q->first;
	q->packets--;
	q->bytes -= h->len;
	return h;
}

void gateway_wire_flush(struct vnet_gateway *g, uint32_t session)
{
	struct held *h;

	while ((h = take_first(&g->wire->held[session]))) {
		struct vnet_packet p = {
			.vh = h->vh, .data = h->data, .len = h->len, .room = h->len};

		write_to(g, session, &p);
		free(h);
	}
}

void gateway_wire_forget(struct vnet_gateway *g, uint32_t session)
{
	struct held *h;

	while ((h = take_first(&g->wire->held[session])))
		free(h);
}
