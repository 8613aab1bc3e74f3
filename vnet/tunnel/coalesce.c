// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets are put into a spare buffer.  One that can't be joined keeps the buffer and becomes an
 * item; of one that can be, only the payload is copied behind that of an item, and the buffer is
 * spare again.
 */
#include "vnet/tunnel/coalesce.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/checksum.h"

#define ITEMS 32
#define BUFFER \
	(VNET_PACKET_MAX + VNET_COALESCE_SLACK + 192) /* shares no cache sets with the next */
#define UDP_JOINED   64 /* datagrams, UDP_MAX_SEGMENTS of old kernels */
#define TOTAL_MAX    65535
#define TCP_MUST_NOT (TH_FIN | TH_SYN | TH_RST | TH_URG | 0x80 /* CWR */)

struct item {
	uint32_t from, next_seq;
	unsigned n;	  /* packets */
	uint16_t segment; /* payload of each but the last */
	bool closed;	  /* nothing fits behind it */
	uint8_t *buffer;
	struct vnet_packet p;
};

struct vnet_coalesce {
	struct vnet_coalesce_options o;
	struct item items[ITEMS];
	unsigned n;
	uint8_t *spare, *memory;
};

struct vnet_coalesce *vnet_coalesce_new(const struct vnet_coalesce_options *o)
{
	struct vnet_coalesce *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->o = *o;
	c->memory = malloc((size_t)BUFFER * (ITEMS + 1));
	if (!c->memory) {
		free(c);
		return NULL;
	}
	for (unsigned i = 0; i < ITEMS; i++)
		c->items[i].buffer = c->memory + (size_t)i * BUFFER;
	c->spare = c->memory + (size_t)ITEMS * BUFFER;
	return c;
}

void vnet_coalesce_free(struct vnet_coalesce *c)
{
	if (!c)
		return;
	free(c->memory);
	free(c);
}

uint8_t *vnet_coalesce_room(struct vnet_coalesce *c)
{
	return c->spare;
}

static bool same_flow(const struct item *i, uint32_t from, const struct vnet_packet *p)
{
	return i->from == from && i->p.proto == p->proto && i->p.version == p->version &&
	       vnet_endpoint_equal(&i->p.src, &p->src) && vnet_endpoint_equal(&i->p.dst, &p->dst);
}

/* Nothing in the headers of IP that a cut would not repeat. */
static bool same_ip(const struct vnet_packet *a, const struct vnet_packet *b, unsigned n)
{
	if (a->version == 6) { /* all but the length */
		return memcmp(a->data, b->data, 4) == 0 && a->data[7] == b->data[7];
	}
	const struct iphdr *x = (void *)a->data, *y = (void *)b->data;

	return x->tos == y->tos && x->ttl == y->ttl && x->frag_off == y->frag_off &&
	       (x->frag_off & htons(IP_DF) || (uint16_t)(ntohs(x->id) + n) == ntohs(y->id));
}

static bool same_tcp(const struct item *i, const struct vnet_packet *p)
{
	const struct tcphdr *a = vnet_packet_tcp(&i->p), *b = vnet_packet_tcp(p);
	const size_t head = sizeof(*a);

	return ntohl(b->seq) == i->next_seq && a->ack_seq == b->ack_seq && a->window == b->window &&
	       (a->th_flags | TH_PUSH) == (b->th_flags | TH_PUSH) && a->res1 == b->res1 &&
	       !memcmp((const uint8_t *)a + head, (const uint8_t *)b + head,
		       p->payload - p->l4 - head);
}

static bool plain(const struct vnet_packet *p)
{
	const size_t ip = p->version == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);

	return !p->fragment && p->l4 == ip && p->payload_len &&
	       p->payload + p->payload_len == p->len;
}

/* May it be part of a super-packet at all? */
static bool joinable(const struct vnet_coalesce *c, const struct vnet_packet *p)
{
	if (p->proto == IPPROTO_TCP)
		return c->o.tcp && plain(p) && !(vnet_packet_tcp(p)->th_flags & TCP_MUST_NOT) &&
		       vnet_packet_tcp(p)->th_flags & TH_ACK;
	return p->proto == IPPROTO_UDP && c->o.udp && plain(p) && vnet_packet_udp(p)->check;
}

static bool fits(const struct item *i, const struct vnet_packet *p)
{
	if (i->closed || p->payload != i->p.payload || p->payload_len > i->segment ||
		i->p.len + p->payload_len > TOTAL_MAX || !same_ip(&i->p, p, i->n))
		return false;
	if (p->proto == IPPROTO_TCP ? !same_tcp(i, p) : i->n == UDP_JOINED)
		return false;
	/* The first one's is looked at only when it gets company: alone, the kernel does it. */
	return (i->n > 1 || vnet_packet_checksum_ok(&i->p)) && vnet_packet_checksum_ok(p);
}

static void append(struct item *i, const struct vnet_packet *p)
{
	memcpy(i->p.data + i->p.len, p->data + p->payload, p->payload_len);
	i->p.len += p->payload_len;
	i->p.payload_len = (uint16_t)(i->p.payload_len + p->payload_len);
	i->n++;
	i->next_seq += p->payload_len;
	i->closed = p->payload_len < i->segment;
	if (p->proto == IPPROTO_TCP && vnet_packet_tcp(p)->psh) {
		vnet_packet_tcp(&i->p)->psh = 1;
		i->closed = true;
	}
}

static void begin(
	struct vnet_coalesce *c, uint32_t from, const struct vnet_packet *p, bool may_join)
{
	struct item *i = &c->items[c->n++];
	uint8_t *buffer = i->buffer;

	*i = (struct item){.from = from,
		.n = 1,
		.segment = p->payload_len,
		.closed = !may_join,
		.buffer = c->spare,
		.p = *p};
	c->spare = buffer;
	if (may_join && p->proto == IPPROTO_TCP) {
		i->next_seq = ntohl(vnet_packet_tcp(p)->seq) + p->payload_len;
		i->closed = vnet_packet_tcp(p)->psh;
	}
}

void vnet_coalesce_add(struct vnet_coalesce *c, uint32_t from, const struct vnet_packet *p)
{
	const bool may_join = joinable(c, p);

	for (unsigned n = c->n; n > 0; n--) {
		struct item *i = &c->items[n - 1];

		if (!same_flow(i, from, p))
			continue;
		if (may_join && fits(i, p)) {
			append(i, p);
			return;
		}
		i->closed = true; /* what comes later must not overtake this one */
		break;
	}
	if (c->n == ITEMS)
		vnet_coalesce_flush(c);
	begin(c, from, p, may_join);
}

/* Headers of the whole, and what a TUN has to know to cut it. */
static void finish(struct item *i)
{
	struct vnet_packet *p = &i->p;
	const size_t l4_len = p->len - p->l4;
	uint16_t sum;

	if (p->version == 4) {
		struct iphdr *ip = (void *)p->data;

		ip->tot_len = htons((uint16_t)p->len);
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, sizeof(*ip)));
		sum = vnet_checksum_fold(
			vnet_checksum_pseudo_v4(p->src.v4, p->dst.v4, p->proto, l4_len));
	} else {
		struct ip6_hdr *ip = (void *)p->data;

		ip->ip6_plen = htons((uint16_t)l4_len);
		sum = vnet_checksum_fold(
			vnet_checksum_pseudo_v6(&p->src.v6, &p->dst.v6, p->proto, l4_len));
	}
	p->vh = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = p->payload,
		.gso_size = i->segment,
		.csum_start = p->l4,
	};
	if (p->proto == IPPROTO_TCP) {
		p->vh.gso_type =
			p->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
		p->vh.csum_offset = offsetof(struct tcphdr, check);
		vnet_packet_tcp(p)->check = sum;
	} else {
		p->vh.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
		p->vh.csum_offset = offsetof(struct udphdr, check);
		vnet_packet_udp(p)->len = htons((uint16_t)l4_len);
		vnet_packet_udp(p)->check = sum;
	}
}

void vnet_coalesce_flush(struct vnet_coalesce *c)
{
	const unsigned n = c->n;

	c->n = 0;
	for (unsigned k = 0; k < n; k++) {
		struct item *i = &c->items[k];

		if (i->n > 1)
			finish(i);
		i->p.room = VNET_PACKET_MAX;
		c->o.deliver(c->o.ctx, i->from, &i->p);
	}
}
