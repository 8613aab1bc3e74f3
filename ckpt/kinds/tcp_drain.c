// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in tcp_drain.h. */
#include "ckpt/kinds/tcp_drain.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/kinds/sock.h"

#define MUCH	 (128 << 10) /* bytes */
#define LITTLE	 (16 << 10)
#define MAX_LOOK 32 /* connections */
#define LOOK_US	 500
/*
 * Less than this from one progress to the next (50 Mbit/s) is not worth the wait.  What is sent
 * leaves the queue when the other end says that it has it, which comes in bursts: of each 4 MB or
 * so, where packets go by processes.
 */
#define WORTH	(64 << 10) /* bytes */
#define IDLE_NS 12000000ULL
/* Who has heard so long ago at most, and so much more than he has said, is being told much. */
#define LATELY_MS  20
#define TIMES_MORE 4

/* include/net/tcp_states.h */
#define ESTABLISHED 1
#define FIN_WAIT1   4
#define CLOSE_WAIT  8
#define SENDING	    (1 << ESTABLISHED | 1 << CLOSE_WAIT | 1 << FIN_WAIT1)
#define TIMER_PROBE 4 /* idiag_timer: the other end takes nothing */

/* Is the other end in the session as well, so that it stands still? */
static bool is_inside(const struct inet_diag_sockid *id, int family)
{
	const struct in6_addr *dst = (const void *)id->idiag_dst;
	uint32_t v4 = family == AF_INET ? id->idiag_dst[0] : id->idiag_dst[3];

	if (family == AF_INET || IN6_IS_ADDR_V4MAPPED(dst))
		return ntohl(v4) >> 24 == 127 || v4 == id->idiag_src[family == AF_INET ? 0 : 3];
	return IN6_IS_ADDR_LOOPBACK(dst) || !memcmp(dst, id->idiag_src, sizeof(*dst));
}

/* A connection: what leads to it, and the bytes it has to send. */
struct sender {
	uint32_t to_send;
	struct inet_diag_req_v2 q;
};

struct found {
	struct buf *senders, others; /* struct sender; each MAX_LOOK at most */
	bool sends;		     /* somebody has something to send */
};

/* Of those that have much to send the MAX_LOOK that have most. */
static int take(void *ctx, const struct inet_diag_msg *m, size_t len)
{
	struct sender s = {.to_send = m->idiag_wqueue,
		.q = {.sdiag_family = m->idiag_family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = SENDING,
			.id = m->id}};
	struct found *f = ctx;
	struct buf *b = f->senders;
	struct sender *all = (struct sender *)b->data, *least = all;

	if (is_inside(&m->id, m->idiag_family))
		return 0;
	f->sends = f->sends || s.to_send > LITTLE;
	if (s.to_send <= LITTLE && f->others.len / sizeof(s) < MAX_LOOK)
		buf_put(&f->others, &s, sizeof(s));
	if (s.to_send < MUCH || m->idiag_timer == TIMER_PROBE)
		return 0;
	if (b->len / sizeof(s) < MAX_LOOK) {
		buf_put(b, &s, sizeof(s));
		return buf_error(b);
	}
	for (size_t i = 1; i < MAX_LOOK; i++)
		if (all[i].to_send < least->to_send)
			least = &all[i];
	if (least->to_send < s.to_send)
		*least = s;
	return 0;
}

/* What the kernel tells of a connection; an older one of less, of which the rest is zero. */
static int take_info(void *ctx, const struct inet_diag_msg *m, size_t len)
{
	const struct rtattr *a = (const void *)(m + 1);

	len -= sizeof(*m);
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == INET_DIAG_INFO)
			memcpy(ctx, RTA_DATA(a), MIN(RTA_PAYLOAD(a), sizeof(struct tcp_info)));
	return 0;
}

/* Will it be through in time? */
static bool is_fast(int diag, const struct sender *s)
{
	struct tcp_info info = {0};

	return ckpt_sock_diag_one(diag, &s->q, take_info, &info) == 0 &&
	       info.tcpi_delivery_rate / 1000 * (TCP_DRAIN_NS / 1000000) >= s->to_send;
}

static bool is_told_much(int diag, const struct sender *s)
{
	struct tcp_info info = {0};

	return ckpt_sock_diag_one(diag, &s->q, take_info, &info) == 0 &&
	       info.tcpi_bytes_received >= MUCH && info.tcpi_last_data_recv <= LATELY_MS &&
	       info.tcpi_bytes_received / TIMES_MORE >= info.tcpi_bytes_acked;
}

static bool hears(int diag, const struct found *f)
{
	const struct sender *s = (const void *)f->others.data;
	bool r = false;

	for (size_t i = 0; !f->sends && !r && i < f->others.len / sizeof(*s); i++)
		r = is_told_much(diag, &s[i]);
	return r;
}

bool tcp_drain_look(int diag, struct buf *ret)
{
	struct found f = {.senders = ret, .others = BUF_INIT};
	struct sender *s;
	size_t n, fast = 0;
	bool r;

	ret->len = 0;
	if (diag < 0 || ckpt_sock_diag_each(diag, SENDING, take, &f) < 0 || buf_error(&f.others))
		ret->len = f.others.len = 0;
	s = (struct sender *)ret->data;
	n = ret->len / sizeof(*s);
	for (size_t i = 0; i < n; i++)
		if (is_fast(diag, &s[i])) {
			s[fast] = s[i];
			s[fast++].q.idiag_ext = 0;
		}
	ret->len = fast * sizeof(*s);
	r = hears(diag, &f);
	buf_fini(&f.others);
	return r;
}

struct sum {
	uint64_t to_send, all;
};

static int add(void *ctx, const struct inet_diag_msg *m, size_t len)
{
	struct sum *sum = ctx;

	sum->to_send += m->idiag_wqueue;
	sum->all += (uint64_t)m->idiag_wqueue + m->idiag_rqueue;
	return 0;
}

/* One that is not there any more has sent it. */
static struct sum look(int diag, const struct sender *s, size_t n)
{
	struct sum sum = {0};

	for (size_t i = 0; i < n; i++)
		ckpt_sock_diag_one(diag, &s[i].q, add, &sum);
	return sum;
}

uint64_t tcp_drain(int diag, const struct buf *found, uint64_t longest_ns)
{
	const struct sender *s = (const void *)found->data;
	size_t n = found->len / sizeof(*s);
	uint64_t begin = io_now_ns(), then = begin, now = begin;
	struct sum had, has;

	if (diag < 0 || n == 0)
		return 0;
	had = has = look(diag, s, n);
	while (has.to_send > LITTLE && now < then + IDLE_NS && now - begin < longest_ns) {
		usleep(LOOK_US);
		has = look(diag, s, n);
		now = io_now_ns();
		if (has.all + WORTH > had.all)
			continue;
		had = has;
		then = now;
	}
	return has.to_send;
}
