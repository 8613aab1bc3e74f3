// SPDX-License-Identifier: GPL-2.0-or-later
/* Children of clone(2) that end with another signal than SIGCHLD, with none, or with what is no signal. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static volatile sig_atomic_t told;

static void note(int sig)
{
	told++;
}

int main(int argc, char **argv)
{
	static const unsigned long ends_with[] = {0, SIGUSR1, 0x80};
	pid_t pid[3];
	int status;

	signal(SIGUSR1, note);
	for (int i = 0; i < 3; i++) {
		pid[i] = (pid_t)syscall(SYS_clone, ends_with[i], 0UL, 0UL, 0UL, 0UL);
		if (pid[i] == 0)
			for (;;)
				pause();
		STATE_CHECK(pid[i] > 0);
	}
	state_ready(argc, argv);

	STATE_CHECK(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
	for (int i = 0; i < 3; i++) {
		STATE_CHECK(waitpid(pid[i], &status, __WCLONE | WNOHANG) == 0);
		kill(pid[i], SIGKILL);
		while (waitpid(pid[i], &status, __WCLONE) < 0)
			STATE_CHECK(errno == EINTR);
		STATE_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		STATE_CHECK(told == (i >= 1));
	}
	return state_ok();
}
