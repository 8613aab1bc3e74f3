// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dns - a forwarder without a cache: the host's stub or server has one, and a session that moves
 * must not see what was true where it was.
 *
 * Each question goes out from a socket of its own, connected to the server, with an id of our
 * own: what comes back from elsewhere, or to another question, is not looked at further (RFC
 * 5452).  A server that refuses, fails or says nothing for two seconds is followed by the next of
 * resolv.conf, which is looked at again each time - on the next network it has other servers.  A
 * session that asks again meanwhile hastens that.  After four tries it is told that it failed.
 *
 * Answers are passed on as they are, but for the id; one that is longer than the session takes is
 * cut and marked as such, whereupon it asks again by TCP.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/dns.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/dns_names.h"
#include "vnet/datagram/state.h"
#include "vnet/datagram/udp.h"

bool vnet_dns_is_for(const struct vnet_datagram_session *s, const struct vnet_packet *p)
{
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, p->dst.family);

	return vnet_packet_udp(p) && p->dst.port == VNET_DNS_PORT &&
	       vnet_endpoint_same_address(&gateway, &p->dst);
}

/* Arms the timer for the question that is due first. */
static void arm(struct vnet_datagram *d)
{
	uint64_t first = 0;
	struct itimerspec at = {0};

	for (size_t i = 0; i < VNET_DNS_PENDING; i++)
		if (d->pending[i].state && (!first || d->pending[i].due_ms < first))
			first = d->pending[i].due_ms;
	at.it_value.tv_sec = (time_t)(first / 1000);
	at.it_value.tv_nsec = (long)(first % 1000) * 1000000;
	timerfd_settime(d->dns_timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void drop_socket(struct vnet_datagram *d, struct vnet_dns_pending *q)
{
	const int fd = q->fd;

	q->fd = -1;
	if (fd < 0)
		return;
	vnet_datagram_unwatch(d, fd);
	close(fd);
}

static void drop(struct vnet_datagram *d, struct vnet_dns_pending *q)
{
	__atomic_store_n(&q->state, 0, __ATOMIC_RELEASE);
	drop_socket(d, q);
}

/* @answer is in a receive buffer, with room for headers in front. */
static void give(
	struct vnet_datagram *d, const struct vnet_dns_pending *q, uint8_t *answer, size_t len)
{
	vnet_dns_set_id(answer, q->id);
	if (len > q->udp_size)
		len = vnet_dns_truncate(answer, len);
	if (len)
		vnet_udp_to_session(d, q->session, &q->to, &q->from, answer, len, 0);
}

/* An answer of our own to the query in @q. */
static void give_own(struct vnet_datagram *d, const struct vnet_dns_pending *q,
	const struct vnet_dns_question *question, const struct vnet_dns_names_answer *a,
	bool authoritative)
{
	uint8_t *out = d->in + VNET_DATAGRAM_HEADROOM;
	const size_t len = vnet_dns_reply(
		q->query, question, a->rcode, authoritative, a->records, a->n, out, q->udp_size);

	if (len)
		give(d, q, out, len);
}

static void give_up(struct vnet_datagram *d, struct vnet_dns_pending *q)
{
	const struct vnet_dns_names_answer failed = {.rcode = VNET_DNS_SERVFAIL};
	struct vnet_dns_question question;

	if (vnet_dns_parse(q->query, q->len, &question) == 0)
		give_own(d, q, &question, &failed, false);
	drop(d, q);
}

static int ask_server(
	struct vnet_datagram *d, struct vnet_dns_pending *q, const union vnet_resolv_server *s)
{
	_cleanup_close_ int fd =
		socket(s->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0 || connect(fd, &s->sa, vnet_resolv_server_len(s)) < 0 ||
		send(fd, q->query, q->len, MSG_NOSIGNAL) < 0)
		return -errno;
	r = vnet_datagram_watch(d, fd, EPOLLIN, VNET_DATAGRAM_DNS, (uint32_t)(q - d->pending));
	if (r == 0)
		q->fd = take_fd(&fd);
	return r;
}

/* Asks the next server that can be asked, or gives up. */
static void try_next(struct vnet_datagram *d, struct vnet_dns_pending *q)
{
	drop_socket(d, q);
	vnet_resolv_refresh(&d->resolv);
	while (q->tries < VNET_DNS_TRIES) {
		const union vnet_resolv_server *s = &d->resolv.servers[q->tries++ % d->resolv.n];

		q->due_ms = vnet_datagram_now() + VNET_DNS_TRY_MS;
		if (ask_server(d, q, s) == 0) {
			arm(d);
			return;
		}
	}
	give_up(d, q);
}

/* The same question of the same port of the session. */
static struct vnet_dns_pending *find(struct vnet_datagram *d, const struct vnet_dns_pending *want)
{
	for (size_t i = 0; i < VNET_DNS_PENDING; i++) {
		struct vnet_dns_pending *q = &d->pending[i];

		if (q->state && q->session == want->session && q->id == want->id &&
			q->len == want->len && vnet_endpoint_equal(&q->from, &want->from) &&
			memcmp(q->query + 2, want->query + 2, q->len - 2u) == 0)
			return q;
	}
	return NULL;
}

/* A free record, if need be by giving up the session's oldest question. */
static struct vnet_dns_pending *place(struct vnet_datagram *d, uint32_t session)
{
	struct vnet_dns_pending *free = NULL, *oldest = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < VNET_DNS_PENDING; i++) {
		struct vnet_dns_pending *q = &d->pending[i];

		if (!q->state) {
			free = free ? free : q;
		} else if (q->session == session) {
			n++;
			if (!oldest || q->due_ms < oldest->due_ms)
				oldest = q;
		}
	}
	if (free && n < VNET_DNS_PENDING_SESSION)
		return free;
	if (oldest)
		drop(d, oldest);
	return oldest;
}

static void forward(struct vnet_datagram *d, struct vnet_dns_pending *want)
{
	struct vnet_dns_pending *q = find(d, want);

	if (!q) {
		uint16_t id;

		q = place(d, want->session);
		if (!q) {
			d->dropped++;
			return;
		}
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			id = (uint16_t)(io_now_ns() >> 8);
		vnet_dns_set_id(want->query, id);
		*q = *want;
		__atomic_store_n(&q->state, 1, __ATOMIC_RELEASE);
	}
	try_next(d, q);
}

void vnet_dns_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, const struct vnet_packet *p)
{
	struct vnet_dns_pending q = {
		.session = session, .from = p->src, .to = p->dst, .fd = -1, .len = p->payload_len};
	struct vnet_dns_names_answer a = {.rcode = VNET_DNS_NOTIMP};
	struct vnet_dns_question question;

	if (p->payload_len > sizeof(q.query) || p->vh.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		d->dropped++;
		return;
	}
	memcpy(q.query, p->data + p->payload, q.len);
	if (vnet_dns_parse(q.query, q.len, &question) < 0 || question.response) {
		d->dropped++;
		return;
	}
	q.id = question.id;
	q.udp_size = question.udp_size;
	if (question.opcode != 0)
		give_own(d, &q, &question, &a, false);
	else if (vnet_dns_names_answer(d->sessions, d->data, session, &question, &a))
		give_own(d, &q, &question, &a, true);
	else
		forward(d, &q);
}

/* Another server may know what this one does not want to say. */
static bool is_refusal(
	const struct vnet_datagram *d, const struct vnet_dns_pending *q, const uint8_t *answer)
{
	const unsigned rcode = answer[3] & 15;

	return (rcode == VNET_DNS_SERVFAIL || rcode == VNET_DNS_REFUSED ||
		       rcode == VNET_DNS_NOTIMP) &&
	       q->tries < MIN(d->resolv.n, (unsigned)VNET_DNS_TRIES);
}

void vnet_dns_ready(struct vnet_datagram *d, uint32_t index)
{
	struct vnet_dns_pending *q = &d->pending[index];
	uint8_t *answer = d->in + VNET_DATAGRAM_HEADROOM;
	struct vnet_datagram_session s;
	ssize_t n;

	if (index >= VNET_DNS_PENDING || !q->state || q->fd < 0)
		return;
	if (!d->sessions->get(d->data, q->session, &s)) {
		drop(d, q);
		return;
	}
	if (s.held) {
		vnet_datagram_unwatch(d, q->fd);
		return;
	}
	n = recv(q->fd, answer, VNET_DNS_MESSAGE, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		try_next(d, q);
		return;
	}
	if (!vnet_dns_answers(q->query, q->len, answer, (size_t)n))
		return;
	if (is_refusal(d, q, answer)) {
		try_next(d, q);
		return;
	}
	give(d, q, answer, (size_t)n);
	drop(d, q);
}

void vnet_dns_expire(struct vnet_datagram *d)
{
	const uint64_t now = vnet_datagram_now();
	struct vnet_datagram_session s;
	uint64_t ticks;

	if (read(d->dns_timer, &ticks, sizeof(ticks)) < 0)
		return;
	for (size_t i = 0; i < VNET_DNS_PENDING; i++) {
		struct vnet_dns_pending *q = &d->pending[i];

		if (!q->state || q->due_ms > now)
			continue;
		if (!d->sessions->get(d->data, q->session, &s))
			drop(d, q);
		else if (s.held)
			q->due_ms = now + VNET_DNS_TRY_MS * VNET_DNS_TRIES;
		else
			try_next(d, q);
	}
	arm(d);
}

static void watch(struct vnet_datagram *d, struct vnet_dns_pending *q)
{
	if (q->fd >= 0)
		vnet_datagram_watch(
			d, q->fd, EPOLLIN, VNET_DATAGRAM_DNS, (uint32_t)(q - d->pending));
	q->due_ms = vnet_datagram_now() + VNET_DNS_TRY_MS;
}

void vnet_dns_start(struct vnet_datagram *d)
{
	for (size_t i = 0; i < VNET_DNS_PENDING; i++)
		if (d->pending[i].state)
			watch(d, &d->pending[i]);
	arm(d);
}

void vnet_dns_go(struct vnet_datagram *d, uint32_t session)
{
	for (size_t i = 0; i < VNET_DNS_PENDING; i++)
		if (d->pending[i].state && d->pending[i].session == session)
			watch(d, &d->pending[i]);
	arm(d);
}

void vnet_dns_forget(struct vnet_datagram *d, uint32_t session)
{
	for (size_t i = 0; i < VNET_DNS_PENDING; i++)
		if (d->pending[i].state && d->pending[i].session == session)
			drop(d, &d->pending[i]);
}
