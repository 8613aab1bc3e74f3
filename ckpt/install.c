// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * install - what ckpt/filters.h needs of tasks: asking for the newest filter, installing one.
 *
 * A worker takes the place of the kernel in a task's seccomp(2): the task is seized while it waits
 * for the answer to its notification, answered, and stops behind the call.  There it makes the
 * call again, with a program of ours, and goes on with what that returned.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/filters.h"
#include "ckpt/remote/remote.h"
#include "ckpt/remote/trace.h"

#define WAIT_NS (5 * 1000000000ULL)

int ckpt_filter_ask(struct remote *r, uint32_t *ret, struct err *e)
{
	long low, high;
	int k = remote_call(r, &low, e, SYS_PODRUN_FILTER, 0, 0, 0, 0, 0, 0);

	if (k == 0)
		k = remote_call(r, &high, e, SYS_PODRUN_FILTER, 1, 0, 0, 0, 0, 0);
	if (k < 0)
		return k;
	if (low > 0 || low < -4095 || high > 0 || high < -4095)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"it has a seccomp filter that is not known");
	*ret = (uint32_t)-low | (uint32_t)-high << 12;
	return 0;
}

int ckpt_filter_put(struct remote *r, const struct ckpt_filters *f, uint32_t number, uint32_t flags,
	long *ret, struct err *e)
{
	_cleanup_buf_ struct buf code = BUF_INIT;
	struct sock_fprog program = {0};
	struct ckpt_filter what;
	int k;

	if (!ckpt_filters_read(f, number, &what))
		return err_set(e, ERR_FAILED, -EINVAL, "no seccomp filter %u", number);
	k = ckpt_filter_guard(what.code, what.n, number, ckpt_filters_untraced(f), &code);
	if (k < 0)
		return err_errno(e, k, "seccomp filter");
	program.len = (unsigned short)(code.len / sizeof(*program.filter));
	program.filter = (struct sock_filter *)(uintptr_t)remote_put(r, code.data, code.len);
	return remote_call(r, ret, e, SYS_seccomp, SECCOMP_SET_MODE_FILTER, what.flags | flags,
		remote_put(r, &program, sizeof(program)), 0, 0, 0);
}

bool ckpt_doomed(int proc_fd, pid_t tid)
{
	return trace_doomed(proc_fd, tid);
}

/* ---- in the place of the task's own call --------------------------------------------------- */

static int seize(pid_t tid, struct err *e)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) < 0)
		return err_errno(e, -errno, "cannot trace task %d", tid);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return err_errno(e, -errno, "cannot stop task %d", tid);
	return 0;
}

static int await_stop(int proc, pid_t tid, int *ret_signal, struct err *e)
{
	uint64_t deadline = io_now_ns() + WAIT_NS;
	int status, r;

	for (;;) {
		r = trace_wait(proc, tid, deadline, &status);
		if (r < 0)
			return err_errno(e, r, "task %d does not stop", tid);
		*ret_signal = WSTOPSIG(status);
		if (trace_event(status) == PTRACE_EVENT_STOP)
			return 0;
		/* another thread's, which has the number now */
		if (trace_event(status) == PTRACE_EVENT_EXEC)
			return err_set(e, ERR_FAILED, -ESRCH, "task %d has ended", tid);
		/* a signal that came first, and is no business of ours */
		if (ptrace(PTRACE_CONT, tid, 0, trace_event(status) ? 0 : WSTOPSIG(status)) < 0)
			return err_errno(e, -errno, "task %d does not stop", tid);
	}
}

static int own_filters(int proc, const struct ckpt_install *i, struct err *e)
{
	struct proc_status own, init;
	int r = proc_read_status(proc, i->tid, &own, e);

	if (r == 0)
		r = proc_read_status(proc, i->init_pid, &init, e);
	return r < 0 ? r : own.seccomp_filters - init.seccomp_filters;
}

/* The result stands for the task's own call, which is over. */
static void set_result(struct remote *r, long result)
{
	struct user_regs_struct *regs = remote_regs(r);

	regs->rax = (unsigned long)result;
	regs->orig_rax = (unsigned long)-1;
}

static int call(struct remote *r, const struct ckpt_install *i, bool first, bool untraced,
	long *ret, struct err *e)
{
	struct ckpt_filters *one = ckpt_filters_new();
	uint32_t parent = 0, number;
	int k = first ? 0 : ckpt_filter_ask(r, &parent, e);

	if (k == 0) {
		number = i->number(i->ctx, parent);
		/* only this one is of interest here */
		k = !one || !number ? -ENOMEM : ckpt_filters_put(one, number, 0, 0, i->code, i->n);
		if (k < 0)
			err_errno(e, k, "seccomp filter");
	}
	if (k == 0 && untraced)
		ckpt_filters_set_untraced(one);
	if (k == 0)
		k = ckpt_filter_put(r, one, number, i->flags, ret, e);
	if (k == 0 && *ret > 0 && i->thread)
		*ret = i->thread(i->ctx, (pid_t)*ret);
	ckpt_filters_free(one);
	return k;
}

static int install(int proc, const struct ckpt_install *i, bool untraced, struct err *e)
{
	struct remote *r;
	long result = -ENOMEM;
	int n = own_filters(proc, i, e), k;

	if (n < 0)
		return n;
	/* The new filter is in force for what the executor does behind it. */
	k = remote_open_guarded(&r, proc, i->tid, 0, e);
	if (k < 0)
		return k;
	if (i->strict && n > 0)
		result = -EINVAL;
	else if (call(r, i, n == 0, untraced, &result, e) < 0)
		log_warn("%s", e->msg);
	set_result(r, result);
	return remote_close(r, e);
}

int ckpt_install(const struct ckpt_install *i, struct err *e)
{
	_cleanup_close_ int proc = proc_open(e);
	int r = proc < 0 ? proc : seize(i->tid, e), sig;

	if (r < 0)
		return r;
	i->answer(i->ctx);
	r = await_stop(proc, i->tid, &sig, e);
	if (r == 0)
		r = install(proc, i, false, e);
	/* should anything have gone wrong it is not our filter that stops it */
	ptrace(PTRACE_DETACH, i->tid, 0, 0);
	return r;
}

/*
 * Its call is not made, and it stops behind it: a stop that is asked for comes before all signals.
 */
static int leave_call(pid_t tid, struct err *e)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0)
		return err_errno(e, -errno, "registers of task %d", tid);
	regs.orig_rax = (unsigned long)-1;
	regs.rax = (unsigned long)-ENOMEM;
	if (ptrace(PTRACE_SETREGS, tid, 0, &regs) < 0 || ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 ||
		ptrace(PTRACE_CONT, tid, 0, 0) < 0)
		return err_errno(e, -errno, "cannot stop task %d", tid);
	return 0;
}

int ckpt_install_traced(const struct ckpt_install *i, int *ret_signal, struct err *e)
{
	_cleanup_close_ int proc = proc_open(e);
	int r;

	if (proc < 0)
		return -ENOMEM;
	r = leave_call(i->tid, e);
	if (r == 0)
		r = await_stop(proc, i->tid, ret_signal, e);
	if (r < 0)
		return r == -ESRCH ? r : -ETIMEDOUT;
	remote_pass_traced(true);
	r = install(proc, i, true, e);
	if (r < 0 && r != -ESRCH)
		log_warn("%s", e->msg);
	return r == -ESRCH ? r : 0;
}
