// SPDX-License-Identifier: GPL-2.0-or-later
/* Pipes: bytes in flight, full, packets, ends which nobody holds, a reader that waits. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void expect(int fd, const char *s)
{
	char buf[64];
	ssize_t n = read(fd, buf, sizeof(buf));

	STATE_CHECK(n == (ssize_t)strlen(s) && !memcmp(buf, s, strlen(s)));
}

static int fill(int fd)
{
	static const char bytes[4096] = "x";
	int n = 0;
	ssize_t w;

	while ((w = write(fd, bytes, sizeof(bytes))) > 0)
		n += (int)w;
	STATE_CHECK(errno == EAGAIN);
	return n;
}

static void empty(int fd, int n)
{
	char bytes[4096];
	ssize_t r;

	while (n > 0 && (r = read(fd, bytes, sizeof(bytes))) > 0)
		n -= (int)r;
	STATE_CHECK(n == 0);
}

int main(int argc, char **argv)
{
	int plain[2], full[2], small[2], packets[2], no_writer[2], no_reader[2], waits[2], n,
		status;
	struct pollfd p;
	char c;
	pid_t child;

	signal(SIGPIPE, SIG_IGN);
	STATE_CHECK(pipe(plain) == 0 && write(plain[1], "in flight", 9) == 9);
	STATE_CHECK(pipe2(full, O_NONBLOCK) == 0);
	n = fill(full[1]);
	STATE_CHECK(pipe(small) == 0 && fcntl(small[1], F_SETPIPE_SZ, 4096) == 4096);
	STATE_CHECK(pipe2(packets, O_DIRECT | O_NONBLOCK) == 0);
	STATE_CHECK(write(packets[1], "one", 3) == 3 && write(packets[1], "two2", 4) == 4);
	STATE_CHECK(pipe(no_writer) == 0 && write(no_writer[1], "last", 4) == 4);
	close(no_writer[1]);
	STATE_CHECK(pipe(no_reader) == 0 && close(no_reader[0]) == 0);
	STATE_CHECK(pipe(waits) == 0);
	child = fork();
	if (child == 0) {
		close(waits[1]);
		expect(waits[0], "at last");
		STATE_CHECK(read(waits[0], &c, 1) == 0);
		_exit(0);
	}
	close(waits[0]);

	state_ready(argc, argv);

	expect(plain[0], "in flight");
	STATE_CHECK(write(plain[1], "more", 4) == 4);
	expect(plain[0], "more");
	STATE_CHECK(write(full[1], "x", 1) == -1 && errno == EAGAIN);
	empty(full[0], n);
	STATE_CHECK(read(full[0], &c, 1) == -1 && errno == EAGAIN);
	STATE_CHECK(fcntl(small[0], F_GETPIPE_SZ) == 4096);
	STATE_CHECK(fcntl(packets[1], F_GETFL) & O_DIRECT);
	expect(packets[0], "one");
	expect(packets[0], "two2");
	STATE_CHECK(write(packets[1], "3", 1) == 1 && write(packets[1], "4", 1) == 1);
	expect(packets[0], "3");
	expect(packets[0], "4");
	p = (struct pollfd){.fd = no_writer[0], .events = POLLIN};
	STATE_CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLHUP));
	expect(no_writer[0], "last");
	STATE_CHECK(read(no_writer[0], &c, 1) == 0);
	STATE_CHECK(write(no_reader[1], "x", 1) == -1 && errno == EPIPE);
	STATE_CHECK(write(waits[1], "at last", 7) == 7 && close(waits[1]) == 0);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	return state_ok();
}
