// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Headers are made in a small aligned copy, because segments lie anywhere (between other people's
 * headers).
 */
#include "vnet/tunnel/segment.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "base/base.h"
#include "vnet/checksum.h"

#define HEADERS_MAX \
	256 /* IPv4 or IPv6 with extension headers, and TCP: longer ones are no super-packets */

static bool is_super(const struct vnet_packet *p)
{
	return p->vh.gso_type != VIRTIO_NET_HDR_GSO_NONE && p->vh.gso_size &&
	       p->payload_len > p->vh.gso_size && p->payload <= HEADERS_MAX;
}

unsigned vnet_segment_count(const struct vnet_packet *p)
{
	return is_super(p) ? (p->payload_len + p->vh.gso_size - 1u) / p->vh.gso_size : 1;
}

static size_t payload_of(const struct vnet_packet *p, unsigned i)
{
	size_t at = (size_t)i * p->vh.gso_size;

	return MIN((size_t)p->vh.gso_size, p->payload_len - at);
}

size_t vnet_segment_length(const struct vnet_packet *p, unsigned i)
{
	return is_super(p) ? p->payload + payload_of(p, i) : p->len;
}

static uint64_t pseudo(const struct vnet_packet *p, size_t len)
{
	if (p->version == 4)
		return vnet_checksum_pseudo_v4(p->src.v4, p->dst.v4, p->proto, len);
	return vnet_checksum_pseudo_v6(&p->src.v6, &p->dst.v6, p->proto, len);
}

static void put16(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

/* Where the field is that vh says holds a partial checksum. */
static void complete(const struct vnet_packet *p, uint8_t *packet, size_t len)
{
	const size_t start = p->vh.csum_start, field = start + p->vh.csum_offset;
	uint16_t sum;

	if (field + sizeof(sum) > len)
		return;
	sum = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, packet + start, len - start));
	if (!sum && p->proto == IPPROTO_UDP)
		sum = 0xffff; /* zero would say that there is none (RFC 768) */
	put16(packet + field, sum);
}

static void write_tcp(const struct vnet_packet *p, unsigned i, uint8_t *l4)
{
	struct tcphdr *th = (void *)l4;

	th->seq = htonl(ntohl(th->seq) + i * p->vh.gso_size);
	if (i + 1 < vnet_segment_count(p)) {
		th->fin = 0;
		th->psh = 0;
	}
	if (i)
		th->res2 &=
			1; /* CWR (0x80 of the flags) belongs to the first alone, RFC 3168 6.1.2 */
}

void vnet_segment_write(const struct vnet_packet *p, unsigned i, uint8_t *ret)
{
	uint8_t headers[HEADERS_MAX] __attribute__((aligned(4)));
	const size_t len = vnet_segment_length(p, i), l4_len = len - p->l4;
	const size_t field = p->l4 + (p->proto == IPPROTO_TCP ? offsetof(struct tcphdr, check)
							      : offsetof(struct udphdr, check));
	uint16_t sum;

	if (!is_super(p)) {
		memcpy(ret, p->data, len);
		if (p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			complete(p, ret, len);
		return;
	}
	memcpy(headers, p->data, p->payload);
	memcpy(ret + p->payload, p->data + p->payload + (size_t)i * p->vh.gso_size,
		len - p->payload);
	if (p->version == 4) {
		struct iphdr *ip = (void *)headers;

		ip->tot_len = htons((uint16_t)len);
		ip->id = htons((uint16_t)(ntohs(ip->id) + i));
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, ip->ihl * 4u));
	} else {
		put16(headers + 4, htons((uint16_t)(len - sizeof(struct ip6_hdr))));
	}
	if (p->proto == IPPROTO_TCP)
		write_tcp(p, i, headers + p->l4);
	else
		put16(headers + p->l4 + offsetof(struct udphdr, len), htons((uint16_t)l4_len));
	put16(headers + field, 0);
	memcpy(ret, headers, p->payload);
	sum = (uint16_t)~vnet_checksum_fold(
		vnet_checksum_add(pseudo(p, l4_len), ret + p->l4, l4_len));
	put16(ret + field, sum || p->proto != IPPROTO_UDP ? sum : 0xffff);
}
