// SPDX-License-Identifier: GPL-2.0-or-later
/* Interval and POSIX timers: ids, owners, and what was left of them. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "tests/state/state.h"

static double left(timer_t t)
{
	struct itimerspec v;

	STATE_CHECK(timer_gettime(t, &v) == 0);
	return (double)v.it_value.tv_sec + (double)v.it_value.tv_nsec / 1e9;
}

static int make(int clock, int sig, int tid)
{
	struct sigevent sev = {.sigev_signo = sig, .sigev_notify = SIGEV_SIGNAL};
	int id = -1;

	if (tid) {
		sev.sigev_notify = SIGEV_THREAD_ID;
		sev._sigev_un._tid = tid;
	}
	sev.sigev_value.sival_int = 77;
	STATE_CHECK(syscall(SYS_timer_create, clock, &sev, &id) == 0);
	return id;
}

static void set(int id, long seconds, long interval)
{
	struct itimerspec v = {{interval, 0}, {seconds, 0}};

	STATE_CHECK(syscall(SYS_timer_settime, id, 0, &v, NULL) == 0);
}

static double raw_left(int id)
{
	struct itimerspec v;

	STATE_CHECK(syscall(SYS_timer_gettime, id, &v) == 0);
	return (double)v.it_value.tv_sec + (double)v.it_value.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct itimerval real = {{5, 0}, {1000, 0}}, prof = {{0, 0}, {500, 0}}, v;
	struct timespec patience = {60, 0};
	int a, gap, b, c;
	sigset_t mask;
	siginfo_t si;
	timer_t lib;
	double l;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	setitimer(ITIMER_REAL, &real, NULL);
	setitimer(ITIMER_PROF, &prof, NULL);
	a = make(CLOCK_MONOTONIC, SIGUSR1, 0);
	gap = make(CLOCK_REALTIME, SIGUSR1, 0);
	b = make(CLOCK_REALTIME, SIGUSR2, (int)syscall(SYS_gettid));
	syscall(SYS_timer_delete, gap);
	c = make(CLOCK_PROCESS_CPUTIME_ID, SIGUSR1, 0);
	STATE_CHECK(timer_create(CLOCK_BOOTTIME, NULL, &lib) == 0);
	set(a, 900, 7);
	set(c, 50, 0);
	state_ready(argc, argv);

	STATE_CHECK(getitimer(ITIMER_REAL, &v) == 0 && v.it_value.tv_sec > 800 &&
		    v.it_value.tv_sec < 1000 && v.it_interval.tv_sec == 5);
	STATE_CHECK(getitimer(ITIMER_PROF, &v) == 0 && v.it_value.tv_sec > 400 &&
		    v.it_value.tv_sec <= 500);
	STATE_CHECK(getitimer(ITIMER_VIRTUAL, &v) == 0 && !v.it_value.tv_sec &&
		    !v.it_value.tv_usec);
	l = raw_left(a);
	STATE_CHECK(l > 700 && l < 900);
	STATE_CHECK(raw_left(b) == 0);
	l = raw_left(c);
	STATE_CHECK(l > 30 && l <= 50);
	STATE_CHECK(left(lib) == 0);
	STATE_CHECK(syscall(SYS_timer_delete, gap) < 0 && errno == EINVAL);
	set(b, 0, 0);
	syscall(SYS_timer_settime, b, 0,
		&(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
	STATE_CHECK(sigtimedwait(&mask, &si, &patience) == SIGUSR2);
	STATE_CHECK(si.si_code == SI_TIMER && si.si_value.sival_int == 77);
	return state_ok();
}
