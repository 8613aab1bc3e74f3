// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Addresses of connections within the session.
 *
 * In a network of its own nobody else has them.  On the host's network others have the same port, and
 * what has ended has it for a minute more: so they are had as they were had at first
 * (tcp_bind_to_connect), and nothing that is given up leaves anything behind.  A suspend resets the
 * ends it closes (tcp.c, leave); an end that is made here would be reset, too, until every one is
 * made and the session is let go, whoever closes it: a restore that fails, or a builder or a session
 * that is killed meanwhile, can be followed by another at once.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/build.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/tcp.h"
#include "ckpt/kinds/tcp_address.h"
#include "proto/sockets.pb-c.h"

#define PATIENCE_MS 2000

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static int is_taken(struct err *e)
{
	return err_hint(e, "another program of this host has it, or its last connection was "
			   "closed less than a minute ago");
}

int tcp_bind_to(int fd, int domain, const Pb__InetAddr *m, struct err *e)
{
	union ckpt_sockaddr a;
	char text[64];
	int len = ckpt_sock_addr_unpack(m, domain, &a, e);

	if (len < 0)
		return len;
	if (bind(fd, &a.any, (socklen_t)len) == 0)
		return 0;
	err_errno(e, -errno, "cannot bind a TCP socket to %s",
		ckpt_sock_addr_text(&a, text, sizeof(text)));
	return e->error == -EADDRINUSE ? is_taken(e) : e->error;
}

/*
 * A kernel gives one port to several whose
 * connections lead to different places, and then lets nobody bind to it until the last of them
 * and its TIME_WAIT have ended.  It is had again as it was had at first: from connect(2), which may
 * choose among this port alone (ip(7), IP_LOCAL_PORT_RANGE; Linux 6.3).
 */
int tcp_bind_to_connect(int fd, int domain, const Pb__InetAddr *m, struct err *e)
{
	int r = tcp_bind_to(fd, domain, m, e), len;
	union ckpt_sockaddr a;

	if (r != -EADDRINUSE || !m->port)
		return r;
	len = ckpt_sock_addr_unpack(m, domain, &a, NULL);
	if (len < 0)
		return r;
	*(domain == AF_INET ? &a.in.sin_port : &a.in6.sin6_port) = 0;
	if (set_int(fd, IPPROTO_IP, IP_LOCAL_PORTS, (int)(m->port << 16 | m->port)) < 0 ||
		set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) < 0 ||
		bind(fd, &a.any, (socklen_t)len) < 0)
		return r;
	*e = (struct err){0};
	return 0;
}

/* Takes back what tcp_bind_to_connect() set; the port it left to choose, or 0. */
static unsigned int choose_freely(int fd)
{
	uint32_t only = 0;
	socklen_t len = sizeof(only);

	if (getsockopt(fd, IPPROTO_IP, IP_LOCAL_PORTS, &only, &len) < 0 || !only)
		return 0;
	set_int(fd, IPPROTO_IP, IP_LOCAL_PORTS, 0);
	set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 0);
	return only & UINT16_MAX;
}

/* A kernel ignores a choice that is not one of this host's ports to choose from. */
static bool has_port(int fd, unsigned int port)
{
	union ckpt_sockaddr a;
	socklen_t len = sizeof(a);

	return getsockname(fd, &a.any, &len) == 0 &&
	       ntohs(a.any.sa_family == AF_INET ? a.in.sin_port : a.in6.sin6_port) == port;
}

int tcp_connect_to(int fd, const union ckpt_sockaddr *to, socklen_t len, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	unsigned int port;
	char text[64];
	int r;

	io_set_nonblock(fd, true);
	r = connect(fd, &to->any, len) < 0 ? -errno : 0;
	port = choose_freely(fd);
	if (port && (r == 0 || r == -EINPROGRESS) && !has_port(fd, port))
		r = -EADDRNOTAVAIL;
	if (r == -EINPROGRESS)
		r = poll(&p, 1, PATIENCE_MS) != 1 ? -ETIMEDOUT
						  : -ckpt_sock_get_int(fd, SOL_SOCKET, SO_ERROR);
	if (r == 0)
		return 0;
	ckpt_sock_addr_text(to, text, sizeof(text));
	if (r == -EADDRNOTAVAIL && port) {
		err_errno(e, -EADDRINUSE, "cannot connect to %s from port %u", text, port);
		return is_taken(e);
	}
	err_errno(e, r, "cannot connect to %s", text);
	/* more connections wait to be accepted than the backlog holds; nobody refuses but a lie */
	return r == -ETIMEDOUT || r == -ECONNREFUSED ? err_reclass(e, ERR_IMAGE) : r;
}

static bool is_shared(const struct ckpt_build *b)
{
	return b->world->ns_net < 0;
}

void tcp_hold_back(const struct ckpt_build *b, int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	if (is_shared(b))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void tcp_let_go(const struct ckpt_build *b, int fd, const struct linger *as)
{
	const struct linger none = {0};

	if (is_shared(b))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, as ? as : &none, sizeof(none));
}

struct linger *tcp_hold_on(const struct ckpt_build *b, int fd)
{
	struct linger *as = is_shared(b) ? malloc(sizeof(*as)) : NULL;
	socklen_t len = sizeof(*as);

	if (!as)
		return NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, as, &len) < 0) {
		free(as);
		return NULL;
	}
	tcp_hold_back(b, fd);
	return as;
}
