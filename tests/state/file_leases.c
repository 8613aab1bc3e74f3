// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leases: to read and to write, with the signal that tells of their end, on a file that is gone;
 * one somebody waits for; by descriptors that can't read, or not into any memory; of a memory file.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
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

enum { SMALL, ONLY, DIRECT, GONE, MEMORY, N_MORE };

static int more[N_MORE];
static char names[N_MORE][32];

/* More of it than is in the entry of a small file, and no multiple of a block. */
static void put_text(int fd, size_t n)
{
	char text[5000];

	memset(text, 'L', sizeof(text));
	STATE_CHECK(write(fd, text, n) == (ssize_t)n);
}

static int make_full(char *path, int flags, size_t n)
{
	int fd, again;

	strcpy(path, "/tmp/lease-m-XXXXXX");
	fd = mkstemp(path);
	STATE_CHECK(fd >= 0);
	put_text(fd, n);
	close(fd);
	again = open(path, flags | O_CLOEXEC);
	/* Not every file system has it. */
	if (again < 0 && errno == EINVAL)
		again = open(path, (flags & ~O_DIRECT) | O_CLOEXEC);
	STATE_CHECK(again >= 0);
	return again;
}

/* The kernel does not count the descriptor of memfd_create as one that writes. */
static int make_memory(void)
{
	int first = memfd_create("leased", MFD_CLOEXEC), again;
	char path[32];

	STATE_CHECK(first >= 0);
	put_text(first, 5000);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", first);
	again = open(path, O_RDWR | O_CLOEXEC);
	STATE_CHECK(again >= 0 && close(first) == 0);
	return again;
}

static void make_more(void)
{
	more[SMALL] = make_full(names[SMALL], O_WRONLY, 100);
	more[ONLY] = make_full(names[ONLY], O_WRONLY, 5000);
	more[DIRECT] = make_full(names[DIRECT], O_RDWR | O_DIRECT, 5000);
	more[GONE] = make_full(names[GONE], O_WRONLY, 5000);
	STATE_CHECK(unlink(names[GONE]) == 0);
	more[MEMORY] = make_memory();
	for (int i = 0; i < N_MORE; i++) {
		STATE_CHECK(fcntl(more[i], F_SETSIG, SIGRTMIN + 1) == 0);
		STATE_CHECK(fcntl(more[i], F_SETLEASE, F_WRLCK) == 0);
		if (!*names[i] || i == GONE)
			snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", more[i]);
	}
}

/* Each is told of the end of its lease, and then all is there. */
static void check_more(void)
{
	for (int i = 0; i < N_MORE; i++) {
		char text[5001];
		ssize_t size = i == SMALL ? 100 : 5000;
		int fd;

		STATE_CHECK(fcntl(more[i], F_GETLEASE) == F_WRLCK);
		STATE_CHECK(open(names[i], O_RDONLY | O_NONBLOCK) == -1 && errno == EWOULDBLOCK);
		await(SIGRTMIN + 1, more[i]);
		STATE_CHECK(fcntl(more[i], F_SETLEASE, F_UNLCK) == 0);
		fd = open(names[i], O_RDONLY);
		STATE_CHECK(fd >= 0 && read(fd, text, sizeof(text)) == size);
		for (ssize_t k = 0; k < size; k++)
			STATE_CHECK(text[k] == 'L');
		if (i < GONE)
			STATE_CHECK(unlink(names[i]) == 0);
	}
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
	make_more();

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
	check_more();
	STATE_CHECK(unlink(r) == 0 && unlink(w) == 0);
	return state_ok();
}
