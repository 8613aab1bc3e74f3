// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits with a timeout end neither early nor late: what was slept before a move counts, what
 * happened in between does not.  Each wait is a process that measures itself.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define SECONDS 4

static int fail_with(int r, int expect, int error)
{
	if (r == expect && (r >= 0 || errno == error))
		return 0;
	printf("returned %d errno %s\n", r, strerror(errno));
	return 1;
}

static const struct timespec length = {SECONDS, 0};

static int wait_nanosleep(void)
{
	return fail_with(nanosleep(&length, NULL), 0, 0);
}

static int wait_nanosleep_left(void)
{
	struct timespec ts = length;

	return fail_with(nanosleep(&ts, &ts), 0, 0);
}

static int wait_absolute(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += SECONDS;
	return fail_with(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0, 0);
}

static int wait_poll(void)
{
	return fail_with(poll(NULL, 0, SECONDS * 1000), 0, 0);
}

static int wait_select(void)
{
	struct timeval tv = {SECONDS, 0};

	return fail_with(select(0, NULL, NULL, NULL, &tv), 0, 0);
}

static int wait_epoll(void)
{
	struct epoll_event ev;

	return fail_with(epoll_wait(epoll_create1(0), &ev, 1, SECONDS * 1000), 0, 0);
}

static int wait_futex(void)
{
	int word = 1;

	return fail_with((int)syscall(SYS_futex, &word, FUTEX_WAIT, 1, &length, NULL, 0), -1,
		ETIMEDOUT);
}

static int wait_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return fail_with(sigtimedwait(&set, NULL, &length), -1, EAGAIN);
}

static const struct {
	const char *name;
	int (*wait)(void);
} waits[] = {
	{"nanosleep", wait_nanosleep},
	{"nanosleep with rest", wait_nanosleep_left},
	{"clock_nanosleep absolute", wait_absolute},
	{"poll", wait_poll},
	{"select", wait_select},
	{"epoll_wait", wait_epoll},
	{"futex", wait_futex},
	{"sigtimedwait", wait_signal},
};

#define N ((int)(sizeof(waits) / sizeof(waits[0])))

static void child(int i)
{
	struct timespec begin, end;
	double took;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (waits[i].wait()) {
		printf("FAIL: %s\n", waits[i].name);
		fflush(stdout);
		_exit(1);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	if (took < SECONDS - 0.05 || took > SECONDS + 1.5) {
		printf("FAIL: %s took %.3f s\n", waits[i].name, took);
		fflush(stdout);
		_exit(1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct timespec second = {1, 0};
	int status, bad = 0;

	for (int i = 0; i < N; i++)
		if (fork() == 0)
			child(i);
	nanosleep(&second, NULL);
	state_ready(argc, argv);
	for (int i = 0; i < N; i++) {
		STATE_CHECK(wait(&status) > 0);
		bad |= status;
	}
	STATE_CHECK(!bad);
	return state_ok();
}
