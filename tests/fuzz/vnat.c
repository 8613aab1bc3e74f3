// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any packets, from a session or from the gateway, in any order, through the translator; between
 * them its owner does what he may do, and another process takes over.  A step is
 *
 *      what (1 byte) | length (1 byte) | an IP packet of that length
 *
 * A packet that passes must be one that the parser accepts, and each flow must be found by both of
 * its names.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/vnat.h"

#define SESSIONS 2
#define FLOWS	 8
#define GATE	 9

enum { FROM_SESSION, FROM_GATEWAY, FROM_FLOW, RESTART, AWAY, LINGER, DROP, REMOVE, N_STEPS };

static struct vnet_vnat *vnat;
static void *arena;
static _Alignas(8) uint8_t bytes[2048];

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void restart(void)
{
	vnet_vnat_free(vnat);
	must(vnet_vnat_new(arena, SESSIONS, FLOWS, GATE, GATE, &vnat, NULL) == 0);
}

static void add_session(uint32_t session)
{
	struct vnet_endpoint v4 = {.family = AF_INET}, v6 = {.family = AF_INET6};

	inet_pton(AF_INET, "10.171.0.2", &v4.v4);
	inet_pton(AF_INET6, "fd7a:706f:6472::2", &v6.v6);
	must(vnet_session_add(vnat, session, &v4, &v6) == 0);
}

static void from_session(uint32_t session, struct vnet_packet *p, uint8_t what)
{
	const struct vnet_icmp icmp = {.type = 3, .code = 1};
	uint32_t flow;
	enum vnat_verdict verdict = vnet_vnat_from_session(vnat, session, p, &flow);

	if (verdict == VNAT_NEW) {
		if (flow != VNET_NONE)
			vnet_flow_drop(vnat, flow);
		if (vnet_flow_open(vnat, session, p, &flow) < 0)
			return;
		if (what & 0x80)
			vnet_flow_release(vnat, flow, p);
		else if (what & 0x40)
			vnet_flow_refuse(vnat, flow, what & 0x20 ? &icmp : NULL, p);
		else
			return;
		verdict = VNAT_PASS;
	}
	if (verdict == VNAT_PASS || verdict == VNAT_ANSWER)
		must(vnet_packet_parse(p) == 0);
}

/* As if it were a segment of a flow, if there is one: fuzzers don't guess 128 bits. */
static void give_names(struct vnet_packet *p)
{
	uint32_t i = vnet_flow_next(vnat, VNET_NONE, VNET_NONE);
	const struct vnet_flow *f = vnet_flow_get(vnat, i);

	if (!f || f->near.family != p->src.family)
		return;
	vnet_packet_set_src(p, &f->far);
	vnet_packet_set_dst(p, &f->near);
}

static void step(uint8_t what, const uint8_t *data, size_t len)
{
	struct vnet_packet p = {.data = bytes, .len = len, .room = sizeof(bytes)};
	uint32_t number = len ? data[0] % FLOWS : 0, session = what >> 4 & 1, flow;

	memcpy(bytes, data, len);
	switch (what % N_STEPS) {
	case FROM_SESSION:
		if (vnet_packet_parse(&p) == 0)
			from_session(session, &p, what);
		return;
	case FROM_FLOW:
	case FROM_GATEWAY:
		if (vnet_packet_parse(&p) < 0)
			return;
		if (what % N_STEPS == FROM_FLOW)
			give_names(&p);
		if (vnet_vnat_from_gateway(vnat, &p, &session, &flow) != VNAT_DROP)
			must(vnet_packet_parse(&p) == 0);
		return;
	case RESTART:
		restart();
		return;
	case AWAY:
		vnet_session_set_away(vnat, session, what & 0x80);
		if (vnet_flow_replay(vnat, number, &p))
			must(vnet_packet_parse(&p) == 0);
		return;
	case LINGER:
		vnet_flow_linger(vnat, number);
		return;
	case DROP:
		vnet_flow_drop(vnat, number);
		return;
	case REMOVE:
		vnet_session_remove(vnat, session);
		add_session(session);
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = vnet_vnat_size(SESSIONS, FLOWS);

	arena = aligned_alloc(4096, ALIGN_UP(room, 4096));
	must(arena != NULL);
	memset(arena, 0, room);
	restart();
	add_session(0);
	add_session(1);
	while (size >= 2) {
		size_t len = MIN((size_t)data[1], size - 2);

		step(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	for (uint32_t i = VNET_NONE; (i = vnet_flow_next(vnat, VNET_NONE, i)) != VNET_NONE;) {
		const struct vnet_flow *f = vnet_flow_get(vnat, i);

		must(vnet_flow_by_inner(vnat, &f->near, &f->far) == i);
		must(vnet_flow_by_session(vnat, f->session, &f->inside, &f->outside) == i);
	}
	vnet_vnat_free(vnat);
	vnat = NULL;
	free(arena);
	return 0;
}
