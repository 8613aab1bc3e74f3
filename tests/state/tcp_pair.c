// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP connections on the loopback device, also between IPv4 and IPv6: bytes on their way,
 * half-closed, closed, reset, options.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/state/ports.h"
#include "tests/state/state.h"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t loopback(int domain, union address *a)
{
	memset(a, 0, sizeof(*a));
	a->any.sa_family = domain;
	if (domain == AF_INET) {
		a->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(a->in);
	}
	a->in6.sin6_addr = in6addr_loopback;
	return sizeof(a->in6);
}

/* A listening socket at a port of the kernel's choice. */
static int listener(int domain, union address *a)
{
	socklen_t len = loopback(domain, a);
	int fd = socket(domain, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && bind(fd, &a->any, len) == 0 && listen(fd, 10) == 0);
	STATE_CHECK(getsockname(fd, &a->any, &len) == 0);
	return fd;
}

/* One of IPv6 that takes connections of IPv4, which @a leads to. */
static int dual_listener(union address *a)
{
	union address any = {.in6.sin6_family = AF_INET6};
	socklen_t len = sizeof(any.in6);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && bind(fd, &any.any, len) == 0 && listen(fd, 10) == 0);
	STATE_CHECK(getsockname(fd, &any.any, &len) == 0);
	loopback(AF_INET, a);
	a->in.sin_port = any.in6.sin6_port;
	return fd;
}

/* [0] connected to [1], accepted by @l at @a. */
static void pair(int l, const union address *a, int sv[2])
{
	sv[0] = socket(a->any.sa_family, SOCK_STREAM, 0);
	STATE_CHECK(sv[0] >= 0 && connect(sv[0], &a->any, sizeof(*a)) == 0);
	sv[1] = accept(l, NULL, NULL);
	STATE_CHECK(sv[1] >= 0);
}

static void expect(int fd, const char *s)
{
	char buf[64] = "";
	ssize_t n = recv(fd, buf, strlen(s), MSG_WAITALL);

	STATE_CHECK(n == (ssize_t)strlen(s) && !memcmp(buf, s, strlen(s)));
}

static void talk(int a, int b)
{
	STATE_CHECK(write(a, "ping", 4) == 4);
	expect(b, "ping");
	STATE_CHECK(write(b, "pong", 4) == 4);
	expect(a, "pong");
}

static int get(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	STATE_CHECK(getsockopt(fd, level, name, &v, &len) == 0);
	return v;
}

static void set(int fd, int level, int name, int v)
{
	STATE_CHECK(setsockopt(fd, level, name, &v, sizeof(v)) == 0);
}

static int port_of(int fd, int peer)
{
	union address a;
	socklen_t len = sizeof(a);

	STATE_CHECK((peer ? getpeername : getsockname)(fd, &a.any, &len) == 0);
	return ntohs(a.in.sin_port);
}

static int state_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_state;
}

/* Writes until nothing more is taken; every byte tells its place. */
static size_t stuff(int fd)
{
	static unsigned char block[65536];
	size_t sent = 0;
	int dry = 0;

	STATE_CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	while (dry < 20) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (unsigned char)((sent + i) * 2654435761u >> 24);
		n = write(fd, block, sizeof(block));
		if (n > 0)
			sent += n;
		else {
			STATE_CHECK(errno == EAGAIN);
			dry++;
			state_nap();
		}
	}
	return sent;
}

static void drain(int fd, size_t expected)
{
	static unsigned char block[65536];
	size_t got = 0;

	while (got < expected) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		STATE_CHECK(poll(&p, 1, 5000) == 1);
		n = read(fd, block, sizeof(block));
		STATE_CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			STATE_CHECK(block[i] == (unsigned char)((got + i) * 2654435761u >> 24));
		got += n;
	}
	STATE_CHECK(got == expected);
}

static union address a4, a6;
static int l4, l6, port, port6;
static int plain[2], six[2], full[2], half[2], closed[2], reset[2], both[2], opts[2];
static int mapped_both[2], mapped_reset[2]; /* IPv6 at [1], IPv4 at [0] */
static size_t sent;

static void reset_by(int fd)
{
	struct linger abort_on_close = {.l_onoff = 1};

	STATE_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close,
			    sizeof(abort_on_close)) == 0);
	STATE_CHECK(close(fd) == 0);
}

static void make_mapped(void)
{
	union address a;
	int l = dual_listener(&a);

	pair(l, &a, mapped_both);
	pair(l, &a, mapped_reset);
	close(l);
	STATE_CHECK(shutdown(mapped_both[0], SHUT_WR) == 0);
	STATE_CHECK(shutdown(mapped_both[1], SHUT_WR) == 0);
	reset_by(mapped_reset[0]);
}

static void make_pairs(void)
{
	l4 = listener(AF_INET, &a4);
	l6 = listener(AF_INET6, &a6);
	pair(l4, &a4, plain);
	pair(l6, &a6, six);
	pair(l4, &a4, full);
	pair(l4, &a4, half);
	pair(l4, &a4, closed);
	pair(l4, &a4, reset);
	pair(l4, &a4, both);
	pair(l4, &a4, opts);
	port = port_of(plain[0], 0);
	port6 = port_of(six[0], 0);
	share_port(plain[0]);
	share_port(six[0]);
	share_port(half[0]);
	share_port(both[0]);
	STATE_CHECK(write(plain[0], "there", 5) == 5 && write(plain[1], "back", 4) == 4);
	sent = stuff(full[0]);
	STATE_CHECK(write(half[0], "last words", 10) == 10 && shutdown(half[0], SHUT_WR) == 0);
	STATE_CHECK(write(closed[1], "left", 4) == 4 && close(closed[1]) == 0);
	STATE_CHECK(shutdown(both[0], SHUT_WR) == 0 && shutdown(both[1], SHUT_WR) == 0);
	reset_by(reset[1]);
	make_mapped();
}

static int deferred;

static void set_options(void)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 7};

	set(opts[0], IPPROTO_TCP, TCP_NODELAY, 1);
	set(opts[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	set(opts[0], IPPROTO_TCP, TCP_KEEPIDLE, 77);
	set(opts[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 12345);
	set(opts[0], SOL_SOCKET, SO_RCVBUF, 20000);
	set(opts[0], IPPROTO_IP, IP_TOS, 0x10);
	/* Nothing may wait for what nobody has to say. */
	set(opts[1], IPPROTO_TCP, TCP_DEFER_ACCEPT, 1000);
	deferred = get(opts[1], IPPROTO_TCP, TCP_DEFER_ACCEPT);
	STATE_CHECK(setsockopt(opts[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
}

static void check_plain(void)
{
	expect(plain[1], "there");
	expect(plain[0], "back");
	STATE_CHECK(port_of(plain[0], 0) == port && port_of(plain[1], 1) == port);
	STATE_CHECK(port_of(plain[0], 1) == ntohs(a4.in.sin_port));
	STATE_CHECK(get(plain[0], SOL_SOCKET, SO_REUSEADDR) == 0);
	talk(plain[0], plain[1]);
	STATE_CHECK(port_of(six[0], 0) == port6 && port_of(six[1], 1) == port6);
	talk(six[0], six[1]);
}

static void check_full(void)
{
	drain(full[1], sent);
	STATE_CHECK(fcntl(full[0], F_GETFL) & O_NONBLOCK);
	talk(full[1], full[0]);
}

static void check_closed(void)
{
	struct pollfd p = {.fd = reset[0], .events = POLLIN};
	char c;

	expect(half[1], "last words");
	STATE_CHECK(recv(half[1], &c, 1, 0) == 0);
	STATE_CHECK(state_of(half[1]) == TCP_CLOSE_WAIT);
	STATE_CHECK(write(half[1], "reply", 5) == 5);
	expect(half[0], "reply");
	STATE_CHECK(send(half[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);

	expect(closed[0], "left");
	STATE_CHECK(recv(closed[0], &c, 1, 0) == 0 && state_of(closed[0]) == TCP_CLOSE_WAIT);

	STATE_CHECK(recv(both[0], &c, 1, 0) == 0 && recv(both[1], &c, 1, 0) == 0);
	STATE_CHECK(send(both[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);

	STATE_CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLERR));
	STATE_CHECK(recv(reset[0], &c, 1, 0) == -1 && errno == ECONNRESET);
}

/* Closed or reset, and still bound to a mapped address: nothing but such a one can reach it. */
static void check_mapped(void)
{
	struct pollfd p = {.fd = mapped_reset[1], .events = POLLIN};
	char c;

	STATE_CHECK(recv(mapped_both[0], &c, 1, 0) == 0 && recv(mapped_both[1], &c, 1, 0) == 0);
	STATE_CHECK(send(mapped_both[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	STATE_CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLERR));
	STATE_CHECK(recv(mapped_reset[1], &c, 1, 0) == -1 && errno == ECONNRESET);
}

static void check_options(void)
{
	struct linger linger;
	socklen_t len = sizeof(linger);

	STATE_CHECK(get(opts[0], IPPROTO_TCP, TCP_NODELAY) == 1);
	STATE_CHECK(get(opts[1], IPPROTO_TCP, TCP_NODELAY) == 0);
	STATE_CHECK(get(opts[0], SOL_SOCKET, SO_KEEPALIVE) == 1);
	STATE_CHECK(get(opts[0], IPPROTO_TCP, TCP_KEEPIDLE) == 77);
	STATE_CHECK(get(opts[0], IPPROTO_TCP, TCP_USER_TIMEOUT) == 12345);
	STATE_CHECK(get(opts[0], SOL_SOCKET, SO_RCVBUF) == 40000);
	STATE_CHECK(get(opts[0], IPPROTO_IP, IP_TOS) == 0x10);
	STATE_CHECK(get(opts[1], IPPROTO_TCP, TCP_DEFER_ACCEPT) == deferred);
	STATE_CHECK(getsockopt(opts[0], SOL_SOCKET, SO_LINGER, &linger, &len) == 0);
	STATE_CHECK(linger.l_onoff && linger.l_linger == 7);
	STATE_CHECK(getsockopt(opts[1], SOL_SOCKET, SO_LINGER, &linger, &len) == 0);
	STATE_CHECK(!linger.l_onoff);
	talk(opts[0], opts[1]);
}

int main(int argc, char **argv)
{
	make_pairs();
	set_options();
	state_nap();
	state_ready(argc, argv);
	check_plain();
	check_full();
	check_closed();
	check_mapped();
	check_options();
	/* The listeners go on. */
	pair(l4, &a4, plain);
	talk(plain[0], plain[1]);
	pair(l6, &a6, six);
	talk(six[0], six[1]);
	return state_ok();
}
