// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"

/*
 * More extension headers than this nobody has a use for (RFC 8504 5.3 lets hosts choose a limit).
 */
#define MAX_EXTENSIONS 8

/*
 * Of a super-packet, as kernels make them (TCP_MIN_GSO_SIZE, UDP_MAX_SEGMENTS).  Pieces of a byte
 * would be tens of thousands of datagrams for whoever has to cut it.
 */
#define TCP_PIECE_MIN  8
#define UDP_PIECES_MAX 128

/* What the headers of the network layer say; the same for a packet and for an embedded one. */
struct network {
	uint8_t proto;
	size_t l4;
	size_t end; /* where the packet says it ends; may be behind what is there of an embedded one */
	bool more;
	size_t offset; /* of a fragment */
	size_t fragment_at, fragment_next;
	struct vnet_endpoint src, dst;
};

/* IPv4 at @data, of which there are @len bytes. */
static int read_v4(const uint8_t *data, size_t len, struct network *n)
{
	const struct iphdr *ip = (const struct iphdr *)(const void *)data;
	uint16_t off;

	if (len < sizeof(*ip) || ip->ihl < 5 || len < ip->ihl * 4u)
		return -EBADMSG;
	off = ntohs(ip->frag_off);
	*n = (struct network){
		.proto = ip->protocol,
		.l4 = ip->ihl * 4u,
		.end = ntohs(ip->tot_len),
		.more = off & IP_MF,
		.offset = (off & IP_OFFMASK) * 8u,
	};
	n->src = vnet_endpoint_v4((struct in_addr){ip->saddr}, 0);
	n->dst = vnet_endpoint_v4((struct in_addr){ip->daddr}, 0);
	return n->end < n->l4 ? -EBADMSG : 0;
}

/* Is it a header that stands between IPv6 and the transport? */
static bool is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_DSTOPTS || proto == IPPROTO_AH;
}

/* One extension header at n->l4; moves on to what is behind it. */
static int read_extension(const uint8_t *data, size_t len, size_t *next_at, struct network *n)
{
	const uint8_t *h = data + n->l4;
	size_t size;

	if (len - n->l4 < 8)
		return -EBADMSG;
	size = n->proto == IPPROTO_AH	      ? (h[1] + 2u) * 4u
	       : n->proto == IPPROTO_FRAGMENT ? 8u
					      : (h[1] + 1u) * 8u;
	if (len - n->l4 < size)
		return -EBADMSG;
	/*
	 * With hops left the destination is not the one that checksums are made with (RFC 8200
	 * 8.1).
	 */
	if (n->proto == IPPROTO_ROUTING && h[3])
		return -EBADMSG;
	if (n->proto == IPPROTO_FRAGMENT) {
		uint16_t off = (uint16_t)(h[2] << 8 | h[3]);

		if (n->fragment_at)
			return -EBADMSG;
		n->more = off & 1;
		n->offset = off & 0xfff8u;
		n->fragment_at = n->l4;
		n->fragment_next = *next_at;
	}
	n->proto = h[0];
	*next_at = n->l4;
	n->l4 += size;
	return 0;
}

/* IPv6 at @data, of which there are @len bytes. */
static int read_v6(const uint8_t *data, size_t len, struct network *n)
{
	const struct ip6_hdr *ip = (const struct ip6_hdr *)(const void *)data;
	size_t next_at = offsetof(struct ip6_hdr, ip6_nxt);

	if (len < sizeof(*ip))
		return -EBADMSG;
	*n = (struct network){
		.proto = ip->ip6_nxt,
		.l4 = sizeof(*ip),
		.end = sizeof(*ip) + ntohs(ip->ip6_plen),
	};
	n->src = vnet_endpoint_v6(&ip->ip6_src, 0);
	n->dst = vnet_endpoint_v6(&ip->ip6_dst, 0);
	len = MIN(len, n->end);
	for (int i = 0; is_extension(n->proto); i++) {
		/* Behind the header of a later fragment there is data. */
		if (n->offset)
			break;
		if (i == MAX_EXTENSIONS || read_extension(data, len, &next_at, n) < 0)
			return -EBADMSG;
	}
	return 0;
}

static int read_network(const uint8_t *data, size_t len, struct network *n)
{
	if (len < 1)
		return -EBADMSG;
	switch (data[0] >> 4) {
	case 4:
		return read_v4(data, len, n);
	case 6:
		return read_v6(data, len, n);
	default:
		return -EBADMSG;
	}
}

/* Lengths and ports of the transport header at p->l4, whose protocol is known. */
static int read_transport(struct vnet_packet *p)
{
	size_t left = p->len - p->l4, header;

	p->payload = p->l4;
	p->payload_len = (uint16_t)left;
	if (p->fragment_offset)
		return 0;
	if (vnet_packet_tcp(p)) {
		const struct tcphdr *tcp = vnet_packet_tcp(p);

		if (left < sizeof(*tcp) || tcp->doff < 5 || left < tcp->doff * 4u)
			return -EBADMSG;
		header = tcp->doff * 4u;
		p->src.port = ntohs(tcp->source);
		p->dst.port = ntohs(tcp->dest);
	} else if (vnet_packet_udp(p)) {
		const struct udphdr *udp = vnet_packet_udp(p);
		size_t size;

		if (left < sizeof(*udp))
			return -EBADMSG;
		size = ntohs(udp->len);
		/* A first fragment says how long the whole is. */
		if (size < sizeof(*udp) || (size > left && !p->more_fragments))
			return -EBADMSG;
		left = MIN(left, size);
		header = sizeof(*udp);
		p->src.port = ntohs(udp->source);
		p->dst.port = ntohs(udp->dest);
	} else if (vnet_packet_icmp(p)) {
		header = sizeof(struct icmphdr);
		if (left < header)
			return -EBADMSG;
	} else {
		return 0;
	}
	p->payload = (uint16_t)(p->l4 + header);
	p->payload_len = (uint16_t)(left - header);
	return 0;
}

/* Where the checksum is in the transport header, or -1. */
static int checksum_offset(const struct vnet_packet *p)
{
	if (p->fragment_offset)
		return -1;
	switch (p->proto) {
	case IPPROTO_TCP:
		return offsetof(struct tcphdr, check);
	case IPPROTO_UDP:
		return offsetof(struct udphdr, check);
	case IPPROTO_ICMP:
		return p->version == 4 ? (int)offsetof(struct icmphdr, checksum) : -1;
	case IPPROTO_ICMPV6:
		return p->version == 6 ? (int)offsetof(struct icmphdr, checksum) : -1;
	default:
		return -1;
	}
}

static bool pieces_make_sense(const struct vnet_packet *p)
{
	if (p->proto == IPPROTO_TCP)
		return p->vh.gso_size >= TCP_PIECE_MIN;
	return p->payload_len <= (size_t)UDP_PIECES_MAX * p->vh.gso_size;
}

/* Do the fields of vh describe this packet? */
static int check_offload(struct vnet_packet *p)
{
	struct virtio_net_hdr *vh = &p->vh;
	uint8_t type = vh->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	uint8_t proto;

	vh->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;
	if (vh->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		(p->fragment || vh->csum_start != p->l4 || checksum_offset(p) < 0 ||
			vh->csum_offset != checksum_offset(p)))
		return -EBADMSG;
	switch (type) {
	case VIRTIO_NET_HDR_GSO_NONE:
		vh->gso_type = VIRTIO_NET_HDR_GSO_NONE;
		vh->gso_size = vh->hdr_len = 0;
		return 0;
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		if (p->version != (type == VIRTIO_NET_HDR_GSO_TCPV4 ? 4 : 6))
			return -EBADMSG;
		proto = IPPROTO_TCP;
		break;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		if (vh->gso_type != type)
			return -EBADMSG;
		proto = IPPROTO_UDP;
		break;
	default:
		return -EBADMSG;
	}
	/* 0xffff means something else to the kernel (GSO_BY_FRAGS). */
	if (p->proto != proto || p->fragment || vh->gso_size == 0 || vh->gso_size == 0xffff ||
		!(vh->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || !pieces_make_sense(p))
		return -EBADMSG;
	vh->hdr_len = p->payload;
	return 0;
}

int vnet_packet_parse(struct vnet_packet *p)
{
	struct network n;

	assert((uintptr_t)p->data % 4 == 0);
	if (read_network(p->data, p->len, &n) < 0 || n.end > p->len || n.l4 > n.end)
		return -EBADMSG;
	p->version = p->data[0] >> 4;
	/* The checksum of a right header, added to the sum of the rest, gives all ones. */
	if (p->version == 4 && vnet_checksum_fold(vnet_checksum_add(0, p->data, n.l4)) != 0xffff)
		return -EBADMSG;
	p->len = n.end;
	p->proto = n.proto;
	p->l4 = (uint16_t)n.l4;
	p->fragment = n.more || n.offset;
	p->more_fragments = n.more;
	p->fragment_offset = (uint16_t)n.offset;
	p->fragment_at = (uint16_t)n.fragment_at;
	p->fragment_next = (uint16_t)n.fragment_next;
	p->src = n.src;
	p->dst = n.dst;
	if (read_transport(p) < 0)
		return -EBADMSG;
	return check_offload(p);
}

/* Where an address is in an IP header at @data. */
static void *address_of(uint8_t *data, bool source, size_t *ret_len)
{
	if (data[0] >> 4 == 4) {
		*ret_len = sizeof(struct in_addr);
		return data +
		       (source ? offsetof(struct iphdr, saddr) : offsetof(struct iphdr, daddr));
	}
	*ret_len = sizeof(struct in6_addr);
	return data +
	       (source ? offsetof(struct ip6_hdr, ip6_src) : offsetof(struct ip6_hdr, ip6_dst));
}

/* Puts another address into the IP header at @data; returns the difference. */
static uint64_t replace_address(uint8_t *data, bool source, const struct vnet_endpoint *to)
{
	size_t len;
	void *at = address_of(data, source, &len);
	uint64_t difference = vnet_checksum_difference(at, &to->v6, len);

	memcpy(at, &to->v6, len);
	if (len == sizeof(struct in_addr)) {
		struct iphdr *ip = (struct iphdr *)(void *)data;

		ip->check = vnet_checksum_adjust(ip->check, difference);
	}
	return difference;
}

/* Puts another port into the TCP or UDP header at @l4; returns the difference. */
static uint64_t replace_port(uint8_t *l4, bool source, uint16_t port)
{
	uint16_t *at = (uint16_t *)(void *)l4 + (source ? 0 : 1);
	uint16_t new = htons(port);
	uint64_t difference = vnet_checksum_difference(at, &new, sizeof(new));

	*at = new;
	return difference;
}

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP;
}

static void set_end(struct vnet_packet *p, bool source, const struct vnet_endpoint *to)
{
	struct vnet_endpoint *end = source ? &p->src : &p->dst;
	uint64_t addresses, ports = 0;
	int offset = checksum_offset(p);
	uint16_t *check;

	assert(to->family == end->family);
	addresses = replace_address(p->data, source, to);
	if (offset >= 0 && has_ports(p->proto)) {
		ports = replace_port(p->data + p->l4, source, to->port);
		*end = *to;
	} else {
		*end = *to;
		end->port = 0;
	}
	/* ICMP of IPv4 has no pseudo-header. */
	if (offset < 0 || p->proto == IPPROTO_ICMP)
		return;
	check = (uint16_t *)(void *)(p->data + p->l4 + offset);
	if (p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		*check = vnet_checksum_fold(*check + addresses);
		return;
	}
	if (p->proto == IPPROTO_UDP && *check == 0)
		return;
	*check = vnet_checksum_adjust(*check, addresses + ports);
	if (p->proto == IPPROTO_UDP && *check == 0)
		*check = 0xffff;
}

void vnet_packet_set_src(struct vnet_packet *p, const struct vnet_endpoint *to)
{
	set_end(p, true, to);
}

void vnet_packet_set_dst(struct vnet_packet *p, const struct vnet_endpoint *to)
{
	set_end(p, false, to);
}

bool vnet_packet_checksum_ok(const struct vnet_packet *p)
{
	int offset = checksum_offset(p);
	size_t len = p->len - p->l4;
	uint64_t sum = 0;

	if (p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return true;
	if (offset < 0 || p->fragment)
		return offset < 0 && !p->fragment;
	if (p->proto == IPPROTO_UDP) {
		if (vnet_packet_udp(p)->check == 0)
			return p->version == 4;
		len = sizeof(struct udphdr) + p->payload_len;
	}
	if (p->version == 6)
		sum = vnet_checksum_pseudo_v6(&p->src.v6, &p->dst.v6, p->proto, len);
	else if (p->proto != IPPROTO_ICMP)
		sum = vnet_checksum_pseudo_v4(p->src.v4, p->dst.v4, p->proto, len);
	return vnet_checksum_fold(vnet_checksum_add(sum, p->data + p->l4, len)) == 0xffff;
}

static bool is_icmp_error(const struct vnet_packet *p)
{
	const struct icmphdr *icmp = vnet_packet_icmp(p);

	if (!icmp)
		return false;
	if (p->version == 6)
		return icmp->type < 128; /* RFC 4443 2.1 */
	return icmp->type == ICMP_DEST_UNREACH || icmp->type == ICMP_SOURCE_QUENCH ||
	       icmp->type == ICMP_REDIRECT || icmp->type == ICMP_TIME_EXCEEDED ||
	       icmp->type == ICMP_PARAMETERPROB;
}

int vnet_packet_embedded(const struct vnet_packet *p, struct vnet_embedded *ret)
{
	const uint8_t *inner = p->data + p->payload;
	struct network n;
	const uint16_t *ports;

	if (!is_icmp_error(p))
		return -ENOENT;
	if (p->fragment || read_network(inner, p->payload_len, &n) < 0 || n.offset ||
		n.src.family != p->src.family || n.l4 + 8 > p->payload_len)
		return -EBADMSG;
	*ret = (struct vnet_embedded){
		.proto = n.proto,
		.l3 = p->payload,
		.l4 = (uint16_t)(p->payload + n.l4),
		.src = n.src,
		.dst = n.dst,
	};
	ports = (const uint16_t *)(const void *)(p->data + ret->l4);
	if (has_ports(n.proto)) {
		ret->src.port = ntohs(ports[0]);
		ret->dst.port = ntohs(ports[1]);
	} else if (n.proto == (p->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		ret->src.port = ret->dst.port = ntohs(ports[2]);
	}
	return 0;
}

/* Adjusts the transport checksum of an embedded packet, as far as it is there. */
static void adjust_embedded(
	struct vnet_packet *p, const struct vnet_embedded *e, uint64_t difference)
{
	size_t offset = e->proto == IPPROTO_TCP ? offsetof(struct tcphdr, check)
						: offsetof(struct udphdr, check);
	uint16_t *check = (uint16_t *)(void *)(p->data + e->l4 + offset);

	if (e->l4 + offset + sizeof(*check) > (size_t)p->payload + p->payload_len)
		return;
	if (e->proto == IPPROTO_UDP && *check == 0)
		return;
	*check = vnet_checksum_adjust(*check, difference);
	if (e->proto == IPPROTO_UDP && *check == 0)
		*check = 0xffff;
}

void vnet_packet_set_embedded(struct vnet_packet *p, struct vnet_embedded *e,
	const struct vnet_endpoint *src, const struct vnet_endpoint *dst)
{
	struct icmphdr *icmp = vnet_packet_icmp(p);
	uint8_t *inner = p->data + e->l3;
	uint64_t before, difference;

	assert(src->family == e->src.family && dst->family == e->dst.family);
	before = vnet_checksum_add(0, inner, p->payload_len);
	difference = replace_address(inner, true, src) + replace_address(inner, false, dst);
	if (has_ports(e->proto)) {
		difference += replace_port(p->data + e->l4, true, src->port);
		difference += replace_port(p->data + e->l4, false, dst->port);
		adjust_embedded(p, e, difference);
		e->src = *src;
		e->dst = *dst;
	} else {
		memcpy(&e->src.v6, &src->v6, sizeof(src->v6));
		memcpy(&e->dst.v6, &dst->v6, sizeof(dst->v6));
	}
	if (p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		return;
	/* What was wrong stays wrong: the difference of the two sums, not a new one. */
	difference = (uint16_t)~vnet_checksum_fold(before);
	icmp->checksum = vnet_checksum_adjust(
		icmp->checksum, vnet_checksum_add(difference, inner, p->payload_len));
}
