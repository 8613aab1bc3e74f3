// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits with a timeout end neither early nor late: what was slept before a move counts, what
 * happened in between does not.  Each wait is a process that measures itself.  What late means says
 * the one that waits for a point in time: it is late when the host is busy, or the session is
 * frozen then, and never because a wait has begun anew.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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
	bool anew; /* for its whole time where the session went on (docs/coverage.md) */
} waits[] = {
	{"nanosleep", wait_nanosleep},
	{"nanosleep with rest", wait_nanosleep_left},
	{"clock_nanosleep absolute", wait_absolute},
	{"poll", wait_poll},
	{"select", wait_select},
	{"epoll_wait", wait_epoll, true},
	{"futex", wait_futex},
	{"sigtimedwait", wait_signal, true},
};

#define N ((int)(sizeof(waits) / sizeof(waits[0])))

static struct measured {
	double began, took;
} *all; /* shared */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void child(int i)
{
	all[i].began = now();
	if (waits[i].wait()) {
		printf("FAIL: %s\n", waits[i].name);
		fflush(stdout);
		_exit(1);
	}
	all[i].took = now() - all[i].began;
	_exit(0);
}

/* @moved: when it had been frozen for the last time and went on; 0 if the kernel was asked to
 * continue nothing (argv[2]). */
static void check(double moved)
{
	double least = SECONDS - 0.05, late = 0;
	bool bad = false;

	for (int i = 0; i < N; i++)
		if (waits[i].wait == wait_absolute)
			late = all[i].took - SECONDS + 1.5;
	for (int i = 0; i < N; i++) {
		double most = SECONDS + late;

		if (waits[i].anew && moved > all[i].began)
			most += moved - all[i].began;
		if (all[i].took >= least && all[i].took <= most)
			continue;
		printf("FAIL: %s took %.3f s, not %.3f to %.3f\n", waits[i].name, all[i].took, least,
			most);
		fflush(stdout);
		bad = true;
	}
	STATE_CHECK(!bad);
}

int main(int argc, char **argv)
{
	struct timespec second = {1, 0};
	int status, bad = 0;
	double moved;

	all = mmap(NULL, N * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	STATE_CHECK(all != MAP_FAILED);
	for (int i = 0; i < N; i++)
		if (fork() == 0)
			child(i);
	nanosleep(&second, NULL);
	state_ready(argc, argv);
	moved = argc > 2 ? now() : 0;
	for (int i = 0; i < N; i++) {
		STATE_CHECK(wait(&status) > 0);
		bad |= status;
	}
	STATE_CHECK(!bad);
	check(moved);
	return state_ok();
}
