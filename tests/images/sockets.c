// SPDX-License-Identifier: GPL-2.0-or-later
/* Sockets of old.c: those of AF_UNIX with what is under way in them, and those of the loopback. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "call.h"

static int pair[2], stream[2], listening, waiting;

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

static void pass(int through, int fd)
{
	union control c = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec byte = {pattern, 1};
	struct msghdr m = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_LEN(sizeof(int))};

	*(int *)CMSG_DATA(&c.head) = fd;
	check(call(SYS_sendmsg, through, (long)&m, 0, 0) == 1, "sendmsg");
}

static int passed(int through)
{
	union control c = {0};
	char got;
	struct iovec byte = {&got, 1};
	struct msghdr m = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};

	check(call(SYS_recvmsg, through, (long)&m, 0, 0) == 1 && c.head.cmsg_type == SCM_RIGHTS,
		"recvmsg");
	return *(int *)CMSG_DATA(&c.head);
}

static int listener(const struct sockaddr *name, long length)
{
	int fd = (int)call(SYS_socket, name->sa_family, SOCK_STREAM, 0, 0);

	check(call(SYS_bind, fd, (long)name, length, 0) == 0 &&
			call(SYS_listen, fd, 3, 0, 0) == 0,
		"bind");
	return fd;
}

static int connected(const struct sockaddr *to, long length)
{
	int fd = (int)call(SYS_socket, to->sa_family, SOCK_STREAM, 0, 0);

	check(call(SYS_connect, fd, (long)to, length, 0) == 0, "connect");
	return fd;
}

/* Whose connection is still to be accepted by @listener, and works then. */
static void has_waited(int fd, int listener, const char *what)
{
	int accepted;

	call(SYS_write, fd, (long)pattern, 3, 0);
	accepted = (int)call(SYS_accept4, listener, 0, 0, 0);
	check(accepted >= 0 && reads(accepted, PATTERN, 3), what);
	call(SYS_write, accepted, (long)pattern, 5, 0);
	check(reads(fd, PATTERN, 5), "what was accepted then");
}

static void set_up(void)
{
	static const struct sockaddr_un name = {AF_UNIX, "/tmp/socket"};
	const struct sockaddr *there = (const struct sockaddr *)&name;
	int in_flight = open_at("/tmp/in flight", O_RDWR | O_CREAT);

	check(call(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, (long)pair) == 0, "socketpair");
	call(SYS_write, pair[0], (long)pattern, 5, 0);
	call(SYS_write, pair[0], (long)pattern + 5, 6, 0);
	check(call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (long)stream) == 0, "socketpair");
	call(SYS_write, in_flight, (long)pattern, sizeof(pattern), 0);
	pass(stream[0], in_flight);
	call(SYS_close, in_flight, 0, 0, 0);
	call(SYS_write, stream[1], (long)pattern, 11, 0);
	call(SYS_shutdown, stream[1], SHUT_WR, 0, 0);
	listening = listener(there, sizeof(name));
	waiting = connected(there, sizeof(name));
}

static void look(void)
{
	check(reads(pair[1], PATTERN, 5), "first datagram");
	check(reads(pair[1], PATTERN + 5, 6), "second datagram");
	check(begins(passed(stream[1]), PATTERN, sizeof(PATTERN)),
		"descriptor that was on its way");
	check(reads(stream[0], PATTERN, 11) && reads(stream[0], "", 0),
		"stream that one end has shut");
	has_waited(waiting, listening, "connection that waited");
}

const struct part part_sockets = {set_up, look};

static int server, client, at_server, client2, udp, netlink;
static struct sockaddr_nl netlink_name = {.nl_family = AF_NETLINK};

static void option(int fd, int level, int name)
{
	const int on = 1;

	check(call6(SYS_setsockopt, fd, level, name, (long)&on, sizeof(on), 0) == 0, "setsockopt");
}

static bool has(int fd, int level, int name)
{
	int on = 0, length = sizeof(on);

	return call6(SYS_getsockopt, fd, level, name, (long)&on, (long)&length, 0) == 0 && on;
}

static void set_up_network(void)
{
	const struct sockaddr_in here = {AF_INET, __builtin_bswap16(7001), {__builtin_bswap32(INADDR_LOOPBACK)}, {0}};
	const struct sockaddr *there = (const struct sockaddr *)&here;
	int length = sizeof(netlink_name);

	server = listener(there, sizeof(here));
	client = connected(there, sizeof(here));
	option(client, IPPROTO_TCP, TCP_NODELAY);
	option(client, SOL_SOCKET, SO_KEEPALIVE);
	at_server = (int)call(SYS_accept4, server, 0, 0, SOCK_NONBLOCK);
	call(SYS_write, client, (long)pattern, 11, 0);
	call(SYS_write, at_server, (long)pattern, 5, 0);
	call(SYS_shutdown, client, SHUT_WR, 0, 0);
	client2 = connected(there, sizeof(here));
	udp = (int)call(SYS_socket, AF_INET, SOCK_DGRAM, 0, 0);
	check(call(SYS_bind, udp, (long)&here, sizeof(here), 0) == 0, "bind");
	check(call6(SYS_sendto, udp, (long)pattern, 5, 0, (long)&here, sizeof(here)) == 5,
		"sendto");
	netlink = (int)call(SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0);
	check(call(SYS_bind, netlink, (long)&netlink_name, sizeof(netlink_name), 0) == 0 &&
			call(SYS_getsockname, netlink, (long)&netlink_name, (long)&length, 0) == 0,
		"netlink");
}

static void look_network(void)
{
	struct sockaddr_nl now = {0};
	int length = sizeof(now);

	check(reads(at_server, PATTERN, 11) && reads(at_server, "", 0),
		"connection that one end has shut");
	check(reads(client, PATTERN, 5), "the other way");
	call(SYS_write, at_server, (long)pattern, 3, 0);
	check(reads(client, PATTERN, 3), "what is sent now");
	check(has(client, IPPROTO_TCP, TCP_NODELAY) && has(client, SOL_SOCKET, SO_KEEPALIVE),
		"options");
	has_waited(client2, server, "TCP connection that waited");
	check(reads(udp, PATTERN, 5), "UDP");
	check(call(SYS_getsockname, netlink, (long)&now, (long)&length, 0) == 0 &&
			now.nl_pid == netlink_name.nl_pid,
		"netlink");
}

const struct part part_network = {set_up_network, look_network};
