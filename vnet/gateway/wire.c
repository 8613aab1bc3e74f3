// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A packet that can't be written is lost, as on any wire, and its sender tries again.  For a
 * session that is frozen for a moment that would cost more than the moment (a retransmission takes
 * 200 ms and more), so packets for it are held, up to HELD_PACKETS and HELD_BYTES; beyond that the
 * newest are lost.  They are in the worker's own memory: with it they are lost as well.  One that
 * moves from host to host, or is suspended and resumed, gets where it goes on what was held since it
 * was frozen: its senders' next try may be as far away as that is long ago.  After PATIENCE they have
 * tried again, and of that the translator keeps what is needed (vnat_keep.h), for as long as it takes.
 * Neighbours (neighbour.h) are known to no translator: up to KEPT_PACKETS of theirs are held as long.
 *
 * A TUN takes every packet; the socket that stands for one of another host (vnet/away.h) is full
 * after five large ones.  What it has no room for waits in the same way until it has, up to
 * WAITING_PACKETS and WAITING_BYTES: more would make a slow line slower for everybody else on it.
 *
 * There is room for some packets of each of as many connections as a session has: each gets what was
 * on its way to it, and what its sender, who hears nothing, tries again.
 */
#include "vnet/gateway/wire.h"

#include <string.h>

#include "base/base.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/gateway.h"
#include "vnet/message.h"
#include "vnet/tun.h"
#include "vnet/vnat.h"

#define HELD_PACKETS	16384u
#define HELD_BYTES	(8u << 20) /* what each needs for itself included */
#define WAITING_PACKETS 1024u
#define WAITING_BYTES	(1u << 20)
#define KEPT_PACKETS	256u
#define PATIENCE_NS	10000000000ull
#define TRIED_AGAIN_NS	150000000ull /* no kernel tries again sooner; what answers an answer does */

struct held {
	struct held *next;
	uint64_t last_ns; /* of a neighbour's: when it has come, or come again */
	uint32_t tries;	  /* how often it has */
	struct virtio_net_hdr vh;
	size_t len;
	_Alignas(4) uint8_t data[];
};

struct gateway_wire {
	struct vnet_gateway *g;
	struct gateway_timer late; /* for those that nobody has come for */
	struct queue {
		struct held *first, **last;
		uint32_t packets;
		size_t bytes;
	} held[GATEWAY_MAX_SESSIONS];
};

static struct held *take_first(struct queue *q)
{
	struct held *h = q->first;

	if (!h)
		return NULL;
	q->first = h->next;
	if (!q->first)
		q->last = &q->first;
	q->packets--;
	q->bytes -= sizeof(*h) + h->len;
	return h;
}

static void append(struct queue *q, struct held *h)
{
	h->next = NULL;
	*q->last = h;
	q->last = &h->next;
	q->packets++;
	q->bytes += sizeof(*h) + h->len;
}

/* False: it is no TCP. */
static bool parse(struct held *h, struct vnet_packet *ret)
{
	*ret = (struct vnet_packet){
		.vh = h->vh, .data = h->data, .len = h->len, .room = h->len};
	return vnet_packet_parse(ret) == 0 && ret->proto == IPPROTO_TCP && !ret->fragment;
}

/* All but the first of its neighbours'. */
static void forget_most(struct queue *q)
{
	uint32_t n = q->packets, kept = 0;

	while (n--) {
		struct held *h = take_first(q);
		struct vnet_packet p;

		if (kept < KEPT_PACKETS && parse(h, &p) && vnet_endpoint_may_be_physical(&p.src)) {
			append(q, h);
			kept++;
		} else {
			free(h);
		}
	}
}

static void on_late(struct gateway_timer *t)
{
	struct vnet_gateway *g = gateway_container(t, struct gateway_wire, late)->g;
	bool more = false;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = &g->arena->sessions[i];

		if (s->state != GATEWAY_SESSION_SUSPENDED || !g->wire->held[i].first)
			continue;
		if (io_now_ns() - s->since >= PATIENCE_NS)
			forget_most(&g->wire->held[i]);
		else
			more = true;
	}
	if (more)
		gateway_loop_timer(g->loop, t, PATIENCE_NS);
}

int gateway_wire_start(struct vnet_gateway *g, struct err *e)
{
	g->wire = calloc(1, sizeof(*g->wire));
	if (!g->wire)
		return err_errno(e, -ENOMEM, "gateway");
	g->wire->g = g;
	g->wire->late.fire = on_late;
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		g->wire->held[i].last = &g->wire->held[i].first;
	return 0;
}

void gateway_wire_to_inner(struct vnet_gateway *g, const struct vnet_packet *p)
{
	vnet_tun_write(g->arena->gw_tun, p);
}

/* False: there is no room for it now. */
static bool write_to(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];
	int r = vnet_tun_write(s->tun, p);

	if (r == -EAGAIN)
		return false;
	gateway_capture_packet(g, session, p);
	if (r < 0) {
		s->counts.dropped++;
		return true;
	}
	s->counts.to_packets++;
	s->counts.to_bytes += p->len;
	return true;
}

static void hold(struct gateway_session *s, struct queue *q, const struct vnet_packet *p)
{
	const uint32_t packets = s->held ? HELD_PACKETS : WAITING_PACKETS;
	const size_t bytes = s->held ? HELD_BYTES : WAITING_BYTES;
	struct held *h = NULL;

	if (q->packets < packets && q->bytes + sizeof(*h) + p->len <= bytes)
		h = malloc(sizeof(*h) + p->len);
	if (!h) {
		s->counts.dropped++;
		return;
	}
	h->last_ns = io_now_ns();
	h->tries = 0;
	h->vh = p->vh;
	h->len = p->len;
	memcpy(h->data, p->data, p->len);
	append(q, h);
}

void vnet_gateway_to_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	struct gateway_session *s = &g->arena->sessions[session];
	struct queue *q = &g->wire->held[session];
	bool first = !q->first;

	if (!gateway_session_has_kernel(s) || (!s->held && first && write_to(g, session, p)))
		return;
	hold(s, q, p);
	if (!s->held && first)
		g->session_is_full(g, session);
}

bool gateway_wire_waits(const struct vnet_gateway *g, uint32_t session)
{
	return g->wire->held[session].first;
}

static bool says_the_same(struct held *h, const struct vnet_packet *p)
{
	const struct tcphdr *tcp = vnet_packet_tcp(p);
	struct vnet_packet was;

	return parse(h, &was) && vnet_endpoint_equal(&was.src, &p->src) &&
	       vnet_endpoint_equal(&was.dst, &p->dst) && vnet_packet_tcp(&was)->seq == tcp->seq &&
	       was.payload_len == p->payload_len && vnet_packet_tcp(&was)->fin == tcp->fin;
}

static bool brings_something(const struct vnet_packet *p)
{
	return p->payload_len || vnet_packet_tcp(p)->fin;
}

/* Nothing of its connection that is kept is before it. */
static bool is_oldest(struct queue *q, const struct vnet_packet *p)
{
	for (struct held *h = q->first; h; h = h->next) {
		struct vnet_packet other;

		if (parse(h, &other) && brings_something(&other) &&
			vnet_endpoint_equal(&other.src, &p->src) &&
			vnet_endpoint_equal(&other.dst, &p->dst) &&
			(int32_t)(ntohl(vnet_packet_tcp(&other)->seq) -
				ntohl(vnet_packet_tcp(p)->seq)) < 0)
			return false;
	}
	return true;
}

/*
 * The last segment of several is tried again once, early, all others only from the oldest on (RFC
 * 8985 7, RFC 6298 5.4).  So one that has come three times is the oldest that the session has not,
 * and what brings nothing and comes twice is a probe.
 */
static bool has_come_again(struct queue *q, struct held *h, const struct vnet_packet *p)
{
	uint64_t now = io_now_ns();
	bool again = now - h->last_ns >= TRIED_AGAIN_NS;

	h->last_ns = now;
	h->tries += again;
	if (!again || !brings_something(p))
		return again;
	return h->tries >= 2 && is_oldest(q, p);
}

bool gateway_wire_keep(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	struct queue *q = &g->wire->held[session];

	for (struct held *h = q->first; h; h = h->next)
		if (says_the_same(h, p))
			return has_come_again(q, h, p);
	if (q->packets < KEPT_PACKETS)
		hold(&g->arena->sessions[session], q, p);
	return false;
}

void gateway_wire_flush(struct vnet_gateway *g, uint32_t session)
{
	struct queue *q = &g->wire->held[session];

	while (q->first) {
		struct held *h = q->first;
		struct vnet_packet p = {
			.vh = h->vh, .data = h->data, .len = h->len, .room = h->len};

		if (!write_to(g, session, &p))
			return;
		free(take_first(q));
	}
}

void gateway_wire_forget(struct vnet_gateway *g, uint32_t session)
{
	struct held *h;

	while ((h = take_first(&g->wire->held[session])))
		free(h);
}

/* One of @data: how long it is with its length, or 0 if it makes no sense. */
static size_t take_unsent(struct gateway_session *s, struct queue *q, const uint8_t *data, size_t len)
{
	uint8_t room[VNET_MESSAGE_MAX] __attribute__((aligned(4)));
	struct vnet_packet p = {.data = room};
	uint32_t n;

	if (len < sizeof(n))
		return 0;
	memcpy(&n, data, sizeof(n));
	if (n > len - sizeof(n) || n < sizeof(p.vh) || n > sizeof(room))
		return 0;
	memcpy(&p.vh, data + sizeof(n), sizeof(p.vh));
	p.len = p.room = n - sizeof(p.vh);
	memcpy(room, data + sizeof(n) + sizeof(p.vh), p.len);
	/* it was counted when it was written */
	s->counts.to_packets -= MIN(s->counts.to_packets, 1u);
	s->counts.to_bytes -= MIN(s->counts.to_bytes, p.len);
	hold(s, q, &p);
	return sizeof(n) + n;
}

bool gateway_wire_take_back(
	struct vnet_gateway *g, uint32_t session, const uint8_t *data, size_t len)
{
	struct gateway_session *s = &g->arena->sessions[session];
	struct queue *q = &g->wire->held[session], later = *q;
	size_t n = 1;

	if (!later.first)
		later.last = &later.first;
	*q = (struct queue){.last = &q->first, .packets = later.packets, .bytes = later.bytes};
	for (size_t at = 0; n && at < len; at += n)
		n = take_unsent(s, q, data + at, len - at);
	*q->last = later.first;
	if (later.first)
		q->last = later.last;
	if (!s->held)
		gateway_wire_flush(g, session);
	return n > 0;
}

/* The answer to a SYN is for the kernel that has sent it (outbound.c). */
static bool is_answer(struct held *h)
{
	struct vnet_packet p;

	return parse(h, &p) && vnet_packet_tcp(&p)->syn && vnet_packet_tcp(&p)->ack;
}

void gateway_wire_hand_over(struct vnet_gateway *g, uint32_t session)
{
	struct queue *q = &g->wire->held[session];

	for (uint32_t n = q->packets; n; n--) {
		struct held *h = take_first(q);

		if (is_answer(h))
			free(h);
		else
			append(q, h);
	}
	if (q->first && !g->wire->late.due)
		gateway_loop_timer(g->loop, &g->wire->late, PATIENCE_NS);
}
