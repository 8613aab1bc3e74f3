// SPDX-License-Identifier: GPL-2.0-or-later
/* Datagrams of real kernels through the gateway's half of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/mapping.h"
#include "vnet/datagram/test_world.h"

#define OUT4 "192.0.2.1"
#define OUT6 "2001:db8::1"

static struct world world;

static void assert_endpoint(const struct vnet_endpoint *ep, const char *address, uint16_t port)
{
	struct vnet_endpoint want = world_endpoint(address, port);
	char a[VNET_ENDPOINT_TEXT], b[VNET_ENDPOINT_TEXT];

	assert_string_equal(vnet_endpoint_format(ep, a), vnet_endpoint_format(&want, b));
}

/* One there and one back; returns the port outside. */
static uint16_t exchange(int in, int out, const char *outside, const char *seen)
{
	struct vnet_endpoint to = world_endpoint(seen, world_port(out)), from, back;
	char text[64];

	world_send(in, &to, "question", 8);
	assert_int_equal(world_receive(&world, out, text, sizeof(text), &from), 8);
	assert_memory_equal(text, "question", 8);
	world_send(out, &from, "answer", 6);
	assert_int_equal(world_receive(&world, in, text, sizeof(text), &back), 6);
	assert_memory_equal(text, "answer", 6);
	assert_endpoint(&back, seen, world_port(out));
	return from.port;
}

static void one_family(const char *outside, const char *any)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, any, 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, outside, 0);
	int b = world_bound(&world, -1, SOCK_DGRAM, outside, 0);
	uint16_t port = exchange(in, a, outside, outside);

	/* The same port outside, whoever it talks to. */
	assert_int_equal(exchange(in, b, outside, outside), port);
	close(in);
	close(a);
	close(b);
}

static void test_there_and_back(void **state)
{
	one_family(OUT4, "0.0.0.0");
	one_family(OUT6, "::");
}

static void test_loopback(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int in6 = world_bound(&world, 0, SOCK_DGRAM, "::", 0);
	int out = world_bound(&world, -1, SOCK_DGRAM, "127.0.0.1", 0);
	int out6 = world_bound(&world, -1, SOCK_DGRAM, "::1", 0);

	exchange(in, out, "127.0.0.1", "10.171.0.3");
	exchange(in6, out6, "::1", "fd7a:706f:6472::3");
	close(in);
	close(in6);
	close(out);
	close(out6);
}

/* What a connected socket of the session is told. */
static int refusal(const char *address, uint16_t port)
{
	struct vnet_endpoint to = world_endpoint(address, port);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(&to, &sa);
	int fd = world_socket(&world, 0, to.family, SOCK_DGRAM, 0), error;

	/* Unreachable is told only to those who ask for all errors. */
	assert_int_equal(
		setsockopt(fd, to.family == AF_INET ? (int)IPPROTO_IP : (int)IPPROTO_IPV6,
			to.family == AF_INET ? IP_RECVERR : IPV6_RECVERR, &(int){1}, sizeof(int)),
		0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	world_wait(&world, fd, POLLERR);
	len = sizeof(error);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	close(fd);
	return error;
}

static void test_refused(void **state)
{
	assert_int_equal(refusal(OUT4, 9), ECONNREFUSED);
	assert_int_equal(refusal(OUT6, 9), ECONNREFUSED);
	assert_int_equal(refusal("10.171.0.3", 9), ECONNREFUSED);
	assert_int_equal(refusal("10.171.0.1", 9), ECONNREFUSED);
	assert_int_equal(refusal("fd7a:706f:6472::1", 9), ECONNREFUSED);
	/* Nowhere to go from this host. */
	assert_int_equal(refusal("198.51.100.1", 9), ENETUNREACH);
	assert_int_equal(refusal("2001:db8:1::1", 9), ENETUNREACH);
}

static uint64_t checksum_of(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

#define BULK	  4000
#define BULK_SIZE 1200
#define WINDOW	  32

/*
 * Many datagrams like QUIC's: numbered, as many on their way as are acknowledged by datagrams the
 * other way. @runs: by UDP_SEGMENT.  The numbers that arrived, each once, and a hash of all.
 */
static void bulk(int from, const struct vnet_endpoint *to, int at, bool runs)
{
	static uint8_t out[WINDOW * BULK_SIZE], in[BULK_SIZE + 1];
	struct vnet_endpoint peer;
	uint64_t sent = 0, got = 0;

	if (runs)
		assert_int_equal(
			setsockopt(from, IPPROTO_UDP, UDP_SEGMENT, &(int){BULK_SIZE}, sizeof(int)),
			0);
	for (unsigned i = 0; i < BULK; i += WINDOW) {
		for (size_t k = 0; k < sizeof(out); k++)
			out[k] = (uint8_t)(rand() >> 7);
		sent = checksum_of(sent, out, sizeof(out));
		for (size_t k = 0; k < sizeof(out); k += runs ? sizeof(out) : BULK_SIZE)
			world_send(from, to, out + k, runs ? sizeof(out) : BULK_SIZE);
		for (unsigned k = 0; k < WINDOW; k++) {
			assert_int_equal(
				world_receive(&world, at, in, sizeof(in), &peer), BULK_SIZE);
			got = checksum_of(got, in, BULK_SIZE);
		}
		world_send(at, &peer, "ack", 3);
		assert_int_equal(world_receive(&world, from, in, sizeof(in), NULL), 3);
	}
	assert_int_equal(sent, got);
	if (runs)
		assert_int_equal(
			setsockopt(from, IPPROTO_UDP, UDP_SEGMENT, &(int){0}, sizeof(int)), 0);
}

static void bulk_family(const char *outside, const char *any)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, any, 0);
	int out = world_bound(&world, -1, SOCK_DGRAM, outside, 0);
	struct vnet_endpoint to = world_endpoint(outside, world_port(out));
	struct vnet_endpoint back = world_endpoint(outside, exchange(in, out, outside, outside));

	world.super_out = world.super_in = 0;
	bulk(in, &to, out, false);
	assert_int_equal(world.super_out, 0);
	bulk(in, &to, out, true);
	assert_true(world.super_out > 0);
	bulk(out, &back, in, false);
	bulk(out, &back, in, true);
	assert_true(world.super_in > 0);
	close(in);
	close(out);
}

static void test_bulk(void **state)
{
	bulk_family(OUT4, "0.0.0.0");
	bulk_family(OUT6, "::");
}

/* Empty datagrams are datagrams, and sizes change. */
static void test_sizes(void **state)
{
	static const size_t sizes[] = {0, 1, 1200, 1200, 700, 1200, 0, 0, 3, 1390};
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int out = world_bound(&world, -1, SOCK_DGRAM, OUT4, 0);
	struct vnet_endpoint to = world_endpoint(OUT4, world_port(out));
	struct vnet_endpoint back = world_endpoint(OUT4, exchange(in, out, OUT4, OUT4));
	static uint8_t data[2000];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		world_send(in, &to, data, sizes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(world_receive(&world, out, data, sizeof(data), NULL), sizes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		world_send(out, &back, data, sizes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(world_receive(&world, in, data, sizeof(data), NULL), sizes[i]);
	close(in);
	close(out);
}

/* While a session is held datagrams wait; a worker may end meanwhile. */
static void test_held(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int out = world_bound(&world, -1, SOCK_DGRAM, OUT4, 0);
	struct vnet_endpoint back = world_endpoint(OUT4, exchange(in, out, OUT4, OUT4));
	char c;

	world.session[0].held = true;
	for (c = 'a'; c < 'e'; c++)
		world_send(out, &back, &c, 1);
	world_settle(&world);
	world_restart(&world);
	world_settle(&world);
	assert_int_equal(recv(in, &c, 1, 0), -1);
	world.session[0].held = false;
	vnet_datagram_go(world.datagrams, 0);
	for (char want = 'a'; want < 'e'; want++) {
		assert_int_equal(world_receive(&world, in, &c, 1, NULL), 1);
		assert_int_equal(c, want);
	}
	assert_int_equal(exchange(in, out, OUT4, OUT4), back.port);
	close(in);
	close(out);
}

static void test_published(void **state)
{
	struct vnet_endpoint outside = world_endpoint("0.0.0.0", 5353);
	struct vnet_endpoint inside = world_endpoint("10.171.0.2", 7), from, to;
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 7);
	int out = world_bound(&world, -1, SOCK_DGRAM, OUT4, 0);
	char text[16];

	assert_int_equal(vnet_datagram_open_port(world.datagrams, 0, &outside, &inside), 0);
	assert_int_equal(
		vnet_datagram_open_port(world.datagrams, 1, &outside, &inside), -EADDRINUSE);
	to = world_endpoint(OUT4, 5353);
	world_send(out, &to, "hello", 5);
	assert_int_equal(world_receive(&world, in, text, sizeof(text), &from), 5);
	assert_endpoint(&from, OUT4, world_port(out));
	world_send(in, &from, "hi", 2);
	assert_int_equal(world_receive(&world, out, text, sizeof(text), &from), 2);
	assert_endpoint(&from, OUT4, 5353);
	vnet_datagram_close_port(world.datagrams, 0, &outside, &inside);
	assert_int_equal(vnet_datagram_open_port(world.datagrams, 1, &outside, &inside), 0);
	vnet_datagram_forget(world.datagrams, 1);
	close(in);
	close(out);
}

/* A client on the host's loopback, where the session may not go by itself. */
static void one_shown(const char *loopback, const char *any, const char *own, const char *gateway)
{
	struct vnet_endpoint outside = world_endpoint(any, 5354), inside = world_endpoint(own, 7);
	struct vnet_endpoint to = world_endpoint(loopback, 5354), from, other;
	int in = world_bound(&world, 0, SOCK_DGRAM, any, 7);
	int out = world_bound(&world, -1, SOCK_DGRAM, loopback, 0);
	int stranger = world_bound(&world, -1, SOCK_DGRAM, loopback, 0);
	char text[16];

	assert_int_equal(vnet_datagram_open_port(world.datagrams, 0, &outside, &inside), 0);
	world_send(out, &to, "hello", 5);
	assert_int_equal(world_receive(&world, in, text, sizeof(text), &from), 5);
	assert_endpoint(&from, gateway, world_port(out));
	world_restart(&world);
	world_send(in, &from, "hi", 2);
	assert_int_equal(world_receive(&world, out, text, sizeof(text), &other), 2);
	assert_endpoint(&other, loopback, 5354);

	/* Nobody else there, and nobody by another port. */
	other = from;
	other.port = world_port(stranger);
	world_send(in, &other, "psst", 4);
	close(in);
	in = world_bound(&world, 0, SOCK_DGRAM, any, 8);
	world_send(in, &from, "psst", 4);
	world_settle(&world);
	assert_int_equal(recv(stranger, text, sizeof(text), MSG_DONTWAIT), -1);
	assert_int_equal(recv(out, text, sizeof(text), MSG_DONTWAIT), -1);
	vnet_datagram_forget(world.datagrams, 0);
	close(in);
	close(out);
	close(stranger);
}

static void test_shown(void **state)
{
	struct vnet_datagram_session before = world.session[0];

	world.session[0].loopback4.s_addr = 0;
	world.session[0].loopback6 = in6addr_any;
	one_shown("127.0.0.1", "0.0.0.0", "10.171.0.2", "10.171.0.1");
	one_shown("::1", "::", "fd7a:706f:6472::2", "fd7a:706f:6472::1");
	world.session[0] = before;
}

/* By the other's physical address, there and back, and refused. */
static void test_sessions(void **state)
{
	int a = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int b = world_bound(&world, 1, SOCK_DGRAM, "0.0.0.0", 0);
	struct vnet_endpoint to = world_endpoint("10.200.0.2", world_port(b)), from;
	char text[16];

	world_send(a, &to, "hello", 5);
	assert_int_equal(world_receive(&world, b, text, sizeof(text), &from), 5);
	assert_endpoint(&from, "10.200.0.1", world_port(a));
	world_send(b, &from, "hi", 2);
	assert_int_equal(world_receive(&world, a, text, sizeof(text), &from), 2);
	assert_endpoint(&from, "10.200.0.2", world_port(b));
	assert_int_equal(refusal("10.200.0.2", 9), ECONNREFUSED);
	assert_int_equal(refusal("fd64:1::2", 9), ECONNREFUSED);
	close(a);
	close(b);
}

static void ping(const char *address)
{
	struct vnet_endpoint to = world_endpoint(address, 0), from;
	const bool v4 = to.family == AF_INET;
	int fd = world_socket(
		&world, 0, to.family, SOCK_DGRAM, v4 ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6);
	uint8_t message[64] = {v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST, 0, 0, 0, 0, 0, 1, 2, 'x', 'y'},
		reply[100];

	world_send(fd, &to, message, sizeof(message));
	assert_int_equal(world_receive(&world, fd, reply, sizeof(reply), &from), sizeof(message));
	assert_endpoint(&from, address, 0);
	assert_int_equal(reply[0], v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY);
	assert_memory_equal(reply + 6, message + 6, sizeof(message) - 6);
	close(fd);
}

static void test_ping(void **state)
{
	ping(OUT4);
	ping(OUT6);
	ping("10.171.0.1");
	ping("fd7a:706f:6472::1");
	ping("10.171.0.3");
	ping("10.200.0.2");
	ping("fd64:1::2");
}

/* The gateway is one hop. */
static void test_hops(void **state)
{
	struct vnet_endpoint to = world_endpoint(OUT4, 9);
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(&to, &sa);
	int fd = world_socket(&world, 0, AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &(int){1}, sizeof(int)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TTL, &(int){1}, sizeof(int)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	world_wait(&world, fd, POLLERR);
	assert_int_equal(recv(fd, &sa, 1, 0), -1);
	assert_int_equal(errno, EHOSTUNREACH);
	close(fd);
}

/* A session that opens more than it may have loses the oldest, not the newest. */
static void test_limit(void **state)
{
	int out = world_bound(&world, -1, SOCK_DGRAM, OUT4, 0);
	struct vnet_endpoint to = world_endpoint(OUT4, world_port(out));
	char c;

	for (unsigned i = 0; i < VNET_MAPPINGS_SESSION + 50; i++) {
		int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", (uint16_t)(20000 + i));

		world_send(in, &to, "x", 1);
		assert_int_equal(world_receive(&world, out, &c, 1, NULL), 1);
		close(in);
	}
	close(out);
}

static int setup(void **state)
{
	return world_make(&world) ? -1 : 0;
}

static int teardown(void **state)
{
	world_end(&world);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_ping),
		cmocka_unit_test(test_hops),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
