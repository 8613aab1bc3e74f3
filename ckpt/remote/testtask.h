/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * testtask - for unit tests: a child under a filter like that of a session, and its freezing.
 */
#ifndef CKPT_REMOTE_TESTTASK_H
#define CKPT_REMOTE_TESTTASK_H

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/remote/trace.h"

/* What a test of remotes needs: the host's /proc, and where errors go. */
struct fixture {
	int proc;
	struct err e;
};

/* Fails the test, by cmocka, with what @f was told. */
#define ok(f, call)                                            \
	do {                                                   \
		if ((call) < 0)                                \
			fail_msg("%s: %s", #call, (f)->e.msg); \
	} while (0)

/* The sentinel is answered with RET_TRACE, all else is allowed. */
static inline void testtask_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* nr */),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_PODRUN_SENTINEL, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PODRUN_SENTINEL_ARG, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		_exit(99);
}

/* A child that runs @body(@arg) under the filter, which it has when this returns, and exits with
 * what that returns. */
static inline pid_t testtask_start(int (*body)(void *), void *arg)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	if (pipe(ready) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		testtask_filter();
		if (write(ready[1], &byte, 1) != 1)
			_exit(99);
		close(ready[0]);
		close(ready[1]);
		_exit(body(arg));
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	return pid;
}

/* A body: sleeps so long that nothing but a signal or the test ends it. */
static inline int testtask_pause(void *arg)
{
	pause();
	return 1;
}

/* Waits until a task sleeps in a call. */
static inline void testtask_await_sleep(int proc_fd, pid_t tid)
{
	struct proc_status s = {0};
	struct err e;

	do {
		usleep(1000);
		if (proc_read_status(proc_fd, tid, &s, &e) < 0)
			abort();
	} while (s.state != 'S');
}

static inline int testtask_freeze(int proc_fd, pid_t tid)
{
	int status = 0;

	if (ptrace(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) < 0 ||
		ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return -errno;
	if (trace_wait(proc_fd, tid, io_now_ns() + 5000000000ULL, &status) < 0)
		return -ETIMEDOUT;
	return trace_event(status) == PTRACE_EVENT_STOP ? 0 : -EPROTO;
}

/* The exit code of a child of ours, -1 if it was killed. */
static inline int testtask_end(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
