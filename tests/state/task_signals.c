// SPDX-License-Identifier: GPL-2.0-or-later
/* Actions, masks, the alternate stack, and pending signals with all they carry, in order. */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

static char altstack[65536];
static volatile int handled, on_altstack, value;

static void handler(int sig, siginfo_t *si, void *ctx)
{
	char here;

	handled = sig;
	value = si->si_value.sival_int;
	on_altstack = &here >= altstack && &here < altstack + sizeof(altstack);
}

int main(int argc, char **argv)
{
	stack_t ss = {.ss_sp = altstack, .ss_size = sizeof(altstack)}, now;
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
	struct timespec none = {0};
	sigset_t mask, pending;
	siginfo_t si;

	STATE_CHECK(sigaltstack(&ss, NULL) == 0);
	sigaddset(&sa.sa_mask, SIGHUP);
	STATE_CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGRTMIN);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	for (int i = 0; i < 3; i++)
		STATE_CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 100 + i}) == 0);
	kill(getpid(), SIGTERM);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	state_ready(argc, argv);

	sigprocmask(SIG_SETMASK, NULL, &mask);
	STATE_CHECK(sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGRTMIN) &&
		    sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGHUP));
	sigpending(&pending);
	STATE_CHECK(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM) &&
		    sigismember(&pending, SIGRTMIN) && !sigismember(&pending, SIGCHLD));
	for (int i = 0; i < 3; i++) {
		sigset_t one;

		sigemptyset(&one);
		sigaddset(&one, SIGRTMIN);
		STATE_CHECK(sigtimedwait(&one, &si, &none) == SIGRTMIN);
		STATE_CHECK(si.si_code == SI_QUEUE && si.si_pid == getpid() &&
			    si.si_value.sival_int == 100 + i);
	}
	STATE_CHECK(sigtimedwait(&mask, &si, &none) == SIGUSR1 && si.si_code == SI_USER &&
		    si.si_pid == getpid()); /* libc calls SI_TKILL that */
	STATE_CHECK(sigtimedwait(&mask, &si, &none) == SIGTERM && si.si_code == SI_USER &&
		    si.si_pid == getpid());
	STATE_CHECK(sigtimedwait(&mask, &si, &none) < 0 && errno == EAGAIN);
	sigaction(SIGPIPE, NULL, &old);
	STATE_CHECK(old.sa_handler == SIG_IGN);
	sigaction(SIGUSR2, NULL, &old);
	STATE_CHECK(old.sa_sigaction == handler && (old.sa_flags & SA_ONSTACK) &&
		    sigismember(&old.sa_mask, SIGHUP));
	STATE_CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == altstack &&
		    now.ss_size == sizeof(altstack) && !(now.ss_flags & SS_DISABLE));
	sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42});
	STATE_CHECK(handled == SIGUSR2 && on_altstack && value == 42);
	return state_ok();
}
