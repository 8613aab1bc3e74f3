// SPDX-License-Identifier: GPL-2.0-or-later
/* Two ends of a line on this host, by its loopback. */
#include "vnet/direct.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/base.h"
#include "vnet/packet.h"

#define MTU 1420

struct end {
	struct vnet_direct *d;
	bool tunnel;
	unsigned came;
	uint16_t last; /* port to which the last packet was */
	char said[64];
};

static void deliver(void *ctx, const struct vnet_packet *p)
{
	struct end *e = ctx;

	e->came++;
	e->last = p->dst.port;
	snprintf(e->said, sizeof(e->said), "%.*s", (int)p->payload_len,
		(const char *)p->data + p->payload);
}

static void changed(void *ctx, bool tunnel)
{
	((struct end *)ctx)->tunnel = tunnel;
}

static void make(struct end *e)
{
	const struct vnet_direct_owner owner = {deliver, changed, e};
	struct err err = {0};

	*e = (struct end){0};
	if (vnet_direct_open(&e->d, &owner, MTU, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Either knows where the other is, or only one does. */
static void introduce(struct end *a, struct end *b, bool both)
{
	struct vnet_direct_end to_a, to_b;
	struct err e = {0};

	vnet_direct_self(a->d, &to_a);
	vnet_direct_self(b->d, &to_b);
	assert_memory_not_equal(to_a.key, to_b.key, sizeof(to_a.key));
	strcpy(to_b.address, "127.0.0.1");
	if (both)
		strcpy(to_a.address, "127.0.0.1");
	assert_int_equal(vnet_direct_meet(a->d, &to_b, &e), 0);
	assert_int_equal(vnet_direct_meet(b->d, &to_a, &e), 0);
	assert_int_equal(vnet_direct_meet(b->d, &to_a, &e), -EINVAL);
}

static void turn(struct end *a, struct end *b)
{
	struct pollfd fds[2];
	int first = vnet_direct_timeout(a->d), second = vnet_direct_timeout(b->d);

	vnet_direct_watch(a->d, &fds[0]);
	vnet_direct_watch(b->d, &fds[1]);
	poll(fds, 2, first < 0 ? second : second < 0 ? first : MIN(first, second));
	vnet_direct_run(a->d);
	vnet_direct_run(b->d);
}

/* A datagram as a TUN gives it. */
static bool say(struct end *from, const char *text, uint16_t port)
{
	static _Alignas(16) uint8_t room[2 + sizeof(struct virtio_net_hdr) + 2000];
	/* The packet is at a multiple of 4. */
	uint8_t *data = room + 2;
	struct vnet_packet p = {.data = data + sizeof(p.vh), .room = 2000};
	struct vnet_endpoint src = vnet_endpoint_v4((struct in_addr){htonl(0x0aab0002)}, 1000);
	struct vnet_endpoint dst = vnet_endpoint_v4((struct in_addr){htonl(0xc0000201)}, port);
	bool gone;

	assert_int_equal(vnet_packet_make_udp(&p, &src, &dst, text, strlen(text), 0), 0);
	memcpy(data, &p.vh, sizeof(p.vh));
	gone = vnet_direct_send(from->d, data, sizeof(p.vh) + p.len);
	vnet_direct_flush(from->d);
	return gone;
}

static void finish(struct end *a, struct end *b)
{
	vnet_direct_close(a->d);
	vnet_direct_close(b->d);
}

static void packets_pass(void **state)
{
	struct end a, b;

	for (int both = 0; both < 2; both++) {
		make(&a);
		make(&b);
		assert_false(say(&a, "too early", 1));
		introduce(&a, &b, both);
		assert_false(say(&a, "not proven", 1));
		while (!a.tunnel || !b.tunnel)
			turn(&a, &b);
		assert_int_equal(a.came + b.came, 0);
		assert_true(say(&a, "there", 7));
		while (!b.came)
			turn(&a, &b);
		assert_string_equal(b.said, "there");
		assert_true(say(&b, "and back", 8));
		while (!a.came)
			turn(&a, &b);
		assert_string_equal(a.said, "and back");
		finish(&a, &b);
	}
}

/* Both send by the tunnel. */
static void connect_ends(struct end *a, struct end *b)
{
	make(a);
	make(b);
	introduce(a, b, true);
	while (!a->tunnel || !b->tunnel)
		turn(a, b);
}

static void what_comes_can_wait(void **state)
{
	struct end a, b;

	connect_ends(&a, &b);
	vnet_direct_hold(b.d);
	for (uint16_t i = 1; i <= 40; i++)
		assert_true(say(&a, "held", i));
	/* The loopback has them there, all of them or most. */
	for (int i = 0; i < 4; i++)
		vnet_direct_run(b.d);
	assert_int_equal(b.came, 0);
	vnet_direct_go(b.d);
	while (b.came < 40)
		turn(&a, &b);
	assert_true(say(&a, "at once", 41));
	while (b.came < 41)
		turn(&a, &b);
	assert_string_equal(b.said, "at once");
	finish(&a, &b);
}

/* The other end is gone without a word: packets are for the line again. */
static void nobody_there(void **state)
{
	struct end a, b;

	connect_ends(&a, &b);
	vnet_direct_close(take_ptr(b.d));
	assert_true(say(&a, "lost", 1));
	while (a.tunnel) {
		struct pollfd fd;

		vnet_direct_watch(a.d, &fd);
		poll(&fd, 1, vnet_direct_timeout(a.d));
		vnet_direct_run(a.d);
	}
	assert_false(say(&a, "by the line", 1));
	finish(&a, &b);
}

/* A session can say what it likes: what looks like a question of ours never goes by the tunnel. */
static void questions_of_the_sessions(void **state)
{
	static _Alignas(16) uint8_t room[2 + sizeof(struct virtio_net_hdr) + 64];
	struct iphdr ip = {.version = 4,
		.ihl = 5,
		.ttl = 1,
		.protocol = 253,
		.tot_len = htons(32),
		.check = htons(0xb8e2)};
	struct end a, b;
	struct vnet_packet p = {.data = room + 2 + sizeof(p.vh), .len = 32, .room = 64};

	memcpy(p.data, &ip, sizeof(ip));
	memcpy(p.data + sizeof(ip), "podrun !", 8);
	assert_int_equal(vnet_packet_parse(&p), 0);
	connect_ends(&a, &b);
	assert_false(vnet_direct_send(a.d, room + 2, sizeof(p.vh) + p.len));
	finish(&a, &b);
}

static void none(void **state)
{
	struct pollfd fd;
	uint8_t data[100] = {0};

	vnet_direct_watch(NULL, &fd);
	assert_int_equal(fd.fd, -1);
	assert_int_equal(vnet_direct_timeout(NULL), -1);
	assert_false(vnet_direct_send(NULL, data, sizeof(data)));
	vnet_direct_flush(NULL);
	vnet_direct_hold(NULL);
	vnet_direct_go(NULL);
	vnet_direct_run(NULL);
	vnet_direct_close(NULL);
}

static void no_such_packets(void **state)
{
	const struct vnet_direct_owner owner = {deliver, changed, NULL};
	struct vnet_direct *d = NULL;
	struct err e = {0};

	assert_int_equal(vnet_direct_open(&d, &owner, 0, &e), -EINVAL);
	e = (struct err){0};
	assert_int_equal(vnet_direct_open(&d, &owner, 65536, &e), -EINVAL);
	assert_null(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_pass),
		cmocka_unit_test(what_comes_can_wait),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(questions_of_the_sessions),
		cmocka_unit_test(none),
		cmocka_unit_test(no_such_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
