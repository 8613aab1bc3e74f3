// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"

/* A packet with a buffer of its own. */
struct buffer {
	struct vnet_packet p;
	_Alignas(4) uint8_t bytes[VNET_PACKET_MAX];
};

static struct vnet_packet *reset(struct buffer *b)
{
	b->p = (struct vnet_packet){.data = b->bytes, .room = sizeof(b->bytes)};
	return &b->p;
}

static struct vnet_endpoint ep(const char *address, uint16_t port)
{
	struct vnet_endpoint e = {.port = port};

	e.family = strchr(address, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(e.family, address, &e.v6), 1);
	return e;
}

/* Completes a partial checksum, as a network card does. */
static void complete(struct vnet_packet *p)
{
	uint16_t *check = (uint16_t *)(void *)(p->data + p->vh.csum_start + p->vh.csum_offset);

	assert_true(p->vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
	*check = (uint16_t)~vnet_checksum_fold(
		vnet_checksum_add(0, p->data + p->l4, p->len - p->l4));
	p->vh = (struct virtio_net_hdr){0};
}

static void udp_is_made_and_parsed(void **state)
{
	const char *pairs[][2] = {
		{"10.171.0.2", "192.0.2.7"}, {"fd7a:706f:6472::2", "2001:db8::7"}};
	static struct buffer b;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct vnet_endpoint src = ep(pairs[i][0], 1234), dst = ep(pairs[i][1], 53);
		struct vnet_packet *p = reset(&b), made;

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
		complete(p);
		assert_true(vnet_packet_checksum_ok(p));
		p->data[p->payload] ^= 1;
		assert_false(vnet_packet_checksum_ok(p));
	}
}

/* Other ends, and the checksum is as right or as wrong as it was: complete or partial, either family. */
static void ends_are_replaced(void **state)
{
	const char *names[][3] = {{"10.171.0.2", "192.0.2.7", "10.3.2.1"},
		{"fd7a:706f:6472::2", "2001:db8::7", "fd65:1::ffff"}};
	static struct buffer b;

	for (int i = 0; i < 8; i++) {
		bool v6 = i & 1, partial = i & 2, wrong = i & 4;
		struct vnet_endpoint src = ep(names[v6][0], 1234), dst = ep(names[v6][1], 53);
		struct vnet_endpoint to = ep(names[v6][2], 65535);
		struct vnet_packet *p = reset(&b);

		assert_int_equal(vnet_packet_make_udp(p, &src, &dst, "payload", 7, 0), 0);
		if (!partial)
			complete(p);
		if (wrong)
			vnet_packet_udp(p)->check ^= 0x0100;
		vnet_packet_set_src(p, &to);
		vnet_packet_set_dst(p, &src);
		assert_int_equal(vnet_packet_parse(p), 0);
		assert_true(
			vnet_endpoint_equal(&p->src, &to) && vnet_endpoint_equal(&p->dst, &src));
		if (partial)
			complete(p);
		if (!partial || !wrong)
			assert_int_equal(vnet_packet_checksum_ok(p), !wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_is_made_and_parsed),
		cmocka_unit_test(ends_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
