// SPDX-License-Identifier: GPL-2.0-or-later
/* What is cut is whole again; what a cut could not have made is left alone. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/tunnel/coalesce.h"
#include "vnet/tunnel/segment.h"

#define MSS 1000

struct sink {
	unsigned n;
	size_t len[64];
	struct vnet_packet last;
	uint8_t data[VNET_PACKET_MAX] __attribute__((aligned(8)));
};

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct sink *s = ctx;

	assert_int_equal(vnet_packet_parse(p), 0);
	assert_true(s->n < ARRAY_SIZE(s->len));
	s->len[s->n++] = p->len;
	s->last = *p;
	memcpy(s->data, p->data, p->len);
	s->last.data = s->data;
}

static uint8_t whole[VNET_PACKET_MAX] __attribute__((aligned(8)));

/* A super-packet of @len bytes of TCP (with time stamps as options) or UDP. */
static struct vnet_packet make(uint8_t version, uint8_t proto, size_t len)
{
	const size_t ip = version == 4 ? 20 : 40, head = proto == IPPROTO_TCP ? 32 : 8;
	const size_t l4_len = head + len;
	struct vnet_packet p = {.data = whole, .len = ip + l4_len, .room = sizeof(whole)};
	uint8_t *l4 = whole + ip;
	uint16_t field;

	memset(whole, 0, ip + head);
	for (size_t i = 0; i < len; i++)
		l4[head + i] = (uint8_t)(i * 31 + i / 256);
	if (version == 4) {
		struct iphdr *h = (void *)whole;

		*h = (struct iphdr){
			.version = 4, .ihl = 5, .ttl = 9, .protocol = proto, .id = 0xfeff};
		h->tot_len = htons((uint16_t)p.len);
		h->saddr = htonl(0x0a000001);
		h->daddr = htonl(0x0a000002);
		h->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, h, 20));
		field = vnet_checksum_fold(vnet_checksum_pseudo_v4(
			(struct in_addr){h->saddr}, (struct in_addr){h->daddr}, proto, l4_len));
	} else {
		struct ip6_hdr *h = (void *)whole;

		h->ip6_flow = htonl(0x6120beef);
		h->ip6_plen = htons((uint16_t)l4_len);
		h->ip6_nxt = proto;
		h->ip6_hlim = 9;
		h->ip6_src.s6_addr[0] = h->ip6_dst.s6_addr[0] = 0xfd;
		h->ip6_dst.s6_addr[15] = 2;
		field = vnet_checksum_fold(
			vnet_checksum_pseudo_v6(&h->ip6_src, &h->ip6_dst, proto, l4_len));
	}
	if (proto == IPPROTO_TCP) {
		struct tcphdr *h = (void *)l4;

		*h = (struct tcphdr){
			.source = 7, .dest = 8, .doff = 8, .check = field, .window = 9};
		h->seq = htonl(0xffffff00);
		h->th_flags = TH_ACK | TH_PUSH;
		memcpy(l4 + 20, "\1\1\10\12abcdefgh", 12);
	} else {
		*(struct udphdr *)l4 = (struct udphdr){
			.source = 7, .dest = 8, .check = field, .len = htons((uint16_t)l4_len)};
	}
	p.vh = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = (uint16_t)(ip + head),
		.csum_start = (uint16_t)ip,
		.csum_offset = proto == IPPROTO_TCP ? 16 : 6};
	if (len > MSS) {
		p.vh.gso_size = MSS;
		p.vh.gso_type = proto == IPPROTO_UDP ? VIRTIO_NET_HDR_GSO_UDP_L4
				: version == 4	     ? VIRTIO_NET_HDR_GSO_TCPV4
						     : VIRTIO_NET_HDR_GSO_TCPV6;
	}
	assert_int_equal(vnet_packet_parse(&p), 0);
	return p;
}

static void add(struct vnet_coalesce *c, const uint8_t *data, size_t len)
{
	struct vnet_packet p = {.data = vnet_coalesce_room(c), .len = len, .room = VNET_PACKET_MAX};

	memcpy(p.data, data, len);
	assert_int_equal(vnet_packet_parse(&p), 0);
	vnet_coalesce_add(c, 0, &p);
}

static struct vnet_coalesce *coalesce_new(struct sink *s, bool on)
{
	const struct vnet_coalesce_options o = {.tcp = on, .udp = on, .deliver = deliver, .ctx = s};
	struct vnet_coalesce *c = vnet_coalesce_new(&o);

	assert_non_null(c);
	*s = (struct sink){0};
	return c;
}

static void there_and_back(void **state)
{
	static const size_t lengths[] = {0, 1, 999, 1000, 1001, 2000, 5500, 59999, 64000};
	static struct sink s;
	uint8_t segment[2048], copy[VNET_PACKET_MAX];

	for (int k = 0; k < 4 * (int)ARRAY_SIZE(lengths); k++) {
		struct vnet_packet p =
			make(k & 1 ? 4 : 6, k & 2 ? IPPROTO_TCP : IPPROTO_UDP, lengths[k / 4]);
		struct vnet_coalesce *c = coalesce_new(&s, true);
		unsigned n = vnet_segment_count(&p);

		assert_int_equal(n, lengths[k / 4] <= MSS ? 1 : (lengths[k / 4] + MSS - 1) / MSS);
		memcpy(copy, whole, p.len);
		for (unsigned i = 0; i < n; i++) {
			struct vnet_packet one = {.data = segment, .room = sizeof(segment)};

			one.len = vnet_segment_length(&p, i);
			vnet_segment_write(&p, i, segment);
			add(c, segment, one.len);
		}
		assert_int_equal(s.n, 0);
		vnet_coalesce_flush(c);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.last.len, p.len);
		assert_true(vnet_packet_checksum_ok(&s.last));
		if (n > 1) {
			assert_memory_equal(s.data, copy, p.len);
			assert_memory_equal(&s.last.vh, &p.vh, sizeof(p.vh));
		} else {
			assert_int_equal(s.last.vh.flags, 0);
			assert_memory_equal(
				s.data + p.payload, copy + p.payload, p.len - p.payload);
		}
		vnet_coalesce_free(c);
	}
}

/* Whole checksums again, after a header was changed. */
static void mend(uint8_t *segment, size_t len)
{
	struct iphdr *ip = (void *)segment;
	struct tcphdr *th = (void *)(segment + 20);
	struct in_addr src = {ip->saddr}, dst = {ip->daddr};

	ip->check = 0;
	ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, 20));
	th->check = 0;
	th->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(
		vnet_checksum_pseudo_v4(src, dst, IPPROTO_TCP, len - 20), th, len - 20));
}

enum change {
	NONE,
	CHECKSUM,
	TOS,
	TTL,
	ID,
	GAP,
	ACK,
	WINDOW,
	OPTION,
	FIN,
	SYN,
	URGENT,
	PORT,
	ADDRESS,
	CHANGES
};

static void change(uint8_t *segment, enum change what)
{
	struct iphdr *ip = (void *)segment;
	struct tcphdr *th = (void *)(segment + 20);

	ip->tos ^= what == TOS;
	ip->ttl ^= what == TTL;
	ip->id ^= what == ID;
	ip->saddr ^= what == ADDRESS;
	th->seq ^= what == GAP;
	th->ack_seq ^= what == ACK;
	th->window ^= what == WINDOW;
	th->source ^= what == PORT;
	th->fin ^= what == FIN;
	th->syn ^= what == SYN;
	th->urg ^= what == URGENT;
	segment[20 + 31] ^= what == OPTION;
}

static void left_alone(void **state)
{
	static struct sink s;
	uint8_t segment[2048] __attribute__((aligned(8)));

	for (enum change what = NONE; what < CHANGES; what++) {
		struct vnet_packet p = make(4, IPPROTO_TCP, 4 * MSS);
		struct vnet_coalesce *c = coalesce_new(&s, true);

		for (unsigned i = 0; i < 4; i++) {
			const size_t len = vnet_segment_length(&p, i);

			vnet_segment_write(&p, i, segment);
			if (i == 2) {
				change(segment, what);
				mend(segment, len);
				segment[100] ^= what == CHECKSUM;
			}
			add(c, segment, len);
		}
		vnet_coalesce_flush(c);
		/* The first two are one, the third is apart, and the fourth follows on neither. */
		assert_int_equal(s.n, what == NONE ? 1 : 3);
		assert_int_equal(s.len[0], 52 + (what == NONE ? 4 : 2) * MSS);
		vnet_coalesce_free(c);
	}
}

static void not_wanted(void **state)
{
	static struct sink s;
	uint8_t segment[2048] __attribute__((aligned(8)));
	struct vnet_packet p = make(4, IPPROTO_TCP, 40 * MSS);
	struct vnet_coalesce *c = coalesce_new(&s, false);

	for (unsigned i = 0; i < 40; i++) { /* more than are kept at once */
		vnet_segment_write(&p, i, segment);
		add(c, segment, vnet_segment_length(&p, i));
	}
	vnet_coalesce_flush(c);
	assert_int_equal(s.n, 40);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(s.len[i], 52 + MSS);
	vnet_coalesce_free(c);
}

/* Each connection in order, and both in turns. */
static void two_flows(void **state)
{
	static struct sink s;
	uint8_t segment[2048] __attribute__((aligned(8)));
	struct vnet_packet p = make(4, IPPROTO_TCP, 10 * MSS);
	struct vnet_coalesce *c = coalesce_new(&s, true);

	for (unsigned i = 0; i < 10; i++) {
		const size_t len = vnet_segment_length(&p, i);

		vnet_segment_write(&p, i, segment);
		add(c, segment, len);
		change(segment, PORT);
		mend(segment, len);
		add(c, segment, len);
	}
	vnet_coalesce_flush(c);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.len[0], 52 + 10 * MSS);
	assert_int_equal(s.len[1], 52 + 10 * MSS);
	vnet_coalesce_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(not_wanted),
		cmocka_unit_test(two_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
