// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      SYN of the session --> held; connect() outside
 *                refused  --> RST             unreachable --> the ICMP error that says so
 *                accepted --> the SYN goes on to the gate, which answers it; accept() gives the
 *                             inner socket
 *
 * So a session sees what its destination has answered, and only then.  A try that nobody answers
 * ends as the host's own would (tcp_syn_retries, about two minutes), with "host unreachable".
 *
 * The last packet of the handshake outside (tcp(7), TCP_QUICKACK) goes when the session's own is over,
 * with the first bytes if they are there: a server on this host is woken by it, and would find
 * nothing to read before the session has heard that it is connected.
 *
 * What is accepted while the session stands still waits: if it goes on in another kernel, then only
 * the SYN that this one sends is of use, for its time stamps are others.  The gate may have
 * answered the SYN of the kernel before, which has not heard it.  To that answer the new one would
 * say RST, and so end what it is asking for.  So the session gets none of it, and as soon as
 * it sends its SYN the gate forgets the one before.  If it sends anything else it has heard.
 *
 * Destinations that mean this host itself are not a session's to reach, but by the address that it
 * was given for that (loopback4 and 6 of its attach); nor are link-local ones and those by which a
 * cloud gives its machines credentials, unless it was allowed that.  The gateway's own address has
 * port 53, also where it stands for the loopback, which is a name server of the host's: who asks by
 * TCP has had an answer by UDP that was cut.  It is the first that accepts; one that says nothing is
 * waited for as long as one SYN more takes.
 */
#include "vnet/gateway/outbound.h"

#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/pump.h"
#include "vnet/gateway/wire.h"
#include "vnet/vnat.h"

#define DNS_PORT 53
#define ACCEPTS	 64 /* in one turn */

struct gateway_outbound {
	struct gateway_watch gate;
	struct gateway_later soon;
	int shaken; /* flows that are at the gate, as far as packets tell */
	struct gateway_rest rest;
	struct vnet_gateway *g;
};

/* ---- destinations ------------------------------------------------------------------------ */

static bool is_v4(const struct vnet_endpoint *ep, struct in_addr a)
{
	return ep->family == AF_INET && a.s_addr && ep->v4.s_addr == a.s_addr;
}

static bool is_v6(const struct vnet_endpoint *ep, const struct in6_addr *a)
{
	return ep->family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(a) &&
	       memcmp(&ep->v6, a, sizeof(*a)) == 0;
}

/*
 * Where the session's @dst is outside: 0, or the errno that it gets for it.  *ret_asked: it is a
 * name server, and the next is there (gateway_datagram_resolver).
 */
static int outside_of(struct vnet_gateway *g, const struct gateway_session *s,
	const struct vnet_endpoint *dst, struct vnet_endpoint *ret, unsigned *ret_asked)
{
	const bool gateway = is_v4(dst, s->gateway4) || is_v6(dst, &s->gateway6);

	*ret = *dst;
	*ret_asked = 0;
	if (gateway && dst->port == DNS_PORT && gateway_datagram_resolver(g, ret_asked, ret))
		return 0;
	if (is_v4(dst, s->loopback4)) {
		ret->v4.s_addr = htonl(INADDR_LOOPBACK);
		return 0;
	}
	if (is_v6(dst, &s->loopback6)) {
		ret->v6 = in6addr_loopback;
		return 0;
	}
	if (gateway)
		return -ECONNREFUSED;
	if (vnet_endpoint_is_loopback(dst) || !vnet_endpoint_is_unicast(dst))
		return -ENETUNREACH;
	if (dst->family == AF_INET6 &&
		(IN6_IS_ADDR_LINKLOCAL(&dst->v6) || IN6_IS_ADDR_V4MAPPED(&dst->v6)))
		return -ENETUNREACH;
	return vnet_endpoint_is_of_host(dst) && !s->link_local ? -EPERM : 0;
}

/* ---- outside ----------------------------------------------------------------------------- */

static void set_int(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* Is there another name server to ask? */
static bool have_next(struct vnet_gateway *g, const struct gateway_flow *f)
{
	unsigned at = f->asked;
	struct vnet_endpoint next;

	return at && gateway_datagram_resolver(g, &at, &next);
}

static void on_connected(struct vnet_gateway *g, uint32_t flow, int error);

static int connect_outside(struct vnet_gateway *g, uint32_t flow, const struct vnet_endpoint *to)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(to, &sa);
	int r, fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	f->fd[GATEWAY_OUTER] = fd;
	f->state = GATEWAY_FLOW_CONNECTING;
	set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1); /* pump.c */
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, IPPROTO_TCP, TCP_QUICKACK, 0);
	if (have_next(g, f))
		set_int(fd, IPPROTO_TCP, TCP_SYNCNT, 1);
	if (connect(fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS)
		return -errno;
	r = gateway_flow_watch(g, flow, GATEWAY_OUTER);
	if (r < 0)
		return r;
	/* What is on this host has answered by now, and no event need tell. */
	if (connect(fd, (struct sockaddr *)&sa, len) < 0)
		return errno == EALREADY ? 0 : -errno;
	on_connected(g, flow, 0);
	return 0;
}

/* True when the next name server is being asked in place of one that could not be. */
static bool ask_next(struct vnet_gateway *g, uint32_t flow)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	unsigned at = f->asked;
	struct vnet_endpoint to;

	while (at && gateway_datagram_resolver(g, &at, &to)) {
		int fd = f->fd[GATEWAY_OUTER];

		f->fd[GATEWAY_OUTER] = -1;
		gateway_loop_remove(g->loop, fd);
		close_fd(fd);
		f->asked = (uint8_t)at;
		if (connect_outside(g, flow, &to) == 0)
			return true;
	}
	return false;
}

/* What a failed connect() is on the session's side: an ICMP error, or NULL for RST. */
static const struct vnet_icmp *icmp_of(int error, uint8_t family)
{
	enum { NET, HOST, PROHIBITED };
	static const struct vnet_icmp v4[] = {{ICMP_DEST_UNREACH, ICMP_NET_UNREACH, 0},
		{ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0},
		{ICMP_DEST_UNREACH, ICMP_PKT_FILTERED, 0}};
	static const struct vnet_icmp v6[] = {{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE, 0},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR, 0},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADMIN, 0}};
	const struct vnet_icmp *all = family == AF_INET ? v4 : v6;

	switch (error) {
	case -ENETUNREACH:
	case -EAFNOSUPPORT:
	case -EADDRNOTAVAIL:
		return &all[NET];
	case -EACCES:
	case -EPERM:
		return &all[PROHIBITED];
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -EHOSTDOWN:
		return &all[HOST];
	default:
		return NULL;
	}
}

static void refuse(struct vnet_gateway *g, uint32_t flow, int error)
{
	const struct vnet_flow *v = vnet_flow_get(g->vnat, flow);
	uint32_t room[VNET_KEPT / 2], session = v->session;
	struct vnet_packet p = {.data = (uint8_t *)room, .room = sizeof(room)};

	vnet_flow_refuse(g->vnat, flow, icmp_of(error, v->inside.family), &p);
	if (g->arena->flows[flow].state != GATEWAY_FLOW_FREE)
		gateway_flow_close(g, flow, false);
	vnet_gateway_to_session(g, session, &p);
}

static void on_connected(struct vnet_gateway *g, uint32_t flow, int error)
{
	uint32_t room[VNET_KEPT / 4];
	struct vnet_packet p = {.data = (uint8_t *)room, .room = sizeof(room)};
	const struct gateway_session *s = &g->arena->sessions[g->arena->flows[flow].session];

	if (error && ask_next(g, flow))
		return;
	if (error) {
		refuse(g, flow, error);
		return;
	}
	if (s->held || s->state != GATEWAY_SESSION_ATTACHED || g->arena->flows[flow].anew)
		return;
	vnet_flow_release(g->vnat, flow, &p);
	g->arena->flows[flow].state = GATEWAY_FLOW_SHAKING;
	gateway_wire_to_inner(g, &p);
	g->inner_sends(g);
}

void gateway_outbound_again(struct vnet_gateway *g, uint32_t flow)
{
	const struct gateway_flow *f = &g->arena->flows[flow];
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	/* Of a failure an event tells. */
	if (f->state == GATEWAY_FLOW_CONNECTING &&
		getsockopt(f->fd[GATEWAY_OUTER], IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
		(info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT))
		on_connected(g, flow, 0);
}

void gateway_outbound_go(struct vnet_gateway *g, uint32_t session)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		if (g->arena->flows[i].state == GATEWAY_FLOW_CONNECTING &&
			g->arena->flows[i].session == session)
			gateway_outbound_again(g, i);
}

/* ---- a session that comes back ------------------------------------------------------------ */

void gateway_outbound_came_back(struct vnet_gateway *g, uint32_t session)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++) {
		struct gateway_flow *f = &g->arena->flows[i];

		if (f->session == session && !f->inbound && f->fd[GATEWAY_INNER] < 0 &&
			(f->state == GATEWAY_FLOW_CONNECTING || f->state == GATEWAY_FLOW_SHAKING))
			f->anew = true;
	}
}

void gateway_outbound_begins_anew(
	struct vnet_gateway *g, uint32_t flow, const struct vnet_packet *p)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	const struct tcphdr *tcp = vnet_packet_tcp(p);
	uint32_t room[VNET_KEPT / 4];
	struct vnet_packet rst = {.data = (uint8_t *)room, .room = sizeof(room)};

	if (f->state == GATEWAY_FLOW_SHAKING && tcp && tcp->syn && !tcp->ack &&
		vnet_packet_make_rst(&rst, p) == 0) {
		/* As from a kernel that is answered what it has not asked. */
		vnet_packet_tcp(&rst)->rst = 0;
		if (vnet_packet_make_rst(&rst, &rst) == 0)
			gateway_wire_to_inner(g, &rst);
	}
	/* Now: a worker that is killed has done it, or its successor does so again. */
	f->anew = false;
}

/* ---- the session's side ------------------------------------------------------------------ */

static void answer_rst(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	if (vnet_packet_make_rst(p, p) == 0)
		vnet_gateway_to_session(g, session, p);
}

/* Another connection still has these ends: until it is over they are nobody else's. */
static bool is_taken(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	uint32_t old = vnet_flow_by_session(g->vnat, session, &p->src, &p->dst);

	if (old == VNET_NONE || g->arena->flows[old].state == GATEWAY_FLOW_FREE)
		return false;
	gateway_flow_forgotten(g, old);
	return g->arena->flows[old].state != GATEWAY_FLOW_FREE;
}

void gateway_outbound_syn(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];
	const struct vnet_session *v = vnet_session_get(g->vnat, session);
	struct vnet_endpoint to;
	unsigned asked;
	int r = outside_of(g, s, &p->dst, &to, &asked);
	uint32_t flow;

	if (s->state != GATEWAY_SESSION_ATTACHED)
		return; /* nobody is there any more who could want it */
	if (is_taken(g, session, p))
		return; /* it comes again */
	if (v->n_flows >= s->max_flows || vnet_flow_open(g->vnat, session, p, &flow) < 0) {
		s->counts.refused++;
		answer_rst(g, session, p);
		return;
	}
	gateway_flow_begin(g, flow, session, false)->asked = (uint8_t)asked;
	if (r == 0)
		r = connect_outside(g, flow, &to);
	if (r < 0 && !ask_next(g, flow))
		refuse(g, flow, r);
}

/* The flow whose inner leg @fd is, connected with @peer; VNET_NONE. */
static uint32_t flow_of(
	struct vnet_gateway *g, int fd, const struct sockaddr_storage *peer, socklen_t peer_len)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct vnet_endpoint near, far;

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0 ||
		vnet_endpoint_from_sockaddr(peer, peer_len, &near) < 0 ||
		vnet_endpoint_from_sockaddr(&own, len, &far) < 0)
		return VNET_NONE;
	return vnet_flow_by_inner(g->vnat, &near, &far);
}

/* @fd is taken if true. */
static bool accepted(struct vnet_gateway *g, uint32_t flow, int fd)
{
	struct gateway_flow *f = flow == VNET_NONE ? NULL : &g->arena->flows[flow];

	if (!f || f->state != GATEWAY_FLOW_SHAKING || f->inbound || f->fd[GATEWAY_INNER] >= 0)
		return false;
	f->anew = false; /* who is accepted has heard */
	f->fd[GATEWAY_INNER] = fd;
	return true;
}

/* Nothing may come before the destination speaks, so it hears that it was connected. */
static void open_flow(struct vnet_gateway *g, uint32_t flow)
{
	const struct gateway_flow *f = &g->arena->flows[flow];

	gateway_flow_open(g, flow);
	if (f->state == GATEWAY_FLOW_OPEN && !gateway_pump_moved(g, flow))
		set_int(f->fd[GATEWAY_OUTER], IPPROTO_TCP, TCP_QUICKACK, 1);
}

static void accept_some(struct gateway_outbound *o, int most)
{
	struct vnet_gateway *g = o->g;

	for (int i = 0; i < most; i++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(g->arena->gate, (struct sockaddr *)&peer, &len,
			SOCK_CLOEXEC | SOCK_NONBLOCK);
		uint32_t flow;

		if (fd < 0) {
			gateway_loop_rest(g->loop, &o->rest, g->arena->gate, &o->gate, errno);
			return;
		}
		flow = flow_of(g, fd, &peer, len);
		if (!accepted(g, flow, fd)) {
			close(fd);
			continue;
		}
		if (gateway_flow_watch(g, flow, GATEWAY_INNER) < 0)
			gateway_flow_reset(g, flow);
		else
			open_flow(g, flow);
	}
}

static void on_gate(struct gateway_watch *w, uint32_t events)
{
	accept_some(gateway_container(w, struct gateway_outbound, gate), ACCEPTS);
}

static void on_soon(struct gateway_later *l)
{
	struct gateway_outbound *o = gateway_container(l, struct gateway_outbound, soon);

	accept_some(o, MIN(o->shaken, ACCEPTS));
	o->shaken = 0;
}

void gateway_outbound_shaken(struct vnet_gateway *g, uint32_t flow)
{
	const struct gateway_flow *f = &g->arena->flows[flow];

	if (f->state != GATEWAY_FLOW_SHAKING || f->inbound)
		return;
	g->outbound->shaken++;
	gateway_loop_later(g->loop, &g->outbound->soon);
}

bool gateway_outbound_adopt(struct vnet_gateway *g, int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
		(peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
		return false;
	return accepted(g, flow_of(g, fd, &peer, len), fd);
}

int gateway_outbound_start(struct vnet_gateway *g, struct err *e)
{
	static const struct gateway_flow_ops ops = {on_connected};
	struct gateway_outbound *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return err_errno(e, -ENOMEM, "gateway");
	o->g = g;
	o->gate.ready = on_gate;
	o->soon.run = on_soon;
	g->outbound = o;
	gateway_flow_set_ops(g, false, &ops);
	r = gateway_loop_add(g->loop, g->arena->gate, EPOLLIN, &o->gate);
	return r < 0 ? err_errno(e, r, "the gateway's listener") : 0;
}
