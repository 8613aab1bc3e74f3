// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "base/base.h"
#include "vnet/reassemble.h"
#include "vnet/test_packets.h"

static struct test_buffer whole, piece;
static struct vnet_endpoint src, dst;
static struct vnet_reassembly *r;

/* A datagram of @len bytes of payload in `whole`. */
static void make(bool v6, size_t len)
{
	static uint8_t payload[65536];

	src = test_ep(v6 ? "fd7a:706f:6472::2" : "10.171.0.2", 5000);
	dst = test_ep(v6 ? "2001:db8::7" : "192.0.2.7", 53);
	for (size_t i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(vnet_packet_make_udp(test_reset(&whole), &src, &dst, payload, len, 0), 0);
	test_complete(&whole.p);
}

/* Bytes @from..@to of what is behind the IP header, as a fragment with number @id, in `piece`. */
static struct vnet_packet *cut(size_t from, size_t to, uint32_t id)
{
	struct vnet_packet *p = test_reset(&piece);
	size_t total = whole.p.len - whole.p.l4, head = whole.p.l4;
	bool more = to < total;

	memcpy(p->data, whole.bytes, head);
	if (whole.p.version == 4) {
		struct iphdr *ip = (void *)p->data;

		ip->id = htons((uint16_t)id);
		ip->frag_off = htons((uint16_t)(from / 8 | (more ? 0x2000 : 0)));
		ip->tot_len = htons((uint16_t)(head + to - from));
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, head));
	} else {
		struct ip6_hdr *ip = (void *)p->data;
		struct ip6_frag f = {.ip6f_nxt = IPPROTO_UDP,
			.ip6f_offlg = htons((uint16_t)(from | more)),
			.ip6f_ident = htonl(id)};

		ip->ip6_nxt = IPPROTO_FRAGMENT;
		ip->ip6_plen = htons((uint16_t)(to - from + sizeof(f)));
		memcpy(p->data + head, &f, sizeof(f));
		head += sizeof(f);
	}
	memcpy(p->data + head, whole.bytes + whole.p.l4 + from, to - from);
	p->len = head + to - from;
	assert_int_equal(vnet_packet_parse(p), 0);
	assert_true(p->fragment);
	return p;
}

static void check_whole(const struct vnet_packet *p)
{
	assert_false(p->fragment);
	assert_true(vnet_endpoint_equal(&p->src, &src) && vnet_endpoint_equal(&p->dst, &dst));
	assert_true(vnet_packet_checksum_ok(p));
	assert_int_equal(p->payload_len, whole.p.payload_len);
	assert_memory_equal(p->data + p->payload, whole.bytes + whole.p.payload, p->payload_len);
}

/* Three pieces in all six orders, of both families. */
static void pieces_in_any_order(void **state)
{
	static const uint8_t orders[6][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const size_t ends[4] = {0, 1400, 2800, 4008};

	r = vnet_reassembly_new();
	for (int v6 = 0; v6 < 2; v6++) {
		make(v6, 4000);
		for (uint32_t i = 0; i < 6; i++) {
			for (int n = 0; n < 3; n++) {
				const uint8_t which = orders[i][n];
				struct vnet_packet *p = cut(ends[which], ends[which + 1], i);

				assert_int_equal(vnet_reassemble(r, 1, 0, p), n == 2);
				if (n == 2)
					check_whole(p);
			}
		}
	}
	vnet_reassembly_free(r);
}

static void the_largest(void **state)
{
	r = vnet_reassembly_new();
	make(false, 65507);
	for (size_t at = 0; at < 65515; at += 1400) {
		struct vnet_packet *p = cut(at, MIN(at + 1400, (size_t)65515), 9);
		int last = at + 1400 >= 65515;

		assert_int_equal(vnet_reassemble(r, 1, 0, p), last);
		if (last)
			check_whole(p);
	}
	vnet_reassembly_free(r);
}

/* Those that overlap go, all of them: the rest waits for a first one that never comes. */
static void overlaps_are_refused(void **state)
{
	r = vnet_reassembly_new();
	make(true, 4000);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(0, 1400, 1)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1392, 2800, 1)), -EBADMSG);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1400, 4008, 1)), 0);
	/*
	 * A last one that ends before what has come; two last ones; a piece that is no multiple of
	 * 8.
	 */
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(2800, 3200, 2)), 0);
	whole.p.len -= 2000;
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1400, 2008, 2)), -EBADMSG);
	whole.p.len += 2000;
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(2800, 4008, 3)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1400, 4008, 3)), -EBADMSG);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(0, 1399, 4)), -EBADMSG);
	vnet_reassembly_free(r);
}

static void sessions_and_numbers_do_not_mix(void **state)
{
	r = vnet_reassembly_new();
	make(false, 2000);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(0, 1400, 1)), 0);
	assert_int_equal(vnet_reassemble(r, 2, 0, cut(1400, 2008, 1)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1400, 2008, 2)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 0, cut(1400, 2008, 1)), 1);
	vnet_reassembly_free(r);
}

/* One session fills its share: its own oldest goes, not another's. */
static void room_is_shared(void **state)
{
	r = vnet_reassembly_new();
	make(false, 2000);
	assert_int_equal(vnet_reassemble(r, 2, 0, cut(0, 1400, 77)), 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(vnet_reassemble(r, 1, 1 + i / 20, cut(0, 1400, i)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 6, cut(1400, 2008, 3)), 0);
	assert_int_equal(vnet_reassemble(r, 1, 6, cut(1400, 2008, 99)), 1);
	assert_int_equal(vnet_reassemble(r, 2, 6, cut(1400, 2008, 77)), 1);
	/* And after half a minute nobody waits any more. */
	assert_int_equal(vnet_reassemble(r, 2, 6, cut(0, 1400, 78)), 0);
	assert_int_equal(vnet_reassemble(r, 2, 37, cut(1400, 2008, 78)), 0);
	vnet_reassembly_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_in_any_order),
		cmocka_unit_test(the_largest),
		cmocka_unit_test(overlaps_are_refused),
		cmocka_unit_test(sessions_and_numbers_do_not_mix),
		cmocka_unit_test(room_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
