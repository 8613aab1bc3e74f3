/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_packets - what the tests of this room make packets with.
 */
#ifndef VNET_TEST_PACKETS_H
#define VNET_TEST_PACKETS_H

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "vnet/checksum.h"
#include "vnet/packet.h"

/* A packet with a buffer of its own. */
struct test_buffer {
	struct vnet_packet p;
	_Alignas(4) uint8_t bytes[VNET_PACKET_MAX];
};

static inline struct vnet_packet *test_reset(struct test_buffer *b)
{
	b->p = (struct vnet_packet){.data = b->bytes, .room = sizeof(b->bytes)};
	return &b->p;
}

static inline struct vnet_endpoint test_ep(const char *address, uint16_t port)
{
	struct vnet_endpoint e = {.port = port};

	e.family = strchr(address, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(e.family, address, &e.v6) != 1)
		abort();
	return e;
}

/* What the flags of a segment are written with. */
enum { TEST_FIN = 1, TEST_SYN = 2, TEST_RST = 4, TEST_PSH = 8, TEST_ACK = 16 };

struct test_tcp {
	uint8_t flags;
	uint32_t seq, ack;
	const char *payload; /* NULL: none */
	size_t len;	     /* of the payload; 0: that of the string */
	uint16_t gso_size;
};

/* A TCP segment with a partial checksum, parsed. */
static inline struct vnet_packet *test_tcp(struct test_buffer *b, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, const struct test_tcp *t)
{
	size_t len = t->len ? t->len : t->payload ? strlen(t->payload) : 0;
	struct vnet_packet *p = test_reset(b);
	struct tcphdr h = {
		.source = htons(src->port),
		.dest = htons(dst->port),
		.seq = htonl(t->seq),
		.ack_seq = htonl(t->ack),
		.doff = 5,
		.window = htons(1000),
	};
	uint8_t *body = b->bytes + vnet_packet_udp_headers(src->family) - sizeof(struct udphdr);

	((uint8_t *)&h)[13] = t->flags;
	/* As a datagram of the same length, which then gets another header. */
	if (vnet_packet_make_udp(p, src, dst, NULL, 0, 0) < 0)
		abort();
	memcpy(body, &h, sizeof(h));
	if (len)
		memcpy(body + sizeof(h), t->payload, len);
	p->len = (size_t)(body - b->bytes) + sizeof(h) + len;
	if (p->version == 4) {
		struct iphdr *ip = (void *)p->data;

		ip->protocol = IPPROTO_TCP;
		ip->tot_len = htons((uint16_t)p->len);
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, sizeof(*ip)));
	} else {
		struct ip6_hdr *ip = (void *)p->data;

		ip->ip6_nxt = IPPROTO_TCP;
		ip->ip6_plen = htons((uint16_t)(p->len - sizeof(*ip)));
	}
	p->vh.csum_offset = offsetof(struct tcphdr, check);
	if (t->gso_size) {
		p->vh.gso_type =
			p->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
		p->vh.gso_size = t->gso_size;
	}
	if (vnet_packet_parse(p) < 0)
		abort();
	/* This also puts the sum of the pseudo-header in its place. */
	vnet_packet_truncate(p, len);
	if (t->gso_size) {
		p->vh.gso_type =
			p->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
		p->vh.gso_size = t->gso_size;
		p->vh.hdr_len = p->payload;
	}
	return p;
}

/* Completes a partial checksum, as a network card does. */
static inline void test_complete(struct vnet_packet *p)
{
	uint16_t *check = (void *)(p->data + p->vh.csum_start + p->vh.csum_offset);

	assert(p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
	*check = (uint16_t)~vnet_checksum_fold(
		vnet_checksum_add(0, p->data + p->l4, p->len - p->l4));
	p->vh = (struct virtio_net_hdr){0};
}

#endif
