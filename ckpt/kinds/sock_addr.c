// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses of the internet families between sockaddr and record. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ckpt/kinds/sock.h"
#include "ckpt/survey/survey.h"
#include "proto/sockets.pb-c.h"

Pb__InetAddr *ckpt_sock_addr_pack(const union ckpt_sockaddr *a)
{
	size_t len = a->any.sa_family == AF_INET ? 4 : a->any.sa_family == AF_INET6 ? 16 : 0;
	Pb__InetAddr *m = len ? malloc(sizeof(*m) + len) : NULL;

	if (!m)
		return NULL;
	pb__inet_addr__init(m);
	m->ip.data = (uint8_t *)(m + 1);
	m->ip.len = len;
	if (len == 4) {
		memcpy(m->ip.data, &a->in.sin_addr, len);
		m->port = ntohs(a->in.sin_port);
	} else {
		memcpy(m->ip.data, &a->in6.sin6_addr, len);
		m->port = ntohs(a->in6.sin6_port);
		m->scope = a->in6.sin6_scope_id;
		m->flow = ntohl(a->in6.sin6_flowinfo);
	}
	return m;
}

void ckpt_sock_addr_free(Pb__InetAddr *m)
{
	free(m);
}

int ckpt_sock_addr_unpack(
	const Pb__InetAddr *m, int domain, union ckpt_sockaddr *ret, struct err *e)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(ret, 0, sizeof(*ret));
	if (!m || m->port > UINT16_MAX || (m->ip.len != 4 && m->ip.len != 16))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad address of a socket");
	if (domain == AF_INET) {
		if (m->ip.len == 16 && memcmp(m->ip.data, mapped, sizeof(mapped)))
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad address of a socket");
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons((uint16_t)m->port);
		memcpy(&ret->in.sin_addr, m->ip.data + m->ip.len - 4, 4);
		return sizeof(ret->in);
	}
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons((uint16_t)m->port);
	ret->in6.sin6_scope_id = m->scope;
	ret->in6.sin6_flowinfo = htonl(m->flow);
	if (m->ip.len == 4)
		memcpy(&ret->in6.sin6_addr, mapped, sizeof(mapped));
	memcpy((uint8_t *)&ret->in6.sin6_addr + 16 - m->ip.len, m->ip.data, m->ip.len);
	return sizeof(ret->in6);
}

/* The address as 16 bytes of IPv6, and its port. */
static uint16_t plain(const union ckpt_sockaddr *a, struct in6_addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (a->any.sa_family == AF_INET6) {
		*ret = a->in6.sin6_addr;
		return a->in6.sin6_port;
	}
	memset(&ret->s6_addr[10], 0xff, 2);
	memcpy(&ret->s6_addr[12], &a->in.sin_addr, 4);
	return a->in.sin_port;
}

bool ckpt_sock_addr_equal(const union ckpt_sockaddr *a, const union ckpt_sockaddr *b)
{
	struct in6_addr x, y;

	return plain(a, &x) == plain(b, &y) && !memcmp(&x, &y, sizeof(x));
}

static void put_plain(const union ckpt_sockaddr *a, uint8_t ret[18])
{
	struct in6_addr ip;
	uint16_t port = plain(a, &ip);

	memcpy(ret, &ip, sizeof(ip));
	memcpy(ret + sizeof(ip), &port, sizeof(port));
}

void ckpt_sock_addr_key(const struct ckpt_inet_diag *d, struct ckpt_sock_key *ret)
{
	uint8_t swap[18];

	put_plain(&d->local, ret->low);
	put_plain(&d->remote, ret->high);
	if (memcmp(ret->low, ret->high, sizeof(swap)) <= 0)
		return;
	memcpy(swap, ret->low, sizeof(swap));
	memcpy(ret->low, ret->high, sizeof(swap));
	memcpy(ret->high, swap, sizeof(swap));
}

static bool lasts4(const struct ckpt_world *w, struct in_addr a)
{
	uint32_t n = ntohl(a.s_addr);

	return !n || n >> 24 == IN_LOOPBACKNET || IN_MULTICAST(n) || n == INADDR_BROADCAST ||
	       !memcmp(&a, w->net4, sizeof(a));
}

static bool lasts6(const struct ckpt_world *w, const struct in6_addr *a)
{
	struct in_addr in;

	if (IN6_IS_ADDR_V4MAPPED(a)) {
		memcpy(&in, a->s6_addr + 12, sizeof(in));
		return lasts4(w, in);
	}
	return IN6_IS_ADDR_UNSPECIFIED(a) || IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_MULTICAST(a) ||
	       IN6_IS_ADDR_LINKLOCAL(a) || !memcmp(a, w->net6, sizeof(*a));
}

/* A socket that may have any address needs none that is there. */
static bool is_free(int fd)
{
	static const int any[] = {IP_FREEBIND, IP_TRANSPARENT};
	socklen_t len = sizeof(int);
	int on = 0;

	for (size_t i = 0; i < ARRAY_SIZE(any); i++)
		if (getsockopt(fd, IPPROTO_IP, any[i], &on, &len) == 0 && on)
			return true;
	return false;
}

int ckpt_sock_addr_check(const struct ckpt_dump *d, int fd, struct err *e)
{
	const struct ckpt_world *w = d->world;
	union ckpt_sockaddr a = {0};
	socklen_t len = sizeof(a);
	char text[INET6_ADDRSTRLEN + 10];

	/* nobody else can give it any */
	if (w->ns_net < 0 || w->wired || w->uid || getsockname(fd, &a.any, &len) < 0)
		return 0;
	if ((a.any.sa_family == AF_INET ? lasts4(w, a.in.sin_addr) : lasts6(w, &a.in6.sin6_addr)) ||
		is_free(fd))
		return 0;
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
		"a socket bound to %s, an address that the session has given itself, is not supported",
		ckpt_sock_addr_text(&a, text, sizeof(text)));
}

const char *ckpt_sock_addr_text(const union ckpt_sockaddr *a, char *buf, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (a->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->in.sin_addr, ip, sizeof(ip));
		snprintf(buf, size, "%s:%u", ip, ntohs(a->in.sin_port));
	} else {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, ip, sizeof(ip));
		snprintf(buf, size, "[%s]:%u", ip, ntohs(a->in6.sin6_port));
	}
	return buf;
}

void ckpt_sock_addr_show(const Pb__InetAddr *m, int domain, FILE *out)
{
	union ckpt_sockaddr a;
	char text[INET6_ADDRSTRLEN + 10];

	if (m && ckpt_sock_addr_unpack(m, domain, &a, NULL) >= 0)
		fputs(ckpt_sock_addr_text(&a, text, sizeof(text)), out);
	else
		fputc('-', out);
}
