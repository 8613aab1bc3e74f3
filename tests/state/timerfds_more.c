// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * timerfds that more is asked of: to be told when the wall clock is set, on an alarm clock, armed
 * for a point that is past, read by another process, disarmed after ticks, waited for by a read.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET (1 << 1)
#endif

static void set(int fd, int flags, time_t sec, long nsec, time_t every)
{
	struct itimerspec t = {.it_value = {sec, nsec}, .it_interval = {every, 0}};

	STATE_CHECK(timerfd_settime(fd, flags, &t, NULL) == 0);
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

/* The flags that fdinfo tells. */
static unsigned flags_of(int fd)
{
	char path[64], line[128];
	unsigned flags = ~0u;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	STATE_CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "settime flags: %o", &flags);
	fclose(f);
	return flags;
}

int main(int argc, char **argv)
{
	int told = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	int past = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
	int shared = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
	int off = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int waits = timerfd_create(CLOCK_MONOTONIC, 0), status;
	struct timespec now;
	struct itimerspec t;
	uint64_t v;
	pid_t pid, reader;

	/* As systemd, cron and clocks in panels wait for changes of the time. */
	set(told, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, 4000000000, 0, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	set(past, TFD_TIMER_ABSTIME, now.tv_sec - 10, 0, 0);
	set(shared, 0, 1000000, 0, 60);
	set(off, 0, 0, 1, 0);
	while (!readable(off))
		state_nap();
	set(off, 0, 0, 0, 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!readable(shared))
			state_nap();
		_exit(read(shared, &v, sizeof(v)) == sizeof(v) && v == 1 ? 0 : 1);
	}
	reader = fork();
	if (reader == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(waits, &v, sizeof(v)) == sizeof(v) && v == 1 ? 0 : 1);
	}

	state_ready(argc, argv);

	STATE_CHECK(flags_of(told) == (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET));
	STATE_CHECK(!readable(told) && timerfd_gettime(told, &t) == 0 && t.it_value.tv_sec > 0);
	STATE_CHECK(fcntl(told, F_GETFD) == FD_CLOEXEC && (fcntl(told, F_GETFL) & O_NONBLOCK));
	STATE_CHECK(read(past, &v, sizeof(v)) == sizeof(v) && v == 1);
	STATE_CHECK(timerfd_gettime(shared, &t) == 0 && t.it_interval.tv_sec == 60);
	STATE_CHECK(t.it_value.tv_sec > 900000 && t.it_value.tv_sec <= 1000000);
	set(shared, 0, 0, 1, 0);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	STATE_CHECK(!readable(off) && timerfd_gettime(off, &t) == 0);
	STATE_CHECK(t.it_value.tv_sec == 0 && t.it_value.tv_nsec == 0);
	STATE_CHECK(waitpid(reader, &status, WNOHANG) == 0);
	set(waits, 0, 0, 1, 0);
	STATE_CHECK(waitpid(reader, &status, 0) == reader && status == 0);
	return state_ok();
}
