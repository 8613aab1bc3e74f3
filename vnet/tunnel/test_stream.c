// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets on a stream that comes in any pieces, stops, ends, or was never one. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/base.h"
#include "vnet/tunnel/stream.h"

struct end {
	struct vnet_carrier *c;
	unsigned n;
	size_t bytes;
	struct virtio_net_hdr vh;
	size_t len;
	uint8_t last[VNET_PACKET_MAX];
};

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct end *end = ctx;

	assert_int_equal(from, 0);
	assert_int_equal((uintptr_t)p->data % 8, 0);
	end->n++;
	end->bytes += p->payload_len;
	end->vh = p->vh;
	end->len = p->len;
	memcpy(end->last, p->data, p->len);
}

static void open_end(struct end *end, int fd)
{
	const struct vnet_stream_options o = {.owner = {deliver, end}, .in = fd, .out = fd};
	struct err e = {0};

	*end = (struct end){0};
	assert_int_equal(vnet_stream_open(&end->c, &o, &e), 0);
}

static void pair(int sv[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv), 0);
}

static uint8_t room[VNET_PACKET_MAX] __attribute__((aligned(8)));

static struct vnet_packet packet(size_t len, uint16_t gso)
{
	static uint8_t payload[60000];
	const struct vnet_endpoint src = {AF_INET, 1000, .v4.s_addr = 0x0100000a};
	const struct vnet_endpoint dst = {AF_INET, 2000, .v4.s_addr = 0x0200000a};
	struct vnet_packet p = {.data = room, .room = sizeof(room)};

	for (size_t i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 7 + len);
	assert_int_equal(vnet_packet_make_udp(&p, &src, &dst, payload, len, gso), 0);
	return p;
}

static void there(void **state)
{
	static struct end a, b;
	struct err e = {0};
	int sv[2];

	pair(sv);
	open_end(&a, sv[0]);
	open_end(&b, sv[1]);
	for (size_t len = 0; len < 60000; len = len * 3 + 1) {
		struct vnet_packet p = packet(len, len > 1400 ? 1300 : 0);

		b.n = 0;
		assert_int_equal(vnet_carrier_send(a.c, 0, &p), 0);
		while (!b.n) {
			vnet_carrier_flush(a.c);
			assert_int_equal(vnet_carrier_run(b.c, &e), 0);
		}
		assert_int_equal(b.len, p.len);
		assert_memory_equal(b.last, room, p.len);
		assert_memory_equal(&b.vh, &p.vh, sizeof(b.vh));
	}
	vnet_carrier_close(a.c);
	assert_int_equal(vnet_carrier_run(b.c, &e), -ECONNRESET);
	vnet_carrier_close(b.c);
	vnet_carrier_close(NULL);
}

/* Nobody reads: what waits is bounded, and nothing of it is lost. */
static void full(void **state)
{
	static struct end a, b;
	struct vnet_packet p = packet(50000, 1300);
	struct err e = {0};
	unsigned n = 0;
	int sv[2], r;

	pair(sv);
	open_end(&a, sv[0]);
	open_end(&b, sv[1]);
	while ((r = vnet_carrier_send(a.c, 0, &p)) == 0)
		assert_true(++n < 1000);
	assert_int_equal(r, -EAGAIN);
	assert_true(n >= VNET_STREAM_OUT / 51000);
	assert_true(vnet_carrier_watch(a.c, 0).write);
	while (b.n < n) {
		assert_int_equal(vnet_carrier_run(a.c, &e), 0);
		assert_int_equal(vnet_carrier_run(b.c, &e), 0);
	}
	assert_int_equal(b.bytes, n * 50000);
	assert_false(vnet_carrier_watch(a.c, 0).write);
	assert_int_equal(vnet_carrier_watch(a.c, 1).fd, -1);
	assert_int_equal(vnet_carrier_send(a.c, 0, &p), 0);
	assert_int_equal(vnet_carrier_send(a.c, 3, &p), -EHOSTUNREACH);
	vnet_carrier_close(a.c);
	vnet_carrier_close(b.c);
}

static void byte_by_byte(void **state)
{
	static struct end a, b;
	struct vnet_packet p = packet(33, 0);
	struct err e = {0};
	uint8_t text[1024];
	ssize_t n;
	int sv[2], other[2];

	pair(sv);
	pair(other);
	open_end(&a, sv[0]);
	open_end(&b, other[0]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vnet_carrier_send(a.c, VNET_CARRIER_BY_ADDRESS, &p), 0);
	p.len = 30; /* not what its header says */
	assert_int_equal(vnet_carrier_send(a.c, 0, &p), 0);
	p = packet(34, 0);
	assert_int_equal(vnet_carrier_send(a.c, 0, &p), 0);
	vnet_carrier_flush(a.c);
	n = recv(sv[1], text, sizeof(text), 0);
	assert_int_equal(n, 16 + 3 * (16 + 64) + (16 + 32) + 16 + 64);
	for (ssize_t i = 0; i < n; i++) {
		assert_int_equal(send(other[1], text + i, 1, 0), 1);
		assert_int_equal(vnet_carrier_run(b.c, &e), 0);
		assert_int_equal(b.n, i < 95 ? 0 : i < 175 ? 1 : i < 255 ? 2 : i < n - 1 ? 3 : 4);
	}
	assert_int_equal(b.len, 62);
	vnet_carrier_close(a.c);
	vnet_carrier_close(b.c);
	close(sv[1]);
	close(other[1]);
}

static void wrong(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{"SSH-2.0-OpenSSH_9.2p1 Debian", 28},
		{"podrun packets 1\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0", 32}, /* 65537 bytes */
		{"podrun packets 1\377\377\377\377\0\0\0\0\0\0\0\0\0\0\0\0", 32},
		{"podrun packets 1\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 32},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct end a;
		struct err e = {0};
		int sv[2];

		pair(sv);
		open_end(&a, sv[0]);
		assert_int_equal(send(sv[1], cases[i].bytes, cases[i].len, 0), cases[i].len);
		assert_int_equal(vnet_carrier_run(a.c, &e), -EPROTO);
		assert_int_equal(e.class, ERR_PEER);
		vnet_carrier_close(a.c);
		close(sv[1]);
	}
}

/* A line that is kept open, by two descriptors. */
static void quiet(void **state)
{
	static struct end a;
	struct vnet_stream_options o = {.owner = {deliver, &a}, .keepalive = 1};
	struct err e = {0};
	uint8_t text[100];
	int in[2], out[2];

	pair(in);
	pair(out);
	o.in = in[0];
	o.out = out[0];
	assert_int_equal(vnet_stream_open(&a.c, &o, &e), 0);
	assert_true(vnet_carrier_deadline(a.c) <= io_now_ns() + 1);
	assert_int_equal(vnet_carrier_watch(a.c, 1).fd, out[0]);
	assert_int_equal(vnet_carrier_run(a.c, &e), 0);
	assert_int_equal(recv(out[1], text, sizeof(text), 0), 32);
	assert_memory_equal(text, VNET_STREAM_MAGIC "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
	assert_int_equal(send(in[1], text, 32, 0), 32);
	assert_int_equal(vnet_carrier_run(a.c, &e), 0);
	assert_int_equal(a.n, 0);
	close(out[1]);
	assert_int_equal(vnet_carrier_run(a.c, &e), -EPIPE);
	vnet_carrier_close(a.c);
	close(in[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there),
		cmocka_unit_test(full),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(wrong),
		cmocka_unit_test(quiet),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
