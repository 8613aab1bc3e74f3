// SPDX-License-Identifier: GPL-2.0-or-later
/* Unit tests of tcp_drain, with a thread in the kernel's place that tells of connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/kinds/tcp_drain.h"

#define MB   1000000U
#define MOST 40

/* A connection is known by its port. */
struct connection {
	uint32_t to_send, lost_by_look; /* what goes between two looks */
	uint64_t rate;			/* bytes per second */
	uint8_t timer;
	bool gone;
	uint8_t family;
	struct in6_addr to; /* an AF_INET one has its address in front */
	unsigned looks;
	uint64_t heard, said; /* bytes */
	uint32_t ago_ms;      /* the last of what it heard */
};

struct kernel {
	int sock;
	struct connection all[MOST];
	uint16_t n;
};

/* The kernel aligns attributes by 4. */
struct answer {
	struct nlmsghdr head;
	struct inet_diag_msg m;
	struct rtattr attr;
	struct tcp_info info;
} __attribute__((packed));

/* An address of the session's own, of either family. */
static const struct in6_addr here[2] = {{{{10, 0, 0, 2}}},
	{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}}}};

static void tell(struct kernel *k, uint16_t i, bool with_info)
{
	const struct connection *c = &k->all[i];
	struct answer a = {.head = {.nlmsg_type = SOCK_DIAG_BY_FAMILY},
		.m = {.idiag_family = c->family,
			.idiag_timer = c->timer,
			.idiag_wqueue = c->to_send,
			.id = {.idiag_sport = htons(i)}},
		.attr = {RTA_LENGTH(sizeof(a.info)), INET_DIAG_INFO},
		.info = {.tcpi_delivery_rate = c->rate,
			.tcpi_bytes_received = c->heard,
			.tcpi_bytes_acked = c->said,
			.tcpi_last_data_recv = c->ago_ms}};

	memcpy(a.m.id.idiag_src, &here[c->family == AF_INET6], sizeof(here[0]));
	memcpy(a.m.id.idiag_dst, &c->to, sizeof(c->to));
	a.head.nlmsg_len = with_info ? sizeof(a) : offsetof(struct answer, attr);
	assert_int_equal(send(k->sock, &a, a.head.nlmsg_len, 0), a.head.nlmsg_len);
}

static void end_list(struct kernel *k, uint16_t type, int error)
{
	struct {
		struct nlmsghdr head;
		int error;
	} end = {{.nlmsg_len = sizeof(end), .nlmsg_type = type}, error};

	assert_int_equal(send(k->sock, &end, sizeof(end), 0), sizeof(end));
}

static void tell_one(struct kernel *k, const struct inet_diag_req_v2 *q)
{
	struct connection *c = &k->all[ntohs(q->id.idiag_sport)];
	bool with_info = q->idiag_ext & (1 << (INET_DIAG_INFO - 1));

	if (c->gone) {
		end_list(k, NLMSG_ERROR, -ENOENT);
		return;
	}
	tell(k, (uint16_t)(c - k->all), with_info);
	if (with_info)
		return;
	c->looks++;
	c->to_send -= MIN(c->to_send, c->lost_by_look);
}

static void *serve(void *arg)
{
	struct kernel *k = arg;
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 q;
	} request;

	while (recv(k->sock, &request, sizeof(request), 0) > 0) {
		if (request.head.nlmsg_flags & NLM_F_DUMP) {
			for (uint16_t i = 0; i < k->n; i++)
				tell(k, i, false);
			end_list(k, NLMSG_DONE, 0);
		} else {
			tell_one(k, &request.q);
		}
	}
	return NULL;
}

/* Looks, has `change` happen, and waits: what is left to send. */
static uint64_t drain(struct kernel *k, void (*change)(struct kernel *))
{
	_cleanup_buf_ struct buf found = BUF_INIT;
	pthread_t thread;
	uint64_t left;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	k->sock = sv[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, k), 0);
	tcp_drain_look(sv[0], &found);
	if (change)
		change(k);
	left = tcp_drain(sv[0], &found, UINT64_MAX);
	shutdown(sv[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(sv[0]);
	close(sv[1]);
	return left;
}

static const struct connection fast = {.to_send = 2 * MB,
	.lost_by_look = MB,
	.rate = 1000UL * MB,
	.family = AF_INET,
	.to = {{{10, 0, 0, 1}}}};

static void what_goes_is_waited_for(void **state)
{
	struct kernel k = {.n = 2, .all = {fast, fast}};

	assert_int_equal(drain(&k, NULL), 0);
	/* 2 MB, 1 MB, nothing */
	assert_int_equal(k.all[0].looks, 3);
	assert_int_equal(k.all[1].looks, 3);
}

static void who_cannot_send_is_left(void **state)
{
	struct kernel k = {.n = 4, .all = {fast, fast, fast, fast}};

	k.all[0].to_send = 1000;
	k.all[1].timer = 4; /* the other end takes nothing */
	k.all[2].rate = 10 * MB;
	assert_int_equal(drain(&k, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(k.all[i].looks, 0);
	assert_int_equal(k.all[3].looks, 3);
}

/* Who would read it stands still, too. */
static void what_stays_inside_is_left(void **state)
{
	static const struct in6_addr mapped = {
		{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};
	static const struct in6_addr away = {
		{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}}};
	struct kernel k = {.n = 7, .all = {fast, fast, fast, fast, fast, fast, fast}};

	k.all[0].to = (struct in6_addr){{{127, 1, 2, 3}}};
	k.all[1].to = here[0];
	for (int i = 2; i < 7; i++)
		k.all[i].family = AF_INET6;
	k.all[2].to = in6addr_loopback;
	k.all[3].to = mapped;
	k.all[4].to = here[1];
	k.all[5].to = away;
	k.all[6].to = (struct in6_addr){{{0xfd, 1}}};
	assert_int_equal(drain(&k, NULL), 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(k.all[i].looks, i < 5 ? 0 : 3);
}

static void those_with_most_are_looked_at(void **state)
{
	struct kernel k = {.n = MOST};
	unsigned looks = 0;

	for (int i = 0; i < MOST; i++) {
		k.all[i] = fast;
		k.all[i].to_send = (uint32_t)(i * 37 % MOST + 2) * (MB / 4);
		k.all[i].lost_by_look = 100 * MB;
	}
	assert_int_equal(drain(&k, NULL), 0);
	for (int i = 0; i < MOST; i++) {
		assert_int_equal(k.all[i].looks, i * 37 % MOST >= MOST - 32 ? 2 : 0);
		looks += k.all[i].looks;
	}
	assert_int_equal(looks, 64);
}

static void what_stands_still_is_given_up(void **state)
{
	struct kernel k = {.n = 1, .all = {fast}};

	k.all[0].lost_by_look = 10; /* a trickle is no progress */
	assert_in_range(drain(&k, NULL), MB, 2 * MB);
	assert_true(k.all[0].looks > 1);
}

static void vanish(struct kernel *k)
{
	k->all[0].gone = true;
}

static void who_has_gone_has_sent_it(void **state)
{
	struct kernel k = {.n = 1, .all = {fast}};

	assert_int_equal(drain(&k, vanish), 0);
	assert_int_equal(k.all[0].looks, 0);
}

static bool hears(const struct connection *all, size_t n)
{
	_cleanup_buf_ struct buf found = BUF_INIT;
	struct kernel k = {.n = n};
	pthread_t thread;
	bool r;
	int sv[2];

	memcpy(k.all, all, n * sizeof(*all));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	k.sock = sv[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, &k), 0);
	r = tcp_drain_look(sv[0], &found);
	shutdown(sv[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(sv[0]);
	close(sv[1]);
	return r;
}

/* Of whom much comes to, and who has nothing to say. */
static void who_is_told_much(void **state)
{
	const struct connection listens = {
		.heard = 10 * MB, .said = MB, .ago_ms = 3, .family = AF_INET, .to = fast.to};
	struct connection talks = listens, had_heard = listens, little = listens, inside = listens,
			  says = listens, waits = listens;

	talks.said = 9 * MB;
	had_heard.ago_ms = 1000;
	little.heard = 10000;
	little.said = 0;
	inside.to = here[0];
	says.to_send = 20000;
	waits.to_send = 500;
	assert_false(hears(&listens, 0));
	assert_true(hears(&listens, 1));
	assert_true(hears(&waits, 1));
	assert_false(hears(&talks, 1));
	assert_false(hears(&had_heard, 1));
	assert_false(hears(&little, 1));
	assert_false(hears(&inside, 1));
	assert_false(hears(&says, 1));
	assert_true(hears((struct connection[]){talks, little, listens}, 3));
	assert_false(hears((struct connection[]){listens, says}, 2));
	assert_false(hears((struct connection[]){listens, fast}, 2));
}

static void nothing_to_be_asked(void **state)
{
	_cleanup_buf_ struct buf found = BUF_INIT;
	int sv[2];

	assert_false(tcp_drain_look(-1, &found));
	assert_int_equal(found.len, 0);
	assert_int_equal(tcp_drain(-1, &found, UINT64_MAX), 0);
	/* a kernel that says nothing */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	shutdown(sv[1], SHUT_RDWR);
	assert_false(tcp_drain_look(sv[0], &found));
	assert_int_equal(found.len, 0);
	close(sv[0]);
	close(sv[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_is_waited_for),
		cmocka_unit_test(who_cannot_send_is_left),
		cmocka_unit_test(what_stays_inside_is_left),
		cmocka_unit_test(those_with_most_are_looked_at),
		cmocka_unit_test(what_stands_still_is_given_up),
		cmocka_unit_test(who_has_gone_has_sent_it),
		cmocka_unit_test(who_is_told_much),
		cmocka_unit_test(nothing_to_be_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
