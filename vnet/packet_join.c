// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of TCP that follow each other made one, for a kernel that takes super-packets.
 *
 * The result need not be cut to the pieces that it was made of: it ends in the kernel that it is
 * written to, or is cut to pieces no larger than one of those was.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"

/* Of the 16 bits with the header's length and the flags. */
#define FLAGS	 0x0fffu
#define FLAG_ACK 0x0010u
#define FLAG_PSH 0x0008u

#define PIECE_MIN 8 /* smaller ones no kernel takes for a super-packet's (TCP_MIN_GSO_SIZE) */

static uint16_t flags_of(const struct vnet_packet *p)
{
	uint16_t word;

	memcpy(&word, p->data + p->l4 + 12, sizeof(word));
	return ntohs(word) & FLAGS;
}

bool vnet_packet_is_joinable(const struct vnet_packet *p)
{
	const size_t ip = p->version == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);

	return vnet_packet_tcp(p) && !p->fragment && p->l4 == ip && p->payload_len >= PIECE_MIN &&
	       (size_t)p->payload + p->payload_len == p->len &&
	       p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
	       !(p->vh.gso_type & VIRTIO_NET_HDR_GSO_ECN) && (flags_of(p) & ~FLAG_PSH) == FLAG_ACK;
}

static bool same_ip(const struct vnet_packet *a, const struct vnet_packet *b)
{
	const struct iphdr *x = (void *)a->data, *y = (void *)b->data;

	if (a->version != b->version)
		return false;
	if (a->version == 6) /* traffic class, flow label, hop limit */
		return !memcmp(a->data, b->data, 4) && a->data[7] == b->data[7];
	return x->tos == y->tos && x->ttl == y->ttl && x->frag_off == y->frag_off;
}

/* Does @b say nothing but what comes behind @a? */
static bool follows(const struct vnet_packet *b, const struct vnet_packet *a)
{
	const struct tcphdr *x = vnet_packet_tcp(a), *y = vnet_packet_tcp(b);

	return same_ip(a, b) && x->source == y->source && x->dest == y->dest &&
	       ntohl(y->seq) == ntohl(x->seq) + a->payload_len && x->ack_seq == y->ack_seq &&
	       x->window == y->window && x->doff == y->doff &&
	       !memcmp(x + 1, y + 1, x->doff * 4u - sizeof(*x)) &&
	       vnet_endpoint_equal(&a->src, &b->src) && vnet_endpoint_equal(&a->dst, &b->dst);
}

static uint16_t piece_of(const struct vnet_packet *p)
{
	return p->vh.gso_size ? p->vh.gso_size : p->payload_len;
}

/* Lengths and sums, for what it has become. */
static void finish(struct vnet_packet *p, uint16_t piece)
{
	const size_t l4_len = p->len - p->l4;
	uint64_t sum;

	if (p->version == 4) {
		struct iphdr *ip = (void *)p->data;

		ip->tot_len = htons((uint16_t)p->len);
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, sizeof(*ip)));
		sum = vnet_checksum_pseudo_v4(p->src.v4, p->dst.v4, p->proto, l4_len);
	} else {
		((struct ip6_hdr *)(void *)p->data)->ip6_plen = htons((uint16_t)l4_len);
		sum = vnet_checksum_pseudo_v6(&p->src.v6, &p->dst.v6, p->proto, l4_len);
	}
	vnet_packet_tcp(p)->check = vnet_checksum_fold(sum);
	p->vh.gso_type = p->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	p->vh.gso_size = piece;
	p->vh.hdr_len = p->payload;
}

bool vnet_packet_join(struct vnet_packet *p, const struct vnet_packet *next, size_t most)
{
	uint16_t piece;

	if (p->len + next->payload_len > MIN(most, p->room) || !vnet_packet_is_joinable(p) ||
		!vnet_packet_is_joinable(next) || !follows(next, p))
		return false;
	piece = MAX(piece_of(p), piece_of(next));
	if (vnet_packet_tcp(next)->psh)
		vnet_packet_tcp(p)->psh = 1;
	memcpy(p->data + p->len, next->data + next->payload, next->payload_len);
	p->len += next->payload_len;
	p->payload_len = (uint16_t)(p->payload_len + next->payload_len);
	finish(p, piece);
	return true;
}
