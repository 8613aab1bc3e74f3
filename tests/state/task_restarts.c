// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits that have been interrupted once before, by SIGSTOP and SIGCONT here, go on and don't end
 * with EINTR.  The kernel then tells another call's number (restart_syscall), and these are all
 * made by syscall(2), whose code doesn't tell which one it was either, as glibc 2.41 does it for
 * what may be cancelled.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define HOURS_MS (3600 * 1000)
#define N(a)	 (sizeof(a) / sizeof((a)[0]))
#define WOKEN	 42 /* exit code of who was woken, and not interrupted */
#define NEVER	 -2

/* As the kernel's call of this number has it, here where time_t may be of 64 bits for 32. */
struct duration {
	long sec, nsec;
};

struct wide {
	int64_t sec, nsec;
};

static const struct duration hours = {3600, 0};
static struct duration rest;
static uint32_t *words; /* one of each child */

static long polls(int fd, uint32_t *word)
{
	struct pollfd p = {fd, POLLIN, 0};

	return syscall(SYS_poll, &p, 1, HOURS_MS);
}

static long polls_for_ever(int fd, uint32_t *word)
{
	struct pollfd p = {fd, POLLIN, 0};

	return syscall(SYS_poll, &p, 1, -1);
}

static long polls_nothing(int fd, uint32_t *word)
{
	return syscall(SYS_poll, NULL, 0, HOURS_MS);
}

static long sleeps(int fd, uint32_t *word)
{
	return syscall(SYS_nanosleep, &hours, NULL);
}

static long sleeps_and_asks(int fd, uint32_t *word)
{
	return syscall(SYS_nanosleep, &hours, &rest);
}

static long sleeps_by_clock(int fd, uint32_t *word)
{
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &hours, &rest);
}

static long waits(int fd, uint32_t *word)
{
	return syscall(SYS_futex, word, FUTEX_WAIT, 0, &hours, NULL, 0);
}

static long waits_until(int fd, uint32_t *word)
{
	struct timespec now;
	struct duration then;

	clock_gettime(CLOCK_MONOTONIC, &now);
	then = (struct duration){(long)now.tv_sec + 3600, 0};
	return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 0, &then, NULL, FUTEX_BITSET_MATCH_ANY);
}

#ifdef __i386__
static const struct wide long_hours = {3600, 0};

static long sleeps_wide(int fd, uint32_t *word)
{
	return syscall(SYS_clock_nanosleep_time64, CLOCK_MONOTONIC, 0, &long_hours, NULL);
}

static long waits_wide(int fd, uint32_t *word)
{
	return syscall(SYS_futex_time64, word, FUTEX_WAIT, 0, &long_hours, NULL, 0);
}
#endif

static struct {
	const char *name;
	long (*wait)(int fd, uint32_t *word);
	long result; /* when it is woken; NEVER: nothing does */
	pid_t pid;
	int fd;
} children[] = {
	{"poll", polls, 1},
	{"poll for ever", polls_for_ever, 1},
	{"poll of nothing", polls_nothing, NEVER},
	{"nanosleep", sleeps, NEVER},
	{"nanosleep and the rest", sleeps_and_asks, NEVER},
	{"clock_nanosleep", sleeps_by_clock, NEVER},
	{"futex", waits, 0},
	{"futex until", waits_until, 0},
#ifdef __i386__
	{"clock_nanosleep of 64 bits", sleeps_wide, NEVER},
	{"futex of 64 bits", waits_wide, 0},
#endif
};

static void start(size_t i)
{
	int fds[2];

	STATE_CHECK(pipe(fds) == 0);
	children[i].pid = fork();
	if (children[i].pid == 0) {
		close(fds[1]);
		_exit(children[i].wait(fds[0], &words[i]) == children[i].result ? WOKEN : 1);
	}
	close(fds[0]);
	children[i].fd = fds[1];
}

/* Long enough for a child to begin its wait, or to go on with it: not to be told by /proc, which is
 * the host's in some sessions. */
static void let_it_sleep(void)
{
	for (int i = 0; i < 20; i++)
		state_nap();
}

static void interrupt(size_t i)
{
	int status;

	STATE_CHECK(kill(children[i].pid, SIGSTOP) == 0);
	STATE_CHECK(waitpid(children[i].pid, &status, WUNTRACED) == children[i].pid);
	STATE_CHECK(kill(children[i].pid, SIGCONT) == 0);
}

static void check(size_t i)
{
	int status = 0, expected = WOKEN << 8;
	pid_t ended = waitpid(children[i].pid, &status, WNOHANG);

	if (ended != 0) {
		printf("FAIL: %s ended with status %#x\n", children[i].name, status);
		fflush(stdout);
		_exit(1);
	}
	if (children[i].result < 0) {
		kill(children[i].pid, SIGKILL);
		expected = SIGKILL;
	} else {
		words[i] = 1;
		syscall(SYS_futex, &words[i], FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		/* who waited for the other has ended */
		STATE_CHECK(write(children[i].fd, "", 1) == 1 || errno == EPIPE);
	}
	STATE_CHECK(waitpid(children[i].pid, &status, 0) == children[i].pid);
	STATE_CHECK(status == expected);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	STATE_CHECK(words != MAP_FAILED);
	for (size_t i = 0; i < N(children); i++)
		start(i);
	let_it_sleep();
	for (size_t i = 0; i < N(children); i++)
		interrupt(i);
	let_it_sleep();
	state_ready(argc, argv);
	/* Who was interrupted would have ended by now. */
	let_it_sleep();
	for (size_t i = 0; i < N(children); i++)
		check(i);
	return state_ok();
}
