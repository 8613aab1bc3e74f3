// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * udp - one socket outside per port of the session.
 *
 * Out: what a session sends as one super-packet (USO) goes out as one UDP_SEGMENT send.  Programs
 * that send their datagrams one by one gain the same: datagrams that follow each other from one
 * port to one place with one size are gathered until something else comes, or the gateway has
 * read all there was (vnet_udp_flush).
 *
 * In: UDP_GRO gives runs where the link has merged them, and where it has not, neighbours of a
 * recvmmsg batch are put together here.  Either way the session gets one super-packet.
 *
 * Anybody outside may answer to a mapped port (endpoint-independent filtering, RFC 4787 REQ-8),
 * as with any program's own socket on this host - but not this host's loopback, unless the
 * session may reach that.  Clients of a published port are asked for, wherever they are: those that
 * the session can't see by their own addresses have one of its gateway's ports (shown.h).
 *
 * A socket is made for the first datagram; when the session has too many, the one unused for
 * longest goes.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/report.h"
#include "vnet/datagram/shown.h"
#include "vnet/datagram/state.h"
#include "vnet/datagram/udp.h"

#define ROUNDS 4 /* batches read from one socket before others have their turn */
/* A run that is gathered: what one send takes, and no more datagrams than any kernel. */
#define RUN_MAX VNET_OUTSIDE_MAX
/* What a session's kernel takes in one piece, with headers (vnet/tun.h). */
#define IN_MAX 61440

/* A run with the datagram behind it, if it is of the same kind. */
static bool append(struct vnet_datagram_run *run, struct vnet_mapping *m,
	const struct vnet_endpoint *to, const struct vnet_packet *p,
	const struct vnet_outside_how *how)
{
	const size_t len = p->payload_len;

	if (run->mapping != m || run->closed || run->how.ttl != how->ttl || !len ||
		!vnet_endpoint_equal(&run->how.from, &how->from) ||
		len > run->how.segment || run->len + len > RUN_MAX ||
		run->n == VNET_OUTSIDE_SEGMENTS || !vnet_endpoint_equal(&run->to, to))
		return false;
	memcpy(run->data + run->len, p->data + p->payload, len);
	run->len += len;
	run->n++;
	run->closed = len < run->how.segment;
	return true;
}

static void begin(struct vnet_datagram_run *run, struct vnet_mapping *m,
	const struct vnet_endpoint *to, const struct vnet_packet *p,
	const struct vnet_outside_how *how)
{
	run->mapping = m;
	run->to = *to;
	run->how = *how;
	run->how.segment = (uint16_t)p->payload_len;
	run->len = p->payload_len;
	run->n = 1;
	run->closed = false;
	memcpy(run->data, p->data + p->payload, run->len);
}

/* The packet of a run, for an error about it. */
static void refuse_run(struct vnet_datagram *d, const struct vnet_datagram_run *run, int error)
{
	uint8_t packet[256] __attribute__((aligned(8)));
	struct vnet_packet about = {.data = packet, .room = sizeof(packet)};
	struct vnet_datagram_session s;
	struct vnet_endpoint to;

	if (!d->sessions->get(d->data, run->mapping->session, &s) ||
		!vnet_datagram_inside_of(&s, &run->to, &to))
		return;
	if (vnet_packet_make_udp(&about, &run->mapping->inside, &to, run->data,
		    MIN(run->len, (size_t)64), 0) == 0)
		vnet_datagram_refuse_errno(d, run->mapping->session, &about, error);
}

void vnet_udp_flush(struct vnet_datagram *d)
{
	struct vnet_datagram_run *run = &d->run;
	int r;

	if (!run->mapping)
		return;
	r = vnet_outside_send(run->mapping->fd, &run->to, run->data, run->len, &run->how);
	if (r < 0)
		refuse_run(d, run, r);
	run->mapping = NULL;
}

static void send_packet(struct vnet_datagram *d, struct vnet_mapping *m,
	const struct vnet_endpoint *to, struct vnet_packet *p, const struct vnet_endpoint *from)
{
	const bool whole = p->vh.gso_type != VIRTIO_NET_HDR_GSO_NONE;
	const struct vnet_outside_how how = {
		whole ? p->vh.gso_size : 0, vnet_datagram_ttl(p), *from};
	int r;

	if (append(&d->run, m, to, p, &how))
		return;
	vnet_udp_flush(d);
	if (!whole && p->payload_len) {
		begin(&d->run, m, to, p, &how);
		return;
	}
	r = vnet_outside_send(m->fd, to, p->data + p->payload, p->payload_len, &how);
	if (r < 0)
		vnet_datagram_refuse_errno(d, m->session, p, r);
}

/* Where is noted by which way @client has come to the session's port @inside. */
static struct vnet_datagram_via *via_of(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *client)
{
	const uint64_t hash = vnet_endpoint_hash(client, vnet_endpoint_hash(inside, session));

	return &d->vias[hash % VNET_VIAS];
}

/* The published port by which @p's destination has come, and *ret_at; NULL if that is not known. */
static struct vnet_mapping *came_by(struct vnet_datagram *d, uint32_t session,
	const struct vnet_packet *p, struct vnet_endpoint *ret_at)
{
	const struct vnet_datagram_via *v = via_of(d, session, &p->src, &p->dst);
	struct vnet_mapping *m = &d->records[v->mapping];

	if (!v->client.family || !vnet_endpoint_equal(&v->client, &p->dst) || !m->state ||
		!m->published || m->session != session || !vnet_endpoint_equal(&m->inside, &p->src))
		return NULL;
	*ret_at = v->at;
	return m;
}

/* An answer to a client who is shown as the gateway; *ret_to is @p's destination at first. */
static bool answers_shown(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, const struct vnet_packet *p,
	struct vnet_mapping **ret_m, struct vnet_endpoint *ret_to)
{
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, p->dst.family);

	if (!vnet_endpoint_same_address(&gateway, &p->dst))
		return false;
	if (!*ret_m)
		*ret_m = vnet_mappings_find(d->mappings, session, VNET_MAPPING_UDP, &p->src);
	return *ret_m && (*ret_m)->published &&
	       vnet_shown_client(d->shown, vnet_mappings_index(d->mappings, *ret_m), p->dst.port,
		       vnet_datagram_now(), ret_to);
}

/* What the session sees the sender of @m as; false: he is none of its business. */
static bool see(struct vnet_datagram *d, const struct vnet_mapping *map,
	const struct vnet_datagram_session *s, const struct vnet_outside_message *m,
	struct vnet_endpoint *ret)
{
	if (vnet_datagram_inside_of(s, &m->from, ret))
		return true;
	if (!map->published)
		return false;
	*ret = vnet_datagram_gateway(s, m->from.family);
	ret->port = vnet_shown_as(
		d->shown, vnet_mappings_index(d->mappings, map), &m->from, vnet_datagram_now());
	return ret->port;
}

void vnet_udp_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, struct vnet_packet *p)
{
	const struct vnet_mapping want = {.session = session,
		.kind = VNET_MAPPING_UDP,
		.inside = p->src,
		.outside.family = p->src.family,
		.brief = p->dst.port == VNET_DNS_PORT};
	struct vnet_endpoint to = p->dst, at = {0};
	struct vnet_mapping *m, *by;
	int r = 0;

	/* Nobody answers to a multicast, and nobody gets one. */
	if (!vnet_endpoint_is_unicast(&p->dst)) {
		d->dropped++;
		return;
	}
	m = by = came_by(d, session, p, &at);
	if (!answers_shown(d, session, s, p, &m, &to)) {
		r = vnet_datagram_outside_of(s, &p->dst, &to);
		m = by;
		if (r == 0 && !m)
			r = vnet_datagram_mapping(d, &want, &to, &m);
	}
	if (r < 0) {
		vnet_datagram_refuse_errno(d, session, p, r);
		return;
	}
	m->brief = m->brief && to.port == VNET_DNS_PORT;
	send_packet(d, m, &to, p, &at);
}

void vnet_udp_to_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *from, const struct vnet_endpoint *to, uint8_t *payload,
	size_t len, uint16_t segment)
{
	const size_t headers = vnet_packet_udp_headers(to->family);
	/* A payload from a receive buffer has room in front of it: nothing is copied. */
	struct vnet_packet p = {.data = payload - headers, .room = VNET_PACKET_MAX};

	if (vnet_packet_make_udp(&p, from, to, payload, len, segment) < 0) {
		d->dropped++;
		return;
	}
	d->sessions->to_session(d->data, session, &p);
}

/* May @b follow @a (of @len bytes in pieces of @size by now) in one super-packet? */
static bool follows(const struct vnet_outside_message *a, size_t len, size_t size,
	const struct vnet_outside_message *b)
{
	return vnet_endpoint_equal(&a->from, &b->from) && vnet_endpoint_equal(&a->at, &b->at) &&
	       b->len && len % size == 0 &&
	       (b->segment ? b->segment == size : b->len <= size) && len + b->len <= IN_MAX - 48;
}

/* Gives the session @m[0] and what can be put behind it; returns how many messages that were. */
static unsigned deliver(struct vnet_datagram *d, struct vnet_mapping *map,
	const struct vnet_datagram_session *s, struct vnet_outside_message *m, unsigned n)
{
	const size_t size = m->segment ? m->segment : m->len;
	struct vnet_endpoint from;
	size_t len = m->len;
	unsigned used = 1;

	if (!see(d, map, s, m, &from)) {
		d->dropped++;
		return 1;
	}
	if (map->published)
		*via_of(d, map->session, &map->inside, &from) = (struct vnet_datagram_via){
			from, m->at, vnet_mappings_index(d->mappings, map)};
	for (; used < n && size && follows(m, len, size, &m[used]); used++) {
		memcpy(m->data + len, m[used].data, m[used].len);
		len += m[used].len;
	}
	vnet_udp_to_session(d, map->session, &from, &map->inside, m->data, len,
		len > size ? (uint16_t)size : 0);
	return used;
}

void vnet_udp_ready(
	struct vnet_datagram *d, struct vnet_mapping *map, const struct vnet_datagram_session *s)
{
	struct vnet_outside_message m[VNET_OUTSIDE_BATCH];
	unsigned n, i;

	vnet_report_errors(d, map, s);
	for (int round = 0; round < ROUNDS; round++) {
		for (i = 0; i < VNET_OUTSIDE_BATCH; i++)
			m[i].data = d->in + i * VNET_DATAGRAM_BUFFER + VNET_DATAGRAM_HEADROOM;
		n = (unsigned)vnet_outside_receive(
			map->fd, m, VNET_OUTSIDE_BATCH, VNET_OUTSIDE_MAX + 20);
		if (n) {
			map->answered = true;
			map->used_ms = vnet_datagram_now();
		}
		for (i = 0; i < n;)
			i += deliver(d, map, s, m + i, n - i);
		if (n < VNET_OUTSIDE_BATCH)
			return;
	}
}
