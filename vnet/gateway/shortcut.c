// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      one session                 inner netns                 another
 *      app - TCP - net0 ----------- neighbour ----------- net0 - TCP - app      everything at first
 *               podrun1 - vethA --- nf_tables --- vethB - podrun1
 *
 * Between two sessions that both have a pair of interfaces (veth.c) the kernel can do what the
 * neighbour module does: it gives a packet the sender's physical address and the receiver's virtual
 * one, and a mark that leads to the receiver's pair (rewrite.h).  A connection that has passed much
 * goes that way, from then on.  Each end may use either way for each packet, and there is nothing
 * that has to be known about the connection but its ends.
 *
 *      much        rules here; both clients: a rule in the session
 *      LEASE_NS    both clients: no rule; they have read that, LEAVE_NS: no rules here
 *      hold, end   no rules here; the other one's client: no rule in the session
 *      of either
 *
 * Nobody says when a connection has ended, or is idle: no packet of it is seen any more.  So it has
 * its place for LEASE_NS only, and another lease when it passes much again, which one that is busy
 * does before its rules are gone.
 *
 * What the other one sends between a hold and its client's hearing of that is lost, and sent again
 * by its TUN.
 */
#include "vnet/gateway/shortcut.h"

#include <assert.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include "base/base.h"
#include "vnet/gateway/busy.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/pump.h"
#include "vnet/gateway/veth.h"
#include "vnet/packet.h"
#include "vnet/rewrite.h"
#include "vnet/veth.h"
#include "vnet/vnat.h"

#define LEASE_NS  5000000000ull
#define LEAVE_NS  200000000ull
#define SHORTCUTS (GATEWAY_MAX_SESSIONS * VNET_VETH_MAX / 2)

struct shortcut {
	struct gateway_ends ends;
	struct vnet_rewrite ways[2];	 /* what each session sends */
	enum { FAST, TOLD, READ } state; /* READ: both clients know that it is fast no more */
	uint64_t until;
};

struct gateway_shortcuts {
	struct vnet_gateway *g;
	struct gateway_timer timer;
	struct gateway_busy busy;
	bool off; /* the kernel does not do it */
	uint32_t n;
	struct shortcut all[SHORTCUTS];
};

/* ---- their ends ---------------------------------------------------------------------------- */

static void remove_rules(struct vnet_gateway *g, const struct shortcut *c, uint32_t n)
{
	struct vnet_rewrite ways[VNET_REWRITE_MAX];
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct err e = {0};

		ways[m++] = c[i].ways[0];
		ways[m++] = c[i].ways[1];
		if (i + 1 < n && m + 2 <= VNET_REWRITE_MAX)
			continue;
		if (vnet_rewrite_remove(g->arena->inner_rewrite, ways, m, &e) < 0)
			log_warn("connections between sessions that were fast: %s", e.msg);
		m = 0;
	}
}

static struct shortcut take_out(struct vnet_gateway *g, uint32_t i)
{
	struct gateway_shortcuts *s = g->shortcuts;
	struct shortcut c = s->all[i];

	s->all[i] = s->all[--s->n];
	gateway_veth_take_back(g, c.ends.sessions[0]);
	gateway_veth_take_back(g, c.ends.sessions[1]);
	return c;
}

/* The rules are here first and there last, but for this, where nothing may come any more. */
static void leaves_pair(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_shortcuts *s = g->shortcuts;
	struct shortcut gone[VNET_VETH_MAX];
	uint32_t n = 0;

	for (uint32_t i = s->n; i-- > 0;) {
		const struct gateway_ends *e = &s->all[i].ends;

		if (e->sessions[0] == session || e->sessions[1] == session) {
			assert(n < VNET_VETH_MAX);
			gone[n++] = take_out(g, i);
		}
	}
	if (!n)
		return;
	remove_rules(g, gone, n);
	for (uint32_t i = 0; i < n; i++) {
		int other = gone[i].ends.sessions[0] == session;

		gateway_veth_tell(g, gone[i].ends.sessions[other], &gone[i].ways[other], false);
	}
}

/* By telling one who can't be told it may be gone. */
static void tell_both(struct vnet_gateway *g, struct shortcut c, bool fast)
{
	for (int side = 0; side < 2; side++)
		gateway_veth_tell(g, c.ends.sessions[side], &c.ways[side], fast);
}

static void is_due(struct vnet_gateway *g, uint32_t i, uint64_t now)
{
	struct shortcut *c = &g->shortcuts->all[i], gone;

	c->until = now + LEAVE_NS;
	switch (c->state) {
	case FAST:
		c->state = TOLD;
		tell_both(g, *c, false);
		break;
	case TOLD:
		if (gateway_veth_has_read(g, c->ends.sessions[0]) &&
			gateway_veth_has_read(g, c->ends.sessions[1]))
			c->state = READ;
		break;
	case READ:
		gone = take_out(g, i);
		remove_rules(g, &gone, 1);
		break;
	}
}

static void on_timer(struct gateway_timer *t)
{
	struct gateway_shortcuts *s = gateway_container(t, struct gateway_shortcuts, timer);
	uint64_t now = io_now_ns(), first = UINT64_MAX;

	/* Each may be the end of several; who was not looked at for that is at the next turn. */
	for (uint32_t i = s->n; i-- > 0;)
		if (i < s->n && s->all[i].until <= now)
			is_due(s->g, i, now);
	for (uint32_t i = 0; i < s->n; i++)
		first = MIN(first, s->all[i].until);
	if (s->n)
		gateway_loop_timer(s->g->loop, t, first > now ? first - now : 0);
}

/* ---- and their beginning ------------------------------------------------------------------- */

static struct vnet_endpoint end_of(
	struct vnet_gateway *g, const struct gateway_ends *e, int side, bool physical)
{
	const struct vnet_session *s = vnet_session_get(g->vnat, e->sessions[side]);
	struct vnet_endpoint ep;

	if (e->family == AF_INET)
		ep = physical ? s->physical_v4 : s->v4;
	else
		ep = physical ? s->physical_v6 : s->v6;
	ep.port = e->ports[side];
	return ep;
}

static struct vnet_rewrite way_from(struct vnet_gateway *g, const struct gateway_ends *e, int side)
{
	return (struct vnet_rewrite){
		.index = gateway_veth_index(g, e->sessions[side]),
		.onward = gateway_veth_mark(e->sessions[!side]),
		.inside = end_of(g, e, side, false),
		.outside = end_of(g, e, !side, true),
		.near = end_of(g, e, side, true),
		.far = end_of(g, e, !side, false),
	};
}

static void make(struct vnet_gateway *g, const struct gateway_ends *e)
{
	struct gateway_shortcuts *s = g->shortcuts;
	struct shortcut c = {.ends = *e, .ways = {way_from(g, e, 0), way_from(g, e, 1)}};
	struct err failure = {0};

	if (s->n == SHORTCUTS)
		return;
	if (vnet_rewrite_add(g->arena->inner_rewrite, c.ways, 2, &failure) < 0) {
		/* Of a rule that could not be removed, or for now. */
		s->off = failure.error != -EEXIST && failure.error != -ENOMEM &&
			 failure.error != -ENOBUFS;
		if (s->off)
			log_info("between sessions everything goes by the TUNs: %s", failure.msg);
		return;
	}
	gateway_veth_lend(g, e->sessions[0]);
	gateway_veth_lend(g, e->sessions[1]);
	c.until = io_now_ns() + LEASE_NS;
	s->all[s->n++] = c;
	if (!s->timer.due)
		gateway_loop_timer(g->loop, &s->timer, LEASE_NS);
	tell_both(g, c, true);
}

static struct shortcut *find(struct gateway_shortcuts *s, const struct gateway_ends *e)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (gateway_ends_equal(&s->all[i].ends, e))
			return &s->all[i];
	return NULL;
}

static void offer(struct vnet_gateway *g, const struct gateway_ends *e)
{
	struct shortcut *c = find(g->shortcuts, e);
	bool one, other;

	if (c) {
		if (c->state == FAST)
			return;
		c->state = FAST;
		c->until = io_now_ns() + LEASE_NS;
		tell_both(g, *c, true);
		return;
	}
	if (!(e->family == AF_INET ? g->arena->forwards4 : g->arena->forwards6))
		return;
	/* Both are asked at once for what they lack. */
	one = gateway_veth_may(g, e->sessions[0], e->family);
	other = gateway_veth_may(g, e->sessions[1], e->family);
	if (one && other)
		make(g, e);
}

/* This way takes a hop, by TUN there is none: who has but one, or says that he is next door, sees. */
static bool counts_hops(const struct vnet_packet *p)
{
	uint8_t hops = p->version == 4 ? ((const struct iphdr *)p->data)->ttl
				       : ((const struct ip6_hdr *)p->data)->ip6_hlim;

	return hops == 1 || hops == UINT8_MAX;
}

void gateway_shortcut_count(
	struct vnet_gateway *g, uint32_t from, uint32_t to, const struct vnet_packet *p)
{
	const int second = from > to;
	struct gateway_ends e = {.family = p->src.family};

	if (from == to || g->shortcuts->off || counts_hops(p))
		return;
	e.sessions[second] = from;
	e.sessions[!second] = to;
	e.ports[second] = p->src.port;
	e.ports[!second] = p->dst.port;
	if (p->payload_len && gateway_busy_count(&g->shortcuts->busy, &e, (uint32_t)p->payload_len,
				      gateway_loop_now(g->loop), GATEWAY_VETH_MUCH))
		offer(g, &e);
}

int gateway_shortcut_start(struct vnet_gateway *g, struct err *e)
{
	g->shortcuts = calloc(1, sizeof(*g->shortcuts));
	if (!g->shortcuts)
		return err_errno(e, -ENOMEM, "gateway");
	g->shortcuts->g = g;
	g->shortcuts->timer.fire = on_timer;
	g->leaves_pair = leaves_pair;
	return 0;
}
