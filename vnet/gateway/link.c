// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A packet is read into one buffer, given other addresses there, and written: two system calls, and
 * no copy of ours.  While there are packets up to TURN, or BYTES, are taken from one TUN before
 * others have their turn, so that a session which sends all the time keeps nobody waiting.
 * Fragments of datagrams are the exception: they wait, copied, until the whole is there.
 *
 * Some packets wait for what comes behind them (gather.c), none longer than its turn.
 *
 * What is written to one side makes the other side readable, and nobody needs epoll to be told: a
 * flow that got bytes is read at the end of the same turn, and so is gw0 when bytes went into it.
 *
 * A session may only say its own addresses as a source.  What else its root makes up - another's
 * address, the gateway's, a router's announcements - is dropped here, before anything looks at it.
 */
#include "vnet/gateway/link.h"

#include <string.h>

#include "base/base.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gather.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/neighbour.h"
#include "vnet/gateway/outbound.h"
#include "vnet/gateway/publish.h"
#include "vnet/gateway/remote.h"
#include "vnet/gateway/wire.h"
#include "vnet/reassemble.h"
#include "vnet/tun.h"
#include "vnet/vnat.h"

#define TURN	    32
#define DRAIN_TURNS VNET_QUEUE /* one packet at least of each: all that a TUN holds */
#define BYTES	    300000 /* of a turn: what is copied is in the CPU's cache when it is passed on */
#define FEW	    2	   /* packets of a turn behind which no more are expected */

struct link_watch {
	struct gateway_watch watch;
	struct vnet_gateway *g;
	bool busy; /* its last turn had more than FEW packets */
};

struct gateway_link {
	struct link_watch gw, sessions[GATEWAY_MAX_SESSIONS];
	struct gateway_later gw_soon;
	struct vnet_reassembly *fragments;
	_Alignas(16) uint8_t buffer[VNET_PACKET_MAX];
};

static struct vnet_packet packet_in(struct gateway_link *l)
{
	return (struct vnet_packet){.data = l->buffer, .room = sizeof(l->buffer)};
}

static uint32_t seconds(struct vnet_gateway *g)
{
	return (uint32_t)(gateway_loop_now(g->loop) / 1000000000u);
}

static void set_clock(struct vnet_gateway *g)
{
	vnet_vnat_set_clock(g->vnat, seconds(g));
}

/* ---- from a session ---------------------------------------------------------------------- */

static bool own_source(const struct gateway_session *s, const struct vnet_packet *p)
{
	if (p->version == 4)
		return s->address4.s_addr && p->src.v4.s_addr == s->address4.s_addr;
	return !IN6_IS_ADDR_UNSPECIFIED(&s->address6) &&
	       memcmp(&p->src.v6, &s->address6, sizeof(s->address6)) == 0;
}

static bool is_reset(const struct vnet_packet *p)
{
	const struct tcphdr *tcp = vnet_packet_tcp(p);

	return tcp && tcp->rst;
}

/* What a flow's packet, on its way to the inner kernel, will have happen there. */
static void passed(struct vnet_gateway *g, uint32_t flow, const struct vnet_packet *p)
{
	if (is_reset(p))
		gateway_flow_refused(g, flow);
	else if (p->payload_len)
		gateway_flow_poke(g, flow);
	else
		gateway_outbound_shaken(g, flow);
}

static void from_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];
	uint32_t flow;

	s->counts.from_packets++;
	s->counts.from_bytes += p->len;
	if (vnet_packet_parse(p) < 0 || !own_source(s, p)) {
		s->counts.dropped++;
		return;
	}
	gateway_capture_packet(g, session, p);
	if (p->payload_len)
		gateway_publish_said(g, session);
	if (gateway_remote_take(g, session, p) || gateway_neighbour_take(g, session, p))
		return;
	switch (vnet_vnat_from_session(g->vnat, session, p, &flow)) {
	case VNAT_PASS:
		if (flow != VNET_NONE && g->arena->flows[flow].anew)
			gateway_outbound_begins_anew(g, flow, p);
		gateway_gather_give(g, GATEWAY_GATHER_INNER, p);
		if (flow != VNET_NONE)
			passed(g, flow, p);
		break;
	case VNAT_NEW:
		gateway_outbound_syn(g, session, p);
		break;
	case VNAT_DATAGRAM:
		if (!p->fragment ||
			vnet_reassemble(g->link->fragments, session, seconds(g), p) == 1)
			gateway_datagram_from_session(g, session, p);
		break;
	case VNAT_ANSWER:
		vnet_gateway_to_session(g, session, p);
		break;
	case VNAT_DROP:
		if (flow != VNET_NONE) {
			g->arena->flows[flow].anew = false;
			gateway_outbound_again(g, flow);
		}
		break;
	}
}

/* False: there is nothing more to be read now. */
static bool read_turn(struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	bool *busy = &g->link->sessions[session].busy;
	const bool was_busy = *busy;
	size_t bytes = 0;

	*busy = false;
	for (int i = 0; i < TURN && gateway_session_has_kernel(s) && !s->held; i++) {
		struct vnet_packet p = packet_in(g->link);
		int r = vnet_tun_read(s->tun, &p);

		if (r == -EAGAIN)
			return false;
		*busy = i >= FEW;
		gateway_gather_expect(g, was_busy || *busy);
		if (r < 0) {
			/* The interface is gone, with its namespace; the supervisor will say so. */
			gateway_link_stop(g, session);
			if (s->state == GATEWAY_SESSION_ENDING)
				gateway_flow_end_session(g, session, false);
			return false;
		}
		bytes += p.len;
		from_session(g, session, &p);
		if (bytes > BYTES)
			break;
	}
	return true;
}

/* To be read, and written to if anything waits for that. */
static uint32_t watched(const struct vnet_gateway *g, uint32_t session)
{
	return gateway_wire_waits(g, session) ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

static void watch_for_room(struct vnet_gateway *g, uint32_t session)
{
	gateway_loop_change(g->loop, g->arena->sessions[session].tun, watched(g, session),
		&g->link->sessions[session].watch);
}

static void on_room(struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = &g->arena->sessions[session];

	if (!gateway_session_has_kernel(s) || s->held)
		return;
	gateway_wire_flush(g, session);
	if (!gateway_wire_waits(g, session))
		watch_for_room(g, session);
}

static void on_session(struct gateway_watch *w, uint32_t events)
{
	struct link_watch *lw = gateway_container(w, struct link_watch, watch);
	struct vnet_gateway *g = lw->g;
	uint32_t session = (uint32_t)(lw - g->link->sessions);

	if (events & EPOLLOUT)
		on_room(g, session);
	set_clock(g);
	read_turn(g, session);
	gateway_gather_flush(g);
	gateway_remote_flush(g, session);
	gateway_datagram_flush(g);
}

int gateway_link_read(struct vnet_gateway *g, uint32_t session, struct err *e)
{
	struct link_watch *w = &g->link->sessions[session];
	int r;

	w->g = g;
	w->watch.ready = on_session;
	r = gateway_loop_add(
		g->loop, g->arena->sessions[session].tun, watched(g, session), &w->watch);
	return r < 0 && r != -EEXIST ? err_errno(e, r, "the session's TUN") : 0;
}

void gateway_link_stop(struct vnet_gateway *g, uint32_t session)
{
	gateway_loop_remove(g->loop, g->arena->sessions[session].tun);
}

/* What the session's kernel has sent already. */
static void drain(struct vnet_gateway *g, uint32_t session)
{
	int turns = 0;

	set_clock(g);
	while (turns++ < DRAIN_TURNS && read_turn(g, session))
		;
	gateway_gather_flush(g);
	gateway_remote_flush(g, session);
	gateway_datagram_flush(g);
}

void gateway_link_hold(struct vnet_gateway *g, uint32_t session)
{
	drain(g, session);
	gateway_link_stop(g, session);
}

void gateway_link_drain(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_session *s = &g->arena->sessions[session];
	struct err e = {0};

	s->held = false;
	gateway_wire_flush(g, session);
	if (gateway_link_read(g, session, &e) < 0)
		log_error("%s: %s", s->name, e.msg);
	drain(g, session);
}

/* ---- from the inner kernel --------------------------------------------------------------- */

static void from_inner(struct vnet_gateway *g, struct vnet_packet *p)
{
	uint32_t session, flow;

	if (vnet_packet_parse(p) < 0)
		return;
	switch (vnet_vnat_from_gateway(g->vnat, p, &session, &flow)) {
	case VNAT_PASS:
		if (flow == VNET_NONE || !g->arena->flows[flow].anew)
			gateway_gather_give(g, session, p);
		break;
	case VNAT_ANSWER:
		gateway_wire_to_inner(g, p);
		break;
	default:
		break;
	}
}

static void read_gw_turn(struct vnet_gateway *g)
{
	bool *busy = &g->link->gw.busy;
	const bool was_busy = *busy;
	size_t bytes = 0;

	*busy = false;
	for (int i = 0; i < TURN; i++) {
		struct vnet_packet p = packet_in(g->link);

		if (vnet_tun_read(g->arena->gw_tun, &p) < 0)
			return;
		*busy = i >= FEW;
		gateway_gather_expect(g, was_busy || *busy);
		bytes += p.len;
		from_inner(g, &p);
		if (bytes > BYTES)
			return;
	}
}

static void read_gw(struct vnet_gateway *g)
{
	set_clock(g);
	read_gw_turn(g);
	gateway_gather_flush(g);
}

static void on_gw(struct gateway_watch *w, uint32_t events)
{
	read_gw(gateway_container(w, struct link_watch, watch)->g);
}

static void on_gw_soon(struct gateway_later *l)
{
	read_gw(gateway_container(l, struct gateway_link, gw_soon)->gw.g);
}

static void inner_sends(struct vnet_gateway *g)
{
	gateway_loop_later(g->loop, &g->link->gw_soon);
}

int gateway_link_start(struct vnet_gateway *g, struct err *e)
{
	int r;

	g->link = calloc(1, sizeof(*g->link));
	if (!g->link)
		return err_errno(e, -ENOMEM, "gateway");
	g->link->fragments = vnet_reassembly_new();
	if (!g->link->fragments)
		return err_errno(e, -ENOMEM, "gateway");
	g->link->gw = (struct link_watch){{on_gw}, g, false};
	g->link->gw_soon.run = on_gw_soon;
	g->inner_sends = inner_sends;
	g->session_is_full = watch_for_room;
	r = gateway_loop_add(g->loop, g->arena->gw_tun, EPOLLIN, &g->link->gw.watch);
	return r < 0 ? err_errno(e, r, "gw0") : 0;
}
