/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace - waiting for traced tasks, and reading what their stops mean.  ptrace(2).
 */
#ifndef CKPT_REMOTE_TRACE_H
#define CKPT_REMOTE_TRACE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>

/* What every task is seized with.  Children of an injected clone are then ours from birth. */
#define TRACE_OPTIONS                                                                              \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |                     \
		PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

/* The event of a stop's wait status (PTRACE_EVENT_*), 0 for signal and system call stops. */
static inline int trace_event(int status)
{
	return status >> 16;
}

/* 64 bits of signal mask: the kernel's sigset_t, which libc's is not. */
int trace_get_mask(pid_t tid, uint64_t *ret);
int trace_set_mask(pid_t tid, uint64_t mask);

/*
 * Waits until @tid stops (0, *ret_status as wait(2)) or ends (-ESRCH, reaped if it could be), but
 * not past @deadline_ns of io_now_ns (-ETIMEDOUT).
 *
 * The leader of a thread group can't be waited for while its other threads are zombies which
 * only we can reap; so a wait that takes long looks at @proc_fd whether the task is still alive.
 */
int trace_wait(int proc_fd, pid_t tid, uint64_t deadline_ns, int *ret_status);

/*
 * SIGKILL to a task that the calling thread traces.  Its number may be another's by now: then
 * nothing happens.
 */
void trace_kill(pid_t tid);

/* True if @tid has ended, even if nobody has reaped it. */
bool trace_gone(int proc_fd, pid_t tid);

/*
 * True if @tid, in a stop, has made a call for which a seccomp filter kills it
 * (SECCOMP_RET_KILL_*): the kernel has marked it (SECCOMP_MODE_DEAD of kernel/seccomp.c), a forced
 * SIGSYS is pending, and any call that is made in it is its end.  Nothing but that end can come: it
 * is let run.
 */
bool trace_doomed(int proc_fd, pid_t tid);

#endif
