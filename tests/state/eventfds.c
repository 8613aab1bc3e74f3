// SPDX-License-Identifier: GPL-2.0-or-later
/* eventfd, signalfd and timerfd: counters, masks, ticks, and what time remains. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "tests/state/state.h"

static void arm(int fd, int flags, double first, double every)
{
	struct itimerspec t = {.it_value = {(time_t)first, (long)((first - (long)first) * 1e9)},
		.it_interval = {(time_t)every, (long)((every - (long)every) * 1e9)}};

	STATE_CHECK(timerfd_settime(fd, flags, &t, NULL) == 0);
}

static double left(int fd)
{
	struct itimerspec t;

	STATE_CHECK(timerfd_gettime(fd, &t) == 0);
	return (double)t.it_value.tv_sec + (double)t.it_value.tv_nsec / 1e9;
}

/* The CPU that has the timer may come to it later than others to theirs. */
static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	STATE_CHECK(poll(&p, 1, -1) == 1);
}

int main(int argc, char **argv)
{
	int counter, semaphore, nothing, signals, distant, idle, fired, periodic, wall, waits;
	struct signalfd_siginfo info;
	struct itimerspec t;
	struct timespec now;
	uint64_t v = 7;
	double end;
	sigset_t set;

	counter = eventfd(3, EFD_NONBLOCK);
	STATE_CHECK(write(counter, &v, sizeof(v)) == sizeof(v));
	semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
	nothing = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 3);
	STATE_CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	signals = signalfd(-1, &set, SFD_NONBLOCK);
	STATE_CHECK(signals >= 0 && raise(SIGUSR1) == 0);

	distant = timerfd_create(CLOCK_MONOTONIC, 0);
	arm(distant, 0, 1000, 5);
	idle = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
	fired = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	arm(fired, 0, 0.001, 0);
	periodic = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	arm(periodic, 0, 0.01, 0.01);
	wall = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
	clock_gettime(CLOCK_REALTIME, &now);
	end = (double)now.tv_sec + 2000;
	arm(wall, TFD_TIMER_ABSTIME, end, 0);
	waits = timerfd_create(CLOCK_MONOTONIC, 0);
	await(fired);
	await(periodic);
	state_nap();
	state_nap();
	state_nap();

	state_ready(argc, argv);

	STATE_CHECK(read(counter, &v, sizeof(v)) == sizeof(v) && v == 10);
	STATE_CHECK(read(counter, &v, sizeof(v)) == -1 && errno == EAGAIN);
	STATE_CHECK(read(semaphore, &v, sizeof(v)) == sizeof(v) && v == 1);
	STATE_CHECK(read(semaphore, &v, sizeof(v)) == sizeof(v) && v == 1);
	STATE_CHECK(read(semaphore, &v, sizeof(v)) == -1 && errno == EAGAIN);
	STATE_CHECK(read(nothing, &v, sizeof(v)) == -1 && errno == EAGAIN);
	STATE_CHECK(fcntl(nothing, F_GETFD) == FD_CLOEXEC);

	STATE_CHECK(read(signals, &info, sizeof(info)) == sizeof(info));
	STATE_CHECK(info.ssi_signo == SIGUSR1 && (pid_t)info.ssi_pid == getpid());
	STATE_CHECK(raise(SIGRTMIN + 3) == 0 && read(signals, &info, sizeof(info)) == sizeof(info));
	STATE_CHECK((int)info.ssi_signo == SIGRTMIN + 3);

	STATE_CHECK(left(distant) > 900 && left(distant) < 1000);
	STATE_CHECK(timerfd_gettime(distant, &t) == 0 && t.it_interval.tv_sec == 5);
	STATE_CHECK(left(idle) == 0 && read(idle, &v, sizeof(v)) == -1 && errno == EAGAIN);
	STATE_CHECK(left(fired) == 0 && read(fired, &v, sizeof(v)) == sizeof(v) && v == 1);
	STATE_CHECK(read(periodic, &v, sizeof(v)) == sizeof(v) && v >= 2 && v < 60000);
	await(periodic);
	STATE_CHECK(read(periodic, &v, sizeof(v)) == sizeof(v) && v >= 1);
	/* A point in wall time stays that point, however long the way was. */
	clock_gettime(CLOCK_REALTIME, &now);
	STATE_CHECK(left(wall) > end - (double)now.tv_sec - 60 &&
		    left(wall) <= end - (double)now.tv_sec);
	arm(waits, 0, 0.005, 0);
	STATE_CHECK(read(waits, &v, sizeof(v)) == sizeof(v) && v == 1);
	return state_ok();
}
