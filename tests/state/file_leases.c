// SPDX-License-Identifier: GPL-2.0-or-later
/* Leases: to read and to write, with the signal that tells of their end, on a file that is gone; one somebody waits for. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static volatile sig_atomic_t told, told_fd = -1;

static void on_break(int sig, siginfo_t *info, void *ctx)
{
	told = sig;
	told_fd = info->si_fd;
}

static void await(int sig, int fd)
{
	while (told != sig)
		state_nap();
	STATE_CHECK(told_fd == fd);
	told = 0;
}

/* Opens @path in a child, who waits until the lease has been given up. */
static pid_t opener(const char *path, int flags)
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(open(path, flags) >= 0 ? 0 : 1);
	}
	return pid;
}

static int make(char *path, int flags)
{
	int fd = mkstemp(path), again;

	STATE_CHECK(fd >= 0);
	again = open(path, flags | O_CLOEXEC);
	close(fd);
	STATE_CHECK(again >= 0);
	return again;
}

int main(int argc, char **argv)
{
	char r[] = "/tmp/lease-r-XXXXXX", w[] = "/tmp/lease-w-XXXXXX", g[] = "/tmp/lease-g-XXXXXX";
	struct sigaction sa = {.sa_sigaction = on_break, .sa_flags = SA_SIGINFO | SA_RESTART};
	int reads = make(r, O_RDONLY), writes = make(w, O_RDWR), gone = make(g, O_RDONLY), status;
	pid_t pid;

	sigaction(SIGRTMIN + 1, &sa, NULL);
	sigaction(SIGRTMIN + 2, &sa, NULL);
	STATE_CHECK(fcntl(reads, F_SETSIG, SIGRTMIN + 1) == 0);
	STATE_CHECK(fcntl(reads, F_SETLEASE, F_RDLCK) == 0);
	STATE_CHECK(fcntl(writes, F_SETSIG, SIGRTMIN + 2) == 0);
	STATE_CHECK(fcntl(writes, F_SETLEASE, F_WRLCK) == 0);
	STATE_CHECK(fcntl(gone, F_SETLEASE, F_RDLCK) == 0 && unlink(g) == 0);

	state_ready(argc, argv);

	STATE_CHECK(fcntl(reads, F_GETLEASE) == F_RDLCK && fcntl(writes, F_GETLEASE) == F_WRLCK);
	STATE_CHECK(fcntl(gone, F_GETLEASE) == F_RDLCK && told == 0);
	STATE_CHECK(open(r, O_WRONLY | O_NONBLOCK) == -1 && errno == EWOULDBLOCK);
	await(SIGRTMIN + 1, reads);
	STATE_CHECK(fcntl(reads, F_SETLEASE, F_UNLCK) == 0);
	pid = opener(w, O_RDONLY);
	await(SIGRTMIN + 2, writes);
	STATE_CHECK(waitpid(pid, &status, WNOHANG) == 0);
	STATE_CHECK(fcntl(writes, F_SETLEASE, F_UNLCK) == 0);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	STATE_CHECK(unlink(r) == 0 && unlink(w) == 0);
	return state_ok();
}
