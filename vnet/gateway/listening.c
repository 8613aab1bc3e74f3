// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * sock_diag(7) answers for the network namespace that its socket was made in, whoever asks, so the
 * supervisor's socket tells the gateway about the session without a way into it.  The kernel gives
 * the answer while it is being read; nobody is waited for.  There is no message when somebody
 * begins to listen, so the question is asked again (publish.c).
 */
#include "vnet/gateway/listening.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"

/*
 * A listener at its loopback, or at another address that is not the one we connect to, can't be
 * reached.
 */
static bool reachable(const struct gateway_session *s, const struct inet_diag_msg *m)
{
	const struct in6_addr *a6 = (const struct in6_addr *)(const void *)m->id.idiag_src;
	struct in_addr a4;

	memcpy(&a4, m->id.idiag_src, sizeof(a4));
	if (m->idiag_family == AF_INET)
		return !a4.s_addr || a4.s_addr == s->address4.s_addr;
	if (IN6_IS_ADDR_V4MAPPED(a6))
		return memcmp(&a6->s6_addr[12], &s->address4, 4) == 0;
	return IN6_IS_ADDR_UNSPECIFIED(a6) || memcmp(a6, &s->address6, sizeof(*a6)) == 0;
}

static int ask(int diag, uint8_t family, uint32_t states)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.r = {.sdiag_family = family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = states}};

	return send(diag, &q, sizeof(q), MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* One datagram of the answer: 1 if it was the last. */
static int take(void *data, size_t n, gateway_diag_fn *fn, void *ctx)
{
	unsigned left = (unsigned)n;

	for (struct nlmsghdr *h = data; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return 1;
		if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
			h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
			fn(ctx, NLMSG_DATA(h));
	}
	return 0;
}

int gateway_diag_walk(int diag, uint32_t states, gateway_diag_fn *fn, void *ctx)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	_Alignas(struct nlmsghdr) char data[16384];

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		int r = ask(diag, families[i], states), last = 0;

		while (r == 0 && !last) {
			ssize_t n = recv(diag, data, sizeof(data), MSG_DONTWAIT);

			if (n <= 0)
				return n < 0 ? -errno : -EIO;
			last = take(data, (size_t)n, fn, ctx);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

struct listening {
	const struct gateway_session *s;
	uint8_t *ports;
};

static void note_listener(void *ctx, const struct inet_diag_msg *m)
{
	const struct listening *l = ctx;
	unsigned port = ntohs(m->id.idiag_sport);

	if (reachable(l->s, m))
		l->ports[port / 8] |= (uint8_t)(1u << (port % 8));
}

int gateway_listening_ports(const struct gateway_session *s, uint8_t ret[GATEWAY_PORT_BYTES])
{
	struct listening l = {s, ret};

	memset(ret, 0, GATEWAY_PORT_BYTES);
	return gateway_diag_walk(s->diag, 1u << TCP_LISTEN, note_listener, &l);
}
