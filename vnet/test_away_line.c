// SPDX-License-Identifier: GPL-2.0-or-later
/* A line between a session and a gateway on another host: what is read when, and in which order it comes. */
#include "vnet/away_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/message.h"

#define MANY 100 /* several turns of a line */

/* As it goes by the stream. */
enum { PACKET = 1, MESSAGE = 2 };
struct frame {
	uint32_t kind, len, file;
};

struct line {
	pid_t pid;
	int control, stream, into, tun; /* our ends */
};

static void packet_pair(int ret[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret), 0);
	setsockopt(ret[0], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int));
	assert_int_equal(fcntl(ret[1], F_SETFL, O_NONBLOCK), 0);
}

/* Its process; of the gateway's side with a socket for packets, whose other end is the gateway's: us. */
static int begin_side(void **state, bool carries)
{
	struct line *l = calloc(1, sizeof(*l));
	int control[2], in[2], out[2], packets[2] = {-1, -1};

	*state = l;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	if (!carries)
		packet_pair(packets);
	l->tun = packets[0];
	l->pid = fork();
	if (l->pid == 0) {
		const struct vnet_away_line line = {.control = control[1],
			.packets = packets[1],
			.theirs = -1,
			.in = in[0],
			.out = out[1],
			.carries = carries};
		struct err e = {0};

		close(control[0]);
		close(in[1]);
		close(out[0]);
		_exit(vnet_away_line(&line, &e) < 0);
	}
	close(control[1]);
	close(in[0]);
	close(out[1]);
	close_fd(packets[1]);
	l->into = in[1];
	l->control = control[0];
	l->stream = out[0];
	return 0;
}

static int begin(void **state)
{
	return begin_side(state, true);
}

static int begin_far(void **state)
{
	return begin_side(state, false);
}

static int end(void **state)
{
	struct line *l = *state;
	int status;

	kill(l->pid, SIGKILL);
	waitpid(l->pid, &status, 0);
	close(l->control);
	close(l->stream);
	close(l->into);
	close(l->tun);
	free(l);
	return 0;
}

static void say(struct line *l, Pb__GatewayRequest__BodyCase what, void *body, const int *fds, size_t n)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	struct err e = {0};

	m.body_case = what;
	m.hold = body;
	if (vnet_message_send(l->control, &m.base, fds, n, &e) < 0)
		fail_msg("%s", e.msg);
}

/* The kind of the next frame; of a packet *ret is what it says. */
static uint32_t next(struct line *l, uint32_t *ret)
{
	uint8_t body[4096];
	struct frame f;

	assert_int_equal(io_read_full(l->stream, &f, sizeof(f)), sizeof(f));
	assert_in_range(f.len, 0, sizeof(body));
	assert_int_equal(io_read_full(l->stream, body, f.len), f.len);
	if (f.kind == PACKET)
		memcpy(ret, body, sizeof(*ret));
	return f.kind;
}

static void send_packet(struct line *l, uint32_t number)
{
	uint8_t packet[200] = {0};

	memcpy(packet, &number, sizeof(number));
	assert_int_equal(send(l->tun, packet, sizeof(packet), 0), sizeof(packet));
}

static void attach(struct line *l)
{
	Pb__GatewayAttach m = PB__GATEWAY_ATTACH__INIT;
	uint32_t ignored;
	int pair[2];

	packet_pair(pair);
	l->tun = pair[0];
	say(l, PB__GATEWAY_REQUEST__BODY_ATTACH, &m, &pair[1], 1);
	close(pair[1]);
	assert_int_equal(next(l, &ignored), MESSAGE);
}

/*
 * A kernel counts as sent what is in its TUN: who hears of the hold has all of that, and nothing of what
 * came after it before the session may go on.
 */
static void what_was_sent_goes_before_a_hold(void **state)
{
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;
	struct line *l = *state;
	uint32_t got;
	int status;

	attach(l);
	send_packet(l, 7);
	assert_int_equal(next(l, &got), PACKET);
	assert_int_equal(got, 7);

	/* it meets all of this at once */
	kill(l->pid, SIGSTOP);
	assert_int_equal(waitpid(l->pid, &status, WUNTRACED), l->pid);
	for (uint32_t i = 0; i < MANY; i++)
		send_packet(l, i);
	say(l, PB__GATEWAY_REQUEST__BODY_HOLD, &nothing, NULL, 0);
	kill(l->pid, SIGCONT);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(next(l, &got), PACKET);
		assert_int_equal(got, i);
	}
	assert_int_equal(next(l, &got), MESSAGE);

	send_packet(l, 8);
	say(l, PB__GATEWAY_REQUEST__BODY_GO, &nothing, NULL, 0);
	assert_int_equal(next(l, &got), MESSAGE);
	assert_int_equal(next(l, &got), PACKET);
	assert_int_equal(got, 8);
}

/* By the stream, from the session's side. */
static void ask(struct line *l, Pb__GatewayRequest__BodyCase what, uint64_t serial)
{
	Pb__GatewayRequest m = PB__GATEWAY_REQUEST__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;
	uint8_t body[64];
	struct frame f = {.kind = MESSAGE};

	m.serial = serial;
	m.body_case = what;
	m.hold = &nothing;
	f.len = (uint32_t)pb__gateway_request__pack(&m, body);
	assert_int_equal(io_write_full(l->into, &f, sizeof(f)), 0);
	assert_int_equal(io_write_full(l->into, body, f.len), 0);
}

/* What the gateway is asked next, and with which file. */
static int asked(struct line *l, Pb__GatewayRequest__BodyCase what)
{
	ProtobufCMessage *m;
	int fds[VNET_MESSAGE_MAX_FDS];
	size_t n = 0;
	struct pollfd ready = {.fd = l->control, .events = POLLIN};
	struct err e = {0};

	assert_int_equal(poll(&ready, 1, 60000), 1);
	if (vnet_message_receive(l->control, false, &pb__gateway_request__descriptor, &m, fds, &n, &e) <= 0)
		fail_msg("%s", e.msg);
	assert_int_equal(((Pb__GatewayRequest *)m)->body_case, what);
	protobuf_c_message_free_unpacked(m, NULL);
	return n ? fds[0] : -1;
}

static void answer(struct line *l, uint64_t serial)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;
	struct err e = {0};

	m.serial = serial;
	m.body_case = PB__GATEWAY_REPLY__BODY_DONE;
	m.done = &nothing;
	assert_int_equal(vnet_message_send(l->control, &m.base, NULL, 0, &e), 0);
}

/*
 * From when it has heard of a hold nothing goes to the session any more: the gateway gets back what it has
 * written meanwhile, each packet once and in their order.
 */
static void what_was_not_sent_is_given_back(void **state)
{
	struct line *l = *state;
	uint32_t got, len, number, sent = 0;
	uint8_t packet[200];
	int file;

	for (uint32_t i = 0; i < MANY; i++)
		send_packet(l, i);
	ask(l, PB__GATEWAY_REQUEST__BODY_HOLD, 7);
	assert_int_equal(asked(l, PB__GATEWAY_REQUEST__BODY_HOLD), -1);
	for (uint32_t i = MANY; i < 2 * MANY; i++)
		send_packet(l, i);
	answer(l, 6); /* of an earlier request */
	answer(l, 7);
	for (uint32_t messages = 0; messages < 2;) {
		if (next(l, &got) == MESSAGE)
			messages++;
		else
			assert_int_equal(got, sent++);
	}
	assert_in_range(sent, 0, MANY);
	file = asked(l, PB__GATEWAY_REQUEST__BODY_UNSENT);
	assert_true(file >= 0);
	lseek(file, 0, SEEK_SET);
	for (; sent < 2 * MANY; sent++) {
		assert_int_equal(io_read_full(file, &len, sizeof(len)), sizeof(len));
		assert_int_equal(len, sizeof(packet));
		assert_int_equal(io_read_full(file, packet, len), len);
		memcpy(&number, packet, sizeof(number));
		assert_int_equal(number, sent);
	}
	assert_int_equal(io_read_full(file, &len, sizeof(len)), 0);
	close(file);

	send_packet(l, 1000);
	ask(l, PB__GATEWAY_REQUEST__BODY_GO, 8);
	asked(l, PB__GATEWAY_REQUEST__BODY_GO);
	answer(l, 8);
	for (int k = 0; k < 2; k++)
		if (next(l, &got) == PACKET)
			assert_int_equal(got, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_sent_goes_before_a_hold, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_sent_is_given_back, begin_far, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
