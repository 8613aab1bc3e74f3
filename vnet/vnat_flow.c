// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Flows: how they begin, what is kept of them, and their end.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/base.h"
#include "vnet/vnat_keep.h"
#include "vnet/vnat_table.h"

/* How often another near port is tried where the session's own is taken. */
#define PORT_TRIES 64

struct vnet_flow *vnet_flow_get(struct vnet_vnat *v, uint32_t flow)
{
	if (flow >= v->top || vnat_state(&v->flows[flow]) == VNET_FLOW_FREE)
		return NULL;
	return &v->flows[flow];
}

/* Where the gateway's kernel meets @dst: an address of its own, and the listener's port. */
static struct vnet_endpoint alias_of(const struct vnet_vnat *v, const struct vnet_endpoint *dst)
{
	uint64_t hash = vnet_endpoint_hash(dst, 0), more = vnet_endpoint_hash(dst, hash);
	struct vnet_endpoint ep = {.family = AF_INET6, .port = v->gate_v6};

	if (dst->family == AF_INET) {
		uint32_t mask = (1u << (32 - VNET_ALIAS_V4_BITS)) - 1, host = hash & mask;

		/* The first and the last of the range are none. */
		host = host == 0 ? 1 : host == mask ? mask - 1 : host;
		return vnet_endpoint_v4((struct in_addr){htonl(VNET_ALIAS_V4 | host)}, v->gate_v4);
	}
	inet_pton(AF_INET6, VNET_ALIAS_V6, &ep.v6);
	memcpy(ep.v6.s6_addr + 2, &more, 6);
	memcpy(ep.v6.s6_addr + 8, &hash, 8);
	return ep;
}

/* Finds a port with which @near and @far belong to no flow; the one that is there, if possible. */
static bool choose_port(
	struct vnet_vnat *v, struct vnet_endpoint *near, const struct vnet_endpoint *far)
{
	uint16_t random;

	for (int i = 0; i < PORT_TRIES; i++) {
		if (vnat_table_find_inner(v, near, far) == VNET_NONE)
			return true;
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return false;
		near->port = (uint16_t)(1024 + random % (65536 - 1024));
	}
	return false;
}

/* The session's physical address of this family, with a port. */
static struct vnet_endpoint physical(const struct vnet_session *s, uint8_t family, uint16_t port)
{
	struct vnet_endpoint ep = family == AF_INET ? s->physical_v4 : s->physical_v6;

	ep.port = port;
	return ep;
}

/*
 * May the session have a flow between these ends?  One that lingers makes room.  0, -EADDRINUSE,
 * -ENOSPC, -ENOENT.
 */
static int admit(struct vnet_vnat *v, uint32_t session, const struct vnet_endpoint *inside,
	const struct vnet_endpoint *outside)
{
	struct vnet_session *s = vnet_session_get(v, session);
	uint32_t old;

	if (!s)
		return -ENOENT;
	if (s->n_flows >= VNET_SESSION_FLOWS)
		return -ENOSPC;
	old = vnat_table_find_session(v, session, inside, outside);
	if (old == VNET_NONE)
		return 0;
	if (vnat_state(&v->flows[old]) != VNET_FLOW_LINGER)
		return -EADDRINUSE;
	vnat_table_release(v, old);
	return 0;
}

int vnet_flow_open(
	struct vnet_vnat *v, uint32_t session, const struct vnet_packet *syn, uint32_t *ret)
{
	int r = admit(v, session, &syn->src, &syn->dst);
	struct vnet_flow *f;
	uint32_t i;

	if (r < 0)
		return r;
	i = vnat_table_take(v);
	if (i == VNET_NONE)
		return -ENOSPC;
	f = &v->flows[i];
	f->session = session;
	f->inside = syn->src;
	f->outside = syn->dst;
	f->far = alias_of(v, &syn->dst);
	f->near = physical(&v->sessions[session], syn->src.family, syn->src.port);
	r = choose_port(v, &f->near, &f->far) ? vnat_keep(f, syn, 0) : -EADDRINUSE;
	if (r < 0) {
		vnat_table_put_back(v, i);
		return r;
	}
	vnat_table_commit(v, i, VNET_FLOW_HELD);
	*ret = i;
	return 0;
}

void vnet_flow_release(struct vnet_vnat *v, uint32_t flow, struct vnet_packet *p)
{
	struct vnet_flow *f = &v->flows[flow];

	assert(vnat_state(f) == VNET_FLOW_HELD);
	vnat_kept(f, p);
	vnet_packet_set_src(p, &f->near);
	vnet_packet_set_dst(p, &f->far);
	f->used = v->now;
	atomic_store_explicit(&f->state, VNET_FLOW_OPEN, memory_order_release);
	f->kept_valid = false;
}

void vnet_flow_refuse(
	struct vnet_vnat *v, uint32_t flow, const struct vnet_icmp *icmp, struct vnet_packet *p)
{
	struct vnet_flow *f = &v->flows[flow];
	int r;

	assert(vnat_state(f) == VNET_FLOW_HELD && p->room >= 2 * VNET_KEPT);
	vnat_kept(f, p);
	r = icmp ? vnet_packet_make_icmp_error(p, p, NULL, icmp) : vnet_packet_make_rst(p, p);
	assert(r == 0);
	(void)r;
	vnat_table_release(v, flow);
}

int vnet_flow_inbound(struct vnet_vnat *v, uint32_t session, const struct vnet_endpoint *outside,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *far,
	struct vnet_endpoint *ret_near, uint32_t *ret)
{
	int r = admit(v, session, inside, outside);
	struct vnet_endpoint near;
	struct vnet_flow *f;
	uint32_t i;

	if (r < 0)
		return r;
	near = physical(&v->sessions[session], inside->family, inside->port);
	i = vnat_table_find_inner(v, &near, far);
	if (i != VNET_NONE && vnat_state(&v->flows[i]) != VNET_FLOW_LINGER)
		return -EADDRINUSE;
	/*
	 * The kernel has given this port to somebody else: it knows that the old connection is
	 * over.
	 */
	if (i != VNET_NONE)
		vnat_table_release(v, i);
	i = vnat_table_take(v);
	if (i == VNET_NONE)
		return -ENOSPC;
	f = &v->flows[i];
	f->session = session;
	f->inbound = true;
	f->inside = *inside;
	f->outside = *outside;
	f->near = near;
	f->far = *far;
	vnat_table_commit(v, i, VNET_FLOW_OPEN);
	*ret_near = near;
	*ret = i;
	return 0;
}

uint32_t vnet_flow_by_inner(
	struct vnet_vnat *v, const struct vnet_endpoint *near, const struct vnet_endpoint *far)
{
	return vnat_table_find_inner(v, near, far);
}

uint32_t vnet_flow_by_session(struct vnet_vnat *v, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *outside)
{
	return vnat_table_find_session(v, session, inside, outside);
}

bool vnet_flow_ends(const struct vnet_flow *f)
{
	const uint8_t fins = VNET_SEEN_FIN_INSIDE | VNET_SEEN_FIN_OUTSIDE;

	return (f->seen & fins) == fins || f->seen & (VNET_SEEN_RST_INSIDE | VNET_SEEN_RST_OUTSIDE);
}

void vnet_flow_linger(struct vnet_vnat *v, uint32_t flow)
{
	const struct vnet_flow *f = vnet_flow_get(v, flow);

	if (!f || vnat_state(f) == VNET_FLOW_LINGER)
		return;
	if (vnat_state(f) == VNET_FLOW_HELD)
		vnat_table_release(v, flow);
	else
		vnat_table_linger(v, flow);
}

void vnet_flow_drop(struct vnet_vnat *v, uint32_t flow)
{
	if (vnet_flow_get(v, flow))
		vnat_table_release(v, flow);
}

uint32_t vnet_flow_next(struct vnet_vnat *v, uint32_t session, uint32_t flow)
{
	for (flow++; flow < v->top; flow++) {
		const struct vnet_flow *f = &v->flows[flow];

		if (vnat_state(f) != VNET_FLOW_FREE &&
			(session == VNET_NONE || f->session == session))
			return flow;
	}
	return VNET_NONE;
}

uint32_t vnet_vnat_expire(struct vnet_vnat *v)
{
	while (v->linger_first != VNET_NONE) {
		uint32_t age = v->now - v->flows[v->linger_first].used;

		if (age < VNET_LINGER)
			return VNET_LINGER - age;
		vnat_table_release(v, v->linger_first);
	}
	return UINT32_MAX;
}

void vnet_vnat_set_clock(struct vnet_vnat *v, uint32_t now)
{
	v->now = now;
}

int vnet_flow_replay(struct vnet_vnat *v, uint32_t flow, struct vnet_packet *p)
{
	struct vnet_flow *f = vnet_flow_get(v, flow);

	if (!f || vnat_state(f) != VNET_FLOW_OPEN || !f->kept_valid)
		return 0;
	vnat_kept(f, p);
	f->kept_valid = false;
	return 1;
}
