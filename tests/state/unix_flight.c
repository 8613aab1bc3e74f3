// SPDX-License-Identifier: GPL-2.0-or-later
/* Descriptors and credentials in flight, some of which nobody else has. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void send_with(int sock, const char *data, const int *fds, int n)
{
	char space[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {(char *)data, strlen(data)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (n) {
		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	STATE_CHECK(sendmsg(sock, &msg, 0) == (ssize_t)strlen(data));
}

/* Receives @data; returns how many descriptors came along, and whose message it was. */
static int receive_with(int sock, const char *data, int *fds, pid_t *pid)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} u;
	char buf[64];
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = u.space,
		.msg_controllen = sizeof(u.space)};
	struct ucred cred = {0};
	int n = 0;

	STATE_CHECK(recvmsg(sock, &msg, MSG_DONTWAIT) == (ssize_t)strlen(data));
	STATE_CHECK(!memcmp(buf, data, strlen(data)));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_type == SCM_RIGHTS) {
			n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		}
	}
	if (pid)
		*pid = cred.pid;
	return n;
}

int main(int argc, char **argv)
{
	int stream[2], log[2], inner[2], p[2], fds[4], one = 1, status, file;
	char buf[16];
	pid_t dead, pid;

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream) == 0);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, inner) == 0);
	STATE_CHECK(pipe(p) == 0);
	file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	STATE_CHECK(file >= 0 && write(file, "content", 7) == 7);
	STATE_CHECK(write(inner[0], "deep", 4) == 4 && write(p[1], "pipe", 4) == 4);

	STATE_CHECK(write(stream[0], "abc", 3) == 3);
	send_with(stream[0], "def", (int[]){inner[1], p[0]}, 2);
	send_with(stream[0], "ghi", &file, 1);
	STATE_CHECK(write(stream[0], "jkl", 3) == 3);
	/* The stream holds the only ones. */
	close(inner[1]);
	close(p[0]);
	close(file);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, log) == 0);
	STATE_CHECK(setsockopt(log[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) == 0);
	STATE_CHECK(send(log[0], "parent", 6, 0) == 6);
	dead = fork();
	STATE_CHECK(dead >= 0);
	if (dead == 0)
		_exit(send(log[0], "child", 5, 0) == 5 ? 0 : 1);
	STATE_CHECK(waitpid(dead, &status, 0) == dead && status == 0);

	state_ready(argc, argv);

	STATE_CHECK(receive_with(stream[1], "abcdef", fds, NULL) == 2);
	inner[1] = fds[0];
	p[0] = fds[1];
	STATE_CHECK(receive_with(stream[1], "ghi", fds, NULL) == 1);
	file = fds[0];
	STATE_CHECK(receive_with(stream[1], "jkl", fds, NULL) == 0);
	STATE_CHECK(read(inner[1], buf, sizeof(buf)) == 4 && !memcmp(buf, "deep", 4));
	STATE_CHECK(write(inner[1], "up", 2) == 2 && read(inner[0], buf, sizeof(buf)) == 2);
	STATE_CHECK(read(p[0], buf, sizeof(buf)) == 4 && !memcmp(buf, "pipe", 4));
	STATE_CHECK(pread(file, buf, sizeof(buf), 0) == 7 && !memcmp(buf, "content", 7));

	STATE_CHECK(receive_with(log[1], "parent", fds, &pid) == 0 && pid == getpid());
	STATE_CHECK(receive_with(log[1], "child", fds, &pid) == 0 && pid == dead);
	return state_ok();
}
