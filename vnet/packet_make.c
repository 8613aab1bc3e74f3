// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets that nobody sent: datagrams that came from a socket, and the answers of hosts that are
 * not there.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"

#define HOPS 64

/* An ICMP error is no longer than this, its own headers included. */
#define ERROR_MAX_V4 576  /* RFC 1812 4.3.2.3 */
#define ERROR_MAX_V6 1280 /* RFC 4443 2.4 (c) */

static size_t ip_header(uint8_t family)
{
	return family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
}

size_t vnet_packet_udp_headers(uint8_t family)
{
	return ip_header(family) + sizeof(struct udphdr);
}

/* Is there room for a packet with @len bytes behind its IP header? */
static bool fits(const struct vnet_packet *p, uint8_t family, size_t len)
{
	size_t header = ip_header(family);

	return len <= 65535 - header && header + len <= p->room;
}

/*
 * The IP header of a packet with @len bytes behind it, of which @header are the transport's; fills
 * in *p.  They fit.
 */
static void begin(struct vnet_packet *p, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, uint8_t proto, size_t header, size_t len)
{
	size_t l4 = ip_header(src->family);

	assert(src->family == dst->family && fits(p, src->family, len));
	*p = (struct vnet_packet){
		.data = p->data,
		.len = l4 + len,
		.room = p->room,
		.version = src->family == AF_INET ? 4 : 6,
		.proto = proto,
		.l4 = (uint16_t)l4,
		.payload = (uint16_t)(l4 + header),
		.payload_len = (uint16_t)(len - header),
		.src = *src,
		.dst = *dst,
	};
	if (p->version == 4) {
		struct iphdr ip = {
			.version = 4,
			.ihl = 5,
			.tot_len = htons((uint16_t)p->len),
			.frag_off = htons(IP_DF),
			.ttl = HOPS,
			.protocol = proto,
			.saddr = src->v4.s_addr,
			.daddr = dst->v4.s_addr,
		};

		ip.check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, &ip, sizeof(ip)));
		memcpy(p->data, &ip, sizeof(ip));
	} else {
		struct ip6_hdr ip = {
			.ip6_flow = htonl(6u << 28),
			.ip6_plen = htons((uint16_t)len),
			.ip6_nxt = proto,
			.ip6_hlim = HOPS,
			.ip6_src = src->v6,
			.ip6_dst = dst->v6,
		};

		memcpy(p->data, &ip, sizeof(ip));
	}
}

/* The sum of the pseudo-header of a packet that is not a fragment. */
static uint64_t pseudo(const struct vnet_packet *p)
{
	size_t len = p->len - p->l4;

	if (p->version == 4)
		return vnet_checksum_pseudo_v4(p->src.v4, p->dst.v4, p->proto, len);
	return vnet_checksum_pseudo_v6(&p->src.v6, &p->dst.v6, p->proto, len);
}

/* Makes the checksum, which is at @offset in the transport header, a partial one. */
static void make_partial(struct vnet_packet *p, uint16_t offset)
{
	uint16_t *check = (uint16_t *)(void *)(p->data + p->l4 + offset);

	*check = vnet_checksum_fold(pseudo(p));
	p->vh.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	p->vh.csum_start = p->l4;
	p->vh.csum_offset = offset;
}

int vnet_packet_make_udp(struct vnet_packet *p, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, const void *payload, size_t len, uint16_t gso_size)
{
	size_t headers = vnet_packet_udp_headers(src->family);
	struct udphdr *udp;

	if (len > 65535 || !fits(p, src->family, sizeof(*udp) + len))
		return -EMSGSIZE;
	if (len)
		memmove(p->data + headers, payload, len);
	begin(p, src, dst, IPPROTO_UDP, sizeof(*udp), sizeof(*udp) + len);
	udp = vnet_packet_udp(p);
	udp->source = htons(src->port);
	udp->dest = htons(dst->port);
	udp->len = htons((uint16_t)(sizeof(*udp) + len));
	make_partial(p, offsetof(struct udphdr, check));
	if (gso_size && len > gso_size) {
		p->vh.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		p->vh.gso_size = gso_size;
		p->vh.hdr_len = p->payload;
	}
	return 0;
}

/* Completes an ICMP message whose payload is already in its place. */
static void finish_icmp(struct vnet_packet *p, const struct vnet_icmp *icmp)
{
	struct icmphdr *h = vnet_packet_icmp(p);
	uint64_t sum = p->version == 6 ? pseudo(p) : 0;

	*h = (struct icmphdr){.type = icmp->type, .code = icmp->code};
	memcpy(&h->un, &icmp->rest, sizeof(icmp->rest));
	h->checksum = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(sum, h, p->len - p->l4));
	p->src.port = p->dst.port = 0;
}

int vnet_packet_make_icmp(struct vnet_packet *p, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, const struct vnet_icmp *icmp, const void *payload,
	size_t len)
{
	size_t header = sizeof(struct icmphdr);

	if (len > 65535 || !fits(p, src->family, header + len))
		return -EMSGSIZE;
	if (len)
		memmove(p->data + ip_header(src->family) + header, payload, len);
	begin(p, src, dst, src->family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6, header,
		header + len);
	finish_icmp(p, icmp);
	return 0;
}

int vnet_packet_make_rst(struct vnet_packet *p, const struct vnet_packet *to)
{
	const struct tcphdr *tcp = vnet_packet_tcp(to);
	const struct vnet_endpoint src = to->dst, dst = to->src;
	struct tcphdr rst = {.doff = 5, .rst = 1};

	if (!tcp || tcp->rst)
		return -EINVAL;
	if (tcp->ack) {
		rst.seq = tcp->ack_seq;
	} else {
		rst.ack = 1;
		rst.ack_seq = htonl(ntohl(tcp->seq) + to->payload_len + tcp->syn + tcp->fin);
	}
	rst.source = tcp->dest;
	rst.dest = tcp->source;
	if (!fits(p, src.family, sizeof(rst)))
		return -EMSGSIZE;
	begin(p, &src, &dst, IPPROTO_TCP, sizeof(rst), sizeof(rst));
	memcpy(p->data + p->l4, &rst, sizeof(rst));
	make_partial(p, offsetof(struct tcphdr, check));
	return 0;
}

/* The option of vnet_packet_has_stamps, in network order. */
struct stamps {
	uint8_t head[4];
	uint32_t value, echo;
};

int vnet_packet_make_full(struct vnet_packet *p, const struct vnet_packet *to)
{
	const struct tcphdr *tcp = vnet_packet_tcp(to);
	const struct vnet_endpoint src = to->dst, dst = to->src;
	struct tcphdr full = {.doff = 5, .ack = 1};
	struct stamps stamps;
	size_t len = sizeof(full);

	if (!tcp || tcp->syn || tcp->rst || !tcp->ack)
		return -EINVAL;
	full.source = tcp->dest;
	full.dest = tcp->source;
	full.seq = tcp->ack_seq;
	full.ack_seq = to->payload_len || tcp->fin ? tcp->seq : htonl(ntohl(tcp->seq) + 1);
	if (vnet_packet_has_stamps(tcp)) {
		uint32_t value;

		memcpy(&stamps, tcp + 1, sizeof(stamps));
		value = stamps.value;
		stamps.value = stamps.echo;
		stamps.echo = value;
		len += sizeof(stamps);
		full.doff = 8;
	}
	if (!fits(p, src.family, len))
		return -EMSGSIZE;
	begin(p, &src, &dst, IPPROTO_TCP, len, len);
	memcpy(p->data + p->l4, &full, sizeof(full));
	memcpy(p->data + p->l4 + sizeof(full), &stamps, len - sizeof(full));
	make_partial(p, offsetof(struct tcphdr, check));
	return 0;
}

int vnet_packet_make_icmp_error(struct vnet_packet *p, const struct vnet_packet *to,
	const struct vnet_endpoint *from, const struct vnet_icmp *icmp)
{
	size_t header = sizeof(struct icmphdr), len;
	struct vnet_endpoint src = from ? *from : to->dst, dst = to->src;
	struct vnet_embedded inside;

	if (to->fragment_offset || !vnet_endpoint_is_unicast(&to->dst) ||
		!vnet_endpoint_is_unicast(&to->src) || vnet_packet_embedded(to, &inside) != -ENOENT)
		return -EINVAL;
	len = to->version == 4 ? ERROR_MAX_V4 : ERROR_MAX_V6;
	len = MIN(to->len, len - ip_header(src.family) - header);
	if (!fits(p, src.family, header + len))
		return -EMSGSIZE;
	memmove(p->data + ip_header(src.family) + header, to->data, len);
	begin(p, &src, &dst, src.family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6, header,
		header + len);
	finish_icmp(p, icmp);
	return 0;
}

int vnet_packet_make_echo_reply(struct vnet_packet *p)
{
	const struct icmphdr *h = vnet_packet_icmp(p);
	struct vnet_endpoint src = p->dst, dst = p->src;
	struct vnet_icmp reply = {.type = p->version == 4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY};
	size_t len = p->payload_len;

	if (!h || p->fragment || h->type != (p->version == 4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST))
		return -EINVAL;
	memcpy(&reply.rest, &h->un, sizeof(reply.rest));
	return vnet_packet_make_icmp(p, &src, &dst, &reply, p->data + p->payload, len);
}

void vnet_packet_truncate(struct vnet_packet *p, size_t payload_len)
{
	assert(vnet_packet_tcp(p) && !p->fragment);
	/* What it ends with is cut off. */
	if (payload_len < p->payload_len)
		vnet_packet_tcp(p)->fin = vnet_packet_tcp(p)->psh = 0;
	p->payload_len = (uint16_t)MIN((size_t)p->payload_len, payload_len);
	p->len = (size_t)p->payload + p->payload_len;
	if (p->version == 4) {
		struct iphdr *ip = (struct iphdr *)(void *)p->data;
		uint16_t len = htons((uint16_t)p->len);

		ip->check = vnet_checksum_adjust(
			ip->check, vnet_checksum_difference(&ip->tot_len, &len, sizeof(len)));
		ip->tot_len = len;
	} else {
		struct ip6_hdr *ip = (struct ip6_hdr *)(void *)p->data;

		ip->ip6_plen = htons((uint16_t)(p->len - sizeof(*ip)));
	}
	p->vh = (struct virtio_net_hdr){0};
	make_partial(p, offsetof(struct tcphdr, check));
}
