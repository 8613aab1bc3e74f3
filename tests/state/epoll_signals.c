// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * epoll on a signalfd: what waits in it is woken by signals of the process that added it, whoever
 * else may hold the two.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void add(int ep, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	STATE_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0);
}

static int make_signalfd(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	STATE_CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	STATE_CHECK(fd >= 0);
	return fd;
}

static struct epoll_event one(int ep)
{
	struct epoll_event ev;
	int n;

	do
		n = epoll_wait(ep, &ev, 1, -1);
	while (n < 0 && errno == EINTR);
	STATE_CHECK(n == 1);
	return ev;
}

static void take(int fd)
{
	struct signalfd_siginfo info;

	STATE_CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGURG);
}

/* Like a database's latch: sleeps until somebody sends the signal, again and again. */
static int sleeper(int inherited)
{
	int signals = make_signalfd(), ep = epoll_create1(EPOLL_CLOEXEC);

	add(ep, signals, EPOLLIN, 7);
	for (int i = 0; i < 3; i++) {
		STATE_CHECK(one(ep).data.u64 == 7);
		take(signals);
		STATE_CHECK(write(inherited, "x", 1) == 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int signals = make_signalfd(), ep = epoll_create1(0), once = epoll_create1(0), told[2];
	struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 9};
	pid_t child;
	int status;
	char c;

	add(ep, signals, EPOLLIN | EPOLLET, 5);
	add(once, signals, EPOLLIN | EPOLLONESHOT, 8);
	STATE_CHECK(raise(SIGURG) == 0 && one(once).data.u64 == 8 && one(ep).data.u64 == 5);
	take(signals);
	STATE_CHECK(pipe(told) == 0);
	child = fork();
	if (child == 0)
		_exit(sleeper(told[1]));
	STATE_CHECK(kill(child, SIGURG) == 0 && read(told[0], &c, 1) == 1);

	state_ready(argc, argv);

	alarm(30); /* a wake-up that is lost is the end of the test */
	for (int i = 0; i < 2; i++)
		STATE_CHECK(kill(child, SIGURG) == 0 && read(told[0], &c, 1) == 1);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);

	/* Our own: an edge, and a one-shot that has fired and is armed again. */
	STATE_CHECK(epoll_ctl(once, EPOLL_CTL_MOD, signals, &again) == 0);
	child = fork();
	if (child == 0) {
		state_nap();
		_exit(kill(getppid(), SIGURG));
	}
	STATE_CHECK(one(ep).data.u64 == 5);
	STATE_CHECK(one(once).data.u64 == 9);
	take(signals);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	return state_ok();
}
