// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Every task that has been seized owes us one PTRACE_EVENT_STOP.  All are looked at in turn,
 * without waiting for any: whatever else they stop for on the way is passed on and the request
 * repeated, since any stop takes it back.  When nothing moves we nap until a SIGCHLD or a
 * millisecond later, and look for what no stop will ever tell: a vfork parent that waits for its
 * child, a thread that was replaced by an exec, one whose exec waits for us to reap the others.
 *
 * One that a seccomp filter is about to kill stops once more on its way, and is let go on: its end
 * is waited for.
 */
#include "ckpt/freeze/collect.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/freeze/taskset.h"
#include "ckpt/remote/trace.h"

#define NAP_NS (1000 * 1000L)

/* Lets a task run towards its next stop; one that is to stop is told so again, because any
 * stop takes back the request. */
static void go_on(struct ckpt_task *t, int sig)
{
	if (t->state == CKPT_TASK_SEIZED)
		ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	ptrace(PTRACE_CONT, t->tid, 0, (long)sig);
}

/* A RET_TRACE of the session's own filter: without a tracer of its own that is ENOSYS. */
void ckpt_collect_enosys(pid_t tid)
{
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, orig_rax), -1L);
	ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), (long)-ENOSYS);
}

static int take_child(struct ckpt_frozen *f, pid_t parent, struct err *e)
{
	struct proc_status s;
	unsigned long tid = 0;
	struct ckpt_task *t;

	if (ptrace(PTRACE_GETEVENTMSG, parent, 0, &tid) < 0)
		return 0;
	t = ckpt_taskset_find(f, (pid_t)tid);
	if (t && t->state != CKPT_TASK_ENDED)
		return 0;
	if (proc_read_status(f->o.host_proc, (pid_t)tid, &s, NULL) < 0)
		return 0;
	return ckpt_taskset_put(f, s.tgid, (pid_t)tid, CKPT_TASK_SEIZED, e);
}

static int take_stop(struct ckpt_frozen *f, pid_t tid, int status, struct err *e)
{
	struct ckpt_task *t = ckpt_taskset_find(f, tid);
	int sig = WSTOPSIG(status), r = 0;

	if (!WIFSTOPPED(status)) {
		t->state = CKPT_TASK_ENDED;
		f->fresh = true;
		return 0;
	}
	switch (trace_event(status)) {
	case PTRACE_EVENT_STOP:
		if (trace_doomed(f->o.host_proc, tid)) {
			ptrace(PTRACE_CONT, tid, 0, 0);
			return 0;
		}
		t->state = CKPT_TASK_STOPPED;
		t->stop_signal = sig == SIGTRAP ? 0 : sig;
		return 0;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		r = take_child(f, tid, e);
		t = ckpt_taskset_find(f, tid); /* the table may have moved */
		sig = 0;
		break;
	case PTRACE_EVENT_SECCOMP:
		ckpt_collect_enosys(tid);
		sig = 0;
		break;
	case 0:
		if (sig == (SIGTRAP | 0x80))
			sig = 0;
		break;
	default:
		sig = 0;
	}
	go_on(t, sig);
	return r;
}

/* A child for which task @t sleeps in vfork, and which we hold, runs on. */
static void let_vfork_child_go(struct ckpt_frozen *f, struct ckpt_task *t)
{
	_cleanup_free_ pid_t *children = NULL;
	struct proc_status s;
	size_t n;

	if (proc_read_task_status(f->o.host_proc, t->pid, t->tid, &s, NULL) < 0 || s.state != 'D')
		return;
	if (proc_read_children(f->o.host_proc, t->pid, t->tid, &children, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct ckpt_task *c = ckpt_taskset_find(f, children[i]);

		if (!c || c->state != CKPT_TASK_STOPPED ||
			sys_kcmp(t->tid, c->tid, SYS_KCMP_VM, 0, 0) != 0)
			continue;
		c->state = CKPT_TASK_LET_GO;
		c->waits_for_us = t->tid;
		go_on(c, 0);
	}
}

/* Has it a stop, or its end, that was not taken yet? */
static bool has_news(pid_t tid)
{
	const int any = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)tid, &si, any) == 0 && si.si_pid == tid;
}

/*
 * What keeps a task from stopping, if we can do something about it.  A first thread that has ended
 * stays as long as others of its process stand still, and tells nothing.
 */
static void help_to_stop(struct ckpt_frozen *f, struct ckpt_task *t)
{
	if (t->pid == t->tid && trace_gone(f->o.host_proc, t->tid) && !has_news(t->tid)) {
		t->state = CKPT_TASK_ZOMBIE;
		return;
	}
	if (f->o.unhold)
		f->o.unhold(f->o.ctx, t->tid);
	let_vfork_child_go(f, t);
}

static void call_back(struct ckpt_frozen *f, struct ckpt_task *t)
{
	const struct ckpt_task *parent = ckpt_taskset_find(f, t->waits_for_us);

	if (parent && parent->state == CKPT_TASK_SEIZED)
		return;
	t->state = CKPT_TASK_SEIZED;
	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
}

int ckpt_collect_too_late(struct ckpt_frozen *f, struct err *e)
{
	const struct ckpt_task *culprit = NULL;
	struct proc_status s = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct ckpt_task *t = &f->tasks[i];

		if (t->state == CKPT_TASK_LET_GO)
			return ckpt_taskset_blame(f, t->tid, -ETIMEDOUT,
				"was started by vfork and has not called exec yet", e);
		if (t->state == CKPT_TASK_SEIZED && !culprit)
			culprit = t;
	}
	if (!culprit)
		return err_set(
			e, ERR_UNFREEZABLE, -ETIMEDOUT, "tasks come and go too fast to be stopped");
	proc_read_task_status(f->o.host_proc, culprit->pid, culprit->tid, &s, NULL);
	return ckpt_taskset_blame(f, culprit->tid, -ETIMEDOUT,
		s.state == 'D' ? "is in an uninterruptible sleep and can't be stopped"
			       : "does not stop",
		e);
}

/*
 * A thread that was ours is nowhere: it has called exec, and goes on as the first thread of its
 * process.  Whatever we knew of that number was of another, even that it stands still or has ended.
 */
static void lost_to_exec(struct ckpt_frozen *f, struct ckpt_task *t)
{
	struct ckpt_task *leader = ckpt_taskset_find(f, t->pid);
	struct user_regs_struct probe;

	t->state = CKPT_TASK_ENDED;
	f->fresh = true;
	if (!leader || leader == t)
		return;
	if (!has_news(leader->tid)) {
		/* Or it just ended, and the reaper took it. */
		if (leader->state == CKPT_TASK_ZOMBIE
				? trace_gone(f->o.host_proc, leader->tid)
				: !ptrace(PTRACE_GETREGS, leader->tid, 0, &probe))
			return;
		ptrace(PTRACE_INTERRUPT, leader->tid, 0, 0);
	}
	leader->state = CKPT_TASK_SEIZED;
}

/* An exec waits for the other threads of its process to be reaped: ours, which stood still. */
static void reap_killed(struct ckpt_frozen *f, struct ckpt_task *t)
{
	int status;

	if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid || WIFSTOPPED(status))
		return;
	t->state = CKPT_TASK_ENDED;
	f->fresh = true;
}

/* One look at every task that has not stopped.  1: something happened. */
static int collect_once(struct ckpt_frozen *f, size_t *ret_pending, struct err *e)
{
	int progress = 0;

	*ret_pending = 0;
	for (size_t i = 0; i < f->n; i++) {
		pid_t tid = f->tasks[i].tid, w;
		int status, r;

		if (f->tasks[i].state > CKPT_TASK_LET_GO)
			continue;
		w = waitpid(tid, &status, __WALL | WNOHANG);
		if (w == 0) {
			++*ret_pending;
			continue;
		}
		progress = 1;
		if (w < 0) {
			lost_to_exec(f, &f->tasks[i]);
			continue;
		}
		r = take_stop(f, tid, status, e);
		if (r < 0)
			return r;
		i = ckpt_taskset_place(f, tid); /* its child may have moved it */
		if (f->tasks[i].state <= CKPT_TASK_LET_GO)
			++*ret_pending;
	}
	return progress;
}

int ckpt_collect(struct ckpt_frozen *f, struct err *e)
{
	struct timespec nap = {.tv_nsec = NAP_NS};
	size_t pending;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		int r = collect_once(f, &pending, e);

		if (r < 0 || (r == 0 && pending == 0))
			return r;
		/* Also where nobody seems to be missing: one may be again
		 * who was looked at already. */
		if (r > 0)
			continue;
		if (io_now_ns() > f->deadline)
			return ckpt_collect_too_late(f, e);
		if (f->o.waiting)
			f->o.waiting(f->o.ctx, f);
		if (sigtimedwait(&chld, NULL, &nap) >= 0)
			continue;
		for (size_t i = 0; i < f->n; i++) {
			if (f->tasks[i].state == CKPT_TASK_SEIZED)
				help_to_stop(f, &f->tasks[i]);
			else if (f->tasks[i].state == CKPT_TASK_LET_GO)
				call_back(f, &f->tasks[i]);
			else if (f->tasks[i].state == CKPT_TASK_STOPPED)
				reap_killed(f, &f->tasks[i]);
		}
	}
}
