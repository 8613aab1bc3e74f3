// SPDX-License-Identifier: GPL-2.0-or-later
/* Record locks of a process and its child, and one that waits. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static int lock(int fd, int type, off_t start, off_t len, int cmd)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

static pid_t holder(int fd, off_t start)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};

	STATE_CHECK(fcntl(fd, F_GETLK, &l) == 0);
	return l.l_type == F_UNLCK ? 0 : l.l_pid;
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/state-lock-XXXXXX";
	int fd = mkstemp(name), ro = open(name, O_RDONLY), p[2], status;
	pid_t child, waiter;
	char c;

	STATE_CHECK(fd >= 0 && ro >= 0 && pipe(p) == 0);
	STATE_CHECK(lock(fd, F_WRLCK, 0, 10, F_SETLK) == 0);
	STATE_CHECK(lock(ro, F_RDLCK, 20, 5, F_SETLK) == 0);
	child = fork();
	STATE_CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		STATE_CHECK(lock(fd, F_WRLCK, 100, 0, F_SETLK) == 0);
		STATE_CHECK(write(p[1], "x", 1) == 1);
		while (holder(fd, 0) == getppid())
			state_nap();
		_exit(holder(fd, 22) ? 0 : 2);
	}
	STATE_CHECK(read(p[0], &c, 1) == 1);
	waiter = fork();
	STATE_CHECK(waiter >= 0);
	if (waiter == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lock(fd, F_WRLCK, 5, 1, F_SETLKW) == 0 ? 0 : 1);
	}

	state_ready(argc, argv);

	STATE_CHECK(holder(fd, 100) == child && holder(fd, 5000) == child);
	STATE_CHECK(lock(fd, F_WRLCK, 100, 1, F_SETLK) == -1 && errno == EAGAIN);
	STATE_CHECK(waitpid(waiter, &status, WNOHANG) == 0);
	STATE_CHECK(lock(fd, F_UNLCK, 0, 10, F_SETLK) == 0);
	STATE_CHECK(waitpid(waiter, &status, 0) == waiter && status == 0);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	STATE_CHECK(holder(fd, 100) == 0);
	STATE_CHECK(unlink(name) == 0);
	return state_ok();
}
