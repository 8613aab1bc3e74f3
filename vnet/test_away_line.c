// SPDX-License-Identifier: GPL-2.0-or-later
/* The session's side of a line to a gateway on another host: what is read when, and in which order it comes. */
#include "vnet/away_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
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

/* Its process, to which a session has been attached whose TUN we are. */
static int begin(void **state)
{
	struct line *l = calloc(1, sizeof(*l));
	int control[2], in[2], out[2];

	*state = l;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	l->pid = fork();
	if (l->pid == 0) {
		const struct vnet_away_line line = {.control = control[1],
			.packets = -1,
			.theirs = -1,
			.in = in[0],
			.out = out[1],
			.carries = true};
		struct err e = {0};

		close(control[0]);
		close(in[1]);
		close(out[0]);
		_exit(vnet_away_line(&line, &e) < 0);
	}
	close(control[1]);
	close(in[0]);
	close(out[1]);
	l->into = in[1];
	l->control = control[0];
	l->stream = out[0];
	return 0;
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

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_sent_goes_before_a_hold, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
