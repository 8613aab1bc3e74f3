// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * echo - one ping socket per id that a session uses.
 *
 * The kernel puts its own id into what such a socket sends, and gives it the replies with that id
 * only; here the session's is put back.  Numbers and payload are the session's own throughout, so
 * its ping measures the whole way.  Errors (TTL exceeded, unreachable) come by the error queue as
 * for UDP.
 *
 * The gateway's own addresses answer here.  Where the host gives no ping sockets to this user
 * (net.ipv4.ping_group_range, which is empty by the kernel's default) the session is told that
 * echo is filtered, which is quicker to understand than silence, and the log says it once.
 *
 * Other ICMP of a session - the errors it sends about datagrams that came for it - has no way
 * out for an ordinary user, and is dropped.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/echo.h"
#include "vnet/datagram/report.h"
#include "vnet/datagram/state.h"

static bool is_request(const struct vnet_packet *p, const struct icmphdr *icmp)
{
	return icmp && icmp->type == (p->version == 4 ? (int)ICMP_ECHO : (int)ICMP6_ECHO_REQUEST);
}

/* One that the gateway answers itself: its own addresses. */
static bool is_ours(const struct vnet_datagram_session *s, const struct vnet_packet *p)
{
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, p->dst.family);
	struct vnet_endpoint to;

	return vnet_endpoint_same_address(&gateway, &p->dst) ||
	       (vnet_datagram_outside_of(s, &p->dst, &to) == 0 && vnet_endpoint_is_loopback(&to));
}

static void say_once(struct vnet_datagram *d, int family)
{
	bool *said = &d->no_echo[family == AF_INET6];

	if (!*said)
		log_warn("sessions can't ping: net.ipv4.ping_group_range leaves this user out");
	*said = true;
}

static int send_request(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, struct vnet_packet *p)
{
	const struct vnet_outside_how how = {.ttl = vnet_datagram_ttl(p)};
	struct vnet_mapping *m, want = {.session = session,
					.kind = VNET_MAPPING_ECHO,
					.inside = p->src,
					.outside.family = p->src.family};
	struct vnet_endpoint to;
	int r = vnet_datagram_outside_of(s, &p->dst, &to);

	if (r < 0)
		return r;
	want.inside.port = ntohs(vnet_packet_icmp(p)->un.echo.id);
	r = vnet_datagram_mapping(d, &want, &to, &m);
	if (r == -EACCES)
		say_once(d, p->src.family);
	if (r < 0)
		return r;
	to.port = 0;
	return vnet_outside_send(m->fd, &to, p->data + p->l4, p->len - p->l4, &how);
}

void vnet_echo_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, struct vnet_packet *p)
{
	const struct icmphdr *icmp = vnet_packet_icmp(p);
	int r;

	if (!is_request(p, icmp) || !vnet_endpoint_is_unicast(&p->dst)) {
		d->dropped++;
		return;
	}
	if (is_ours(s, p)) {
		if (vnet_packet_make_echo_reply(p) == 0)
			d->sessions->to_session(d->data, session, p);
		return;
	}
	r = send_request(d, session, s, p);
	if (r < 0)
		vnet_datagram_refuse_errno(d, session, p, r);
}

/* @data: an ICMP message, from its type on. */
static void deliver(struct vnet_datagram *d, const struct vnet_mapping *m,
	const struct vnet_datagram_session *s, const struct vnet_outside_message *got)
{
	struct vnet_packet p = vnet_datagram_packet(d);
	struct vnet_endpoint from, to = m->inside;
	const struct icmphdr *h = (const void *)got->data;
	const uint8_t reply = m->inside.family == AF_INET ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY;
	struct vnet_icmp icmp = {.type = reply};

	if (got->len < sizeof(*h) || h->type != reply ||
		!vnet_datagram_inside_of(s, &got->from, &from)) {
		d->dropped++;
		return;
	}
	icmp.rest = htonl((uint32_t)m->inside.port << 16 | ntohs(h->un.echo.sequence));
	from.port = to.port = 0;
	if (vnet_packet_make_icmp(&p, &from, &to, &icmp, h + 1, got->len - sizeof(*h)) == 0)
		d->sessions->to_session(d->data, m->session, &p);
}

void vnet_echo_ready(
	struct vnet_datagram *d, struct vnet_mapping *m, const struct vnet_datagram_session *s)
{
	struct vnet_outside_message got[VNET_OUTSIDE_BATCH];
	unsigned n;

	vnet_report_errors(d, m, s);
	for (unsigned i = 0; i < VNET_OUTSIDE_BATCH; i++)
		got[i].data = d->in + i * VNET_DATAGRAM_BUFFER + VNET_DATAGRAM_HEADROOM;
	n = (unsigned)vnet_outside_receive(m->fd, got, VNET_OUTSIDE_BATCH, VNET_OUTSIDE_MAX);
	for (unsigned i = 0; i < n; i++)
		deliver(d, m, s, &got[i]);
	if (n) {
		m->answered = true;
		m->used_ms = vnet_datagram_now();
	}
}
