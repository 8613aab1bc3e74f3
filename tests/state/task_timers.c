// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interval and POSIX timers: ids, owners, and what was left of them; those of the clocks of other
 * threads and processes, and of a thread that has ended.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

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

static atomic_int works, ends;

static void *work(void *ctx)
{
	while (!works)
		state_nap();
	while (!ends)
		;
	return NULL;
}

static void *end(void *ctx)
{
	clockid_t clock;

	STATE_CHECK(pthread_getcpuclockid(pthread_self(), &clock) == 0);
	*(int *)ctx = make(clock, SIGUSR1, 0);
	set(*(int *)ctx, 50, 0);
	return NULL;
}

struct others {
	pthread_t thread;
	pid_t child;
	int of_thread, of_child, of_ended;
};

static void make_others(struct others *o)
{
	pthread_t ended;
	clockid_t clock;

	STATE_CHECK(pthread_create(&o->thread, NULL, work, NULL) == 0);
	STATE_CHECK(pthread_getcpuclockid(o->thread, &clock) == 0);
	o->of_thread = make(clock, SIGUSR1, 0);
	set(o->of_thread, 50, 0);
	o->child = fork();
	if (o->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	STATE_CHECK(clock_getcpuclockid(o->child, &clock) == 0);
	o->of_child = make(clock, SIGUSR1, 0);
	set(o->of_child, 40, 0);
	STATE_CHECK(pthread_create(&ended, NULL, end, &o->of_ended) == 0);
	STATE_CHECK(pthread_join(ended, NULL) == 0);
}

/* It is that thread's clock and no other's: this one sleeps. */
static void check_others(struct others *o, const sigset_t *mask)
{
	struct timespec patience = {60, 0};
	double l = raw_left(o->of_thread);

	STATE_CHECK(l > 30 && l <= 50);
	l = raw_left(o->of_child);
	STATE_CHECK(l > 30 && l <= 40);
	STATE_CHECK(raw_left(o->of_ended) == 0);
	STATE_CHECK(syscall(SYS_timer_delete, o->of_ended) == 0);
	syscall(SYS_timer_settime, o->of_thread, 0, &(struct itimerspec){{0, 0}, {0, 10000000}},
		NULL);
	works = 1;
	STATE_CHECK(sigtimedwait(mask, NULL, &patience) == SIGUSR1);
	ends = 1;
	STATE_CHECK(pthread_join(o->thread, NULL) == 0);
	kill(o->child, SIGKILL);
	STATE_CHECK(waitpid(o->child, NULL, 0) == o->child);
}

int main(int argc, char **argv)
{
	struct itimerval real = {{5, 0}, {1000, 0}}, prof = {{0, 0}, {500, 0}}, v;
	struct timespec patience = {60, 0};
	int a, gap, b, c;
	sigset_t mask;
	siginfo_t si;
	timer_t lib;
	struct others others;
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
	make_others(&others);
	state_ready(argc, argv);

	STATE_CHECK(getitimer(ITIMER_REAL, &v) == 0 && v.it_value.tv_sec > 800 &&
		    v.it_value.tv_sec < 1000 && v.it_interval.tv_sec == 5);
	STATE_CHECK(getitimer(ITIMER_PROF, &v) == 0 && v.it_value.tv_sec > 400 &&
		    v.it_value.tv_sec <= 500);
	STATE_CHECK(
		getitimer(ITIMER_VIRTUAL, &v) == 0 && !v.it_value.tv_sec && !v.it_value.tv_usec);
	l = raw_left(a);
	STATE_CHECK(l > 700 && l < 900);
	STATE_CHECK(raw_left(b) == 0);
	l = raw_left(c);
	STATE_CHECK(l > 30 && l <= 50);
	STATE_CHECK(left(lib) == 0);
	STATE_CHECK(syscall(SYS_timer_delete, gap) < 0 && errno == EINVAL);
	set(b, 0, 0);
	syscall(SYS_timer_settime, b, 0, &(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
	STATE_CHECK(sigtimedwait(&mask, &si, &patience) == SIGUSR2);
	STATE_CHECK(si.si_code == SI_TIMER && si.si_value.sival_int == 77);
	check_others(&others, &mask);
	return state_ok();
}
