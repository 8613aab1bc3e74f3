// SPDX-License-Identifier: GPL-2.0-or-later
/* An interval timer whose signal is pending just then goes on ticking when that is taken. */
#include <signal.h>
#include <sys/time.h>

#include "tests/state/state.h"

static volatile int ticks;

static void tick(int sig)
{
	ticks++;
}

int main(int argc, char **argv)
{
	struct itimerval v = {{0, 20000}, {0, 20000}};
	sigset_t set, pending;

	signal(SIGALRM, tick);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &v, NULL);
	do {
		state_nap();
		sigpending(&pending);
	} while (!sigismember(&pending, SIGALRM));
	state_ready(argc, argv);
	STATE_CHECK(ticks == 0);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	while (ticks < 4)
		state_nap();
	return state_ok();
}
