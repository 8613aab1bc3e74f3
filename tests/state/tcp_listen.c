// SPDX-License-Identifier: GPL-2.0-or-later
/* Listening TCP sockets: waiting connections, both families at once, reused ports, just bound. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "tests/state/ports.h"
#include "tests/state/state.h"

static struct sockaddr_in at4(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static struct sockaddr_in6 any6(int port)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
}

static int client(int port)
{
	struct sockaddr_in a = at4(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && connect(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static void talk(int a, int b)
{
	char buf[8];

	STATE_CHECK(write(a, "ping", 4) == 4 && read(b, buf, sizeof(buf)) == 4);
	STATE_CHECK(write(b, "pong", 4) == 4 && read(a, buf, sizeof(buf)) == 4);
}

static int port_of(int fd)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	STATE_CHECK(getsockname(fd, (void *)&a, &len) == 0);
	return ntohs(a.sin6_port);
}

static int l, w1, w2, port;	     /* with connections that wait */
static int dual, c4, s4, port6;	     /* both families */
static int shared[2], shared_port;   /* one port */
static int bound, bound_port, fresh; /* not listening yet; not even bound */

static unsigned waiting(void)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(l, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_unacked;
}

/* One that talks, one that is half-closed, one that is closed. */
static void make_waiting(void)
{
	struct sockaddr_in a = at4(0);
	int w3, mss = 1000;

	l = socket(AF_INET, SOCK_STREAM, 0);
	STATE_CHECK(setsockopt(l, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)) == 0);
	STATE_CHECK(bind(l, (void *)&a, sizeof(a)) == 0 && listen(l, 7) == 0);
	port = port_of(l);
	w1 = client(port);
	w2 = client(port);
	w3 = client(port);
	share_port(w1);
	share_port(w3);
	STATE_CHECK(shutdown(w2, SHUT_WR) == 0 && close(w3) == 0);
	while (waiting() != 3)
		state_nap();
	/* From now on only one would get in. */
	STATE_CHECK(listen(l, 0) == 0);
}

static void make_dual(void)
{
	struct sockaddr_in6 a6 = any6(0);

	dual = socket(AF_INET6, SOCK_STREAM, 0);
	STATE_CHECK(bind(dual, (void *)&a6, sizeof(a6)) == 0 && listen(dual, 5) == 0);
	port6 = port_of(dual);
	c4 = client(port6);
	s4 = accept(dual, NULL, NULL);
	STATE_CHECK(s4 >= 0);
}

static void make_others(void)
{
	struct sockaddr_in a = at4(0);
	int one = 1;

	fresh = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in b = at4(i ? shared_port : 0);

		shared[i] = socket(AF_INET, SOCK_STREAM, 0);
		STATE_CHECK(
			setsockopt(shared[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == 0);
		STATE_CHECK(
			bind(shared[i], (void *)&b, sizeof(b)) == 0 && listen(shared[i], 5) == 0);
		shared_port = port_of(shared[i]);
	}
	bound = socket(AF_INET, SOCK_STREAM, 0);
	STATE_CHECK(bound >= 0 && bind(bound, (void *)&a, sizeof(a)) == 0);
	bound_port = port_of(bound);
}

static void check_waiting(void)
{
	char buf[8];
	int s, v;

	for (int i = 0, seen = 0; i < 3; i++) {
		s = accept(l, NULL, NULL);
		STATE_CHECK(s >= 0);
		/* The three in any order; the closed and the half-closed are at their end. */
		v = recv(s, buf, 1, MSG_DONTWAIT);
		STATE_CHECK(v == 0 || (v == -1 && errno == EAGAIN));
		seen += v == 0;
		if (v < 0)
			talk(w1, s);
		else if (send(s, "late", 4, MSG_NOSIGNAL) == 4)
			recv(w2, buf, 4, MSG_DONTWAIT);
		STATE_CHECK(i < 2 || seen == 2);
		close(s);
	}
}

static void check_dual(void)
{
	socklen_t len = sizeof(int);
	int v;

	talk(c4, s4);
	STATE_CHECK(getsockopt(s4, IPPROTO_IPV6, IPV6_V6ONLY, &v, &len) == 0 && v == 0);
	c4 = client(port6);
	s4 = accept(dual, NULL, NULL);
	talk(c4, s4);
}

static void check_shared(void)
{
	int c = client(shared_port), s;

	STATE_CHECK(fcntl(shared[0], F_SETFL, O_NONBLOCK) == 0 &&
		    fcntl(shared[1], F_SETFL, O_NONBLOCK) == 0);
	s = accept(shared[0], NULL, NULL);
	if (s < 0)
		s = accept(shared[1], NULL, NULL);
	talk(c, s);
}

static void check_others(void)
{
	struct sockaddr_in a = at4(port);
	char buf[8];
	int c;

	STATE_CHECK(listen(bound, 1) == 0);
	c = client(bound_port);
	talk(c, accept(bound, NULL, NULL));
	STATE_CHECK(recv(fresh, buf, 1, 0) == -1 && errno == ENOTCONN);
	STATE_CHECK(connect(fresh, (void *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
}

int main(int argc, char **argv)
{
	socklen_t len = sizeof(int);
	int v;

	make_waiting();
	make_dual();
	make_others();
	state_ready(argc, argv);
	STATE_CHECK(
		port_of(l) == port && port_of(dual) == port6 && port_of(shared[1]) == shared_port);
	STATE_CHECK(port_of(bound) == bound_port);
	STATE_CHECK(getsockopt(l, IPPROTO_TCP, TCP_MAXSEG, &v, &len) == 0 && v == 1000);
	check_waiting();
	check_dual();
	check_shared();
	check_others();
	return state_ok();
}
