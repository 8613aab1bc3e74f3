// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any packets from a session into the gateway's datagram half, and what it gives back must be
 * packets.
 *
 * The process has a network namespace of its own, without any way out: sends fail, mappings and
 * questions come and go. The input is a list of packets: two bytes (how long), then a virtio
 * header and the packet.  A length with the highest bit set holds the session, or lets it go.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/sessions.h"
#include "vnet/packet.h"

struct gateway {
	bool held;
	void *arena;
	struct vnet_datagram *d;
};

static bool get(void *data, uint32_t id, struct vnet_datagram_session *ret)
{
	const struct gateway *g = data;

	*ret = (struct vnet_datagram_session){.name = "work",
		.address4.s_addr = htonl(0x0aab0002),
		.gateway4.s_addr = htonl(0x0aab0001),
		.physical4.s_addr = htonl(0x0a000002 + id),
		.loopback4.s_addr = htonl(0x0aab0003),
		.mtu = 1420,
		.held = g->held && id == 0};
	ret->gateway6.s6_addr[0] = ret->address6.s6_addr[0] = ret->physical6.s6_addr[0] = 0xfd;
	ret->gateway6.s6_addr[15] = 1;
	ret->address6.s6_addr[15] = 2;
	ret->physical6.s6_addr[15] = (uint8_t)(3 + id);
	return id < 2;
}

static bool by_name(void *data, const char *name, uint32_t *ret)
{
	*ret = 1;
	return strcmp(name, "other") == 0;
}

static bool by_physical(void *data, int family, const void *address, uint32_t *ret)
{
	struct vnet_datagram_session s;

	for (*ret = 0; get(data, *ret, &s); ++*ret)
		if (family == AF_INET ? memcmp(&s.physical4, address, sizeof(s.physical4)) == 0
				      : memcmp(&s.physical6, address, sizeof(s.physical6)) == 0)
			return true;
	return false;
}

static void to_session(void *data, uint32_t id, struct vnet_packet *p)
{
	struct vnet_packet copy = *p;

	if (vnet_packet_parse(&copy) < 0 || copy.len != p->len)
		abort();
}

static const struct vnet_datagram_sessions SESSIONS = {
	.get = get, .by_name = by_name, .by_physical = by_physical, .to_session = to_session};

static bool apart;

/* Before the fuzzer has threads: a process with several can't have another user namespace. */
__attribute__((constructor)) static void leave(void)
{
	apart = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

static struct gateway *make(void)
{
	static struct gateway g;
	struct err e = {0};

	if (!apart)
		return NULL;
	g.arena = calloc(1, vnet_datagram_arena_size());
	if (!g.arena || vnet_datagram_new(&g.d, g.arena, &SESSIONS, &g, "/dev/null", &e) < 0)
		abort();
	return &g;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t room[VNET_PACKET_MAX] __attribute__((aligned(8)));
	static struct gateway *g;
	static bool made;
	struct cursor in = cursor_of(data, size);

	if (!made)
		g = make();
	made = true;
	while (g && cursor_left(&in) > 2 + sizeof(struct virtio_net_hdr)) {
		struct vnet_packet p = {.data = room, .room = sizeof(room)};
		size_t n = (size_t)cursor_u8(&in) << 8;

		n |= cursor_u8(&in);
		if (n & 0x8000)
			g->held = !g->held;
		memcpy(&p.vh, cursor_take(&in, sizeof(p.vh)), sizeof(p.vh));
		p.len = MIN(n & 0x7fff, cursor_left(&in));
		memcpy(room, cursor_take(&in, p.len), p.len);
		if (vnet_packet_parse(&p) == 0)
			vnet_datagram_take(g->d, 0, &p);
		if (!g->held)
			vnet_datagram_go(g->d, 0);
		vnet_datagram_flush(g->d);
		vnet_datagram_run(g->d);
	}
	if (g) {
		vnet_datagram_forget(g->d, 0);
		vnet_datagram_forget(g->d, 1);
		g->held = false;
	}
	return 0;
}
