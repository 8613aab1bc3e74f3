// SPDX-License-Identifier: GPL-2.0-or-later
/* The gateway process as its clients see it: this program is also the gateway that they start. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/client.h"
#include "vnet/gateway/arena.h"
#include "vnet/gateway/keeper.h"
#include "vnet/gateway/main.h"
#include "vnet/packet.h"
#include "vnet/tun.h"
#include "vnet/vnet.h"

static char runtime[] = "/tmp/podrun-gateway-XXXXXX";

static struct vnet_client *open_client(void)
{
	struct vnet_client *c;
	struct err e = {0};

	if (vnet_client_connect(&c, runtime, true, &e) < 0)
		fail_msg("%s", e.msg);
	return c;
}

static struct vnet_answer answer(struct vnet_client *c)
{
	struct vnet_answer a;
	struct err e = {0};

	if (vnet_client_wait(c, &a, &e) < 0)
		fail_msg("%s", e.msg);
	return a;
}

/* A TUN that nobody else has: its interface is made in a namespace that ends with the child. */
static int some_tun(void)
{
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	close(pair[1]);
	return pair[0];
}

static const struct vnet_attach work = {
	.name = "work", .id = "1", .address4 = {0x0200ab0a}, .gateway4 = {0x0100ab0a}, .mtu = 1420};

static struct vnet_answer attach(struct vnet_client *c, const struct vnet_attach *what)
{
	struct err e = {0};
	int tun = some_tun();

	assert_int_equal(vnet_client_attach(c, what, tun, -1, &e), 0);
	close(tun);
	return answer(c);
}

static struct vnet_answer list(struct vnet_client *c)
{
	struct err e = {0};
	struct vnet_answer a;

	assert_int_equal(vnet_client_list(c, NULL, &e), 0);
	a = answer(c);
	assert_int_equal(a.kind, VNET_ANSWER_SESSIONS);
	return a;
}

/* The gateway ends once nobody needs it: its socket is at its name no more. */
static void wait_for_end(void)
{
	struct vnet_client *c;
	struct err e = {0};

	for (;;) {
		struct pollfd p;

		e = (struct err){0};
		if (vnet_client_connect(&c, runtime, false, &e) == -EAGAIN) {
			poll(NULL, 0, 1);
			continue;
		}
		if (err_is(&e))
			break;
		p = (struct pollfd){.fd = vnet_client_fd(c), .events = POLLIN};
		vnet_client_free(c);
		poll(&p, 0, 1);
	}
	assert_int_equal(e.error, -ENOENT);
}

static void test_none(void **state)
{
	struct vnet_client *c;
	struct err e = {0};

	assert_int_equal(vnet_client_connect(&c, runtime, false, &e), -ENOENT);
	assert_int_equal(e.class, ERR_NOT_FOUND);
}

#define PINGS 200u

static void send_ping(int tun, uint16_t number)
{
	uint32_t room[512], rest[256] = {0};
	struct vnet_packet p = {.data = (uint8_t *)room, .room = sizeof(room)};
	const struct vnet_endpoint from = vnet_endpoint_v4(work.address4, 0),
				   to = vnet_endpoint_v4(work.gateway4, 0);
	const struct vnet_icmp echo = {.type = ICMP_ECHO, .rest = htonl(number)};

	assert_int_equal(vnet_packet_make_icmp(&p, &from, &to, &echo, rest, sizeof(rest)), 0);
	assert_int_equal(vnet_tun_write(tun, &p), 0);
}

/* The next packet's number; they come in order. */
static uint16_t read_ping(int tun)
{
	uint32_t room[512];
	struct vnet_packet p = {.data = (uint8_t *)room, .room = sizeof(room)};
	struct pollfd ready = {.fd = tun, .events = POLLIN};

	assert_int_equal(poll(&ready, 1, 60000), 1);
	assert_int_equal(vnet_tun_read(tun, &p), 0);
	assert_int_equal(vnet_packet_parse(&p), 0);
	return ntohs(vnet_packet_icmp(&p)->un.echo.sequence);
}

/* A socket in place of a TUN has room for some packets only: the others wait until it has. */
static void test_full(void **state)
{
	struct vnet_client *c = open_client();
	struct err e = {0};
	const int size = 1; /* the least there is */
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(vnet_client_attach(c, &work, pair[1], -1, &e), 0);
	assert_int_equal(answer(c).kind, VNET_ANSWER_ATTACHED);
	close(pair[1]);
	for (unsigned i = 0; i < PINGS; i++)
		send_ping(pair[0], (uint16_t)i);
	for (unsigned i = 0; i < PINGS; i++)
		assert_int_equal(read_ping(pair[0]), i);
	vnet_client_free(c);
	close(pair[0]);
	wait_for_end();
}

static void test_attach(void **state)
{
	struct vnet_client *c = open_client();
	struct vnet_answer a = attach(c, &work);
	struct err e = {0};

	assert_int_equal(a.kind, VNET_ANSWER_ATTACHED);
	assert_int_not_equal(a.claim.label, 0);
	assert_int_equal(a.claim.epoch, 1);
	assert_false(a.lost);

	a = list(c);
	assert_int_equal(a.sessions->n_sessions, 1);
	assert_string_equal(a.sessions->sessions[0]->name, "work");
	assert_false(a.sessions->sessions[0]->held);
	vnet_answer_fini(&a);

	assert_int_equal(vnet_client_hold(c, &e), 0);
	assert_int_equal(answer(c).kind, VNET_ANSWER_FLOWS);
	a = list(c);
	assert_true(a.sessions->sessions[0]->held);
	vnet_answer_fini(&a);
	assert_int_equal(vnet_client_go(c, &e), 0);
	assert_int_equal(answer(c).kind, VNET_ANSWER_DONE);

	/* Without connections there is nothing to keep. */
	assert_int_equal(vnet_client_detach(c, true, &e), 0);
	a = answer(c);
	assert_int_equal(a.kind, VNET_ANSWER_FLOWS);
	assert_int_equal(a.flows, 0);
	a = list(c);
	assert_int_equal(a.sessions->n_sessions, 0);
	vnet_answer_fini(&a);
	vnet_client_free(c);
	wait_for_end();
}

static void test_refused(void **state)
{
	struct vnet_client *c = open_client();
	struct vnet_answer a;
	struct err e = {0};

	assert_int_equal(vnet_client_hold(c, &e), 0);
	assert_int_equal(vnet_client_wait(c, &a, &e), -ENOTCONN);
	assert_int_equal(e.class, ERR_STATE);
	vnet_client_free(c);
	wait_for_end();
}

/* Of an image: nobody could be answered there. */
static void test_odd_address(void **state)
{
	static const uint32_t odd[] = {0xe0000001, 0xffffffff, 0x7f000001, 0x00000001};
	struct vnet_client *c = open_client();
	struct vnet_attach a = work;

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct vnet_answer answer;
		struct err e = {0};
		int tun = some_tun();

		a.address4.s_addr = htonl(odd[i]);
		assert_int_equal(vnet_client_attach(c, &a, tun, -1, &e), 0);
		close(tun);
		assert_int_equal(vnet_client_wait(c, &answer, &e), -EINVAL);
	}
	vnet_client_free(c);
	wait_for_end();
}

static void test_late_claim(void **state)
{
	struct vnet_client *c = open_client();
	struct vnet_attach again = work;
	struct vnet_answer a;
	struct err e = {0};

	again.claim = (struct vnet_claim){.label = 7, .epoch = 3};
	assert_int_equal(vnet_client_forget(c, &again.claim, &e), 0);
	a = answer(c);
	assert_int_equal(a.kind, VNET_ANSWER_FLOWS);
	assert_int_equal(a.flows, 0);
	a = attach(c, &again);
	assert_true(a.lost);
	assert_int_equal(a.claim.epoch, 1);
	assert_int_not_equal(a.claim.label, 7);
	vnet_client_free(c);
	wait_for_end();
}

/* A worker is killed with a session attached and requests on their way. */
static void test_killed(void **state)
{
	struct vnet_client *c = open_client();
	struct vnet_answer a = attach(c, &work);
	uint32_t label = a.claim.label;
	struct err e = {0};

	for (int i = 0; i < 20; i++) {
		a = list(c);
		assert_int_equal(a.sessions->restarts, i);
		assert_int_equal(a.sessions->n_sessions, 1);
		assert_int_equal(a.sessions->sessions[0]->label, label);
		assert_int_equal(a.sessions->sessions[0]->held, i % 2);
		assert_int_equal(vnet_client_list(c, NULL, &e), 0);
		kill(a.sessions->worker, SIGKILL);
		vnet_answer_fini(&a);
		assert_int_equal(i % 2 ? vnet_client_go(c, &e) : vnet_client_hold(c, &e), 0);
		a = answer(c);
		assert_int_equal(a.kind, VNET_ANSWER_SESSIONS);
		vnet_answer_fini(&a);
		assert_int_equal(answer(c).kind, i % 2 ? VNET_ANSWER_DONE : VNET_ANSWER_FLOWS);
	}
	vnet_client_free(c);
	wait_for_end();
}

static int cannot_begin(struct gateway_arena *a)
{
	return 1;
}

/* Where no worker can begin the keeper does not try for ever. */
static void test_hopeless(void **state)
{
	struct gateway_arena *a;
	struct err e = {0};
	int status;
	pid_t pid;

	assert_int_equal(gateway_arena_new(&a, 4096, 4096, &e), 0);
	pid = fork();
	if (pid == 0)
		_exit(gateway_keeper_run(a, cannot_begin));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 1 << 8);
	assert_in_range(a->restarts, 2, 8);
	munmap(a, a->size);
}

/* Many first clients at once meet one gateway. */
static void test_many(void **state)
{
	struct vnet_client *c[8];
	struct vnet_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = open_client();
		a = attach(c[i], &work);
		assert_int_equal(a.kind, VNET_ANSWER_ATTACHED);
	}
	a = list(c[3]);
	assert_int_equal(a.sessions->n_sessions, ARRAY_SIZE(c));
	vnet_answer_fini(&a);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		vnet_client_free(c[i]);
	wait_for_end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_odd_address),
		cmocka_unit_test(test_late_claim),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_hopeless),
		cmocka_unit_test(test_many),
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
