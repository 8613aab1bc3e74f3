// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A trace of a session's TUN once more through the translator: what the session sent goes out and
 * comes to the gateway with the flow's names; what it got is given the names it must have had at
 * the gateway, and comes in as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pcap/pcap.h>
#include <sys/mman.h>

#include "base/base.h"
#include "vnet/test_packets.h"
#include "vnet/vnat.h"

#define SESSIONS 4
#define FLOWS	 16
#define GATE	 7

static const char *folder;
static void *arena;
static struct vnet_vnat *vnat;
static struct test_buffer buffer;

static void restart(void)
{
	vnet_vnat_free(vnat);
	assert_int_equal(vnet_vnat_new(arena, SESSIONS, FLOWS, GATE, GATE, &vnat, NULL), 0);
}

/* Out of the session. */
static void sent(struct vnet_packet *p, const uint8_t *data, size_t len)
{
	enum vnat_verdict verdict;
	struct vnet_flow *f;
	uint32_t flow;

	verdict = vnet_vnat_from_session(vnat, 0, p, &flow);
	if (verdict == VNAT_NEW) {
		assert_true(vnet_packet_tcp(p)->syn);
		assert_int_equal(vnet_flow_open(vnat, 0, p, &flow), 0);
		vnet_flow_release(vnat, flow, p);
		verdict = VNAT_PASS;
	}
	assert_int_equal(verdict, VNAT_PASS);
	f = vnet_flow_get(vnat, flow);
	assert_int_equal(p->len, len);
	assert_memory_equal(p->data + p->payload, data + p->payload, p->payload_len);
	assert_int_equal(vnet_packet_parse(p), 0);
	assert_true(
		vnet_endpoint_equal(&p->src, &f->near) && vnet_endpoint_equal(&p->dst, &f->far));
}

/* Into the session. */
static void received(struct vnet_packet *p, const uint8_t *data, size_t len)
{
	uint32_t flow = vnet_flow_by_session(vnat, 0, &p->dst, &p->src), session;
	struct vnet_flow *f;

	assert_int_not_equal(flow, VNET_NONE);
	f = vnet_flow_get(vnat, flow);
	vnet_packet_set_src(p, &f->far);
	vnet_packet_set_dst(p, &f->near);
	assert_int_equal(vnet_packet_parse(p), 0);
	assert_int_equal(vnet_vnat_from_gateway(vnat, p, &session, &flow), VNAT_PASS);
	assert_int_equal(session, 0);
	assert_int_equal(p->len, len);
	assert_memory_equal(p->data, data, len);
}

static void a_trace_goes_through(void **state)
{
	struct vnet_endpoint v4 = test_ep("10.171.0.2", 0), v6 = test_ep("fd7a:706f:6472::2", 0);
	char error[PCAP_ERRBUF_SIZE], path[4096];
	size_t n_sent = 0, n_received = 0, others = 0;
	struct pcap_pkthdr h;
	const uint8_t *data;
	pcap_t *pcap;

	snprintf(path, sizeof(path), "%s/tcp.pcap", folder);
	pcap = pcap_open_offline(path, error);
	assert_non_null(pcap);
	arena = mmap(NULL, vnet_vnat_size(SESSIONS, FLOWS), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	restart();
	assert_int_equal(vnet_session_add(vnat, 0, &v4, &v6), 0);
	while ((data = pcap_next(pcap, &h))) {
		struct vnet_packet *p = test_reset(&buffer);

		assert_int_equal(h.len, h.caplen);
		memcpy(p->data, data, h.len);
		p->len = h.len;
		assert_int_equal(vnet_packet_parse(p), 0);
		if (!vnet_packet_tcp(p)) {
			others++;
		} else if (vnet_endpoint_same_address(&p->src, p->version == 4 ? &v4 : &v6)) {
			sent(p, data, h.len);
			n_sent++;
		} else {
			received(p, data, h.len);
			n_received++;
		}
		restart();
	}
	pcap_close(pcap);
	assert_true(n_sent > 8 && n_received > 8 && others == 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(vnet_flow_ends(vnet_flow_get(vnat, i)));
	vnet_vnat_free(vnat);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_goes_through),
	};

	folder = argc > 1 ? argv[1] : "vnet/vectors";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
