// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Sessions may all have the same virtual address, so they know each other by their physical ones,
 * which the gateway's name server gives out (NAME.podrun.internal).  A packet for such an address
 * goes from TUN to TUN: its source becomes the sender's physical address, its destination the
 * receiver's virtual one.  That needs no record; an answer is translated by the same rule.  Those
 * with much to carry have the kernel do that (shortcut.h).  No socket of ours is in between.
 *
 * A session that is suspended keeps its physical address as long as it has connections with
 * neighbours and those are there.  Who has had any is noted packet by packet, and when one is
 * frozen its kernel is asked for what is left of them.  Its neighbour's kernel tries again, later
 * and later: what it tries is kept (gateway_wire_keep), so that it is answered when the session is
 * back.  What has been tried some times is answered in the session's place: there is no room for it
 * yet.  Linux goes on trying for as long as it hears that, and holds what is idle for as long as its
 * keepalives are answered; before 6.6 it does not believe that a window has closed, and gives data
 * up after some 15 minutes (tcp_retries2).
 *
 * Who has a tunnel for its way out has no neighbours: what it says to them would go there, too.
 */
#include "vnet/gateway/neighbour.h"

#include <linux/inet_diag.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/base.h"
#include "vnet/gateway/gather.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/listening.h"
#include "vnet/gateway/shortcut.h"
#include "vnet/gateway/wire.h"
#include "vnet/vnat.h"

#define ANSWER_MAX 128 /* of headers without data */

static const struct vnet_endpoint *physical_of(const struct vnet_session *s, uint8_t family)
{
	return family == AF_INET ? &s->physical_v4 : &s->physical_v6;
}

_Static_assert(GATEWAY_MAX_SESSIONS <= 64, "a bit for each in gateway_session's neighbours");

static void note(struct vnet_gateway *g, uint32_t one, uint32_t other)
{
	g->arena->sessions[one].neighbours |= 1ull << other;
	g->arena->sessions[other].neighbours |= 1ull << one;
}

/*
 * In the place of who is away: to @p, translated, as if it had no room for it.  @from and @to: who
 * asked, and whom, in the asking @session's words.
 */
static void answer(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p,
	const struct vnet_endpoint *from, const struct vnet_endpoint *to)
{
	uint8_t data[ANSWER_MAX] __attribute__((aligned(4)));
	struct vnet_packet full = {.data = data, .room = sizeof(data)};

	if (vnet_packet_make_full(&full, p) < 0)
		return;
	vnet_packet_set_src(&full, to);
	vnet_packet_set_dst(&full, from);
	gateway_gather_give(g, session, &full);
}

bool gateway_neighbour_take(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	const struct vnet_session *own = vnet_session_get(g->vnat, session), *other = NULL;
	const struct vnet_endpoint from = p->src, to = p->dst;
	struct vnet_endpoint src, dst;
	uint32_t i;

	if (p->proto != IPPROTO_TCP || p->fragment || !vnet_endpoint_may_be_physical(&p->dst))
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
	note(g, session, i);
	gateway_shortcut_count(g, session, i, p);
	vnet_packet_set_src(p, &src);
	vnet_packet_set_dst(p, &dst);
	if (g->arena->sessions[i].state != GATEWAY_SESSION_SUSPENDED)
		gateway_gather_give(g, i, p);
	else if (gateway_wire_keep(g, i, p))
		answer(g, session, p, &from, &to);
	return true;
}

static void count_one(void *ctx, const struct inet_diag_msg *m)
{
	uint32_t *n = ctx;
	struct vnet_endpoint to;
	struct in6_addr a6;
	struct in_addr a4;

	memcpy(&a6, m->id.idiag_dst, sizeof(a6));
	memcpy(&a4, m->id.idiag_dst, sizeof(a4));
	if (m->idiag_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a6))
		memcpy(&a4, &a6.s6_addr[12], sizeof(a4));
	else if (m->idiag_family == AF_INET6)
		a4.s_addr = 0;
	to = a4.s_addr ? vnet_endpoint_v4(a4, 0) : vnet_endpoint_v6(&a6, 0);
	*n += vnet_endpoint_may_be_physical(&to);
}

uint32_t gateway_neighbour_count(struct vnet_gateway *g, uint32_t session)
{
	const uint32_t none = 1u << TCP_LISTEN | 1u << TCP_CLOSE | 1u << TCP_TIME_WAIT;
	const struct gateway_session *s = &g->arena->sessions[session];
	uint32_t n = 0;

	if (s->neighbours && (s->diag < 0 || gateway_diag_walk(s->diag, ~none, count_one, &n) < 0))
		n = (uint32_t)__builtin_popcountll(s->neighbours); /* nobody to ask */
	return n;
}

bool gateway_neighbour_forget(struct vnet_gateway *g, uint32_t session)
{
	bool last = false;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		struct gateway_session *s = &g->arena->sessions[i];

		s->neighbours &= i == session ? 0 : ~(1ull << session);
		if (s->neighbours || !s->neighbour_flows)
			continue;
		s->neighbour_flows = 0;
		last = last || (i != session && s->state == GATEWAY_SESSION_SUSPENDED);
	}
	return last;
}
