// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * report - what went wrong outside, told to the session as the network would: by ICMP.
 *
 * There are two ways to find out.  A send fails at once, with the session's packet at hand: no
 * route, not allowed. Or an ICMP message comes later, and the socket's error queue holds it
 * together with what it is about: then the packet is made again as far as it is known.  The
 * sender of the message is shown as it is - traceroute lives on that - unless it is one that a
 * session can't know.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/report.h"
#include "vnet/datagram/state.h"

void vnet_datagram_refuse(struct vnet_datagram *d, uint32_t session,
	const struct vnet_packet *about, const struct vnet_endpoint *from,
	const struct vnet_icmp *icmp)
{
	struct vnet_packet p = vnet_datagram_packet(d);
	struct vnet_datagram_session s;
	struct vnet_endpoint gateway;

	if (!d->sessions->get(d->data, session, &s) || s.held)
		return;
	gateway = vnet_datagram_gateway(&s, about->src.family);
	if (vnet_packet_make_icmp_error(&p, about, from ? from : &gateway, icmp) == 0)
		d->sessions->to_session(d->data, session, &p);
}

/* Which ICMP message a failed send becomes; the codes are of RFC 792, 1122, 1812 and RFC 4443. */
static const struct {
	int error;
	struct vnet_icmp v4, v6;
} SENDS[] = {
	{ENETUNREACH, {ICMP_DEST_UNREACH, ICMP_NET_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE}},
	{EHOSTUNREACH, {ICMP_DEST_UNREACH, ICMP_HOST_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR}},
	{ENETDOWN, {ICMP_DEST_UNREACH, ICMP_NET_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE}},
	{EADDRNOTAVAIL, {ICMP_DEST_UNREACH, ICMP_NET_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE}},
	{EAFNOSUPPORT, {ICMP_DEST_UNREACH, ICMP_NET_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE}},
	{ECONNREFUSED, {ICMP_DEST_UNREACH, ICMP_PORT_UNREACH},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT}},
	{EPERM, {ICMP_DEST_UNREACH, ICMP_PKT_FILTERED},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADMIN}},
	{EACCES, {ICMP_DEST_UNREACH, ICMP_PKT_FILTERED},
		{ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADMIN}},
};

void vnet_datagram_refuse_errno(
	struct vnet_datagram *d, uint32_t session, const struct vnet_packet *about, int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(SENDS); i++)
		if (SENDS[i].error == -error) {
			vnet_datagram_refuse(d, session, about, NULL,
				about->version == 4 ? &SENDS[i].v4 : &SENDS[i].v6);
			return;
		}
	d->dropped++;
}

/* The session's datagram that @error is about, in front of d->out's second half. */
static int make_again(struct vnet_packet *p, const struct vnet_mapping *m,
	const struct vnet_endpoint *to, uint8_t *data, size_t len)
{
	if (m->kind == VNET_MAPPING_UDP)
		return vnet_packet_make_udp(p, &m->inside, to, data, len, 0);
	if (len < sizeof(struct icmphdr))
		return -EINVAL;
	return vnet_packet_make_icmp(p, &m->inside, to,
		&(struct vnet_icmp){data[0], data[1],
			htonl((uint32_t)m->inside.port << 16 | (uint32_t)data[6] << 8 | data[7])},
		data + sizeof(struct icmphdr), len - sizeof(struct icmphdr));
}

void vnet_report_errors(struct vnet_datagram *d, const struct vnet_mapping *m,
	const struct vnet_datagram_session *s)
{
	uint8_t data[1500], packet[2048] __attribute__((aligned(8)));
	struct vnet_outside_error error;

	for (int i = 0;
		i < VNET_REPORT_BATCH && vnet_outside_error(m->fd, data, sizeof(data), &error);
		i++) {
		struct vnet_packet about = {.data = packet, .room = sizeof(packet)};
		struct vnet_endpoint to, from;
		struct vnet_icmp icmp = {error.type, error.code, error.rest};
		bool known = error.from.family && vnet_datagram_inside_of(s, &error.from, &from);

		if (!vnet_datagram_inside_of(s, &error.to, &to))
			continue;
		from.port = 0;
		if (make_again(&about, m, &to, data, error.len) == 0)
			vnet_datagram_refuse(d, m->session, &about, known ? &from : NULL, &icmp);
	}
}
