// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/test_packets.h"
#include "vnet/vnat.h"

#define SESSIONS 64
#define GATE	 9

static struct vnet_vnat *vnat;
static void *arena;
static uint32_t n_flows;
static struct test_buffer buffer, other;
static struct vnet_endpoint app, server;

static void begin(uint32_t flows)
{
	struct vnet_endpoint v4 = test_ep("10.171.0.2", 0), v6 = test_ep("fd7a:706f:6472::2", 0);

	n_flows = flows;
	arena = mmap(NULL, vnet_vnat_size(SESSIONS, flows), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(arena, MAP_FAILED);
	assert_int_equal(vnet_vnat_new(arena, SESSIONS, flows, GATE, GATE, &vnat, NULL), 0);
	assert_int_equal(vnet_session_add(vnat, 3, &v4, &v6), 0);
	app = test_ep("10.171.0.2", 40000);
	server = test_ep("192.0.2.7", 80);
}

/* Another process takes the arena over. */
static void restart(void)
{
	vnet_vnat_free(vnat);
	assert_int_equal(vnet_vnat_new(arena, SESSIONS, n_flows, GATE, GATE, &vnat, NULL), 0);
}

static void end(void)
{
	vnet_vnat_free(vnat);
	munmap(arena, vnet_vnat_size(SESSIONS, n_flows));
}

/* A segment of the session @session; the verdict, with the packet in `buffer`. */
static enum vnat_verdict out(uint32_t session, struct test_tcp t, uint32_t *flow)
{
	return vnet_vnat_from_session(vnat, session, test_tcp(&buffer, &app, &server, &t), flow);
}

/* A segment from the gateway to the flow @f. */
static enum vnat_verdict in(const struct vnet_flow *f, struct test_tcp t)
{
	struct vnet_endpoint near = f->near, far = f->far;
	uint32_t session, flow;

	return vnet_vnat_from_gateway(vnat, test_tcp(&buffer, &far, &near, &t), &session, &flow);
}

static uint32_t open_flow(uint32_t session)
{
	uint32_t flow;

	assert_int_equal(out(session, (struct test_tcp){TEST_SYN, 1000}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, session, &buffer.p, &flow), 0);
	vnet_flow_release(vnat, flow, test_reset(&buffer));
	return flow;
}

static void check_ends(const struct vnet_endpoint *src, const struct vnet_endpoint *dst)
{
	assert_int_equal(vnet_packet_parse(&buffer.p), 0);
	assert_true(vnet_endpoint_equal(&buffer.p.src, src));
	assert_true(vnet_endpoint_equal(&buffer.p.dst, dst));
	if (buffer.p.vh.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		test_complete(&buffer.p);
	assert_true(vnet_packet_checksum_ok(&buffer.p));
}

static void outbound_life(bool v6)
{
	struct vnet_flow *f;
	uint32_t flow, same;

	begin(64);
	if (v6) {
		app = test_ep("fd7a:706f:6472::2", 40000);
		server = test_ep("2001:db8::7", 80);
	}
	/* With data in it (fast open): that is sent again. */
	assert_int_equal(
		out(3, (struct test_tcp){TEST_SYN, 1000, .payload = "early"}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), 0);
	restart();
	/* Swallowed while the outside has not answered; another try replaces it. */
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000}, &same), VNAT_DROP);
	assert_int_equal(same, flow);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 2000}, &same), VNAT_DROP);
	restart();
	vnet_flow_release(vnat, flow, test_reset(&buffer));
	f = vnet_flow_get(vnat, flow);
	assert_int_equal(f->near.port, 40000);
	assert_int_equal(f->far.port, GATE);
	check_ends(&f->near, &f->far);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->seq), 2000);
	assert_int_equal(buffer.p.payload_len, 0);
	assert_int_equal(vnet_flow_by_inner(vnat, &f->near, &f->far), flow);

	assert_int_equal(in(f, (struct test_tcp){TEST_SYN | TEST_ACK, 7, 2001}), VNAT_PASS);
	check_ends(&server, &app);
	restart();
	f = vnet_flow_get(vnat, flow);
	assert_int_equal(out(3, (struct test_tcp){TEST_ACK, 2001, 8, "GET"}, &same), VNAT_PASS);
	check_ends(&f->near, &f->far);
	assert_false(vnet_flow_ends(f));
	assert_int_equal(in(f, (struct test_tcp){TEST_ACK | TEST_FIN, 8, 2004}), VNAT_PASS);
	assert_false(vnet_flow_ends(f));
	assert_int_equal(out(3, (struct test_tcp){TEST_ACK | TEST_FIN, 2004, 9}, &same), VNAT_PASS);
	assert_true(vnet_flow_ends(f));
	/* Its owner has the last word; then it lingers, and late segments pass. */
	vnet_flow_linger(vnat, flow);
	restart();
	assert_int_equal(
		in(vnet_flow_get(vnat, flow), (struct test_tcp){TEST_ACK, 9, 2005}), VNAT_PASS);
	vnet_vnat_set_clock(vnat, VNET_LINGER - 1);
	assert_int_equal(vnet_vnat_expire(vnat), 1);
	vnet_vnat_set_clock(vnat, VNET_LINGER);
	assert_int_equal(vnet_vnat_expire(vnat), UINT32_MAX);
	assert_null(vnet_flow_get(vnat, flow));
	assert_int_equal(vnet_session_get(vnat, 3)->n_flows, 0);
	assert_int_equal(vnet_session_get(vnat, 3)->counters.flows, 1);
	end();
}

static void outbound_v4(void **state)
{
	outbound_life(false);
}

static void outbound_v6(void **state)
{
	outbound_life(true);
}

/* Of several copies of one SYN, here with different numbers where a time stamp would differ. */
static void the_latest_syn_goes_on(void **state)
{
	struct vnet_flow *f;
	uint32_t flow, same;

	begin(64);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000, .ack = 1}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), 0);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000, .ack = 2}, &same), VNAT_DROP);
	assert_int_equal(same, flow);
	restart();
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000, .ack = 3}, &same), VNAT_DROP);
	vnet_flow_release(vnat, flow, test_reset(&buffer));
	f = vnet_flow_get(vnat, flow);
	check_ends(&f->near, &f->far);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->seq), 1000);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->ack_seq), 3);
	end();
}

static void inbound_life(void **state)
{
	struct vnet_endpoint client = test_ep("203.0.113.9", 50000), near, far;
	uint32_t flow, same;

	begin(64);
	app.port = 8080;
	far = test_ep("100.64.0.1", 33000);
	assert_int_equal(vnet_flow_inbound(vnat, 3, &client, &app, &far, &near, &flow), 0);
	assert_int_equal(near.port, 8080);
	assert_int_equal(
		vnet_flow_inbound(vnat, 3, &client, &app, &far, &near, &same), -EADDRINUSE);
	restart();
	assert_int_equal(in(vnet_flow_get(vnat, flow), (struct test_tcp){TEST_SYN, 5}), VNAT_PASS);
	check_ends(&client, &app);
	server = client;
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN | TEST_ACK, 9, 6}, &same), VNAT_PASS);
	assert_int_equal(same, flow);
	check_ends(&near, &far);
	assert_true(vnet_flow_get(vnat, flow)->seen & VNET_SEEN_REPLY);
	/*
	 * The kernel gives the same port to another connection: the old one is over, once its owner
	 * says so.
	 */
	client.port++;
	assert_int_equal(
		vnet_flow_inbound(vnat, 3, &client, &app, &far, &near, &same), -EADDRINUSE);
	vnet_flow_linger(vnat, flow);
	assert_int_equal(vnet_flow_inbound(vnat, 3, &client, &app, &far, &near, &same), 0);
	end();
}

static void unknown_segments_get_a_rst(void **state)
{
	struct vnet_endpoint near = test_ep("10.0.9.9", 5), far = test_ep("100.64.0.1", GATE);
	uint32_t flow, session;

	begin(64);
	assert_int_equal(out(3, (struct test_tcp){TEST_ACK, 100, 555, "x"}, &flow), VNAT_ANSWER);
	check_ends(&server, &app);
	assert_true(vnet_packet_tcp(&buffer.p)->rst);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->seq), 555);
	assert_int_equal(out(3, (struct test_tcp){TEST_RST, 100}, &flow), VNAT_DROP);
	/* The gateway's kernel has a leg that nobody knows. */
	assert_int_equal(vnet_vnat_from_gateway(vnat,
				 test_tcp(&buffer, &far, &near, &(struct test_tcp){TEST_ACK, 1, 2}),
				 &session, &flow),
		VNAT_ANSWER);
	check_ends(&near, &far);
	assert_int_equal(vnet_session_get(vnat, 3)->counters.answered, 1);
	end();
}

static void refusals(void **state)
{
	const struct vnet_icmp unreachable = {.type = ICMP_DEST_UNREACH, .code = ICMP_HOST_UNREACH};
	struct vnet_embedded e;
	uint32_t flow;

	begin(64);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), 0);
	vnet_flow_refuse(vnat, flow, NULL, test_reset(&buffer));
	check_ends(&server, &app);
	assert_true(vnet_packet_tcp(&buffer.p)->rst && vnet_packet_tcp(&buffer.p)->ack);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->ack_seq), 1001);
	assert_null(vnet_flow_get(vnat, flow));

	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1000}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), 0);
	vnet_flow_refuse(vnat, flow, &unreachable, test_reset(&buffer));
	assert_int_equal(vnet_packet_parse(&buffer.p), 0);
	assert_true(vnet_packet_checksum_ok(&buffer.p));
	assert_int_equal(vnet_packet_embedded(&buffer.p, &e), 0);
	assert_true(vnet_endpoint_equal(&e.src, &app) && vnet_endpoint_equal(&e.dst, &server));
	end();
}

/* Two sessions with the same addresses, and a third that takes over a record. */
static void sessions_do_not_mix(void **state)
{
	struct vnet_endpoint v4 = test_ep("10.171.0.2", 0), old;
	uint32_t a, b, session, flow;
	struct vnet_flow *f;

	begin(64);
	assert_int_equal(vnet_session_add(vnat, 4, &v4, NULL), 0);
	assert_int_equal(vnet_session_add(vnat, 4, &v4, NULL), -EBUSY);
	a = open_flow(3);
	b = open_flow(4);
	assert_int_not_equal(a, b);
	f = vnet_flow_get(vnat, b);
	assert_false(vnet_endpoint_equal(&f->near, &vnet_flow_get(vnat, a)->near));
	assert_true(vnet_endpoint_equal(&f->far, &vnet_flow_get(vnat, a)->far));
	vnet_vnat_from_gateway(vnat,
		test_tcp(&buffer, &f->far, &f->near, &(struct test_tcp){TEST_ACK, 1, 2}), &session,
		&flow);
	assert_int_equal(session, 4);
	assert_int_equal(flow, b);
	/* Somebody else's address. */
	app.v4.s_addr ^= 1;
	assert_int_equal(out(4, (struct test_tcp){TEST_SYN, 1}, &flow), VNAT_DROP);
	assert_int_equal(vnet_session_get(vnat, 4)->counters.dropped, 1);
	app.v4.s_addr ^= 1;
	old = f->near;
	vnet_session_remove(vnat, 4);
	assert_null(vnet_session_get(vnat, 4));
	assert_null(vnet_flow_get(vnat, b));
	assert_non_null(vnet_flow_get(vnat, a));
	assert_int_equal(vnet_session_add(vnat, 4, &v4, NULL), 0);
	b = open_flow(4);
	assert_false(vnet_endpoint_equal(&old, &vnet_flow_get(vnat, b)->near));
	end();
}

/*
 * Many destinations from one port: some have the same alias, and no two flows the same inner leg.
 */
static void aliases_that_collide(void **state)
{
	uint32_t moved = 0, flow;

	begin(16384);
	for (uint32_t i = 0; i < 12000; i++) {
		server.v4.s_addr = htonl(0x08000000 + i);
		flow = open_flow(3);
		moved += vnet_flow_get(vnat, flow)->near.port != app.port;
		assert_int_equal(vnet_flow_by_inner(vnat, &vnet_flow_get(vnat, flow)->near,
					 &vnet_flow_get(vnat, flow)->far),
			flow);
	}
	restart();
	for (uint32_t i = VNET_NONE; (i = vnet_flow_next(vnat, 3, i)) != VNET_NONE;)
		assert_int_equal(vnet_flow_by_inner(vnat, &vnet_flow_get(vnat, i)->near,
					 &vnet_flow_get(vnat, i)->far),
			i);
	/* 12000^2 / 2 / 2^22 = 17 are to be expected. */
	assert_in_range(moved, 1, 100);
	end();
}

static void a_full_table(void **state)
{
	struct vnet_endpoint first = app;
	uint32_t flow, flows[8];

	begin(8);
	for (int i = 0; i < 8; i++, app.port++)
		flows[i] = open_flow(3);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), -ENOSPC);
	/* What lingers longest makes room, also after a restart. */
	vnet_vnat_set_clock(vnat, 10);
	vnet_flow_linger(vnat, flows[5]);
	vnet_vnat_set_clock(vnat, 11);
	vnet_flow_linger(vnat, flows[2]);
	restart();
	assert_int_equal(open_flow(3), flows[5]);
	app.port++;
	assert_int_equal(open_flow(3), flows[2]);
	app.port++;
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 1}, &flow), VNAT_NEW);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), -ENOSPC);
	assert_int_equal(vnet_session_get(vnat, 3)->n_flows, 8);
	app = first;
	end();
}

/* The same ends again, while the old flow lingers, and while its owner has not heard of its end. */
static void ports_are_used_again(void **state)
{
	uint32_t flow, again;

	begin(8);
	flow = open_flow(3);
	vnet_flow_linger(vnat, flow);
	again = open_flow(3);
	assert_int_equal(vnet_flow_get(vnat, again)->near.port, app.port);
	assert_int_equal(in(vnet_flow_get(vnat, again), (struct test_tcp){TEST_RST, 1}), VNAT_PASS);
	assert_int_equal(out(3, (struct test_tcp){TEST_SYN, 9000}, &flow), VNAT_NEW);
	assert_int_equal(flow, again);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), -EADDRINUSE);
	vnet_flow_drop(vnat, again);
	assert_int_equal(vnet_flow_open(vnat, 3, &buffer.p, &flow), 0);
	end();
}

static void away_and_back(void **state)
{
	static char large[5000];
	struct vnet_flow *f;
	uint32_t flow;

	begin(8);
	memset(large, 'x', sizeof(large));
	flow = open_flow(3);
	f = vnet_flow_get(vnat, flow);
	assert_int_equal(vnet_flow_replay(vnat, flow, test_reset(&buffer)), 0);
	vnet_session_set_away(vnat, 3, true);
	/* Nothing that wants an answer; the second of a row; the first, 32 bits on; that again. */
	assert_int_equal(in(f, (struct test_tcp){TEST_ACK, 0x10, 2}), VNAT_DROP);
	assert_int_equal(vnet_flow_replay(vnat, flow, test_reset(&buffer)), 0);
	assert_int_equal(in(f, (struct test_tcp){TEST_ACK, 0x10, 2, "later"}), VNAT_DROP);
	assert_int_equal(in(f, (struct test_tcp){TEST_ACK | TEST_FIN | TEST_PSH, 0xfffff000, 2,
				       large, sizeof(large), 1380}),
		VNAT_DROP);
	assert_int_equal(in(f, (struct test_tcp){TEST_ACK, 0x20, 2, "latest"}), VNAT_DROP);
	restart();
	vnet_session_set_away(vnat, 3, false);
	assert_int_equal(vnet_flow_replay(vnat, flow, test_reset(&buffer)), 1);
	check_ends(&server, &app);
	assert_int_equal(ntohl(vnet_packet_tcp(&buffer.p)->seq), 0xfffff000);
	assert_in_range(buffer.p.payload_len, 1, 100);
	assert_false(vnet_packet_tcp(&buffer.p)->fin);
	assert_int_equal(buffer.p.vh.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(vnet_flow_replay(vnat, flow, test_reset(&buffer)), 0);
	end();
}

/* "Too big" about a flow's segment, from either side, reaches the other with the names it knows. */
static void icmp_errors_are_translated(void **state)
{
	const struct vnet_icmp big = {ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, 0};
	struct vnet_endpoint router = test_ep("100.64.9.9", 0);
	uint32_t flow, session;
	struct vnet_embedded e;
	struct vnet_flow *f;

	begin(8);
	flow = open_flow(3);
	f = vnet_flow_get(vnat, flow);
	test_tcp(&other, &f->near, &f->far, &(struct test_tcp){TEST_ACK, 1, 2, "data"});
	assert_int_equal(
		vnet_packet_make_icmp_error(test_reset(&buffer), &other.p, &router, &big), 0);
	assert_int_equal(vnet_vnat_from_gateway(vnat, &buffer.p, &session, &flow), VNAT_PASS);
	assert_int_equal(session, 3);
	server.port = app.port = 0;
	check_ends(&server, &app);
	assert_int_equal(vnet_packet_embedded(&buffer.p, &e), 0);
	assert_true(vnet_endpoint_equal(&e.src, &f->inside) &&
		    vnet_endpoint_equal(&e.dst, &f->outside));

	test_tcp(&other, &f->outside, &f->inside, &(struct test_tcp){TEST_ACK, 1, 2, "data"});
	assert_int_equal(vnet_packet_make_icmp_error(test_reset(&buffer), &other.p, NULL, &big), 0);
	assert_int_equal(vnet_vnat_from_session(vnat, 3, &buffer.p, &flow), VNAT_PASS);
	assert_int_equal(vnet_packet_parse(&buffer.p), 0);
	assert_true(vnet_packet_checksum_ok(&buffer.p));
	assert_true(vnet_endpoint_same_address(&buffer.p.src, &f->near));
	assert_int_equal(vnet_packet_embedded(&buffer.p, &e), 0);
	assert_true(vnet_endpoint_equal(&e.src, &f->far) && vnet_endpoint_equal(&e.dst, &f->near));
	/* About nothing we know. */
	f->inside.port++;
	test_tcp(&other, &f->outside, &f->inside, &(struct test_tcp){TEST_ACK, 1, 2, "data"});
	f->inside.port--;
	assert_int_equal(vnet_packet_make_icmp_error(test_reset(&buffer), &other.p, NULL, &big), 0);
	assert_int_equal(vnet_vnat_from_session(vnat, 3, &buffer.p, &flow), VNAT_DROP);
	end();
}

static void what_is_not_tcp(void **state)
{
	struct vnet_embedded e;
	uint32_t flow;

	begin(8);
	assert_int_equal(vnet_packet_make_udp(test_reset(&buffer), &app, &server, "x", 1, 0), 0);
	assert_int_equal(vnet_vnat_from_session(vnat, 3, &buffer.p, &flow), VNAT_DATAGRAM);
	/* SCTP. */
	test_complete(&buffer.p);
	buffer.bytes[9] = 132;
	*(uint16_t *)(void *)(buffer.bytes + 10) = 0;
	*(uint16_t *)(void *)(buffer.bytes + 10) =
		(uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, buffer.bytes, 20));
	assert_int_equal(vnet_packet_parse(&buffer.p), 0);
	assert_int_equal(vnet_vnat_from_session(vnat, 3, &buffer.p, &flow), VNAT_ANSWER);
	assert_int_equal(vnet_packet_embedded(&buffer.p, &e), 0);
	assert_int_equal(e.proto, 132);
	assert_int_equal(vnet_packet_icmp(&buffer.p)->code, ICMP_PROT_UNREACH);
	end();
}

static void another_layout_is_refused(void **state)
{
	struct vnet_vnat *v;

	begin(8);
	assert_int_equal(vnet_vnat_new(arena, SESSIONS, 4, GATE, GATE, &v, NULL), -EINVAL);
	end();
}

/* Opens, releases, lingers, drops, keeps, for ever. */
static void churn(void)
{
	unsigned int seed = (unsigned int)getpid();
	uint32_t flow;
	int r;

	for (;;) {
		app.port = (uint16_t)(1 + rand_r(&seed) % 64);
		if (out(3, (struct test_tcp){TEST_SYN, (uint32_t)rand_r(&seed)}, &flow) ==
			VNAT_NEW) {
			if (flow != VNET_NONE)
				vnet_flow_drop(vnat, flow);
			r = vnet_flow_open(vnat, 3, &buffer.p, &flow);
			if (r < 0 && r != -ENOSPC)
				abort();
		}
		flow = (uint32_t)rand_r(&seed) % n_flows;
		if (!vnet_flow_get(vnat, flow))
			continue;
		vnet_session_set_away(vnat, 3, true);
		if (vnet_flow_get(vnat, flow)->state == VNET_FLOW_HELD)
			vnet_flow_release(vnat, flow, test_reset(&buffer));
		else if (rand_r(&seed) % 4)
			in(vnet_flow_get(vnat, flow),
				(struct test_tcp){TEST_ACK, rand_r(&seed), 2, "data"});
		else if (rand_r(&seed) % 4)
			vnet_flow_linger(vnat, flow);
		else
			vnet_flow_drop(vnat, flow);
	}
}

/* Whoever works with the arena is killed, again and again; what he leaves is always sound. */
static void killed_at_any_instruction(void **state)
{
	begin(32);
	for (int round = 0; round < 100; round++) {
		pid_t pid = fork();
		uint32_t open = 0, before;

		assert_true(pid >= 0);
		if (pid == 0)
			churn();
		/* It has done something since: no time is measured. */
		before = vnet_session_get(vnat, 3)->counters.flows;
		while (vnet_session_get(vnat, 3)->counters.flows < before + 50 + round * 7u)
			assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		restart();
		for (uint32_t i = VNET_NONE; (i = vnet_flow_next(vnat, 3, i)) != VNET_NONE;) {
			const struct vnet_flow *f = vnet_flow_get(vnat, i);

			assert_int_equal(vnet_flow_by_inner(vnat, &f->near, &f->far), i);
			assert_int_equal(vnet_flow_by_session(vnat, 3, &f->inside, &f->outside), i);
			open += f->state != VNET_FLOW_LINGER;
			if (f->state == VNET_FLOW_HELD)
				vnet_flow_release(vnat, i, test_reset(&buffer));
			else if (f->kept_valid)
				assert_int_equal(vnet_flow_replay(vnat, i, test_reset(&buffer)), 1);
		}
		assert_int_equal(vnet_session_get(vnat, 3)->n_flows, open);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outbound_v4),
		cmocka_unit_test(outbound_v6),
		cmocka_unit_test(the_latest_syn_goes_on),
		cmocka_unit_test(inbound_life),
		cmocka_unit_test(unknown_segments_get_a_rst),
		cmocka_unit_test(refusals),
		cmocka_unit_test(sessions_do_not_mix),
		cmocka_unit_test(aliases_that_collide),
		cmocka_unit_test(a_full_table),
		cmocka_unit_test(ports_are_used_again),
		cmocka_unit_test(away_and_back),
		cmocka_unit_test(icmp_errors_are_translated),
		cmocka_unit_test(what_is_not_tcp),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(killed_at_any_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
