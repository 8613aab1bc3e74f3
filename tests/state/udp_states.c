// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * UDP: sockets nobody has bound, shut ones, UDP-Lite, connected anew, connected to itself, both
 * families on one.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/state/state.h"

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int port_of(int fd, int peer)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	if ((peer ? getpeername : getsockname)(fd, (void *)&a, &len) < 0)
		return -errno;
	return ntohs(a.sin6_port);
}

static int bound(int protocol)
{
	struct sockaddr_in a = at(0);
	int fd = socket(AF_INET, SOCK_DGRAM, protocol);

	/* Some kernels have no UDP-Lite any more. */
	if (fd < 0 && protocol && errno == EPROTONOSUPPORT)
		return -1;
	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static void reach(int fd, int port)
{
	struct sockaddr_in a = at(port);

	STATE_CHECK(connect(fd, (void *)&a, sizeof(a)) == 0);
}

static void say(int from, int to, const char *word)
{
	char buf[32];
	ssize_t n = (ssize_t)strlen(word);

	STATE_CHECK(send(from, word, (size_t)n, 0) == n);
	STATE_CHECK(recv(to, buf, sizeof(buf), 0) == n && !memcmp(buf, word, (size_t)n));
}

int main(int argc, char **argv)
{
	struct sockaddr_in none = {.sin_family = AF_UNSPEC}, to;
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	int fresh = socket(AF_INET, SOCK_DGRAM, 0), fresh6 = socket(AF_INET6, SOCK_DGRAM, 0);
	int server = bound(0), shut = bound(0), loose = bound(0), itself = bound(0);
	int dual = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_DGRAM, 0);
	int lite = bound(IPPROTO_UDPLITE), lite_client = bound(IPPROTO_UDPLITE), v = 8;
	socklen_t len = sizeof(v);
	char buf[8];

	reach(shut, port_of(server, 0));
	STATE_CHECK(shutdown(shut, SHUT_RDWR) == 0);
	/* Connected and loose again. */
	reach(loose, port_of(server, 0));
	STATE_CHECK(connect(loose, (void *)&none, sizeof(none)) == 0);
	reach(itself, port_of(itself, 0));
	STATE_CHECK(bind(dual, (void *)&any, sizeof(any)) == 0);
	reach(four, port_of(dual, 0));
	if (lite >= 0) {
		reach(lite_client, port_of(lite, 0));
		STATE_CHECK(setsockopt(lite_client, IPPROTO_UDPLITE, 10, &v, sizeof(v)) == 0);
	}

	state_ready(argc, argv);

	STATE_CHECK(port_of(fresh, 0) == 0 && port_of(fresh6, 0) == 0);
	STATE_CHECK(port_of(fresh, 1) == -ENOTCONN);
	to = at(port_of(server, 0));
	STATE_CHECK(sendto(fresh, "hello", 5, 0, (void *)&to, sizeof(to)) == 5);
	STATE_CHECK(recv(server, buf, sizeof(buf), 0) == 5);
	STATE_CHECK(send(shut, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	STATE_CHECK(recv(shut, buf, 1, 0) == 0 && port_of(shut, 1) == port_of(server, 0));
	STATE_CHECK(port_of(loose, 1) == -ENOTCONN);
	STATE_CHECK(send(loose, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
	say(itself, itself, "to myself");
	say(four, dual, "mapped");
	if (lite >= 0) {
		say(lite_client, lite, "lite");
		STATE_CHECK(getsockopt(lite_client, IPPROTO_UDPLITE, 10, &v, &len) == 0 && v == 8);
	}
	return state_ok();
}
