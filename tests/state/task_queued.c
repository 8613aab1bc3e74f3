// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signals that wait with what they carry: hundreds of one number, for one thread, from a child, a
 * descriptor, a timer, a fault; flags of actions; threads with alternate stacks of their own, and
 * one that stands on its.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define SA_RESTORER 0x04000000 /* libc's own */
#define MANY	    300
#define STACK	    65536

static const struct timespec none;

static sigset_t only(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

static siginfo_t take(int sig)
{
	sigset_t set = only(sig);
	siginfo_t si;

	STATE_CHECK(sigtimedwait(&set, &si, &none) == sig);
	return si;
}

/* ---- a thread with signals of its own -------------------------------------------------------- */

static char thread_stack[STACK], handler_stack[STACK];
static volatile int thread_ready, go, on_stack, done;
static volatile pid_t tid;

static void *wait_with_signals(void *arg)
{
	stack_t ss = {.ss_sp = thread_stack, .ss_size = STACK}, now;

	STATE_CHECK(sigaltstack(&ss, NULL) == 0);
	tid = (pid_t)syscall(SYS_gettid);
	STATE_CHECK(pthread_sigqueue(pthread_self(), SIGRTMIN + 2,
			    (union sigval){.sival_ptr = (void *)0x1234567890}) == 0);
	STATE_CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR2) == 0);
	thread_ready = 1;
	while (!go)
		state_nap();
	STATE_CHECK(take(SIGRTMIN + 2).si_value.sival_ptr == (void *)0x1234567890);
	STATE_CHECK(take(SIGUSR2).si_pid == getpid());
	STATE_CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == thread_stack);
	return NULL;
}

static void stay(int sig)
{
	stack_t now;
	sigset_t mask;

	on_stack = 1;
	while (!go)
		state_nap();
	STATE_CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == handler_stack);
	STATE_CHECK(now.ss_flags & SS_ONSTACK);
	STATE_CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
	STATE_CHECK(sigismember(&mask, SIGWINCH) && sigismember(&mask, SIGHUP));
	done = 1;
}

/* Is in a handler when it is frozen. */
static void *stand_on_stack(void *arg)
{
	stack_t ss = {.ss_sp = handler_stack, .ss_size = STACK};
	struct sigaction sa = {.sa_handler = stay, .sa_flags = SA_ONSTACK | SA_RESETHAND};
	sigset_t mask = only(SIGWINCH);

	sigaddset(&sa.sa_mask, SIGHUP);
	STATE_CHECK(sigaltstack(&ss, NULL) == 0 && sigaction(SIGWINCH, &sa, NULL) == 0);
	pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
	pthread_kill(pthread_self(), SIGWINCH);
	STATE_CHECK(done);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	STATE_CHECK(!sigismember(&mask, SIGWINCH) && sigismember(&mask, SIGUSR1));
	return NULL;
}

/* ---- what waits for the process -------------------------------------------------------------- */

static pid_t child;
static int p[2];

static void make_queue(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN + 3,
		.sigev_value.sival_int = 99};
	struct itimerspec soon = {.it_value.tv_nsec = 1000};
	sigset_t pending;
	timer_t timer;

	for (int i = 0; i < MANY; i++)
		STATE_CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
	child = fork();
	if (child == 0)
		_exit(5);
	STATE_CHECK(pipe(p) == 0 && fcntl(p[0], F_SETSIG, SIGRTMIN + 1) == 0);
	STATE_CHECK(fcntl(p[0], F_SETOWN, getpid()) == 0 &&
		    fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
	STATE_CHECK(write(p[1], "x", 1) == 1);
	STATE_CHECK(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
	STATE_CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
	do {
		state_nap();
		sigpending(&pending);
	} while (!sigismember(&pending, SIGRTMIN + 3) || !sigismember(&pending, SIGCHLD));
}

static void check_queue(void)
{
	siginfo_t si;
	char c;
	int status;

	for (int i = 0; i < MANY; i++)
		STATE_CHECK(take(SIGRTMIN).si_value.sival_int == i);
	si = take(SIGCHLD);
	STATE_CHECK(si.si_code == CLD_EXITED && si.si_pid == child && si.si_status == 5);
	STATE_CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
	si = take(SIGRTMIN + 1);
	STATE_CHECK(si.si_code == POLL_IN && si.si_fd == p[0]);
	si = take(SIGRTMIN + 3);
	STATE_CHECK(si.si_code == SI_TIMER && si.si_value.sival_int == 99);
	/* It goes on to tell. */
	STATE_CHECK(read(p[0], &c, 1) == 1 && write(p[1], "y", 1) == 1);
	STATE_CHECK(take(SIGRTMIN + 1).si_code == POLL_IN);
}

/* ---- actions --------------------------------------------------------------------------------- */

static const int flags[] = {SA_NOCLDSTOP, SA_NOCLDWAIT, SA_RESETHAND, SA_NODEFER, SA_RESTART};
#define N_FLAGS (int)(sizeof(flags) / sizeof(*flags))

static void nothing(int sig)
{
}

static void set_actions(void)
{
	for (int i = 0; i < N_FLAGS; i++) {
		struct sigaction sa = {.sa_handler = nothing, .sa_flags = flags[i]};

		STATE_CHECK(sigaction(SIGRTMIN + 10 + i, &sa, NULL) == 0);
	}
	signal(SIGTTOU, SIG_IGN);
}

static void check_actions(void)
{
	struct sigaction sa;

	for (int i = 0; i < N_FLAGS; i++) {
		STATE_CHECK(sigaction(SIGRTMIN + 10 + i, NULL, &sa) == 0);
		STATE_CHECK(sa.sa_handler == nothing && (sa.sa_flags & ~SA_RESTORER) == flags[i]);
	}
	STATE_CHECK(sigaction(SIGTTOU, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN);
	STATE_CHECK(sigaction(SIGTTIN, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL);
}

int main(int argc, char **argv)
{
	pthread_t signalled, standing;
	sigset_t all;

	sigfillset(&all);
	STATE_CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
	set_actions();
	STATE_CHECK(pthread_create(&signalled, NULL, wait_with_signals, NULL) == 0);
	STATE_CHECK(pthread_create(&standing, NULL, stand_on_stack, NULL) == 0);
	while (!thread_ready || !on_stack)
		state_nap();
	make_queue();
	state_ready(argc, argv);
	check_actions();
	check_queue();
	go = 1;
	STATE_CHECK(pthread_join(signalled, NULL) == 0 && pthread_join(standing, NULL) == 0);
	return state_ok();
}
