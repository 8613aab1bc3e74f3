// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Most vDSO functions are some hundred instructions long: one step after the other is fast enough.
 * But getrandom makes all that it is asked for there, by eight instructions or so for each byte.
 * Who is still inside after some steps runs until it returns: into code whose address is on its
 * stack, near the top, among a few others at most.  On each of the first of them the processor
 * stops it, so nothing has to be written into the program.
 */
#include "ckpt/freeze/step.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/remote/trace.h"

#define FEW_STEPS   1000
#define MAX_STEPS   20000	  /* where there are no breakpoints */
#define BREAKPOINTS 4		  /* of x86 */
#define FRAMES	    128		  /* words of stack: more than functions of the vDSO have */
#define RUN_NS	    1000000000ULL /* all others wait meanwhile */

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

static bool is_inside(const struct proc_vma *vdso, uint64_t addr)
{
	return addr >= vdso->start && addr < vdso->end;
}

static bool is_code(const struct proc_maps *maps, const struct proc_vma *vdso, uint64_t addr)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct proc_vma *v = &maps->vmas[i];

		if (addr >= v->start && addr < v->end)
			return v != vdso && (v->prot & PROT_EXEC);
	}
	return false;
}

/* Where it may return to. */
static size_t find_callers(pid_t tid, const struct proc_maps *maps, const struct proc_vma *vdso,
	uint64_t sp, uint64_t callers[BREAKPOINTS])
{
	uint64_t stack[FRAMES];
	struct iovec local = {stack, sizeof(stack)}, there = {(void *)sp, sizeof(stack)};
	ssize_t len = process_vm_readv(tid, &local, 1, &there, 1, 0);
	size_t n = 0;

	for (ssize_t i = 0; i < len / (ssize_t)sizeof(*stack) && n < BREAKPOINTS; i++)
		if (is_code(maps, vdso, stack[i]))
			callers[n++] = stack[i];
	return n;
}

static int poke_debug(pid_t tid, size_t i, uint64_t value)
{
	size_t at = offsetof(struct user, u_debugreg) + i * sizeof(((struct user *)0)->u_debugreg[0]);

	return ptrace(PTRACE_POKEUSER, tid, at, value) < 0 ? -errno : 0;
}

/* Stops at instructions from now on, or at none. */
static int set_breakpoints(pid_t tid, const uint64_t *addresses, size_t n)
{
	uint64_t enable = 0;
	int r = poke_debug(tid, 7, 0);

	for (size_t i = 0; i < BREAKPOINTS && r == 0; i++) {
		r = poke_debug(tid, i, i < n ? addresses[i] : 0);
		enable |= i < n ? 1ULL << 2 * i : 0;
	}
	if (r == 0 && enable)
		r = poke_debug(tid, 7, enable);
	if (r == 0)
		r = poke_debug(tid, 6, 0);
	return r;
}

/*
 * Until it returns, or comes to another stop; on a host without breakpoints it stays where it is.
 * Its signals are blocked, but for SIGSTOP.
 */
static int run_out(int host_proc, pid_t tid, const struct proc_maps *maps,
	const struct proc_vma *vdso, uint64_t sp, bool *held, struct err *e)
{
	uint64_t callers[BREAKPOINTS], deadline = io_now_ns() + RUN_NS;
	size_t n = find_callers(tid, maps, vdso, sp, callers);
	int status = 0, r = n ? set_breakpoints(tid, callers, n) : -ENOENT;
	bool late = false;

	if (r == 0) {
		do {
			ptrace(PTRACE_CONT, tid, 0, 0);
			r = trace_wait(host_proc, tid, deadline, &status);
			*held |= r == 0 && is_stop_signal(status);
		} while (r == 0 && is_stop_signal(status));
		late = r == -ETIMEDOUT;
		if (late) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			r = trace_wait(host_proc, tid, io_now_ns() + RUN_NS, &status);
		}
		if (r < 0)
			return err_errno(e, r, "run task %d", tid);
	}
	set_breakpoints(tid, NULL, 0);
	return late ? err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT, "task %d does not leave the vDSO", tid)
		    : 0;
}

int ckpt_step_out(int host_proc, pid_t tid, const struct proc_maps *maps,
	const struct proc_vma *vdso, struct user_regs_struct *regs, struct err *e)
{
	bool held = false;
	uint64_t mask;
	int r = 0;

	/* A blocked SIGTRAP would be forced, and its handler forgotten. */
	if (trace_get_mask(tid, &mask) < 0 || trace_set_mask(tid, ~(1ULL << (SIGTRAP - 1))) < 0)
		return err_errno(e, -ESRCH, "step task %d", tid);
	for (int i = 0; r >= 0 && is_inside(vdso, regs->rip); i++) {
		if (i == FEW_STEPS)
			r = run_out(host_proc, tid, maps, vdso, regs->rsp, &held, e);
		else if (i < MAX_STEPS)
			r = step(host_proc, tid, &held, e);
		else
			r = err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
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
