// SPDX-License-Identifier: GPL-2.0-or-later
/* pidfds of a living process, of oneself, of a zombie, and of one that is gone. */
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

static pid_t start(int dies)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (dies)
			_exit(3);
		for (;;)
			pause();
	}
	STATE_CHECK(pid > 0);
	return pid;
}

int main(int argc, char **argv)
{
	pid_t living = start(0), zombie = start(1), reaped = start(1);
	int alive = pidfd_open(living, 0), dead = pidfd_open(zombie, 0);
	int gone = pidfd_open(reaped, 0), self = pidfd_open(getpid(), 0), status;
	struct pollfd p = {.fd = dead, .events = POLLIN};
	siginfo_t info;

	STATE_CHECK(alive >= 0 && dead >= 0 && gone >= 0 && self >= 0);
	STATE_CHECK(waitpid(reaped, &status, 0) == reaped);
	STATE_CHECK(poll(&p, 1, 5000) == 1);

	state_ready(argc, argv);

	STATE_CHECK(readable(alive) == 0 && readable(self) == 0);
	STATE_CHECK(readable(dead) == 1 && readable(gone) == 1);
	STATE_CHECK(pidfd_send_signal(self, 0, NULL, 0) == 0);
	STATE_CHECK(pidfd_send_signal(gone, 0, NULL, 0) == -1 && errno == ESRCH);
	STATE_CHECK(waitid(P_PIDFD, (id_t)dead, &info, WEXITED) == 0);
	STATE_CHECK(info.si_pid == zombie && info.si_status == 3);
	STATE_CHECK(pidfd_send_signal(alive, SIGTERM, NULL, 0) == 0);
	STATE_CHECK(waitpid(living, &status, 0) == living && WTERMSIG(status) == SIGTERM);
	STATE_CHECK(readable(alive) == 1);
	return state_ok();
}
