// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * What a packet costs is its write into a TUN, with all that the kernel behind it does at once:
 * its TCP, an answer, waking somebody up.  So a packet that may be made needless is kept until the
 * next one is there, or the turn is over.
 *
 * A receiver acknowledges each super-packet, and who sent them gets the acknowledgements of a turn
 * all at once: those that a later one makes needless are left out.  So is the one that ends a handshake,
 * where the first data are right behind it.
 *
 * A program that writes some kilobytes at a time makes packets of that size.  While there is more
 * to be read they are joined to such as come from large writes, for a copy costs less than a
 * packet.  Whoever sends one packet and waits for the answer must not wait for this, so it is only
 * done where several have come at once (gateway_gather_expect).  Small ones are let alone: who
 * writes those is slowed down by our slowness, and then its kernel joins them before we have had
 * the work of reading each.
 *
 * There is one place for what is kept.  Whatever is of no use to it, for the same receiver or
 * another, has it written first, so nothing is overtaken.
 */
#include "vnet/gateway/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/wire.h"
#include "vnet/packet.h"
#include "vnet/tun.h"

#define JOINED_MAX VNET_GSO_MAX
#define LARGE	   (JOINED_MAX / 2) /* is not worth a copy */
#define SMALL	   4096

struct gateway_gather {
	bool any, more;
	bool ack; /* of what is kept */
	uint32_t to;
	struct vnet_packet p;
	_Alignas(4) uint8_t data[VNET_PACKET_MAX];
};

int gateway_gather_start(struct vnet_gateway *g, struct err *e)
{
	g->gather = calloc(1, sizeof(*g->gather));
	return g->gather ? 0 : err_errno(e, -ENOMEM, "gateway");
}

static void write_to(struct vnet_gateway *g, uint32_t to, struct vnet_packet *p)
{
	if (to == GATEWAY_GATHER_INNER)
		gateway_wire_to_inner(g, p);
	else
		vnet_gateway_to_session(g, to, p);
}

void gateway_gather_flush(struct vnet_gateway *g)
{
	struct gateway_gather *h = g->gather;

	if (h->any)
		write_to(g, h->to, &h->p);
	h->any = false;
}

static void keep(struct gateway_gather *h, uint32_t to, const struct vnet_packet *p, bool ack)
{
	h->any = true;
	h->ack = ack;
	h->to = to;
	h->p = *p;
	h->p.data = h->data;
	h->p.room = sizeof(h->data);
	memcpy(h->data, p->data, p->len);
}

void gateway_gather_expect(struct vnet_gateway *g, bool more)
{
	g->gather->more = more && g->arena->whole;
}

void gateway_gather_give(struct vnet_gateway *g, uint32_t to, struct vnet_packet *p)
{
	struct gateway_gather *h = g->gather;
	bool ack = vnet_packet_is_ack(p);

	if (h->any && h->to == to && !h->ack && vnet_packet_join(&h->p, p, JOINED_MAX))
		return;
	if (h->any && h->to == to && h->ack && vnet_packet_ack_covers(p, &h->p))
		h->any = false;
	gateway_gather_flush(g);
	if (ack || (h->more && p->payload_len >= SMALL && p->len <= LARGE &&
			   vnet_packet_is_joinable(p)))
		keep(h, to, p, ack);
	else
		write_to(g, to, p);
}
