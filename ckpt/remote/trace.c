// SPDX-License-Identifier: GPL-2.0-or-later
/* Thin layers over ptrace(2) and waitpid(2) that know the ways in which tasks vanish. */
#include "ckpt/remote/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"

#define FIRST_NAP_NS (1000 * 1000L)
#define LAST_NAP_NS  (50 * 1000 * 1000L)

#define SECCOMP_MODE_DEAD 3 /* kernel/seccomp.c, since Linux 5.16; seen in /proc/PID/status */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* asm-generic/siginfo.h; libc's headers have it only in newer versions */
#endif
#define PEEKED 32

int trace_get_mask(pid_t tid, uint64_t *ret)
{
	return ptrace(PTRACE_GETSIGMASK, tid, sizeof(*ret), ret) < 0 ? -errno : 0;
}

int trace_set_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask) < 0 ? -errno : 0;
}

/* The kernel looks for the number among our own tracees only. */
void trace_kill(pid_t tid)
{
	ptrace(PTRACE_KILL, tid, 0, 0);
}

bool trace_gone(int proc_fd, pid_t tid)
{
	char path[32], text[512];
	_cleanup_close_ int fd = -1;
	const char *state;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", tid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	n = io_read_full(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n == -ESRCH;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}

/* Is there a SIGSYS in its queue as seccomp sends them, or perhaps behind so many others? */
static bool has_seccomp_signal(pid_t tid)
{
	struct __ptrace_peeksiginfo_args args = {.nr = PEEKED};
	siginfo_t queue[PEEKED];
	long n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, queue);

	for (long i = 0; i < n; i++)
		if (queue[i].si_signo == SIGSYS && queue[i].si_code == SYS_SECCOMP)
			return true;
	return n == PEEKED;
}

bool trace_doomed(int proc_fd, pid_t tid)
{
	struct proc_status s;

	return has_seccomp_signal(tid) && proc_read_status(proc_fd, tid, &s, NULL) == 0 &&
	       s.seccomp == SECCOMP_MODE_DEAD;
}

/* SIGCHLD is blocked around the wait, so that one which comes between the look and the nap is
 * kept for the nap. */
static int wait_with_chld_blocked(int proc_fd, pid_t tid, uint64_t deadline_ns,
	const sigset_t *chld, int *ret_status)
{
	struct timespec nap = {.tv_nsec = FIRST_NAP_NS};
	int status;

	for (;;) {
		pid_t r = waitpid(tid, &status, __WALL | WNOHANG);

		if (r == tid && WIFSTOPPED(status)) {
			*ret_status = status;
			return 0;
		}
		if (r == tid || (r < 0 && errno != EINTR))
			return -ESRCH;
		if (io_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		if (sigtimedwait(chld, NULL, &nap) >= 0 || errno != EAGAIN)
			continue;
		if (trace_gone(proc_fd, tid)) {
			waitpid(tid, NULL, __WALL | WNOHANG);
			return -ESRCH;
		}
		nap.tv_nsec = MIN(nap.tv_nsec * 2, LAST_NAP_NS);
	}
}

int trace_wait(int proc_fd, pid_t tid, uint64_t deadline_ns, int *ret_status)
{
	sigset_t chld, old;
	int r;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	r = wait_with_chld_blocked(proc_fd, tid, deadline_ns, &chld, ret_status);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}
