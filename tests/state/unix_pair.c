// SPDX-License-Identifier: GPL-2.0-or-later
/* Socketpairs: bytes and packets in both directions, half-closed, closed, reset; who made them. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void expect(int fd, const char *s)
{
	char buf[64];
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	STATE_CHECK(n == (ssize_t)strlen(s) && !memcmp(buf, s, strlen(s)));
}

static void expect_nothing(int fd)
{
	char c;

	STATE_CHECK(recv(fd, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static ssize_t receive(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT);
}

static pid_t peer_pid(int fd)
{
	struct ucred c;
	socklen_t len = sizeof(c);

	STATE_CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) == 0);
	return c.pid;
}

static pid_t pair_of_the_dead(int sv[2])
{
	int carrier[2], status;
	pid_t pid;
	char byte = 0, space[CMSG_SPACE(8)] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space)};
	struct cmsghdr *c;

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, carrier) == 0);
	pid = fork();
	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(8);
		memcpy(CMSG_DATA(c), sv, 8);
		STATE_CHECK(sendmsg(carrier[1], &msg, 0) == 1);
		_exit(0);
	}
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	STATE_CHECK(recvmsg(carrier[0], &msg, 0) == 1);
	c = CMSG_FIRSTHDR(&msg);
	STATE_CHECK(c && c->cmsg_type == SCM_RIGHTS);
	memcpy(sv, CMSG_DATA(c), 8);
	close(carrier[0]);
	close(carrier[1]);
	return pid;
}

int main(int argc, char **argv)
{
	int both[2], half[2], closed[2], reset[2], packets[2], datagrams[2], dead[2];
	int size = 30000, got;
	socklen_t len = sizeof(got);
	struct pollfd p;
	pid_t creator = pair_of_the_dead(dead);
	char c;

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both) == 0);
	STATE_CHECK(write(both[0], "there", 5) == 5 && write(both[1], "back", 4) == 4);
	STATE_CHECK(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, half) == 0);
	STATE_CHECK(write(half[0], "last words", 10) == 10 && shutdown(half[0], SHUT_WR) == 0);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, closed) == 0);
	STATE_CHECK(write(closed[0], "left", 4) == 4 && close(closed[0]) == 0);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, reset) == 0);
	STATE_CHECK(write(reset[1], "unread", 6) == 6 && close(reset[0]) == 0);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets) == 0);
	STATE_CHECK(send(packets[0], "one", 3, 0) == 3 && send(packets[0], "", 0, 0) == 0 &&
		    send(packets[0], "three", 5, 0) == 5);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0);
	STATE_CHECK(send(datagrams[1], "a", 1, 0) == 1 && send(datagrams[1], "bc", 2, 0) == 2 &&
		    send(datagrams[0], "xyz", 3, 0) == 3);

	state_ready(argc, argv);

	STATE_CHECK(fcntl(both[0], F_GETFL) & O_NONBLOCK);
	STATE_CHECK(getsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &got, &len) == 0 && got == 60000);
	STATE_CHECK(peer_pid(both[0]) == getpid() && peer_pid(both[1]) == getpid());
	expect(both[1], "there");
	expect(both[0], "back");
	expect_nothing(both[0]);
	STATE_CHECK(write(both[0], "more", 4) == 4);
	expect(both[1], "more");

	expect(half[1], "last words");
	STATE_CHECK(receive(half[1]) == 0);
	STATE_CHECK(send(half[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	STATE_CHECK(write(half[1], "reply", 5) == 5);
	expect(half[0], "reply");

	expect(closed[1], "left");
	STATE_CHECK(receive(closed[1]) == 0);
	STATE_CHECK(send(closed[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);

	p = (struct pollfd){.fd = reset[1], .events = POLLIN};
	STATE_CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLERR));
	STATE_CHECK(recv(reset[1], &c, 1, MSG_DONTWAIT) == -1 && errno == ECONNRESET);
	STATE_CHECK(receive(reset[1]) == 0);

	expect(packets[1], "one");
	STATE_CHECK(receive(packets[1]) == 0); /* an empty packet */
	expect(packets[1], "three");
	expect_nothing(packets[1]);

	expect(datagrams[0], "a");
	expect(datagrams[0], "bc");
	expect(datagrams[1], "xyz");
	STATE_CHECK(send(datagrams[1], "on", 2, 0) == 2);
	expect(datagrams[0], "on");

	STATE_CHECK(peer_pid(dead[0]) == creator && peer_pid(dead[1]) == creator);
	STATE_CHECK(write(dead[0], "alive", 5) == 5);
	expect(dead[1], "alive");
	return state_ok();
}
