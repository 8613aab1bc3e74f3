// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Sessions may all have the same virtual address, so they know each other by their physical ones,
 * which the gateway's name server gives out (NAME.podrun.internal).  A packet for such an address
 * goes from TUN to TUN: its source becomes the sender's physical address, its destination the
 * receiver's virtual one.  That needs no record; an answer is translated by the same rule.  Those
 * with much to carry have the kernel do that (shortcut.h).  No socket of ours is in between, so
 * nothing is held for a session that is away: its neighbour's kernel tries again.
 *
 * Who has a tunnel for its way out has no neighbours: what it says to them would go there, too.
 */
#include "vnet/gateway/neighbour.h"

#include <string.h>

#include "base/base.h"
#include "vnet/gateway/gather.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/shortcut.h"
#include "vnet/vnat.h"

/* Most packets are for somebody else, which the first bits tell. */
static bool may_be_physical(const struct vnet_endpoint *ep)
{
	if (ep->family == AF_INET)
		return (ntohl(ep->v4.s_addr) ^ VNET_PHYSICAL_V4) >> (32 - VNET_PHYSICAL_V4_BITS) ==
		       0;
	return ep->v6.s6_addr[0] == 0xfd && ep->v6.s6_addr[1] == 0x65;
}

static const struct vnet_endpoint *physical_of(const struct vnet_session *s, uint8_t family)
{
	return family == AF_INET ? &s->physical_v4 : &s->physical_v6;
}

bool gateway_neighbour_take(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	const struct vnet_session *own = vnet_session_get(g->vnat, session), *other = NULL;
	struct vnet_endpoint src, dst;
	uint32_t i;

	if (p->proto != IPPROTO_TCP || p->fragment || !may_be_physical(&p->dst))
		return false;
	for (i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		other = vnet_session_get(g->vnat, i);
		if (other && !g->arena->sessions[i].remote[0] &&
			vnet_endpoint_same_address(physical_of(other, p->dst.family), &p->dst))
			break;
	}
	if (i == GATEWAY_MAX_SESSIONS)
		return false;
	src = *physical_of(own, p->src.family);
	src.port = p->src.port;
	dst = p->dst.family == AF_INET ? other->v4 : other->v6;
	dst.port = p->dst.port;
	if (!dst.family)
		return false;
	gateway_shortcut_count(g, session, i, p);
	vnet_packet_set_src(p, &src);
	vnet_packet_set_dst(p, &dst);
	gateway_gather_give(g, i, p);
	return true;
}
