// SPDX-License-Identifier: GPL-2.0-or-later
/* A vDSO function is some hundred instructions long: one step after the other is fast enough. */
#include "ckpt/freeze/step.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/remote/trace.h"

#define MAX_STEPS 20000

/* SIGSTOP comes through any mask: it is not for now, but for when the task goes on. */
static bool is_stop_signal(int status)
{
	return trace_event(status) == 0 && WSTOPSIG(status) == SIGSTOP;
}

/* One instruction; 1 when a step has been made, 0 for another stop on the way. */
static int step(int host_proc, pid_t tid, bool *held, struct err *e)
{
	int status, r;

	if (ptrace(PTRACE_SINGLESTEP, tid, 0, 0) < 0)
		return err_errno(e, -errno, "step task %d", tid);
	r = trace_wait(host_proc, tid, io_now_ns() + 1000000000ULL, &status);
	if (r < 0)
		return err_errno(e, r, "step task %d", tid);
	*held |= is_stop_signal(status);
	return trace_event(status) == 0 && !is_stop_signal(status);
}

static int back_to_event_stop(int host_proc, pid_t tid, bool *held, struct err *e)
{
	int status, r;

	do {
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		ptrace(PTRACE_CONT, tid, 0, 0);
		r = trace_wait(host_proc, tid, io_now_ns() + 1000000000ULL, &status);
		if (r < 0)
			return err_errno(e, r, "stop task %d", tid);
		*held |= is_stop_signal(status);
	} while (trace_event(status) != PTRACE_EVENT_STOP);
	return 0;
}

int ckpt_step_out(int host_proc, pid_t tid, uint64_t start, uint64_t end,
	struct user_regs_struct *regs, struct err *e)
{
	bool held = false;
	uint64_t mask;
	int r = 0;

	/* A blocked SIGTRAP would be forced, and its handler forgotten. */
	if (trace_get_mask(tid, &mask) < 0 || trace_set_mask(tid, ~(1ULL << (SIGTRAP - 1))) < 0)
		return err_errno(e, -ESRCH, "step task %d", tid);
	for (int i = 0; r >= 0 && regs->rip >= start && regs->rip < end; i++) {
		r = i < MAX_STEPS ? step(host_proc, tid, &held, e)
				  : err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
					    "task %d does not leave the vDSO", tid);
		if (r >= 0 && ptrace(PTRACE_GETREGS, tid, 0, regs) < 0)
			r = err_errno(e, -errno, "step task %d", tid);
	}
	if (r >= 0)
		r = back_to_event_stop(host_proc, tid, &held, e);
	trace_set_mask(tid, mask);
	if (held)
		syscall(SYS_tkill, tid, SIGSTOP);
	return MIN(r, 0);
}
