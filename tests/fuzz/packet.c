// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a packet from a TUN: a virtio header and an IP packet.  What the parser accepts is
 * then given other ends and answered in all ways, and must stay a packet that the parser accepts,
 * with a checksum as right or wrong as before.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "vnet/packet.h"

static _Alignas(8) uint8_t bytes[VNET_PACKET_MAX];

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* The packet of the input, or false. */
static bool take(struct vnet_packet *p, const uint8_t *data, size_t size)
{
	*p = (struct vnet_packet){.data = bytes, .room = sizeof(bytes)};
	if (size < sizeof(p->vh) || size > sizeof(bytes))
		return false;
	memcpy(&p->vh, data, sizeof(p->vh));
	p->len = size - sizeof(p->vh);
	memcpy(bytes, data + sizeof(p->vh), p->len);
	return vnet_packet_parse(p) == 0;
}

static void rewrite(struct vnet_packet *p)
{
	bool ok = vnet_packet_checksum_ok(p);
	struct vnet_endpoint src = p->src, dst = p->dst;
	struct vnet_embedded inside;

	src.v6.s6_addr[3] ^= 0x55;
	dst.v6.s6_addr[0] ^= 0xaa;
	if (src.port)
		src.port ^= 0xffff;
	vnet_packet_set_src(p, &src);
	vnet_packet_set_dst(p, &dst);
	if (vnet_packet_embedded(p, &inside) == 0) {
		vnet_packet_set_embedded(p, &inside, &dst, &src);
		must(vnet_packet_embedded(p, &inside) == 0);
		must(vnet_endpoint_same_address(&inside.src, &dst));
	}
	must(vnet_packet_parse(p) == 0);
	must(vnet_endpoint_equal(&p->src, &src) && vnet_endpoint_equal(&p->dst, &dst));
	must(vnet_packet_checksum_ok(p) == ok);
}

/* What would follow the packet, if it is one that may be followed. */
static void join(struct vnet_packet *p)
{
	static _Alignas(4) uint8_t behind[65536 + 64];
	struct vnet_packet next = *p;
	const size_t len = p->len, payload_len = p->payload_len;

	next.data = behind;
	memcpy(behind, p->data, p->len);
	if (vnet_packet_tcp(&next))
		vnet_packet_tcp(&next)->seq =
			htonl(ntohl(vnet_packet_tcp(&next)->seq) + p->payload_len);
	must(vnet_packet_join(p, &next, 65535) ==
		(vnet_packet_is_joinable(&next) && len + payload_len <= 65535));
	must(vnet_packet_parse(p) == 0);
	must(p->payload_len == payload_len || p->len == len + payload_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vnet_icmp icmp = {.type = 3, .code = 1};
	struct vnet_packet p;

	if (!take(&p, data, size))
		return 0;
	must(p.l4 <= p.payload && p.payload + (size_t)p.payload_len <= p.len &&
		p.len <= 65535 + 40);
	rewrite(&p);
	if (take(&p, data, size) && vnet_packet_make_rst(&p, &p) == 0)
		must(vnet_packet_parse(&p) == 0 && vnet_packet_tcp(&p)->rst);
	if (take(&p, data, size) && vnet_packet_make_icmp_error(&p, &p, NULL, &icmp) == 0)
		must(vnet_packet_parse(&p) == 0 && vnet_packet_checksum_ok(&p));
	if (take(&p, data, size) && vnet_packet_make_echo_reply(&p) == 0)
		must(vnet_packet_parse(&p) == 0 && vnet_packet_checksum_ok(&p));
	if (take(&p, data, size))
		join(&p);
	if (take(&p, data, size) && vnet_packet_tcp(&p) && !p.fragment) {
		vnet_packet_truncate(&p, 3);
		must(vnet_packet_parse(&p) == 0 && p.payload_len <= 3);
	}
	return 0;
}
