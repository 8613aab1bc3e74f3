// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two tunnels on the loopback interface with a bad line between them, which this test is, and a
 * clock that it sets.
 *
 *     end[0] -- line.side[0] | line.side[1] -- end[1]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/tunnel/device.h"
#include "vnet/tunnel/test_vectors.h"
#include "vnet/tunnel/tunnel.h"

#define PATIENCE_MS 20000 /* until something that must come is missed */
#define DATAGRAM    2048

struct got { /* a packet that was delivered */
	size_t len;
	uint8_t data[VNET_PACKET_MAX];
};

struct end {
	struct vnet_carrier *c;
	struct buf packets; /* of struct got, headed by their lengths */
	unsigned n;
	struct virtio_net_hdr vh; /* of the last */
	size_t len;
	uint8_t last[VNET_PACKET_MAX];
	bool checksums_right;
};

struct world {
	struct end end[2];
	int side[2];		    /* sockets of the line */
	struct vnet_endpoint to[2]; /* the ends */
	uint64_t now, real;
	unsigned carried[2], lose_one_in, repeat_one_in, hold_one_in;
	bool cut;
	uint32_t random;
	/* The last datagram towards end 1, and one that is held back to come later. */
	uint8_t seen[DATAGRAM], held[DATAGRAM];
	size_t seen_len, held_len;
};

static uint64_t monotonic(void *ctx)
{
	return ((struct world *)ctx)->now;
}

static uint64_t real(void *ctx)
{
	return ((struct world *)ctx)->real;
}

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct end *end = ctx;
	struct vnet_packet copy = *p;

	end->n++;
	end->vh = p->vh;
	end->len = p->len;
	memcpy(end->last, p->data, p->len);
	assert_int_equal(vnet_packet_parse(&copy), 0);
	end->checksums_right &= vnet_packet_checksum_ok(p);
	buf_put(&end->packets, p->data + p->payload, p->payload_len);
}

static int line_socket(struct vnet_endpoint *ret)
{
	struct sockaddr_storage sa;
	struct vnet_endpoint any = {.family = AF_INET, .v4.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = vnet_endpoint_to_sockaddr(&any, &sa);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	len = sizeof(sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(vnet_endpoint_from_sockaddr(&sa, len, ret), 0);
	return fd;
}

struct setting {
	const uint8_t *preshared[2], *known_public[2];
	uint16_t keepalive;
	bool no_udp_runs, named;
};

/* Configurations are texts, as a user has them, but for keys. */
static void open_end(
	struct world *w, int i, const struct vnet_endpoint *line, const struct setting *s)
{
	static const char zero_key[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	const uint8_t *private[] = {vector_initiator_private, vector_responder_private};
	struct vnet_tunnel_clock clock = {monotonic, real, w};
	struct vnet_tunnel_options o = {
		.owner = {deliver, &w->end[i]}, .clock = &clock, .no_udp_runs = s->no_udp_runs};
	struct vnet_config c;
	struct err e = {0};
	char text[512];
	int n = snprintf(text, sizeof(text),
		"[Interface]\nPrivateKey = %s\n[Peer]\nPublicKey = %s\n"
		"AllowedIPs = 10.9.0.%d/32, fd09::%d\n"
		"Endpoint = %s:%d\nPersistentKeepalive = %d\n",
		zero_key, zero_key, 2 - i, 2 - i, s->named ? "vpn.example" : "127.0.0.1",
		line->port, s->keepalive);

	assert_int_equal(vnet_config_parse(&c, text, (size_t)n, "test", &e), 0);
	memcpy(c.private, private[i], VNET_KEY_LEN);
	memcpy(c.peers[0].public, s->known_public[i], VNET_KEY_LEN);
	if (s->preshared[i])
		memcpy(c.peers[0].preshared, s->preshared[i], VNET_KEY_LEN);
	if (vnet_tunnel_open(&w->end[i].c, &c, &o, &e) < 0)
		fail_msg("%s", e.msg);
	vnet_config_fini(&c);
	w->end[i].checksums_right = true;
	w->to[i] = (struct vnet_endpoint){.family = AF_INET,
		.port = vnet_tunnel_port(w->end[i].c),
		.v4.s_addr = htonl(INADDR_LOOPBACK)};
}

static const struct setting ordinary = {
	.preshared = {vector_preshared, vector_preshared},
	.known_public = {vector_responder_public, vector_initiator_public},
};

static struct world *world_new(const struct setting *s)
{
	struct world *w = calloc(1, sizeof(*w));
	struct vnet_endpoint at;

	assert_non_null(w);
	w->now = 1000 * SECONDS;
	w->real = 1700000000 * SECONDS;
	w->random = 1;
	for (int i = 0; i < 2; i++) {
		w->side[i] = line_socket(&at);
		open_end(w, i, &at, s);
	}
	return w;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		vnet_carrier_close(w->end[i].c);
		close(w->side[i]);
		buf_fini(&w->end[i].packets);
	}
	free(w);
}

static bool one_in(struct world *w, unsigned n)
{
	w->random = w->random * 1664525 + 1013904223;
	return n && (w->random >> 8) % n == 0;
}

static void put_on(struct world *w, int to, const uint8_t *data, size_t len)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = vnet_endpoint_to_sockaddr(&w->to[to], &sa);

	assert_int_equal(sendto(w->side[to], data, len, 0, (struct sockaddr *)&sa, sa_len), len);
	w->carried[to]++;
}

/* One datagram from end 1 - @to on its way, or not. */
static void carry(struct world *w, int to, const uint8_t *data, size_t len)
{
	if (w->cut || one_in(w, w->lose_one_in))
		return;
	if (to == 1) {
		memcpy(w->seen, data, len);
		w->seen_len = len;
		if (!w->held_len && one_in(w, w->hold_one_in)) {
			memcpy(w->held, data, len);
			w->held_len = len;
			return;
		}
	}
	put_on(w, to, data, len);
	if (one_in(w, w->repeat_one_in))
		put_on(w, to, data, len);
	if (to == 1 && w->held_len && one_in(w, 5)) {
		put_on(w, 1, w->held, w->held_len);
		w->held_len = 0;
	}
}

/* Waits at most @ms for anything to come anywhere, and lets it.  False if nothing did. */
static bool step(struct world *w, int ms)
{
	uint8_t data[DATAGRAM];
	struct pollfd p[4];
	struct err e = {0};
	ssize_t n;

	for (int i = 0; i < 2; i++) {
		p[i] = (struct pollfd){.fd = w->side[i], .events = POLLIN};
		p[2 + i] = (struct pollfd){
			.fd = vnet_carrier_watch(w->end[i].c, 0).fd, .events = POLLIN};
	}
	if (poll(p, 4, ms) <= 0)
		return false;
	for (int i = 0; i < 2; i++) {
		while ((n = recv(w->side[i], data, sizeof(data), 0)) >= 0)
			carry(w, 1 - i, data, (size_t)n);
		assert_int_equal(vnet_carrier_run(w->end[i].c, &e), 0);
	}
	return true;
}

/* Until end @i has got @n packets altogether. */
static void until(struct world *w, int i, unsigned n)
{
	while (w->end[i].n < n)
		if (!step(w, PATIENCE_MS))
			fail_msg("end %d has %u of %u packets", i, w->end[i].n, n);
}

/* Time passes second by second, and timers run. */
static void later(struct world *w, uint64_t ns)
{
	struct err e = {0};

	for (uint64_t n; ns; ns -= n) {
		n = MIN(ns, (uint64_t)SECONDS);
		w->now += n;
		w->real += n;
		for (int i = 0; i < 2; i++)
			assert_int_equal(vnet_carrier_run(w->end[i].c, &e), 0);
		while (step(w, 0))
			;
	}
}

static struct vnet_endpoint address(int i, uint16_t port)
{
	return (struct vnet_endpoint){
		.family = AF_INET, .port = port, .v4.s_addr = htonl(0x0a090001u + (unsigned)i)};
}

static int try_send(struct world *w, int from, const void *payload, size_t len)
{
	static uint8_t room[VNET_PACKET_MAX] __attribute__((aligned(8)));
	struct vnet_endpoint src = address(from, 1000), dst = address(1 - from, 2000);
	struct vnet_packet p = {.data = room, .room = sizeof(room)};
	int r;

	assert_int_equal(vnet_packet_make_udp(&p, &src, &dst, payload, len, 0), 0);
	r = vnet_carrier_send(w->end[from].c, VNET_CARRIER_BY_ADDRESS, &p);
	vnet_carrier_flush(w->end[from].c);
	return r;
}

static void send_text(struct world *w, int from, const char *text)
{
	assert_int_equal(try_send(w, from, text, strlen(text)), 0);
}

/* Sends from @from and waits until it is there. */
static void cross(struct world *w, int from, const char *text)
{
	struct end *to = &w->end[1 - from];

	buf_clear(&to->packets);
	send_text(w, from, text);
	until(w, 1 - from, to->n + 1);
	assert_int_equal(to->packets.len, strlen(text));
	assert_memory_equal(to->packets.data, text, strlen(text));
}

static void both_ways(void **state)
{
	struct world *w = world_new(&ordinary);
	struct vnet_tunnel_peer_stats s;

	cross(w, 0, "hello");
	cross(w, 1, "and back");
	cross(w, 0, "");
	cross(w, 0, "again");
	assert_true(w->end[0].checksums_right && w->end[1].checksums_right);
	assert_int_equal(vnet_tunnel_peer_stats(w->end[1].c, 0, &s), 0);
	assert_int_equal(s.handshake, w->now);
	assert_int_equal(s.received, 3 * 28 + 10);
	assert_int_equal(s.sent, 28 + 8);
	/* Nobody has this address, and nobody may send from it. */
	struct vnet_packet p = {.version = 4, .dst = address(7, 1)};
	assert_int_equal(
		vnet_carrier_send(w->end[0].c, VNET_CARRIER_BY_ADDRESS, &p), -EHOSTUNREACH);
	world_free(w);
}

/* What is sent while the endpoint's name is looked up is sent as soon as it is known. */
static void named(void **state)
{
	struct setting s = ordinary;
	struct vnet_endpoint at;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct world *w;

	s.named = true;
	w = world_new(&s);
	send_text(w, 0, "first");
	send_text(w, 0, "second");
	assert_int_equal(getsockname(w->side[0], (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(vnet_endpoint_from_sockaddr(&sa, len, &at), 0);
	vnet_tunnel_set_endpoint(w->end[0].c, 0, &at);
	vnet_tunnel_greet(w->end[0].c, 0);
	until(w, 1, 2);
	assert_int_equal(w->end[1].packets.len, strlen("firstsecond"));
	assert_memory_equal(w->end[1].packets.data, "firstsecond", strlen("firstsecond"));
	world_free(w);
}

/* A super-packet of TCP, as a TUN has it. */
static void make_tcp(
	struct vnet_packet *p, uint32_t seq, const uint8_t *payload, size_t len, uint16_t mss)
{
	struct iphdr *ip = (void *)p->data;
	struct tcphdr *th = (void *)(p->data + sizeof(*ip));
	const struct vnet_endpoint src = address(0, 1000), dst = address(1, 80);

	memset(p->data, 0, sizeof(*ip) + sizeof(*th));
	*ip = (struct iphdr){.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_TCP,
		.frag_off = htons(IP_DF),
		.id = htons(77),
		.tot_len = htons((uint16_t)(40 + len)),
		.saddr = src.v4.s_addr,
		.daddr = dst.v4.s_addr};
	ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, sizeof(*ip)));
	th->source = htons(src.port);
	th->dest = htons(dst.port);
	th->seq = htonl(seq);
	th->doff = 5;
	th->ack = 1;
	th->psh = 1;
	th->window = htons(500);
	th->check =
		vnet_checksum_fold(vnet_checksum_pseudo_v4(src.v4, dst.v4, IPPROTO_TCP, 20 + len));
	memcpy(p->data + 40, payload, len);
	p->len = 40 + len;
	p->vh = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = len > mss ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_NONE,
		.gso_size = len > mss ? mss : 0,
		.hdr_len = 40,
		.csum_start = 20,
		.csum_offset = offsetof(struct tcphdr, check)};
	assert_int_equal(vnet_packet_parse(p), 0);
}

static void super_packets_over(const struct setting *s)
{
	static uint8_t room[VNET_PACKET_MAX] __attribute__((aligned(8))), bytes[1 << 20];
	struct vnet_packet p = {.data = room, .room = sizeof(room)};
	struct world *w = world_new(s);
	uint32_t x = 7;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	cross(w, 0, "keys");
	w->end[1].n = 0;
	buf_clear(&w->end[1].packets);
	for (size_t at = 0, n; at < sizeof(bytes); at += n) {
		n = MIN(sizeof(bytes) - at, (size_t)(at / 7 % 60000 + 1));
		make_tcp(&p, 0xfffffff0u + (uint32_t)at, bytes + at, n, 1380);
		assert_int_equal(vnet_carrier_send(w->end[0].c, 0, &p), 0);
		vnet_carrier_flush(w->end[0].c);
		while (w->end[1].packets.len < at + n)
			assert_true(step(w, PATIENCE_MS));
	}
	assert_int_equal(w->end[1].packets.len, sizeof(bytes));
	assert_memory_equal(w->end[1].packets.data, bytes, sizeof(bytes));
	assert_true(w->end[1].checksums_right);
	world_free(w);
}

static void super_packets(void **state)
{
	struct setting s = ordinary;

	super_packets_over(&s);
	s.no_udp_runs = true;
	super_packets_over(&s);
}

/* Each packet at most once, none altered, whatever the line does. */
static void bad_line(void **state)
{
	enum { N = 3000 };
	struct world *w = world_new(&ordinary);
	static uint8_t times[N];
	unsigned got = 0;

	memset(times, 0, sizeof(times));
	cross(w, 0, "keys");
	buf_clear(&w->end[1].packets);
	w->carried[1] = 0;
	w->lose_one_in = 10;
	w->repeat_one_in = 7;
	w->hold_one_in = 6;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t text[2] = {i, ~i};

		assert_int_equal(try_send(w, 0, text, sizeof(text)), 0);
		while (step(w, 0))
			;
	}
	w->lose_one_in = w->repeat_one_in = w->hold_one_in = 0;
	/* The line loses and repeats nothing now: what comes last is the end. */
	cross(w, 1, "back");
	send_text(w, 0, "end.....");
	do
		assert_true(step(w, PATIENCE_MS));
	while (memcmp(w->end[1].last + 28, "end.....", 8) != 0);
	for (size_t at = 0; at + 16 <= w->end[1].packets.len; at += 8) {
		uint32_t text[2];

		memcpy(text, w->end[1].packets.data + at, sizeof(text));
		assert_int_equal(text[0], ~text[1]);
		assert_in_range(text[0], 0, N - 1);
		times[text[0]]++;
		got++;
	}
	for (int i = 0; i < N; i++)
		assert_in_range(times[i], 0, 1);
	assert_in_range(got, N * 8 / 10, N * 95 / 100);
	assert_true(w->carried[1] > got); /* some came twice */
	world_free(w);
}

static void replayed(void **state)
{
	struct world *w = world_new(&ordinary);
	struct vnet_tunnel_peer_stats before, after;
	struct vnet_endpoint elsewhere;
	int fd, old;

	cross(w, 0, "once");
	assert_int_equal(vnet_tunnel_peer_stats(w->end[1].c, 0, &before), 0);
	fd = line_socket(&elsewhere);
	old = w->side[1];
	w->side[1] = fd; /* from another address: nobody is to follow it */
	put_on(w, 1, w->seen, w->seen_len);
	w->seen[20] ^= 1;
	put_on(w, 1, w->seen, w->seen_len);
	w->side[1] = old;
	do {
		assert_true(step(w, PATIENCE_MS));
		assert_int_equal(vnet_tunnel_peer_stats(w->end[1].c, 0, &after), 0);
	} while (after.datagrams_refused == before.datagrams_refused);
	assert_true(vnet_endpoint_equal(&before.at, &after.at));
	assert_int_equal(w->end[1].n, 1);
	cross(w, 1, "still here");
	assert_int_equal(w->end[1].n, 1);
	close(fd);
	world_free(w);
}

static void roaming(void **state)
{
	struct world *w = world_new(&ordinary);
	struct vnet_tunnel_peer_stats s;
	struct vnet_endpoint elsewhere;
	int old;

	cross(w, 0, "from home");
	old = w->side[1];
	w->side[1] = line_socket(&elsewhere);
	cross(w, 0, "from elsewhere");
	assert_int_equal(vnet_tunnel_peer_stats(w->end[1].c, 0, &s), 0);
	assert_true(vnet_endpoint_equal(&s.at, &elsewhere));
	cross(w, 1, "to elsewhere"); /* by the same keys */
	assert_int_equal(s.handshake, w->now);
	close(old);
	world_free(w);
}

static void wrong_keys(void **state)
{
	struct setting wrong[3] = {ordinary, ordinary, ordinary};
	struct vnet_tunnel_peer_stats s;

	wrong[0].preshared[1] = NULL;
	wrong[1].known_public[1] = vector_responder_public; /* end 1 knows somebody else */
	wrong[2].known_public[0] = vector_initiator_public; /* end 0 wants somebody else */
	for (int i = 0; i < 3; i++) {
		struct world *w = world_new(&wrong[i]);

		for (int attempt = 0; attempt < 3; attempt++) {
			send_text(w, 0, "secret");
			while (w->carried[1] <= (unsigned)attempt)
				assert_true(step(w, PATIENCE_MS));
			while (step(w, 50))
				;
			later(w, 6 * SECONDS);
		}
		assert_int_equal(w->end[1].n, 0);
		assert_int_equal(vnet_tunnel_peer_stats(w->end[0].c, 0, &s), 0);
		assert_int_equal(s.handshake, 0);
		world_free(w);
	}
}

static uint32_t current_index(struct world *w, int i)
{
	return ((struct vnet_tunnel *)w->end[i].c)->peers[0].current->index.number;
}

static void rekeyed(void **state)
{
	struct world *w = world_new(&ordinary);
	uint32_t first;

	cross(w, 0, "first");
	cross(w, 1, "first");
	first = current_index(w, 0);
	later(w, VNET_REKEY_AFTER - SECONDS);
	cross(w, 0, "old enough");
	assert_int_equal(current_index(w, 0), first);
	later(w, 2 * SECONDS);
	cross(w, 1, "the responder does not begin");
	while (step(w, 50))
		;
	assert_int_equal(current_index(w, 0), first);
	cross(w, 0, "and the initiator does");
	while (current_index(w, 0) == first ||
		!((struct vnet_tunnel *)w->end[1].c)->peers[0].previous)
		assert_true(step(w, PATIENCE_MS));
	cross(w, 0, "new");
	cross(w, 1, "new");

	/* Nothing for so long that the keys are too old: whoever has something makes new ones. */
	first = current_index(w, 0);
	w->cut = true;
	later(w, VNET_REJECT_AFTER);
	while (step(w, 50))
		;
	w->cut = false;
	later(w, 6 * SECONDS);
	cross(w, 1, "whoever it is");
	assert_true(current_index(w, 0) != first);
	world_free(w);
}

static void too_old(void **state)
{
	struct world *w = world_new(&ordinary);
	struct vnet_peer *p;

	cross(w, 0, "now");
	/* A packet that is on the line for more than three minutes is nobody's. */
	w->cut = true;
	send_text(w, 0, "late");
	assert_int_equal(recv(w->side[0], w->seen, sizeof(w->seen), 0), 16 + 32 + 16);
	w->cut = false;
	p = &((struct vnet_tunnel *)w->end[1].c)->peers[0];
	w->now += VNET_REJECT_AFTER;
	put_on(w, 1, w->seen, 64);
	cross(w, 0, "new keys");
	assert_int_equal(w->end[1].n, 2);
	/* The last messages of a key. */
	p = &((struct vnet_tunnel *)w->end[0].c)->peers[0];
	later(w, 10 * SECONDS);
	p->current->counter = VNET_REKEY_AFTER_MESSAGES;
	uint32_t first = current_index(w, 0);
	cross(w, 0, "2^60");
	while (current_index(w, 0) == first)
		assert_true(step(w, PATIENCE_MS));
	later(w, 10 * SECONDS);
	p->current->counter = VNET_REJECT_AFTER_MESSAGES;
	first = current_index(w, 0);
	cross(w, 0, "no more with this key");
	assert_true(current_index(w, 0) != first);
	/* Nine minutes of nothing, and nothing is left. */
	w->cut = true;
	later(w, VNET_REJECT_AFTER * 3);
	assert_null(p->current);
	assert_null(p->previous);
	world_free(w);
}

static void keepalives(void **state)
{
	struct setting s = ordinary;
	struct world *w = world_new(&s);
	unsigned before;

	cross(w, 0, "one way");
	while (step(w, 50))
		;
	before = w->carried[0];
	later(w, VNET_KEEPALIVE_TIMEOUT);
	while (w->carried[0] == before) /* end 1 has nothing to say, and says so */
		assert_true(step(w, PATIENCE_MS));
	/* Nobody answers: after 15 seconds end 0 begins anew, 18 times, and then no more. */
	send_text(w, 0, "is anybody there?");
	w->cut = true;
	while (step(w, 50))
		;
	assert_int_equal(((struct vnet_tunnel *)w->end[0].c)->peers[0].attempts, 0);
	for (int i = 0; i < 60; i++)
		later(w, 6 * SECONDS);
	assert_int_equal(((struct vnet_tunnel *)w->end[0].c)->peers[0].attempts, 18);
	assert_int_equal(
		((struct vnet_tunnel *)w->end[0].c)->peers[0].timers[VNET_TIMER_RETRANSMIT], 0);
	w->cut = false;
	while (step(w, 50))
		;
	cross(w, 0, "now there is");
	world_free(w);

	s.keepalive = 25;
	w = world_new(&s);
	w->end[1].n = 0;
	later(w, 1);
	while (!((struct vnet_tunnel *)w->end[1].c)->peers[0].current)
		assert_true(step(w, PATIENCE_MS));
	while (step(w, 50))
		;
	for (int i = 0; i < 4; i++) {
		before = w->carried[1];
		later(w, 25 * SECONDS);
		while (w->carried[1] == before)
			assert_true(step(w, PATIENCE_MS));
	}
	assert_int_equal(w->end[1].n, 0);
	world_free(w);
}

/* A crowd keeps end 1 busy; who has a cookie gets in. */
static void busy(void **state)
{
	struct world *w = world_new(&ordinary);
	struct vnet_tunnel *t = (struct vnet_tunnel *)w->end[1].c;
	struct vnet_peer *p = &((struct vnet_tunnel *)w->end[0].c)->peers[0];

	t->flood.busy_until = w->now + 3600 * SECONDS;
	send_text(w, 0, "let me in");
	while (!p->jar.cookie_since)
		assert_true(step(w, PATIENCE_MS));
	assert_null(p->current);
	assert_int_equal(w->end[1].n, 0);
	later(w, 6 * SECONDS);
	until(w, 1, 1);
	world_free(w);
}

static void floods(void **state)
{
	static struct vnet_flood f;
	struct vnet_endpoint a = address(0, 1), b = address(1, 1);
	uint64_t now = 5 * SECONDS;

	for (int i = 0; i < VNET_FLOOD_PER_SECOND; i++)
		assert_false(vnet_flood_count(&f, now + (uint64_t)i));
	assert_true(vnet_flood_count(&f, now + 500));
	assert_true(vnet_flood_count(&f, now + SECONDS));
	assert_false(vnet_flood_count(&f, now + 3 * SECONDS));
	for (int i = 0; i < VNET_FLOOD_BURST; i++)
		assert_true(vnet_flood_allow(&f, &a, now));
	assert_false(vnet_flood_allow(&f, &a, now));
	a.port = 9;
	assert_false(vnet_flood_allow(&f, &a, now));
	assert_true(vnet_flood_allow(&f, &b, now));
	assert_true(vnet_flood_allow(&f, &a, now + SECONDS / VNET_FLOOD_PER_ADDRESS));
	assert_false(vnet_flood_allow(&f, &a, now + SECONDS / VNET_FLOOD_PER_ADDRESS));
}

static _Atomic pid_t synced_by; /* the thread */

/* In place of libc's. */
int fdatasync(int fd)
{
	synced_by = gettid();
	return 0;
}

/* The disk is told, and whoever asked does not wait for it. */
static void assert_synced_behind(void)
{
	while (!synced_by)
		poll(NULL, 0, 1);
	assert_int_not_equal(synced_by, gettid());
}

static void stamps(void **state)
{
	char directory[] = "/tmp/test_tunnel.XXXXXX";
	uint8_t a[VNET_STAMP_LEN], b[VNET_STAMP_LEN];
	struct vnet_stamp s, other;
	struct err e = {0};

	assert_non_null(mkdtemp(directory));
	assert_int_equal(vnet_stamp_open(&s, directory, "key", &e), 0);
	assert_int_equal(vnet_stamp_next(&s, 1700000000 * SECONDS, a), 0);
	assert_memory_equal(a, "\x40\0\0\0\x65\x53\xf1\x0a\0\0\0\0", sizeof(a));
	assert_synced_behind();
	assert_int_equal(vnet_stamp_open(&other, directory, "key", &e), -EBUSY);
	assert_int_equal(e.class, ERR_STATE);
	vnet_stamp_close(&s);
	assert_int_equal(vnet_stamp_open(&s, directory, "key", &e), 0);
	for (int i = 0; i < 200; i++) { /* a clock that stands still, years behind */
		assert_int_equal(vnet_stamp_next(&s, 1000000000 * SECONDS, b), 0);
		assert_true(memcmp(b, a, sizeof(b)) > 0);
		memcpy(a, b, sizeof(a));
	}
	assert_memory_equal(a, "\x40\0\0\0\x65\x53\xf1\x0d", 8); /* 60 stamps are a second */
	vnet_stamp_close(&s);
	assert_int_equal(io_rm_rf(AT_FDCWD, directory), 0);
}

static void addresses(void **state)
{
	const struct vnet_prefix prefixes[] = {
		{AF_INET, 0, {0}},
		{AF_INET, 8, {10}},
		{AF_INET, 32, {10, 1, 2, 3}},
		{AF_INET6, 64, {0xfd, 1}},
		{AF_INET6, 128, {0xfd, 1, [15] = 9}},
	};
	struct vnet_allowed t = {0};
	struct vnet_endpoint six = {.family = AF_INET6}, four = {.family = AF_INET};

	assert_int_equal(vnet_allowed_find(&t, &four), VNET_ALLOWED_NOBODY);
	for (uint32_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		assert_int_equal(vnet_allowed_add(&t, &prefixes[i], i), 0);
	assert_int_equal(vnet_allowed_find(&t, &four), 0);
	four.v4.s_addr = htonl(0x0a000000);
	assert_int_equal(vnet_allowed_find(&t, &four), 1);
	four.v4.s_addr = htonl(0x0a010203);
	assert_int_equal(vnet_allowed_find(&t, &four), 2);
	assert_int_equal(vnet_allowed_find(&t, &six), VNET_ALLOWED_NOBODY);
	memcpy(six.v6.s6_addr, "\xfd\1", 2);
	assert_int_equal(vnet_allowed_find(&t, &six), 3);
	six.v6.s6_addr[15] = 9;
	assert_int_equal(vnet_allowed_find(&t, &six), 4);
	six.v6.s6_addr[7] = 1;
	assert_int_equal(vnet_allowed_find(&t, &six), VNET_ALLOWED_NOBODY);
	vnet_allowed_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(named),
		cmocka_unit_test(super_packets),
		cmocka_unit_test(bad_line),
		cmocka_unit_test(replayed),
		cmocka_unit_test(roaming),
		cmocka_unit_test(wrong_keys),
		cmocka_unit_test(rekeyed),
		cmocka_unit_test(too_old),
		cmocka_unit_test(keepalives),
		cmocka_unit_test(busy),
		cmocka_unit_test(floods),
		cmocka_unit_test(stamps),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
