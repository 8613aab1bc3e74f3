// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Questions of a session to the gateway's port 53, and what name servers of the host do with
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/dns.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/test_world.h"

#define SERVER	"192.0.2.1"
#define SERVER6 "2001:db8::1"

static struct world world;

/* A question for the A record of @name, with number @id. */
static size_t query(uint8_t *out, uint8_t id, const char *name)
{
	uint8_t *p = out + VNET_DNS_HEADER;

	memcpy(out, "\0\0\1\0\0\1\0\0\0\0\0\0", VNET_DNS_HEADER);
	out[1] = id;
	while (*name) {
		size_t n = strcspn(name, ".");

		*p++ = (uint8_t)n;
		memcpy(p, name, n);
		p += n;
		name += n + (name[n] == '.');
	}
	memcpy(p, "\0\0\1\0\1", 5);
	return (size_t)(p + 5 - out);
}

static void servers(const char *a, int fd_a, const char *b, int fd_b)
{
	char text[200];

	snprintf(text, sizeof(text), "nameserver [%s]:%u\n", a, world_port(fd_a));
	if (b)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "nameserver [%s]:%u\n",
			b, world_port(fd_b));
	assert_int_equal(io_replace_file(AT_FDCWD, world.resolv, text, strlen(text), 0600), 0);
}

static void ask(int in, uint8_t id, const char *name)
{
	struct vnet_endpoint gateway = world_endpoint("10.171.0.1", VNET_DNS_PORT);
	uint8_t m[300];

	world_send(in, &gateway, m, query(m, id, name));
}

/* What a server has been asked. */
static size_t asked(
	int server, uint8_t *m, size_t room, struct vnet_endpoint *from, const char *name)
{
	struct vnet_dns_question q;
	size_t n = world_receive(&world, server, m, room, from);

	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_string_equal(q.name, name);
	return n;
}

/* Answers with one byte of @mark as an address, or with an error. */
static void answer(int server, const struct vnet_endpoint *to, uint8_t *m, size_t n,
	enum vnet_dns_rcode rcode, uint8_t mark)
{
	const struct vnet_dns_record r = {
		.type = VNET_DNS_A, .ttl = 60, .v4.s_addr = htonl(0xc0000200u | mark)};
	struct vnet_dns_question q;
	uint8_t out[600];

	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	world_send(server, to, out, vnet_dns_reply(m, &q, rcode, false, &r, 1, out, sizeof(out)));
}

/* What the session gets; the last byte of the address that is in it, 0 if there is none. */
static uint8_t told(int in, uint8_t id, enum vnet_dns_rcode rcode)
{
	struct vnet_endpoint from;
	struct vnet_dns_question q;
	uint8_t m[4096];
	size_t n = world_receive(&world, in, m, sizeof(m), &from);

	assert_int_equal(from.port, VNET_DNS_PORT);
	assert_int_equal(from.v4.s_addr, world.session[0].gateway4.s_addr);
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_true(q.response);
	assert_int_equal(q.id, id);
	assert_int_equal(q.rcode, rcode);
	return m[7] ? m[n - 1] : 0;
}

static void test_answered(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	int b = world_bound(&world, -1, SOCK_DGRAM, SERVER6, 0);
	struct vnet_endpoint from;
	uint8_t m[600];
	size_t n;

	servers(SERVER, a, NULL, -1);
	ask(in, 1, "www.example.org");
	n = asked(a, m, sizeof(m), &from, "www.example.org");
	answer(a, &from, m, n, VNET_DNS_NOERROR, 7);
	assert_int_equal(told(in, 1, VNET_DNS_NOERROR), 7);

	/* Another network: other servers, by IPv6. */
	servers(SERVER6, b, NULL, -1);
	ask(in, 2, "www.example.org");
	n = asked(b, m, sizeof(m), &from, "www.example.org");
	answer(b, &from, m, n, VNET_DNS_NXDOMAIN, 0);
	assert_int_equal(told(in, 2, VNET_DNS_NXDOMAIN), 0);
	close(in);
	close(a);
	close(b);
}

/* Who refuses, fails or says nothing is followed by the next, and at the end there is an answer. */
static void test_next(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	int b = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	struct vnet_endpoint from;
	uint8_t m[600];
	size_t n;

	servers(SERVER, a, SERVER, b);
	ask(in, 3, "fails.example.org");
	n = asked(a, m, sizeof(m), &from, "fails.example.org");
	answer(a, &from, m, n, VNET_DNS_SERVFAIL, 0);
	n = asked(b, m, sizeof(m), &from, "fails.example.org");
	answer(b, &from, m, n, VNET_DNS_NOERROR, 8);
	assert_int_equal(told(in, 3, VNET_DNS_NOERROR), 8);

	/* Nothing comes; a session that asks again hastens it. */
	ask(in, 4, "silent.example.org");
	asked(a, m, sizeof(m), &from, "silent.example.org");
	ask(in, 4, "silent.example.org");
	n = asked(b, m, sizeof(m), &from, "silent.example.org");
	answer(b, &from, m, n, VNET_DNS_NOERROR, 9);
	assert_int_equal(told(in, 4, VNET_DNS_NOERROR), 9);

	/* By itself, after a while. */
	ask(in, 5, "slow.example.org");
	asked(a, m, sizeof(m), &from, "slow.example.org");
	n = asked(b, m, sizeof(m), &from, "slow.example.org");
	answer(b, &from, m, n, VNET_DNS_NOERROR, 10);
	assert_int_equal(told(in, 5, VNET_DNS_NOERROR), 10);

	/* Nobody is there. */
	close(a);
	ask(in, 6, "gone.example.org");
	n = asked(b, m, sizeof(m), &from, "gone.example.org");
	answer(b, &from, m, n, VNET_DNS_NOERROR, 11);
	assert_int_equal(told(in, 6, VNET_DNS_NOERROR), 11);
	close(b);
	ask(in, 7, "gone.example.org");
	assert_int_equal(told(in, 7, VNET_DNS_SERVFAIL), 0);
	close(in);
}

/* Another question's answer is not passed on, nor what is none. */
static void test_false_answers(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	struct vnet_endpoint from;
	uint8_t m[600], other[600];
	size_t n;

	servers(SERVER, a, NULL, -1);
	ask(in, 8, "www.example.org");
	n = asked(a, m, sizeof(m), &from, "www.example.org");
	memcpy(other, m, n);
	other[1] ^= 1;
	answer(a, &from, other, n, VNET_DNS_NOERROR, 66);
	memcpy(other, m, n);
	other[13] = 'v';
	answer(a, &from, other, n, VNET_DNS_NOERROR, 67);
	world_send(a, &from, m, n);
	world_send(a, &from, "", 0);
	answer(a, &from, m, n, VNET_DNS_NOERROR, 12);
	assert_int_equal(told(in, 8, VNET_DNS_NOERROR), 12);
	close(in);
	close(a);
}

/* Longer than the session takes: it is told to ask by TCP. */
static void test_truncated(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	struct vnet_dns_question q;
	struct vnet_endpoint from;
	uint8_t m[2000] = {0};
	size_t n;

	servers(SERVER, a, NULL, -1);
	ask(in, 9, "long.example.org");
	n = asked(a, m, sizeof(m), &from, "long.example.org");
	m[2] |= 0x80;
	world_send(a, &from, m, 900);
	assert_int_equal(world_receive(&world, in, m, sizeof(m), &from), n);
	assert_int_equal(vnet_dns_parse(m, n, &q), 0);
	assert_true(q.truncated);
	close(in);
	close(a);
}

static void test_own_names(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);

	ask(in, 10, "other.podrun.internal");
	assert_int_equal(told(in, 10, VNET_DNS_NOERROR), 2);
	ask(in, 11, "host.podrun.internal");
	assert_int_equal(told(in, 11, VNET_DNS_NOERROR), 3);
	ask(in, 12, "nobody.podrun.internal");
	assert_int_equal(told(in, 12, VNET_DNS_NXDOMAIN), 0);
	close(in);
}

/* A question outlives the worker that has asked it, and waits for a session that is held. */
static void test_kept(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	struct vnet_endpoint from;
	uint8_t m[600];
	size_t n;

	servers(SERVER, a, NULL, -1);
	ask(in, 13, "kept.example.org");
	n = asked(a, m, sizeof(m), &from, "kept.example.org");
	world.session[0].held = true;
	answer(a, &from, m, n, VNET_DNS_NOERROR, 14);
	world_settle(&world);
	world_restart(&world);
	world_settle(&world);
	world.session[0].held = false;
	vnet_datagram_go(world.datagrams, 0);
	assert_int_equal(told(in, 13, VNET_DNS_NOERROR), 14);
	close(in);
	close(a);
}

/* More questions than there may be: the oldest are given up, the newest is answered. */
static void test_many(void **state)
{
	int in = world_bound(&world, 0, SOCK_DGRAM, "0.0.0.0", 0);
	int a = world_bound(&world, -1, SOCK_DGRAM, SERVER, 0);
	struct vnet_endpoint from;
	uint8_t m[600];
	char name[64];
	size_t n = 0;

	servers(SERVER, a, NULL, -1);
	for (unsigned i = 0; i < VNET_DNS_PENDING_SESSION + 20; i++) {
		snprintf(name, sizeof(name), "n%u.example.org", i);
		ask(in, (uint8_t)i, name);
		n = asked(a, m, sizeof(m), &from, name);
	}
	answer(a, &from, m, n, VNET_DNS_NOERROR, 15);
	assert_int_equal(told(in, (uint8_t)(VNET_DNS_PENDING_SESSION + 19), VNET_DNS_NOERROR), 15);
	close(in);
	close(a);
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
		cmocka_unit_test(test_answered),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_false_answers),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
