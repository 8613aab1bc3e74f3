// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      session netns                          inner netns
 *      app - TCP - net0 --- translator --- gw0 - TCP - splice       everything at first
 *                  podrun1 ------------- vethN                      what has much to carry
 *
 * A flow that has passed MUCH bytes is *fast*: the kernel carries its packets over a pair of
 * interfaces between the two namespaces, and gives them their other ends on the way (rewrite.c).
 * Each side may use either way for each packet, for TCP does not mind.  Small messages that follow
 * each other quickly count as more than they are (pump.c): who waits for an answer each time has
 * it sooner.
 *
 *      flow        offer ------ wire ------> client: makes the pair
 *                        <----- wired -----
 *                  rules here, fast -------> client: a rule in the session
 *      its end     rules here, slow ------->
 *      its place   slow -------> then, LEAVE_NS later, rules here
 *      hold        client: all rules; hold ->   rules here
 *      capture, end of the session              the pair here, and with it the one there
 *
 * What a session sends by the pair while there are no rules here for it is lost.  So rules are
 * here first and there last, but at a flow's end, when there is nothing to lose; and where the
 * client is not asked first the pair itself is removed, for then the session's kernel has no other
 * way than net0.  A session that is held sends nothing by the pair, and one that has moved has
 * none.
 *
 * There is room for VNET_VETH_MAX.  When it is taken one that has carried nothing for IDLE_NS gives
 * its place up to who asks, and asks again itself when it has passed MUCH again.  Its rules stay
 * here until the client has read that, and LEAVE_NS for what it does then; should that not do, what
 * is lost is sent again.
 *
 * Who is root in a session may remove its end, or set it down.  The kernel's word on that is not
 * relied upon but for when to look.  One that was removed is made anew, one that is down is not
 * wanted: all is on net0 until the session attaches again.
 *
 * A session can send by its end what it likes: packets that do not have the ends of one of its own
 * fast flows are dropped, as are all that came by another session's end.
 *
 * Connections from one session to another (shortcut.c) have places of this room lent to them, and
 * are told of it when nothing is to go by a session's pair any more.
 *
 * When a gateway is killed altogether the kernel closes its sockets, and its word on that reaches
 * the session.  It must not be the end of a stream that was cut off: the inner sockets of fast
 * flows are such that it is a reset.
 *
 * A killed worker leaves pairs and rules in the kernel, where they go on; the next one removes
 * them, and begins anew.  Nothing of this has to work: where the kernel has no nf_tables or veth,
 * or allows them not, everything goes by the TUNs.
 */
#include "vnet/gateway/veth.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/pump.h"
#include "vnet/gateway/removal.h"
#include "vnet/message.h"
#include "vnet/netlink.h"
#include "vnet/rewrite.h"
#include "vnet/veth.h"
#include "vnet/vnat.h"

#define MARK	    0x70640000u /* of a session: and its number */
#define TABLE	    1000u	/* and so are the tables of its routes */
#define UNREAD_MAX  65536	/* bytes that a client has not read */
#define LINK_HEADER 14u		/* not counted as the session's */
#define IDLE_NS	    5000000000ull
#define LEAVE_NS    200000000ull
#define LOOK_NS	    100000000ull /* between two looks for one that is idle */

enum state {
	NONE,
	ASKED, /* the client makes it */
	THERE,
	NEVER, /* it can't be */
};

static_assert(VNET_VETH_MAX <= VNET_REWRITE_MAX, "all of a session's are removed at once");

struct gateway_veths {
	bool tables;
	struct vnet_netlink nl;
	struct gateway_watch links;
	struct vnet_gateway *g;
	struct pair {
		enum state state;
		int index;
		uint32_t n;
		uint32_t flows[VNET_VETH_MAX];
		struct vnet_rewrite ends[VNET_VETH_MAX]; /* of each */
		struct {
			uint64_t moved, since; /* bytes, and when that was first seen */
		} uses[VNET_VETH_MAX];
		uint64_t looked;
		/* Whose client has been told, and when its place is free; 0: nobody's. */
		uint64_t leaves;
		uint32_t leaving;
		uint32_t lent; /* places of connections to other sessions */
	} pairs[GATEWAY_MAX_SESSIONS];
	bool fast[GATEWAY_MAX_FLOWS];
	uint64_t before[GATEWAY_MAX_FLOWS]; /* bytes that it had passed when it was idle */
};

/* The end here of the pair that its client was asked for last; one before may still be there. */
static void name_of(const struct vnet_gateway *g, uint32_t session, char ret[16])
{
	static_assert(GATEWAY_MAX_SESSIONS <= 10000, "names of interfaces");
	snprintf(ret, 16, "veth%u-%u", session % 10000, g->arena->sessions[session].pairs % 100000);
}

/* ---- what the client is told --------------------------------------------------------------- */

/* As the kernel counts them: more than the messages are, and none when they have been read. */
static int unread(const struct vnet_gateway *g, uint32_t session)
{
	int conn = g->arena->sessions[session].conn, queued = 0;

	return conn >= 0 && ioctl(g->arena->conns[conn].fd, SIOCOUTQ, &queued) == 0 ? queued : 0;
}

/* What nobody has asked for leaves room for answers, of which one that can't be sent ends the line. */
static bool is_full(const struct vnet_gateway *g, uint32_t session)
{
	return unread(g, session) > UNREAD_MAX;
}

static int tell(struct vnet_gateway *g, uint32_t session, Pb__GatewayReply *m, const int *fd)
{
	int conn = g->arena->sessions[session].conn;
	struct err ignored = {0};

	if (conn < 0 || is_full(g, session))
		return conn < 0 ? -ENOTCONN : -EAGAIN;
	return vnet_message_send(g->arena->conns[conn].fd, &m->base, fd, fd ? 1 : 0, &ignored);
}

static ProtobufCBinaryData address_of(const struct vnet_endpoint *ep)
{
	return (ProtobufCBinaryData){
		ep->family == AF_INET ? sizeof(ep->v4) : sizeof(ep->v6), (uint8_t *)&ep->v6};
}

static int tell_fast(
	struct vnet_gateway *g, uint32_t session, const struct vnet_rewrite *r, bool fast)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayFast f = PB__GATEWAY_FAST__INIT;

	f.inside = address_of(&r->inside);
	f.inside_port = r->inside.port;
	f.outside = address_of(&r->outside);
	f.outside_port = r->outside.port;
	f.slow = !fast;
	m.body_case = PB__GATEWAY_REPLY__BODY_FAST;
	m.fast = &f;
	return tell(g, session, &m, NULL);
}

static void remove_pair(struct vnet_gateway *g, uint32_t session, bool later)
{
	struct err ignored = {0};
	char name[16];
	int index;

	name_of(g, session, name);
	index = vnet_netlink_index(&g->veths->nl, name, &ignored);
	if (index > 0 && later)
		gateway_removal_link(g, index);
	else if (index > 0)
		vnet_netlink_remove(&g->veths->nl, index, &ignored);
}

static void ask_for_pair(struct vnet_gateway *g, uint32_t session)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayWire wire = PB__GATEWAY_WIRE__INIT;
	struct gateway_session *s = &g->arena->sessions[session];
	char name[16];

	/* One that an earlier worker had asked for. */
	if (s->wired)
		remove_pair(g, session, true);
	s->pairs++;
	name_of(g, session, name);
	wire.name = name;
	m.body_case = PB__GATEWAY_REPLY__BODY_WIRE;
	m.wire = &wire;
	s->wired = true;
	if (tell(g, session, &m, &g->arena->inner_ns) == 0)
		g->veths->pairs[session].state = ASKED;
}

/* ---- the pair ------------------------------------------------------------------------------ */

void gateway_veth_count(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_session *s = &g->arena->sessions[session];
	const struct pair *p = &g->veths->pairs[session];
	struct vnet_traffic *old = &s->counted, now;
	struct err ignored = {0};

	if (p->state != THERE || vnet_netlink_traffic(&g->veths->nl, p->index, &now, &ignored) < 0)
		return;
	s->counts.from_packets += now.in_packets - old->in_packets;
	s->counts.from_bytes +=
		now.in_bytes - old->in_bytes - LINK_HEADER * (now.in_packets - old->in_packets);
	s->counts.to_packets += now.out_packets - old->out_packets;
	s->counts.to_bytes +=
		now.out_bytes - old->out_bytes - LINK_HEADER * (now.out_packets - old->out_packets);
	*old = now;
}

static int make_tables(struct vnet_gateway *g, struct err *e)
{
	int tun;

	if (g->veths->tables)
		return 0;
	tun = vnet_netlink_index(&g->veths->nl, "gw0", e);
	if (tun < 0 ||
		vnet_rewrite_begin(g->arena->inner_rewrite, (uint32_t)tun, g->arena->v6, e) < 0)
		return e->error;
	g->veths->tables = true;
	return 0;
}

/* What has the session's mark goes to @index. */
static int set_route(
	struct vnet_gateway *g, uint32_t session, int index, uint8_t family, struct err *e)
{
	const struct vnet_route route = {
		.dst = {.family = family}, .index = index, .table = TABLE + session};
	const struct vnet_rule rule = {
		.family = family, .mark = MARK + session, .table = TABLE + session};
	int r = vnet_netlink_rule_add(&g->veths->nl, &rule, e);

	return r < 0 && r != -EEXIST ? r : vnet_netlink_route_add(&g->veths->nl, &route, e);
}

static int begin_pair(struct vnet_gateway *g, uint32_t session, struct err *e)
{
	struct vnet_netlink *nl = &g->veths->nl;
	struct pair *p = &g->veths->pairs[session];
	char name[16];
	int r;

	name_of(g, session, name);
	p->index = vnet_netlink_index(nl, name, e);
	if (p->index < 0)
		return p->index;
	g->arena->sessions[session].counted = (struct vnet_traffic){0};
	r = make_tables(g, e);
	if (r == 0)
		r = vnet_veth_up(nl, p->index, e);
	if (r == 0)
		r = set_route(g, session, p->index, AF_INET, e);
	if (r == 0 && g->arena->v6)
		r = set_route(g, session, p->index, AF_INET6, e);
	return r;
}

void gateway_veth_made(struct vnet_gateway *g, uint32_t session, bool made)
{
	struct pair *p = &g->veths->pairs[session];
	struct err e = {0};

	/*
	 * Another pair than the one that is known, whose answer was that to an earlier question: that
	 * one is gone.  Or the client can't use it.
	 */
	if (p->state == THERE) {
		gateway_veth_end(g, session);
		p->state = made ? NONE : NEVER;
		return;
	}
	/* What a worker before this one had asked for. */
	if (p->state != ASKED)
		return;
	if (made && begin_pair(g, session, &e) == 0) {
		p->state = THERE;
		return;
	}
	if (made)
		log_info("%s: no pair of interfaces: %s", g->arena->sessions[session].name, e.msg);
	gateway_veth_end(g, session);
	p->state = NEVER;
}

static void end(struct vnet_gateway *g, uint32_t session, bool later)
{
	struct pair *p = &g->veths->pairs[session];

	if (!g->arena->sessions[session].wired) {
		p->state = NONE;
		return;
	}
	gateway_veth_count(g, session);
	remove_pair(g, session, later);
	gateway_veth_hold(g, session);
	/* Not before: a worker that is killed leaves rules that lead nowhere to the next one. */
	g->arena->sessions[session].wired = false;
	p->state = NONE;
}

void gateway_veth_end(struct vnet_gateway *g, uint32_t session)
{
	end(g, session, false);
}

void gateway_veth_leave(struct vnet_gateway *g, uint32_t session)
{
	end(g, session, true);
}

static void look_at_pair(struct vnet_gateway *g, uint32_t session)
{
	struct err e = {0};
	char name[16];
	int r;

	name_of(g, session, name);
	r = vnet_netlink_has_carrier(&g->veths->nl, name, &e);
	if (r == 1)
		return;
	log_info("%s: its pair of interfaces is %s", g->arena->sessions[session].name,
		r == 0 ? "down: everything goes by the TUN" : "gone");
	gateway_veth_end(g, session);
	if (r == 0)
		g->veths->pairs[session].state = NEVER;
}

static void on_links(struct gateway_watch *w, uint32_t events)
{
	struct gateway_veths *v = gateway_container(w, struct gateway_veths, links);

	vnet_netlink_watch_empty(v->g->arena->inner_links);
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (v->pairs[i].state == THERE)
			look_at_pair(v->g, i);
}

/* ---- flows --------------------------------------------------------------------------------- */

/*
 * A gateway that is killed has its sockets closed, and what the kernel says then reaches a session
 * whose packets it carries: not an end, which a program would believe.
 */
static void set_hard(struct vnet_gateway *g, uint32_t flow, bool on)
{
	const struct linger l = {.l_onoff = on};

	setsockopt(g->arena->flows[flow].fd[GATEWAY_INNER], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void is_slow(struct vnet_gateway *g, uint32_t flow)
{
	struct pair *p = &g->veths->pairs[g->arena->flows[flow].session];

	g->veths->fast[flow] = false;
	if (p->leaving == flow)
		p->leaves = 0;
	set_hard(g, flow, false);
}

static void remove_rules(struct vnet_gateway *g, struct pair *p, uint32_t i)
{
	struct err e = {0};

	if (vnet_rewrite_remove(g->arena->inner_rewrite, &p->ends[i], 1, &e) < 0)
		log_warn("a connection that was fast: %s", e.msg);
	is_slow(g, p->flows[i]);
	p->flows[i] = p->flows[--p->n];
	p->ends[i] = p->ends[p->n];
	p->uses[i] = p->uses[p->n];
}

void gateway_veth_hold(struct vnet_gateway *g, uint32_t session)
{
	struct pair *p = &g->veths->pairs[session];
	struct err e = {0};

	if (p->n && vnet_rewrite_remove(g->arena->inner_rewrite, p->ends, p->n, &e) < 0)
		log_warn("connections that were fast: %s", e.msg);
	while (p->n)
		is_slow(g, p->flows[--p->n]);
	g->leaves_pair(g, session);
}

void gateway_veth_flow_ends(struct vnet_gateway *g, uint32_t flow)
{
	uint32_t session = g->arena->flows[flow].session, i = 0;
	struct pair *p = &g->veths->pairs[session];
	struct vnet_rewrite ends;

	g->veths->before[flow] = 0;
	if (!g->veths->fast[flow])
		return;
	while (p->flows[i] != flow)
		i++;
	ends = p->ends[i];
	remove_rules(g, p, i);
	gateway_veth_tell(g, session, &ends, false);
}

/* The one that has been idle for longest, or VNET_VETH_MAX. */
static uint32_t find_idle(struct vnet_gateway *g, struct pair *p, uint64_t now)
{
	uint32_t found = VNET_VETH_MAX;

	for (uint32_t i = 0; i < p->n; i++) {
		uint64_t moved = gateway_pump_moved(g, p->flows[i]);

		if (moved != p->uses[i].moved) {
			p->uses[i].moved = moved;
			p->uses[i].since = now;
		} else if (now - p->uses[i].since >= IDLE_NS &&
			   (found == VNET_VETH_MAX || p->uses[i].since < p->uses[found].since)) {
			found = i;
		}
	}
	return found;
}

/* The one that was told to leave, if it was, goes when that is known there. */
static void let_leave(struct vnet_gateway *g, uint32_t session)
{
	struct pair *p = &g->veths->pairs[session];
	uint64_t now = gateway_loop_now(g->loop);
	uint32_t i = 0;

	if (p->leaves && unread(g, session))
		p->leaves = now + LEAVE_NS;
	if (!p->leaves || now < p->leaves)
		return;
	while (p->flows[i] != p->leaving)
		i++;
	g->veths->before[p->leaving] = gateway_pump_moved(g, p->leaving);
	remove_rules(g, p, i);
}

/* True: there is a place. */
static bool make_room(struct vnet_gateway *g, uint32_t session)
{
	struct pair *p = &g->veths->pairs[session];
	uint64_t now = gateway_loop_now(g->loop);
	uint32_t i;

	if (p->n + p->lent < VNET_VETH_MAX)
		return true;
	if (p->leaves || now - p->looked < LOOK_NS)
		return false;
	p->looked = now;
	i = find_idle(g, p, now);
	if (i == VNET_VETH_MAX || tell_fast(g, session, &p->ends[i], false) < 0)
		return false;
	p->leaving = p->flows[i];
	p->leaves = now + LEAVE_NS;
	return false;
}

/*
 * What is sent to the session's own address is to go to its pair.  The inner kernel takes some for
 * nearer, whatever mark there is: the aliases (inner.c), and those of a link.
 */
static bool leads_there(const struct vnet_gateway *g, uint32_t session, uint8_t family)
{
	const struct vnet_session *s = vnet_session_get(g->vnat, session);
	const struct vnet_endpoint *own = family == AF_INET ? &s->v4 : &s->v6;

	if (vnet_endpoint_is_of_host(own))
		return false;
	if (family == AF_INET)
		return (ntohl(own->v4.s_addr) ^ VNET_ALIAS_V4) >> (32 - VNET_ALIAS_V4_BITS) != 0;
	return own->v6.s6_addr[0] != 0xfd || own->v6.s6_addr[1] != 0x64;
}

/* Who is root in the session may have removed its end, and with it the pair. */
static bool has_pair(struct vnet_gateway *g, uint32_t session)
{
	struct err ignored = {0};
	char name[16];

	name_of(g, session, name);
	if (vnet_netlink_index(&g->veths->nl, name, &ignored) == g->veths->pairs[session].index)
		return true;
	gateway_veth_end(g, session);
	return false;
}

static void make_fast(struct vnet_gateway *g, uint32_t session, uint32_t flow)
{
	struct pair *p = &g->veths->pairs[session];
	const struct vnet_flow *v = vnet_flow_get(g->vnat, flow);
	struct vnet_rewrite *ends;
	struct err e = {0};

	if (!v || !leads_there(g, session, v->inside.family) || !make_room(g, session) ||
		!has_pair(g, session))
		return;
	ends = &p->ends[p->n];
	set_hard(g, flow, true);
	*ends = (struct vnet_rewrite){
		(uint32_t)p->index, MARK + session, 0, v->inside, v->outside, v->near, v->far};
	if (vnet_rewrite_add(g->arena->inner_rewrite, ends, 1, &e) < 0) {
		log_info("%s: %s", g->arena->sessions[session].name, e.msg);
		set_hard(g, flow, false);
		gateway_veth_end(g, session);
		p->state = NEVER;
		return;
	}
	p->uses[p->n].moved = gateway_pump_moved(g, flow);
	p->uses[p->n].since = gateway_loop_now(g->loop);
	p->flows[p->n++] = flow;
	g->veths->fast[flow] = true;
	if (tell_fast(g, session, ends, true) < 0)
		remove_rules(g, p, p->n - 1);
}

static bool may_have_pair(const struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	enum state state = g->veths->pairs[session].state;

	return (state == NONE || state == THERE) && s->wires && !s->held &&
	       s->state == GATEWAY_SESSION_ATTACHED && !s->remote[0] &&
	       !g->captures->sessions[session].file && g->arena->inner_rewrite >= 0 &&
	       g->veths->nl.fd >= 0 && g->arena->inner_links >= 0 && !is_full(g, session);
}

void gateway_veth_offer(struct vnet_gateway *g, uint32_t flow)
{
	uint32_t session = g->arena->flows[flow].session;

	/* Also where nobody wants its place any more: it is half fast, and may be busy again. */
	if (g->veths->pairs[session].leaves)
		let_leave(g, session);
	if (gateway_pump_moved(g, flow) - g->veths->before[flow] < GATEWAY_VETH_MUCH ||
		g->veths->fast[flow] || !may_have_pair(g, session))
		return;
	if (g->veths->pairs[session].state == NONE)
		ask_for_pair(g, session);
	else
		make_fast(g, session, flow);
}

bool gateway_veth_is_fast(const struct vnet_gateway *g, uint32_t flow)
{
	return g->veths->fast[flow];
}

uint32_t gateway_veth_flows(const struct vnet_gateway *g, uint32_t session)
{
	const struct pair *p = &g->veths->pairs[session];

	return p->n + p->lent;
}

/* ---- for connections to other sessions ----------------------------------------------------- */

bool gateway_veth_may(struct vnet_gateway *g, uint32_t session, uint8_t family)
{
	const struct pair *p = &g->veths->pairs[session];

	if (p->leaves)
		let_leave(g, session);
	if (!may_have_pair(g, session) || !leads_there(g, session, family))
		return false;
	if (p->state == NONE)
		ask_for_pair(g, session);
	return p->state == THERE && make_room(g, session) && has_pair(g, session);
}

void gateway_veth_lend(struct vnet_gateway *g, uint32_t session)
{
	g->veths->pairs[session].lent++;
}

void gateway_veth_take_back(struct vnet_gateway *g, uint32_t session)
{
	g->veths->pairs[session].lent--;
}

uint32_t gateway_veth_index(const struct vnet_gateway *g, uint32_t session)
{
	return (uint32_t)g->veths->pairs[session].index;
}

uint32_t gateway_veth_mark(uint32_t session)
{
	return MARK + session;
}

void gateway_veth_tell(
	struct vnet_gateway *g, uint32_t session, const struct vnet_rewrite *ends, bool fast)
{
	/* A client that can't be told must not go on sending there. */
	if (tell_fast(g, session, ends, fast) < 0 && !fast)
		gateway_veth_end(g, session);
}

bool gateway_veth_has_read(const struct vnet_gateway *g, uint32_t session)
{
	return !unread(g, session);
}

int gateway_veth_start(struct vnet_gateway *g, struct err *e)
{
	struct err failure = {0};
	bool left = false;
	int r = 0;

	g->veths = calloc(1, sizeof(*g->veths));
	if (!g->veths)
		return err_errno(e, -ENOMEM, "gateway");
	/* No answer to an earlier worker is taken for one to this. */
	g->veths->nl = (struct vnet_netlink){g->arena->inner_route, (uint32_t)io_now_ns()};
	g->veths->g = g;
	g->veths->links.ready = on_links;
	if (g->arena->inner_links >= 0)
		r = gateway_loop_add(g->loop, g->arena->inner_links, EPOLLIN, &g->veths->links);
	if (r < 0)
		return err_errno(e, r, "the gateway's pairs of interfaces");
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		if (!g->arena->sessions[i].wired)
			continue;
		remove_pair(g, i, false);
		left = true;
	}
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS && left; i++)
		if (g->arena->flows[i].state == GATEWAY_FLOW_OPEN)
			set_hard(g, i, false);
	/* Rules of connections that have no pair any more lead nowhere. */
	if (left && make_tables(g, &failure) < 0)
		log_warn("%s", failure.msg);
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS && g->veths->tables; i++)
		g->arena->sessions[i].wired = false;
	return 0;
}
