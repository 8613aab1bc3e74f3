// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/base.h"
#include "vnet/test_packets.h"

static const char *folder;

static void udp_is_made_and_parsed(void **state)
{
	const char *pairs[][2] = {
		{"10.171.0.2", "192.0.2.7"}, {"fd7a:706f:6472::2", "2001:db8::7"}};
	static struct test_buffer b;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct vnet_endpoint src = test_ep(pairs[i][0], 1234),
				     dst = test_ep(pairs[i][1], 53);
		struct vnet_packet *p = test_reset(&b), made;

		assert_int_equal(vnet_packet_make_udp(p, &src, &dst, "abc", 3, 0), 0);
		made = *p;
		assert_int_equal(vnet_packet_parse(p), 0);
		assert_memory_equal(&made.vh, &p->vh, sizeof(made.vh));
		assert_int_equal(made.l4, p->l4);
		assert_int_equal(made.payload, p->payload);
		assert_int_equal(p->payload_len, 3);
		assert_memory_equal(p->data + p->payload, "abc", 3);
		assert_true(
			vnet_endpoint_equal(&p->src, &src) && vnet_endpoint_equal(&p->dst, &dst));
		test_complete(p);
		assert_true(vnet_packet_checksum_ok(p));
		p->data[p->payload] ^= 1;
		assert_false(vnet_packet_checksum_ok(p));
	}
}

/* Whoever has to cut it is not to be kept busy by pieces of a byte. */
static void pieces_are_not_too_small(void **state)
{
	static const struct {
		size_t len;
		uint16_t piece;
		int result;
	} udp[] = {{256, 2, 0}, {257, 2, -EBADMSG}, {300, 1, -EBADMSG}, {60000, 1300, 0}};
	const struct vnet_endpoint src = test_ep("10.171.0.2", 1), dst = test_ep("192.0.2.7", 2);
	static const uint8_t payload[60000];
	static struct test_buffer b;
	struct vnet_packet *p;

	for (size_t i = 0; i < ARRAY_SIZE(udp); i++) {
		p = test_reset(&b);
		assert_int_equal(
			vnet_packet_make_udp(p, &src, &dst, payload, udp[i].len, udp[i].piece), 0);
		assert_int_equal(vnet_packet_parse(p), udp[i].result);
	}
	p = test_tcp(&b, &src, &dst,
		&(struct test_tcp){
			.flags = TEST_ACK, .payload = "0123456789abcdef", .gso_size = 8});
	assert_int_equal(vnet_packet_parse(p), 0);
	p->vh.gso_size = 7;
	assert_int_equal(vnet_packet_parse(p), -EBADMSG);
}

/*
 * Other ends, and the checksum is as right or as wrong as it was: complete or partial, either
 * family.
 */
static void ends_are_replaced(void **state)
{
	const char *names[][3] = {{"10.171.0.2", "192.0.2.7", "10.3.2.1"},
		{"fd7a:706f:6472::2", "2001:db8::7", "fd65:1::ffff"}};
	static struct test_buffer b;

	for (int i = 0; i < 8; i++) {
		bool v6 = i & 1, partial = i & 2, wrong = i & 4;
		struct vnet_endpoint src = test_ep(names[v6][0], 1234),
				     dst = test_ep(names[v6][1], 53);
		struct vnet_endpoint to = test_ep(names[v6][2], 65535);
		struct vnet_packet *p = test_reset(&b);

		assert_int_equal(vnet_packet_make_udp(p, &src, &dst, "payload", 7, 0), 0);
		if (!partial)
			test_complete(p);
		if (wrong)
			vnet_packet_udp(p)->check ^= 0x0100;
		vnet_packet_set_src(p, &to);
		vnet_packet_set_dst(p, &src);
		assert_int_equal(vnet_packet_parse(p), 0);
		assert_true(
			vnet_endpoint_equal(&p->src, &to) && vnet_endpoint_equal(&p->dst, &src));
		if (partial)
			test_complete(p);
		if (!partial || !wrong)
			assert_int_equal(vnet_packet_checksum_ok(p), !wrong);
	}
}

/* What the inputs of the fuzzer with these names are (tests/fuzz/corpus/packet). */
static const struct {
	const char *name;
	bool good, checksum_ok;
	int l4, payload_len, embedded;
} inputs[] = {
	{"tcp4-syn", true, true, 20, 0, -ENOENT},
	{"tcp6-syn", true, true, 40, 0, -ENOENT},
	{"tcp4-wrong-checksum", true, false, 20, 3, -ENOENT},
	{"tcp4-partial", true, true, 20, 3, -ENOENT},
	{"tcp4-super", true, true, 20, 4000, -ENOENT},
	{"tcp6-super", true, true, 40, 4000, -ENOENT},
	{"udp4-super", true, true, 20, 4000, -ENOENT},
	{"udp4", true, true, 20, 3, -ENOENT},
	{"udp4-none", true, true, 20, 3, -ENOENT},
	{"udp6", true, true, 40, 4, -ENOENT},
	{"udp6-none", true, false, 40, 4, -ENOENT},
	{"udp4-short", true, true, 20, 2, -ENOENT},
	{"echo4", true, true, 20, 5, -ENOENT},
	{"echo6", true, true, 40, 5, -ENOENT},
	{"icmp4-about-tcp", true, true, 20, 43, 0},
	{"icmp6-about-tcp", true, true, 40, 63, 0},
	{"icmp4-odd", true, true, 20, 44, 0},
	{"icmp4-about-udp", true, true, 20, 31, 0},
	{"icmp4-about-icmp", true, true, 20, 28, 0},
	{"icmp4-about-8-bytes", true, true, 20, 28, 0},
	{"icmp4-about-7-bytes", true, true, 20, 27, -EBADMSG},
	{"icmp4-about-nothing", true, true, 20, 0, -EBADMSG},
	{"frag4-first", true, false, 20, 16, -ENOENT},
	{"frag4-last", true, false, 20, 16, -ENOENT},
	{"frag6-first", true, false, 48, 8, -ENOENT},
	{"frag6-last", true, false, 48, 8, -ENOENT},
	{"ext6-hop-dst", true, true, 56, 0, -ENOENT},
	{"ext6-routing-done", true, true, 48, 0, -ENOENT},
	{"ext6-ah", true, false, 64, 0, -ENOENT},
	{"options4", true, false, 60, 0, -ENOENT},
	{"trailing", true, true, 20, 0, -ENOENT},
	{"sctp", true, true, 20, 20, -ENOENT},
	{"tcp6-super-says-v4"},
	{"super-of-0"},
	{"super-without-partial"},
	{"partial-elsewhere"},
	{"udp4-long"},
	{"udp4-tiny"},
	{"frag4-tiny"},
	{"frag6-twice"},
	{"ext6-routing-left"},
	{"ext6-long"},
	{"ext6-nine"},
	{"ext6-end"},
	{"doff-4"},
	{"doff-15"},
	{"len-behind"},
	{"len-before"},
	{"version-5"},
	{"nothing"},
};

static void good_ones_and_bad_ones(void **state)
{
	static struct test_buffer b;
	struct vnet_embedded e;

	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
		struct vnet_packet *p = test_reset(&b);
		_cleanup_buf_ struct buf file = BUF_INIT;
		char path[4096];

		snprintf(path, sizeof(path), "%s/../../tests/fuzz/corpus/packet/%s", folder,
			inputs[i].name);
		print_message("%s\n", inputs[i].name);
		assert_int_equal(io_read_file(AT_FDCWD, path, sizeof(b.bytes), &file), 0);
		assert_true(file.len >= sizeof(p->vh));
		memcpy(&p->vh, file.data, sizeof(p->vh));
		p->len = file.len - sizeof(p->vh);
		memcpy(p->data, file.data + sizeof(p->vh), p->len);
		assert_int_equal(vnet_packet_parse(p), inputs[i].good ? 0 : -EBADMSG);
		if (!inputs[i].good)
			continue;
		assert_int_equal(vnet_packet_checksum_ok(p), inputs[i].checksum_ok);
		assert_int_equal(p->l4, inputs[i].l4);
		assert_int_equal(p->payload_len, inputs[i].payload_len);
		assert_int_equal(vnet_packet_embedded(p, &e), inputs[i].embedded);
	}
}

/* Only what says nothing else is needless, and only behind something that says more. */
static void acknowledgements_cover_others(void **state)
{
	static const struct {
		struct test_tcp t;
		bool ack, covers; /* the first one */
	} all[] = {
		{{TEST_ACK, 100, 0xfffffff0, NULL, 0, 0}, true, false},
		{{TEST_ACK, 100, 0xfffffff1, NULL, 0, 0}, true, true},
		{{TEST_ACK, 100, 0x10, NULL, 0, 0}, true, true},
		{{TEST_ACK, 100, 0xffffffe0, NULL, 0, 0}, true, false},
		{{TEST_ACK, 101, 0x10, NULL, 0, 0}, true, false},
		{{TEST_ACK, 100, 0x10, "x", 1, 0}, false, true},
		{{TEST_ACK, 100, 0xfffffff0, "x", 1, 0}, false, true},
		{{TEST_ACK, 100, 0xffffffe0, "x", 1, 0}, false, false},
		{{TEST_ACK, 101, 0xfffffff0, "x", 1, 0}, false, false},
		{{TEST_ACK | TEST_FIN, 100, 0x10, NULL, 0, 0}, false, true},
		{{TEST_ACK | TEST_FIN, 100, 0xfffffff0, NULL, 0, 0}, false, true},
		{{TEST_FIN, 100, 0xfffffff0, NULL, 0, 0}, false, false},
		{{TEST_ACK | TEST_SYN, 100, 0x10, NULL, 0, 0}, false, false},
		{{TEST_ACK | TEST_RST, 100, 0x10, NULL, 0, 0}, false, false},
		{{TEST_ACK | 0x40 /* ECE */, 100, 0x10, NULL, 0, 0}, false, false},
		{{TEST_SYN, 100, 0, NULL, 0, 0}, false, false},
	};
	static struct test_buffer first, b;
	const char *pairs[][2] = {
		{"10.171.0.2", "192.0.2.7"}, {"fd7a:706f:6472::2", "2001:db8::7"}};

	for (size_t v6 = 0; v6 < 2; v6++) {
		struct vnet_endpoint src = test_ep(pairs[v6][0], 1), dst = test_ep(pairs[v6][1], 2),
				     other = test_ep(pairs[v6][0], 3);
		struct vnet_packet *p = test_tcp(&first, &src, &dst, &all[0].t), *q;

		for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
			q = test_tcp(&b, &src, &dst, &all[i].t);
			assert_int_equal(vnet_packet_is_ack(q), all[i].ack);
			assert_int_equal(vnet_packet_ack_covers(q, p), all[i].covers);
		}
		q = test_tcp(&b, &src, &dst, &all[0].t);
		vnet_packet_tcp(q)->window = htons(ntohs(vnet_packet_tcp(q)->window) + 1);
		assert_true(vnet_packet_ack_covers(q, p));
		assert_false(vnet_packet_ack_covers(p, q));
		q = test_tcp(&b, &other, &dst, &all[1].t);
		assert_false(vnet_packet_ack_covers(q, p));
		assert_int_equal(vnet_packet_make_udp(q, &src, &dst, NULL, 0, 0), 0);
		assert_false(vnet_packet_is_ack(q));
		assert_false(vnet_packet_ack_covers(q, p));
	}
}

/* Time stamps change nothing; a SACK is what the sender wants to know. */
static void acknowledgements_have_options(void **state)
{
	static const uint8_t stamps[12] = {1, 1, 8, 10}, sack[12] = {1, 1, 5, 10};
	static const struct test_tcp t = {TEST_ACK, 100, 1, (const char *)stamps, 12, 0};
	struct vnet_endpoint src = test_ep("10.171.0.2", 1), dst = test_ep("192.0.2.7", 2);
	static struct test_buffer b;
	struct vnet_packet *p = test_tcp(&b, &src, &dst, &t);

	vnet_packet_tcp(p)->doff = 8;
	assert_int_equal(vnet_packet_parse(p), 0);
	assert_true(vnet_packet_is_ack(p));
	memcpy(vnet_packet_tcp(p) + 1, sack, sizeof(sack));
	assert_false(vnet_packet_is_ack(p));
}

/* Which segments follow another so that they may be made one with it. */
static void segments_are_joined(void **state)
{
	static char body[3000];
	static const struct {
		struct test_tcp t;
		bool joined;
		uint16_t gso_size;
	} all[] = {
		{{TEST_ACK, 1100, 7, body, 1000, 0}, true, 1000},
		{{TEST_ACK | TEST_PSH, 1100, 7, body, 1368, 0}, true, 1368},
		{{TEST_ACK, 1100, 7, body, 3000, 1368}, true, 1368},
		{{TEST_ACK, 1100, 7, body, 8, 0}, true, 1000},
		{{TEST_ACK, 1100, 7, body, 7, 0}, false, 0},
		{{TEST_ACK, 1100, 7, NULL, 0, 0}, false, 0},
		{{TEST_ACK, 1101, 7, body, 1000, 0}, false, 0},
		{{TEST_ACK, 1099, 7, body, 1000, 0}, false, 0},
		{{TEST_ACK, 1100, 8, body, 1000, 0}, false, 0},
		{{TEST_ACK | TEST_FIN, 1100, 7, body, 1000, 0}, false, 0},
		{{TEST_ACK | TEST_RST, 1100, 7, body, 1000, 0}, false, 0},
		{{TEST_ACK | 0x20 /* URG */, 1100, 7, body, 1000, 0}, false, 0},
		{{TEST_ACK | 0x40 /* ECE */, 1100, 7, body, 1000, 0}, false, 0},
		{{TEST_PSH, 1100, 7, body, 1000, 0}, false, 0},
	};
	static const struct test_tcp first = {TEST_ACK, 100, 7, body, 1000, 0};
	static struct test_buffer a, b;
	const char *pairs[][2] = {
		{"10.171.0.2", "192.0.2.7"}, {"fd7a:706f:6472::2", "2001:db8::7"}};

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(all); i++) {
		const struct test_tcp *t = &all[i / 2].t;
		struct vnet_endpoint src = test_ep(pairs[i % 2][0], 1),
				     dst = test_ep(pairs[i % 2][1], 2);
		struct vnet_packet *p = test_tcp(&a, &src, &dst, &first),
				   *q = test_tcp(&b, &src, &dst, t);
		size_t whole = p->len + t->len;

		assert_false(vnet_packet_join(p, q, whole - 1));
		assert_int_equal(vnet_packet_join(p, q, whole), all[i / 2].joined);
		if (!all[i / 2].joined)
			continue;
		assert_int_equal(p->vh.gso_size, all[i / 2].gso_size);
		assert_int_equal(vnet_packet_tcp(p)->psh, vnet_packet_tcp(q)->psh);
		assert_int_equal(vnet_packet_parse(p), 0);
		assert_int_equal(p->len, whole);
		assert_int_equal(ntohl(vnet_packet_tcp(p)->seq), 100);
		assert_memory_equal(p->data + p->payload, body, 1000);
		assert_memory_equal(p->data + p->payload + 1000, body, t->len);
		test_complete(p);
		assert_true(vnet_packet_checksum_ok(p));
	}
}

/* Nor is one joined that another says something else about. */
static void others_are_not_joined(void **state)
{
	static const char body[1000];
	static const struct test_tcp first = {TEST_ACK, 100, 7, body, 1000, 0},
				     second = {TEST_ACK, 1100, 7, body, 1000, 0};
	struct vnet_endpoint src = test_ep("10.171.0.2", 1), dst = test_ep("192.0.2.7", 2),
			     other = test_ep("10.171.0.2", 3);
	static struct test_buffer a, b;
	struct vnet_packet *p = test_tcp(&a, &src, &dst, &first), *q;

	q = test_tcp(&b, &other, &dst, &second);
	assert_false(vnet_packet_join(p, q, 65535));
	q = test_tcp(&b, &src, &dst, &second);
	vnet_packet_tcp(q)->window ^= 1;
	assert_false(vnet_packet_join(p, q, 65535));
	q = test_tcp(&b, &src, &dst, &second);
	((struct iphdr *)(void *)q->data)->tos ^= 4;
	assert_false(vnet_packet_join(p, q, 65535));
	q = test_tcp(&b, &src, &dst, &second);
	test_complete(q);
	assert_false(vnet_packet_join(p, q, 65535));
	q = test_tcp(&b, &src, &dst, &second);
	q->vh.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	assert_false(vnet_packet_join(p, q, 65535));
	q = test_tcp(&b, &src, &dst, &second);
	assert_true(vnet_packet_join(p, q, 65535));
}

/* How a receiver answers that takes nothing now: @r is what vnet_packet_make_full gives. */
static void a_receiver_without_room(void **state)
{
	static const struct {
		struct test_tcp t;
		int r;
		uint32_t ack;
	} all[] = {
		{{TEST_ACK | TEST_PSH, 100, 7, "data", 0, 0}, 0, 100},
		{{TEST_ACK | TEST_FIN, 100, 7, NULL, 0, 0}, 0, 100},
		{{TEST_ACK, 100, 7, NULL, 0, 0}, 0, 101},
		{{TEST_ACK, UINT32_MAX, 7, NULL, 0, 0}, 0, 0},
		{{TEST_SYN, 100, 0, NULL, 0, 0}, -EINVAL, 0},
		{{TEST_SYN | TEST_ACK, 100, 7, NULL, 0, 0}, -EINVAL, 0},
		{{TEST_RST | TEST_ACK, 100, 7, NULL, 0, 0}, -EINVAL, 0},
		{{TEST_PSH, 100, 0, "data", 0, 0}, -EINVAL, 0},
		{{TEST_ACK, 100, 7, "\1\1\10\12valuecho", 12, 0}, 0, 101},
	};
	static struct test_buffer a, b;
	const char *pairs[][2] = {
		{"10.171.0.2", "192.0.2.7"}, {"fd7a:706f:6472::2", "2001:db8::7"}};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(all); i++) {
		bool stamped = all[i / 2].t.len;
		struct vnet_endpoint src = test_ep(pairs[i % 2][0], 1),
				     dst = test_ep(pairs[i % 2][1], 2);
		struct vnet_packet *p = test_tcp(&a, &src, &dst, &all[i / 2].t),
				   *q = test_reset(&b);

		if (stamped)
			vnet_packet_tcp(p)->doff = 8;
		assert_int_equal(vnet_packet_parse(p), 0);
		assert_int_equal(vnet_packet_make_full(q, p), all[i / 2].r);
		if (all[i / 2].r < 0)
			continue;
		assert_int_equal(vnet_packet_parse(q), 0);
		assert_true(vnet_packet_is_ack(q));
		assert_true(vnet_endpoint_equal(&q->src, &dst));
		assert_true(vnet_endpoint_equal(&q->dst, &src));
		assert_int_equal(ntohl(vnet_packet_tcp(q)->seq), 7);
		assert_int_equal(ntohl(vnet_packet_tcp(q)->ack_seq), all[i / 2].ack);
		assert_int_equal(vnet_packet_tcp(q)->window, 0);
		assert_int_equal(vnet_packet_tcp(q)->doff, stamped ? 8 : 5);
		if (stamped)
			assert_memory_equal(vnet_packet_tcp(q) + 1, "\1\1\10\12echovalu", 12);
		test_complete(q);
		assert_true(vnet_packet_checksum_ok(q));
	}
}

static void whose_addresses(void **state)
{
	static const struct {
		const char *text;
		bool of_host;
	} all[] = {{"169.254.169.254", true}, {"169.254.0.1", true}, {"169.253.255.255", false},
		{"168.63.129.16", true}, {"100.100.100.200", true}, {"192.0.0.192", true},
		{"192.0.2.1", false}, {"fe80::1", true}, {"fd00:ec2::254", true},
		{"fd20:ce::254", true}, {"fd00:ec2::253", false}, {"2001:db8::1", false}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct vnet_endpoint ep = {.family = strchr(all[i].text, ':') ? AF_INET6 : AF_INET};

		assert_int_equal(inet_pton(ep.family, all[i].text, &ep.v6), 1);
		if (vnet_endpoint_is_of_host(&ep) != all[i].of_host)
			fail_msg("%s", all[i].text);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receiver_without_room),
		cmocka_unit_test(whose_addresses),
		cmocka_unit_test(udp_is_made_and_parsed),
		cmocka_unit_test(pieces_are_not_too_small),
		cmocka_unit_test(ends_are_replaced),
		cmocka_unit_test(good_ones_and_bad_ones),
		cmocka_unit_test(acknowledgements_cover_others),
		cmocka_unit_test(acknowledgements_have_options),
		cmocka_unit_test(segments_are_joined),
		cmocka_unit_test(others_are_not_joined),
	};

	folder = argc > 1 ? argv[1] : "vnet/vectors";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
