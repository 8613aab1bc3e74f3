// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What becomes of a packet: the two directions.
 */
#include <arpa/inet.h>

#include "base/base.h"
#include "vnet/vnat_keep.h"
#include "vnet/vnat_table.h"

/* Of the oldest segment for a session that is away: enough to be answered. */
#define KEPT_PAYLOAD 64

static bool is_icmp(const struct vnet_packet *p)
{
	return p->proto == (p->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static enum vnat_verdict drop(struct vnet_session *s)
{
	s->counters.dropped++;
	return VNAT_DROP;
}

/* A segment that belongs to nothing we know: as a host would answer. */
static enum vnat_verdict answer_rst(struct vnet_packet *p)
{
	return vnet_packet_make_rst(p, p) == 0 ? VNAT_ANSWER : VNAT_DROP;
}

/* SCTP and the like: nobody is there who speaks it. */
static enum vnat_verdict answer_protocol(struct vnet_session *s, struct vnet_packet *p)
{
	const struct vnet_icmp v4 = {.type = ICMP_DEST_UNREACH, .code = ICMP_PROT_UNREACH};
	/*
	 * The pointer is to the byte that announces the protocol, if there are no extension
	 * headers.
	 */
	const struct vnet_icmp v6 = {.type = ICMP6_PARAM_PROB,
		.code = ICMP6_PARAMPROB_NEXTHEADER,
		.rest = htonl(offsetof(struct ip6_hdr, ip6_nxt))};

	if (vnet_packet_make_icmp_error(p, p, NULL, p->version == 4 ? &v4 : &v6) < 0)
		return drop(s);
	s->counters.answered++;
	return VNAT_ANSWER;
}

/* Flags that tell of a flow's state, and that somebody uses it. */
static void note(
	struct vnet_vnat *v, struct vnet_flow *f, const struct tcphdr *tcp, bool from_inside)
{
	uint8_t seen = f->seen;

	if (tcp->fin)
		seen |= from_inside ? VNET_SEEN_FIN_INSIDE : VNET_SEEN_FIN_OUTSIDE;
	if (tcp->rst)
		seen |= from_inside ? VNET_SEEN_RST_INSIDE : VNET_SEEN_RST_OUTSIDE;
	if (from_inside == f->inbound)
		seen |= VNET_SEEN_REPLY;
	if (seen != f->seen)
		f->seen = seen;
	/* Lingering flows are in the order of when they began to. */
	if (f->used != v->now && vnat_state(f) != VNET_FLOW_LINGER)
		f->used = v->now;
}

/* An ICMP error about a TCP segment: to the other side, if it is about a flow. */
static enum vnat_verdict pass_error(struct vnet_session *s, const struct vnet_flow *f,
	struct vnet_packet *p, struct vnet_embedded *inside, bool from_inside)
{
	if (!f || vnat_state(f) == VNET_FLOW_HELD)
		return s ? drop(s) : VNAT_DROP;
	/* What is embedded went the other way, so the ends are swapped. */
	vnet_packet_set_embedded(p, inside, from_inside ? &f->far : &f->inside,
		from_inside ? &f->near : &f->outside);
	vnet_packet_set_src(p, from_inside ? &f->near : &f->outside);
	vnet_packet_set_dst(p, from_inside ? &f->far : &f->inside);
	return VNAT_PASS;
}

static enum vnat_verdict icmp_from_session(
	struct vnet_vnat *v, uint32_t session, struct vnet_packet *p, uint32_t *ret_flow)
{
	struct vnet_embedded inside;

	if (vnet_packet_embedded(p, &inside) < 0 || inside.proto != IPPROTO_TCP)
		return VNAT_DATAGRAM;
	*ret_flow = vnat_table_find_session(v, session, &inside.dst, &inside.src);
	return pass_error(&v->sessions[session], vnet_flow_get(v, *ret_flow), p, &inside, true);
}

/* A SYN for ends that a flow has which is not over as far as we know. */
static enum vnat_verdict syn_again(struct vnet_flow *f, const struct vnet_packet *p)
{
	if (vnat_state(f) != VNET_FLOW_HELD)
		return VNAT_PASS;
	/*
	 * The latest is the one to be answered: whoever tries again with the same port has
	 * forgotten the one before, and the kernel of a session that has moved takes no answer to
	 * another kernel's time stamp (RFC 7323).
	 */
	vnat_keep(f, p, 0);
	return VNAT_DROP;
}

static enum vnat_verdict tcp_from_session(
	struct vnet_vnat *v, uint32_t session, struct vnet_packet *p, uint32_t *ret_flow)
{
	struct vnet_session *s = &v->sessions[session];
	const struct tcphdr *tcp = vnet_packet_tcp(p);
	bool first;
	struct vnet_flow *f;

	/* TCP does not let itself be cut: these are somebody's experiments. */
	if (p->fragment || !vnet_endpoint_is_unicast(&p->dst))
		return drop(s);
	first = tcp->syn && !tcp->ack && !tcp->rst;
	*ret_flow = vnat_table_find_session(v, session, &p->src, &p->dst);
	f = *ret_flow == VNET_NONE ? NULL : &v->flows[*ret_flow];
	if (f && first && vnat_state(f) == VNET_FLOW_LINGER) {
		*ret_flow = VNET_NONE;
		return VNAT_NEW;
	}
	if (!f || (first && vnet_flow_ends(f))) {
		if (first)
			return VNAT_NEW;
		if (!tcp->rst)
			s->counters.answered++;
		return answer_rst(p);
	}
	note(v, f, tcp, true);
	if (first && syn_again(f, p) == VNAT_DROP)
		return VNAT_DROP;
	if (vnat_state(f) == VNET_FLOW_HELD)
		return VNAT_DROP;
	vnet_packet_set_src(p, &f->near);
	vnet_packet_set_dst(p, &f->far);
	return VNAT_PASS;
}

enum vnat_verdict vnet_vnat_from_session(
	struct vnet_vnat *v, uint32_t session, struct vnet_packet *p, uint32_t *ret_flow)
{
	struct vnet_session *s = vnet_session_get(v, session);

	*ret_flow = VNET_NONE;
	if (!s)
		return VNAT_DROP;
	if (!vnet_endpoint_same_address(&p->src, p->version == 4 ? &s->v4 : &s->v6))
		return drop(s);
	s->counters.out_packets++;
	s->counters.out_bytes += p->len;
	if (p->proto == IPPROTO_TCP)
		return tcp_from_session(v, session, p, ret_flow);
	if (p->proto == IPPROTO_UDP)
		return VNAT_DATAGRAM;
	if (is_icmp(p))
		return icmp_from_session(v, session, p, ret_flow);
	return answer_protocol(s, p);
}

static enum vnat_verdict icmp_from_gateway(
	struct vnet_vnat *v, struct vnet_packet *p, uint32_t *ret_session, uint32_t *ret_flow)
{
	struct vnet_embedded inside;
	struct vnet_flow *f;

	if (vnet_packet_embedded(p, &inside) < 0 || inside.proto != IPPROTO_TCP)
		return VNAT_DROP;
	*ret_flow = vnat_table_find_inner(v, &inside.src, &inside.dst);
	f = vnet_flow_get(v, *ret_flow);
	if (!f)
		return VNAT_DROP;
	*ret_session = f->session;
	if (v->sessions[f->session].away)
		return VNAT_DROP;
	return pass_error(&v->sessions[f->session], f, p, &inside, false);
}

enum vnat_verdict vnet_vnat_from_gateway(
	struct vnet_vnat *v, struct vnet_packet *p, uint32_t *ret_session, uint32_t *ret_flow)
{
	const struct tcphdr *tcp = vnet_packet_tcp(p);
	struct vnet_session *s;
	struct vnet_flow *f;

	*ret_session = *ret_flow = VNET_NONE;
	if (is_icmp(p))
		return icmp_from_gateway(v, p, ret_session, ret_flow);
	if (!tcp || p->fragment || !vnet_endpoint_is_unicast(&p->dst))
		return VNAT_DROP;
	*ret_flow = vnat_table_find_inner(v, &p->dst, &p->src);
	f = vnet_flow_get(v, *ret_flow);
	if (!f)
		return answer_rst(p);
	/*
	 * The inner leg of a flow that is held does not exist: it is the remains of an older one.
	 */
	if (vnat_state(f) == VNET_FLOW_HELD)
		return VNAT_DROP;
	*ret_session = f->session;
	s = &v->sessions[f->session];
	note(v, f, tcp, false);
	vnet_packet_set_src(p, &f->outside);
	vnet_packet_set_dst(p, &f->inside);
	if (s->away) {
		if (vnat_state(f) == VNET_FLOW_OPEN && vnat_keep_wanted(f, p))
			vnat_keep(f, p, KEPT_PAYLOAD);
		return VNAT_DROP;
	}
	s->counters.in_packets++;
	s->counters.in_bytes += p->len;
	return VNAT_PASS;
}
