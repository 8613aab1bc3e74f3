// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A large descriptor table, most of it sockets: close-on-exec, shared open files, flags; and a small
 * one that has some of the same.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define PAIRS 150

static int a[PAIRS], b[PAIRS];

static void make(int i)
{
	int sv[2];

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM | (i % 2 ? SOCK_CLOEXEC : 0), 0, sv) == 0);
	a[i] = sv[0];
	b[i] = sv[1];
	if (i % 3 == 0)
		STATE_CHECK(fcntl(a[i], F_SETFL, O_NONBLOCK) == 0);
	STATE_CHECK(write(a[i], &i, sizeof(i)) == sizeof(i));
}

static void check(int i)
{
	int n = -1;

	STATE_CHECK(fcntl(a[i], F_GETFD) == (i % 2 ? FD_CLOEXEC : 0));
	STATE_CHECK(fcntl(b[i], F_GETFD) == (i % 2 ? FD_CLOEXEC : 0));
	STATE_CHECK(!(fcntl(a[i], F_GETFL) & O_NONBLOCK) == (i % 3 != 0));
	STATE_CHECK(!(fcntl(b[i], F_GETFL) & O_NONBLOCK));
	STATE_CHECK(read(b[i], &n, sizeof(n)) == sizeof(n) && n == i);
}

/* With a few descriptors only: what it reads of the first pair is what the other writes then. */
static int few(int go)
{
	char byte, word[6] = "";

	for (int i = 1; i < PAIRS; i++) {
		close(a[i]);
		close(b[i]);
	}
	STATE_CHECK(read(go, &byte, 1) == 1);
	/* the two have one open file, with one set of flags */
	STATE_CHECK(fcntl(b[0], F_GETFL) & O_NONBLOCK);
	STATE_CHECK(read(b[0], word, 5) == 5 && !strcmp(word, "hello"));
	return 0;
}

int main(int argc, char **argv)
{
	char word[4];
	int go[2], named, twin, status;
	pid_t child;

	for (int i = 0; i < PAIRS; i++)
		make(i);
	STATE_CHECK(pipe2(go, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0)
		_exit(few(go[0]));
	twin = fcntl(a[5], F_DUPFD, 0);
	named = open("/", O_PATH | O_CLOEXEC);
	STATE_CHECK(twin >= 0 && named >= 0);
	state_ready(argc, argv);
	for (int i = 0; i < PAIRS; i++)
		check(i);
	STATE_CHECK(fcntl(twin, F_GETFD) == 0 && fcntl(named, F_GETFD) == FD_CLOEXEC);
	STATE_CHECK(fcntl(named, F_GETFL) & O_PATH);
	STATE_CHECK(fcntl(twin, F_SETFL, O_NONBLOCK) == 0 && fcntl(a[5], F_GETFL) & O_NONBLOCK);
	STATE_CHECK(write(twin, "twin", 4) == 4 && read(b[5], word, 4) == 4);
	STATE_CHECK(fcntl(b[0], F_SETFL, O_NONBLOCK) == 0 && write(a[0], "hello", 5) == 5);
	STATE_CHECK(write(go[1], "x", 1) == 1);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	return state_ok();
}
