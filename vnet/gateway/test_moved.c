// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session that goes on in another kernel, packet by packet: the session's kernel is this program,
 * and so are the gateway that it starts and what is outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/client.h"
#include "vnet/gateway/main.h"
#include "vnet/message.h"
#include "vnet/test_packets.h"
#include "vnet/tun.h"
#include "vnet/vnet.h"

#define PATIENCE_MS 60000
#define AGAIN_MS    100
#define WINDOW	    60000
#define ISN	    1000u

static char runtime[] = "/tmp/podrun-moved-XXXXXX";
static struct vnet_client *client;
static struct vnet_claim claim;
static int kernel = -1; /* a socket in place of the session's TUN */
static int listener;
static struct vnet_endpoint own, server;
static struct test_buffer buffer;

/* ---- the gateway ------------------------------------------------------------------------------ */

static struct vnet_answer answer(void)
{
	struct vnet_answer a;
	struct err e = {0};

	if (vnet_client_wait(client, &a, &e) < 0)
		fail_msg("%s", e.msg);
	return a;
}

/* Where the session is from now on; it stands still if it was there before. */
static void attach(void)
{
	struct vnet_attach what = {.name = "work",
		.id = "1",
		.mtu = 1420,
		.address4 = own.v4,
		.gateway4 = test_ep("10.171.0.1", 0).v4,
		.loopback4 = server.v4,
		.frozen = claim.label,
		.claim = claim};
	struct vnet_client *before = client;
	struct vnet_answer a;
	struct err e = {0};
	int pair[2];

	assert_int_equal(vnet_client_connect(&client, runtime, true, &e), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(vnet_client_attach(client, &what, pair[1], -1, &e), 0);
	a = answer();
	assert_int_equal(a.kind, VNET_ANSWER_ATTACHED);
	assert_false(a.lost);
	claim = a.claim;
	close(pair[1]);
	close_fd(kernel);
	kernel = pair[0];
	vnet_client_free(before);
}

static void hold(void)
{
	struct err e = {0};

	assert_int_equal(vnet_client_hold(client, &e), 0);
	assert_int_equal(answer().kind, VNET_ANSWER_FLOWS);
}

static void go(void)
{
	struct err e = {0};

	assert_int_equal(vnet_client_go(client, &e), 0);
	assert_int_equal(answer().kind, VNET_ANSWER_DONE);
}

/* ---- the session's kernel --------------------------------------------------------------------- */

/* The time stamp option, as what is in front of the data. */
static void say(uint8_t flags, uint32_t seq, uint32_t ack, uint32_t stamp, uint32_t echo)
{
	uint8_t option[12] = {TCPOPT_NOP, TCPOPT_NOP, TCPOPT_TIMESTAMP, TCPOLEN_TIMESTAMP};
	struct test_tcp t = {flags, seq, ack, .payload = (char *)option, .len = sizeof(option)};
	struct vnet_packet *p;

	stamp = htonl(stamp);
	echo = htonl(echo);
	memcpy(option + 4, &stamp, sizeof(stamp));
	memcpy(option + 8, &echo, sizeof(echo));
	p = test_tcp(&buffer, &own, &server, &t);
	vnet_packet_tcp(p)->doff = (sizeof(struct tcphdr) + sizeof(option)) / 4;
	vnet_packet_tcp(p)->window = htons(WINDOW);
	assert_int_equal(vnet_tun_write(kernel, p), 0);
}

static struct vnet_packet *hear(void)
{
	struct pollfd ready = {.fd = kernel, .events = POLLIN};
	struct vnet_packet *p = test_reset(&buffer);

	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(vnet_tun_read(kernel, p), 0);
	assert_int_equal(vnet_packet_parse(p), 0);
	assert_non_null(vnet_packet_tcp(p));
	return p;
}

/* Time stamps are the first option of what the gateway's kernel sends but for a SYN. */
static uint32_t stamp_of(const struct vnet_packet *p, bool echo)
{
	const uint8_t *at = (const uint8_t *)(vnet_packet_tcp(p) + 1), *end = p->data + p->payload;
	uint32_t stamp;

	while (at < end && *at != TCPOPT_TIMESTAMP)
		at += *at == TCPOPT_NOP ? 1 : at[1];
	assert_true(at + TCPOLEN_TIMESTAMP <= end);
	memcpy(&stamp, at + (echo ? 6 : 2), sizeof(stamp));
	return ntohl(stamp);
}

/* A SYN is answered to the kernel that has sent it; what its number is. */
static uint32_t hear_answer(uint32_t stamp, uint32_t *ret_stamp)
{
	const struct vnet_packet *p = hear();
	const struct tcphdr *tcp = vnet_packet_tcp(p);

	assert_true(tcp->syn && tcp->ack);
	assert_int_equal(stamp_of(p, true), stamp);
	*ret_stamp = stamp_of(p, false);
	return ntohl(tcp->seq);
}

/* It is asked until somebody answers; that it is refused is no answer. */
static void await_connection(uint32_t isn, uint32_t stamp)
{
	struct pollfd ready = {.fd = kernel, .events = POLLIN};

	for (int waited = 0; waited < PATIENCE_MS; waited += AGAIN_MS) {
		say(TEST_SYN, isn, 0, stamp, 0);
		while (poll(&ready, 1, AGAIN_MS) == 1) {
			const struct tcphdr *tcp = vnet_packet_tcp(hear());

			if (ntohl(tcp->ack_seq) != isn + 1)
				continue; /* of the one before */
			assert_false(tcp->rst);
			assert_true(tcp->syn);
			return;
		}
	}
	fail_msg("nobody answers");
}

/* ---- tests ------------------------------------------------------------------------------------ */

static int begin(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) < 0 ||
		listen(listener, 10) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		return -1;
	own = test_ep("10.171.0.2", 40000);
	server = test_ep("10.171.0.3", ntohs(at.sin_port));
	claim = (struct vnet_claim){0};
	return 0;
}

static int end(void **state)
{
	vnet_client_free(take_ptr(client));
	kernel = close_fd(kernel);
	listener = close_fd(listener);
	return 0;
}

/* It was moved before it has heard that it is connected. */
static void test_handshake(void **state)
{
	uint32_t seq, stamp;
	char got[8];
	size_t payload;
	int outside;

	attach();
	say(TEST_SYN, ISN, 0, 5000, 0);
	hear_answer(5000, &stamp);
	outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(outside >= 0);
	hold();
	attach();
	go();
	say(TEST_SYN, ISN, 0, 9000, 0);
	seq = hear_answer(9000, &stamp);
	say(TEST_ACK, ISN + 1, seq + 1, 9001, stamp);
	/* Nobody outside has noticed. */
	assert_int_equal(send(outside, "hello", 5, 0), 5);
	/* A kernel that was not heard soon enough has answered the SYN once more. */
	do
		payload = hear()->payload_len;
	while (!payload);
	assert_int_equal(payload, 5);
	say(TEST_ACK | TEST_FIN, ISN + 1, seq + 6, 9002, stamp);
	assert_int_equal(recv(outside, got, sizeof(got), 0), 0);
	close(outside);
}

/* It had closed a connection, and has forgotten it where it is now. */
static void test_same_ends(void **state)
{
	uint32_t seq, stamp;
	char got[8];
	int outside;

	attach();
	say(TEST_SYN, ISN, 0, 5000, 0);
	seq = hear_answer(5000, &stamp);
	say(TEST_ACK | TEST_FIN, ISN + 1, seq + 1, 5001, stamp);
	outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(recv(outside, got, sizeof(got), 0), 0);
	close(outside);
	while (!vnet_packet_tcp(hear())->fin)
		continue;
	hold();
	attach();
	go();
	await_connection(ISN + 100000, 9000);
}

#define SENT 5000 /* in several segments: only the first is tried again by itself */

/* @undone: and there it was given up before it went on. */
static void held(bool undone)
{
	static char data[SENT];
	bool got[SENT] = {false};
	uint32_t seq, stamp;
	size_t missing = SENT;
	int outside, left;

	attach();
	say(TEST_SYN, ISN, 0, 5000, 0);
	seq = hear_answer(5000, &stamp) + 1;
	say(TEST_ACK, ISN + 1, seq, 5001, stamp);
	outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	hold();
	assert_int_equal(send(outside, data, SENT, 0), SENT);
	do
		assert_int_equal(ioctl(outside, SIOCOUTQ, &left), 0);
	while (left);
	hold();
	hold(); /* the gateway has come to it */
	if (undone) {
		const struct vnet_claim former = claim;

		attach();
		vnet_client_free(take_ptr(client));
		claim = former;
	}
	attach();
	go();
	for (int firsts = 0; missing; assert_true(firsts < 4)) {
		const struct vnet_packet *p = hear();
		uint32_t at = ntohl(vnet_packet_tcp(p)->seq) - seq;

		firsts += p->payload_len && !at;
		for (uint32_t i = at; i < at + p->payload_len && i < SENT; i++) {
			missing -= !got[i];
			got[i] = true;
		}
	}
	close(outside);
}

static void give_back(int file)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;
	struct err e = {0};

	m.body_case = PB__GATEWAY_REQUEST__BODY_UNSENT;
	m.unsent = &nothing;
	assert_int_equal(vnet_message_send(vnet_client_fd(client), &m.base, &file, 1, &e), 0);
}

/* A packet as the gateway has written it into @file, and how many bytes of data are in it. */
static size_t put_aside(int file)
{
	const struct vnet_packet *p = hear();
	uint32_t len = (uint32_t)(sizeof(p->vh) + p->len);

	assert_int_equal(io_write_full(file, &len, sizeof(len)), 0);
	assert_int_equal(io_write_full(file, &p->vh, sizeof(p->vh)), 0);
	assert_int_equal(io_write_full(file, p->data, p->len), 0);
	return p->payload_len;
}

#define UNSENT 2000 /* twice that may be on its way unanswered */

/* What was written for it and did not come there is there as well, before what came later. */
static void test_unsent(void **state)
{
	static char data[UNSENT];
	uint32_t seq, stamp, next = 0;
	int outside, left, file = memfd_create("unsent", MFD_CLOEXEC);

	attach();
	say(TEST_SYN, ISN, 0, 5000, 0);
	seq = hear_answer(5000, &stamp) + 1;
	say(TEST_ACK, ISN + 1, seq, 5001, stamp);
	outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(send(outside, data, UNSENT, 0), UNSENT);
	for (size_t got = 0; got < UNSENT; got += put_aside(file))
		continue;
	hold();
	assert_int_equal(send(outside, data, UNSENT, 0), UNSENT);
	do
		assert_int_equal(ioctl(outside, SIOCOUTQ, &left), 0);
	while (left);
	hold();
	hold();
	give_back(file);
	hold();
	attach();
	go();
	while (next <= UNSENT) {
		const struct vnet_packet *p = hear();
		uint32_t at = ntohl(vnet_packet_tcp(p)->seq) - seq;

		/* some of it may come twice */
		assert_true(at <= next);
		next = MAX(next, at + (uint32_t)p->payload_len);
	}
	close(outside);
	close(file);
}

/* Lengths that can't be. */
static void test_unsent_nonsense(void **state)
{
	static const uint32_t lengths[] = {0, 1, 9, 100, 1 << 20, UINT32_MAX};
	static const uint8_t few[80];

	attach();
	hold();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		int file = memfd_create("unsent", MFD_CLOEXEC);

		assert_int_equal(io_write_full(file, &lengths[i], sizeof(lengths[i])), 0);
		assert_int_equal(io_write_full(file, few, i % 2 ? sizeof(few) : 0), 0);
		give_back(file);
		close(file);
	}
	/* one that is in order, though nothing of it is a packet */
	{
		const uint32_t len = sizeof(few);
		int file = memfd_create("unsent", MFD_CLOEXEC);

		assert_int_equal(io_write_full(file, &len, sizeof(len)), 0);
		assert_int_equal(io_write_full(file, few, sizeof(few)), 0);
		give_back(file);
		close(file);
	}
	hold();
	go();
}

/* What came for it while it was moved is there when it goes on, and need not be sent again. */
static void test_held(void **state)
{
	held(false);
}

static void test_held_in_vain(void **state)
{
	held(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_handshake, begin, end),
		cmocka_unit_test_setup_teardown(test_same_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_held, begin, end),
		cmocka_unit_test_setup_teardown(test_held_in_vain, begin, end),
		cmocka_unit_test_setup_teardown(test_unsent, begin, end),
		cmocka_unit_test_setup_teardown(test_unsent_nonsense, begin, end),
	};
	int r;

	if (argc == 3 && strcmp(argv[1], "gateway") == 0)
		return vnet_gateway_main();
	if (!mkdtemp(runtime))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	io_rm_rf(AT_FDCWD, runtime);
	return r;
}
