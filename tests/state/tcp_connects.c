// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP sockets around connect(2): not answered yet, refused and not told, disconnected, connected to
 * itself and full, one whose listener waits for data, and one whose listener has gone before it was
 * accepted.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/state/state.h"

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	STATE_CHECK(getsockname(fd, (void *)&a, &len) == 0);
	return ntohs(a.sin_port);
}

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int bound(void)
{
	struct sockaddr_in a = at(0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

/* Begins to connect, and does not wait. */
static int connecting(int port)
{
	struct sockaddr_in a = at(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	STATE_CHECK(fd >= 0);
	STATE_CHECK(connect(fd, (void *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
	return fd;
}

static int state_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_state;
}

static int error_of(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	STATE_CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
	return error;
}

static int happens(int fd, short what, int wait)
{
	struct pollfd p = {.fd = fd, .events = what};

	return poll(&p, 1, wait) == 1 ? p.revents : 0;
}

static void talk(int a, int b)
{
	char buf[8];

	STATE_CHECK(write(a, "ping", 4) == 4 && recv(b, buf, 4, MSG_WAITALL) == 4);
	STATE_CHECK(write(b, "pong", 4) == 4 && recv(a, buf, 4, MSG_WAITALL) == 4);
}

static void block(int fd)
{
	STATE_CHECK(fcntl(fd, F_SETFL, 0) == 0);
}

/* Sends itself more than it takes. */
static size_t fill(int fd)
{
	static const char much[4096] = "me";
	int size = 32768;
	size_t sent = 0;
	ssize_t n;

	STATE_CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
	do {
		while ((n = send(fd, much, sizeof(much), MSG_DONTWAIT)) > 0)
			sent += (size_t)n;
		STATE_CHECK(errno == EAGAIN);
	} while (happens(fd, POLLOUT, 100));
	return sent;
}

static void empty(int fd, size_t left)
{
	char buf[4096];

	for (size_t n; left; left -= n) {
		n = left < sizeof(buf) ? left : sizeof(buf);
		STATE_CHECK(recv(fd, buf, n, MSG_WAITALL) == (ssize_t)n);
	}
	STATE_CHECK(recv(fd, buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static int shares_address(int fd)
{
	int value = -1;
	socklen_t len = sizeof(value);

	STATE_CHECK(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, &len) == 0);
	return value;
}

static int full, first, second; /* a backlog of one, and who waits to get into it */
static int refused, itself, again, lazy, early, late;
static size_t filled;

static void make(void)
{
	struct sockaddr_in none = {.sin_family = AF_UNSPEC}, a;
	int gone, wait = 60;

	full = bound();
	STATE_CHECK(listen(full, 0) == 0);
	first = connecting(port_of(full));
	STATE_CHECK(happens(first, POLLOUT, 5000) == POLLOUT);
	second = connecting(port_of(full));
	STATE_CHECK(state_of(second) == TCP_SYN_SENT);

	gone = bound();
	refused = connecting(port_of(gone));
	STATE_CHECK(happens(refused, POLLOUT, 5000) & POLLERR);
	close(gone);

	itself = bound();
	a = at(port_of(itself));
	STATE_CHECK(connect(itself, (void *)&a, sizeof(a)) == 0);
	filled = fill(itself);

	/* Connected, and then not any more. */
	lazy = bound();
	STATE_CHECK(setsockopt(lazy, IPPROTO_TCP, TCP_DEFER_ACCEPT, &wait, sizeof(wait)) == 0);
	STATE_CHECK(listen(lazy, 5) == 0);
	again = connecting(port_of(lazy));
	STATE_CHECK(happens(again, POLLOUT, 5000) == POLLOUT);
	STATE_CHECK(connect(again, (void *)&none, sizeof(none)) == 0);
	STATE_CHECK(error_of(again) == ECONNRESET);

	/* Connected, but nobody hears of it before it has said something. */
	early = connecting(port_of(lazy));
	STATE_CHECK(happens(early, POLLOUT, 5000) == POLLOUT);

	gone = bound();
	STATE_CHECK(listen(gone, 5) == 0);
	late = connecting(port_of(gone));
	STATE_CHECK(happens(late, POLLOUT, 5000) == POLLOUT);
	close(gone);
}

/* The kernel asks again after seconds: it is enough that it does. */
static void check_backlog(void)
{
	struct sockaddr_in a = at(port_of(full));
	int s = accept(full, NULL, NULL);

	STATE_CHECK(s >= 0);
	block(first);
	talk(first, s);
	STATE_CHECK(state_of(second) == TCP_SYN_SENT && happens(second, POLLOUT, 0) == 0);
	STATE_CHECK(error_of(second) == 0);
	STATE_CHECK(connect(second, (void *)&a, sizeof(a)) == -1 && errno == EALREADY);
}

static void check(void)
{
	struct sockaddr_in a = at(port_of(lazy));
	char buf[8];
	int s;

	check_backlog();

	STATE_CHECK(happens(refused, POLLIN, 0) & POLLERR);
	STATE_CHECK(error_of(refused) == ECONNREFUSED && error_of(refused) == 0);

	STATE_CHECK(shares_address(itself) == 0);
	empty(itself, filled);
	talk(itself, itself);

	STATE_CHECK(recv(again, buf, 1, 0) == -1 && errno == ENOTCONN);
	STATE_CHECK(!(happens(lazy, POLLIN, 0) & POLLIN));
	STATE_CHECK(write(early, "at last", 7) == 7 && happens(lazy, POLLIN, -1) == POLLIN);
	s = accept(lazy, NULL, NULL);
	STATE_CHECK(s >= 0 && recv(s, buf, 7, MSG_WAITALL) == 7);
	STATE_CHECK(connect(again, (void *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
	STATE_CHECK(happens(again, POLLOUT, -1) == POLLOUT && error_of(again) == 0);

	STATE_CHECK(happens(late, POLLIN, 0) & POLLERR);
	STATE_CHECK(recv(late, buf, 1, 0) == -1 && errno == ECONNRESET);
}

int main(int argc, char **argv)
{
	make();
	state_ready(argc, argv);
	check();
	return state_ok();
}
