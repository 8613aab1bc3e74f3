// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A session can't be stopped at one moment: tasks fork, exec and end while we go from one to the
 * next.  So it is swept, as often as needed:
 *
 *      sweep     seize and interrupt everything found below pid 1 that is not ours yet
 *      collect   take stops until every task that is ours stands still
 *      again, until a sweep that began with everything standing still has found nothing new
 *
 * A task that forks after it was seized gives us its child from birth (PTRACE_O_TRACEFORK and
 * friends); one that forked before is found by the next sweep.  Sweeps follow the parents' lists
 * of children, and a task whose parent ends between two reads can slip through; the session's
 * own /proc, which has no parents in it, is the proof that nobody did.
 *
 * Stops which are not the wanted one (PTRACE_EVENT_STOP) are passed: a signal that was about to be
 * delivered is delivered, and the task interrupted again, so it stops at the first instruction of
 * its handler, as if the signal had come a moment earlier.  There is no state "between" to keep.
 *
 * A vfork parent sleeps uninterruptibly until its child has called exec or has ended.  Its child
 * is let go until then.
 */
#include "ckpt/freeze.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/reaper.h"
#include "ckpt/remote/trace.h"
#include "ckpt/restart.h"

#define DEFAULT_DEADLINE_MS 5000
#define NAP_NS		    (1000 * 1000L)
#define MAX_STEPS	    20000
#define SEIZE_TRIES	    3 /* the number may change hands between two looks */
#define ERESTARTSYS	    512
#define ERESTARTNOINTR	    513

struct ckpt_frozen {
	struct ckpt_freeze_options o;
	uint64_t since, deadline;
	struct ckpt_task *tasks; /* by tid while freezing, by (pid, tid) afterwards */
	size_t n, cap;
	bool fresh; /* something came or went: sweep once more */
	struct ckpt_reaper *reaper; /* once a process with threads has been met */
	bool shallow; /* only look for threads: the session's /proc tells about processes */
};

/* ---- the set of tasks --------------------------------------------------------------------- */

static size_t lower_bound(const struct ckpt_frozen *f, pid_t tid)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->tasks[mid].tid < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct ckpt_task *find_task(const struct ckpt_frozen *f, pid_t tid)
{
	size_t i = lower_bound(f, tid);

	return i < f->n && f->tasks[i].tid == tid ? &f->tasks[i] : NULL;
}

static int put_task(struct ckpt_frozen *f, pid_t pid, pid_t tid, enum ckpt_task_state state,
	struct err *e)
{
	struct ckpt_task t = {.pid = pid, .tid = tid, .state = state};
	size_t i = lower_bound(f, tid);

	f->fresh = true;
	if (i < f->n && f->tasks[i].tid == tid) { /* it had ended, and its number came back */
		f->tasks[i] = t;
		return 0;
	}
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		struct ckpt_task *p = realloc(f->tasks, cap * sizeof(*p));

		if (!p)
			return err_errno(e, -ENOMEM, "freeze");
		f->tasks = p;
		f->cap = cap;
	}
	memmove(f->tasks + i + 1, f->tasks + i, (f->n - i) * sizeof(t));
	f->tasks[i] = t;
	f->n++;
	return 0;
}

static int unfreezable(struct ckpt_frozen *f, pid_t tid, int error, const char *why, struct err *e)
{
	struct proc_status s = {.comm = "?"};

	proc_read_status(f->o.host_proc, tid, &s, NULL);
	return err_set(e, ERR_UNFREEZABLE, error, "task %d (%s) %s",
		s.ns_depth ? s.ns_pid[s.ns_depth - 1] : tid, s.comm, why);
}

/* ---- sweep -------------------------------------------------------------------------------- */

/* A zombie may be the first thread of a process in exec: soon another goes by its number. */
static bool known(const struct ckpt_frozen *f, pid_t tid)
{
	const struct ckpt_task *t = find_task(f, tid);

	if (!t || t->state == CKPT_TASK_ENDED)
		return false;
	return t->state != CKPT_TASK_ZOMBIE || trace_gone(f->o.host_proc, tid);
}

static int seize(struct ckpt_frozen *f, pid_t pid, pid_t tid, struct err *e)
{
	uint64_t asleep_ns;
	int r;

	if (known(f, tid))
		return 0;
	asleep_ns = ckpt_restart_asleep(f->o.host_proc, tid);
	for (int tries = 0; tries < SEIZE_TRIES; tries++) {
		if (ptrace(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) == 0) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			r = put_task(f, pid, tid, CKPT_TASK_SEIZED, e);
			if (r == 0)
				find_task(f, tid)->asleep_ns = asleep_ns;
			return r;
		}
		if (errno == ESRCH)
			return 0;
		if (trace_gone(f->o.host_proc, tid)) {
			/* Zombie threads are reaped by the kernel, zombie processes are somebody's. */
			if (pid == tid)
				return put_task(f, pid, tid, CKPT_TASK_ZOMBIE, e);
			return 0;
		}
		/* Ours by the fork or the exec of one that is, and not noticed yet? */
		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
			return put_task(f, pid, tid, CKPT_TASK_SEIZED, e);
	}
	return unfreezable(f, tid, -EPERM, "can't be stopped: another process traces it", e);
}

/* Numbers still to be looked at; a stack. */
struct todo {
	pid_t *pids;
	size_t n, cap;
};

static int todo_push(struct todo *t, pid_t pid, struct err *e)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 32;
		pid_t *p = realloc(t->pids, cap * sizeof(*p));

		if (!p)
			return err_errno(e, -ENOMEM, "freeze");
		t->pids = p;
		t->cap = cap;
	}
	t->pids[t->n++] = pid;
	return 0;
}

/* Seizes the threads of one process (not of pid 1) and notes its children.  What has gone in the
 * meantime is passed over in silence: the next sweep finds what it left. */
static int sweep_process(struct ckpt_frozen *f, pid_t pid, struct todo *todo, struct err *e)
{
	_cleanup_free_ int *tids = NULL;
	char path[32];
	size_t n;
	int r = 0;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (proc_list_numbers(f->o.host_proc, path, &tids, &n, NULL) < 0)
		return 0;
	if (pid != f->o.init_pid) {
		if (n > 1 && !f->reaper)
			f->reaper = ckpt_reaper_start(f->o.host_proc);
		ckpt_reaper_watch(f->reaper, n > 1 ? pid : 0);
		for (size_t i = 0; i < n && r == 0; i++)
			r = seize(f, pid, tids[i], e);
		ckpt_reaper_watch(f->reaper, 0);
	}
	for (size_t i = 0; i < n && r == 0 && !f->shallow; i++) {
		_cleanup_free_ pid_t *children = NULL;
		size_t n_children;

		if (proc_read_children(f->o.host_proc, pid, tids[i], &children, &n_children, NULL) <
			0)
			continue;
		for (size_t k = 0; k < n_children && r == 0; k++)
			r = todo_push(todo, children[k], e);
	}
	return r;
}

static int sweep(struct ckpt_frozen *f, struct err *e)
{
	struct todo todo = {0};
	int r = todo_push(&todo, f->o.init_pid, e);

	for (size_t i = 0; i < f->n && r == 0 && f->shallow; i++)
		if (f->tasks[i].pid == f->tasks[i].tid && f->tasks[i].state < CKPT_TASK_ZOMBIE)
			r = todo_push(&todo, f->tasks[i].pid, e);
	while (r == 0 && todo.n)
		r = sweep_process(f, todo.pids[--todo.n], &todo, e);
	free(todo.pids);
	return r;
}

/* ---- collect ------------------------------------------------------------------------------ */

/* Lets a task run towards its next stop; one that is to stop is told so again, because any
 * stop takes back the request. */
static void go_on(struct ckpt_task *t, int sig)
{
	if (t->state == CKPT_TASK_SEIZED)
		ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	ptrace(PTRACE_CONT, t->tid, 0, (long)sig);
}

/* A RET_TRACE of the session's own filter: without a tracer of its own that is ENOSYS. */
static void answer_enosys(pid_t tid)
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
	t = find_task(f, (pid_t)tid);
	if (t && t->state != CKPT_TASK_ENDED)
		return 0;
	if (proc_read_status(f->o.host_proc, (pid_t)tid, &s, NULL) < 0)
		return 0;
	return put_task(f, s.tgid, (pid_t)tid, CKPT_TASK_SEIZED, e);
}

static int take_stop(struct ckpt_frozen *f, pid_t tid, int status, struct err *e)
{
	struct ckpt_task *t = find_task(f, tid);
	int sig = WSTOPSIG(status), r = 0;

	if (!WIFSTOPPED(status)) {
		t->state = CKPT_TASK_ENDED;
		f->fresh = true;
		return 0;
	}
	switch (trace_event(status)) {
	case PTRACE_EVENT_STOP:
		t->state = CKPT_TASK_STOPPED;
		t->stop_signal = sig == SIGTRAP ? 0 : sig;
		return 0;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		r = take_child(f, tid, e);
		t = find_task(f, tid); /* the table may have moved */
		sig = 0;
		break;
	case PTRACE_EVENT_SECCOMP:
		answer_enosys(tid);
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
		struct ckpt_task *c = find_task(f, children[i]);

		if (!c || c->state != CKPT_TASK_STOPPED ||
			sys_kcmp(t->tid, c->tid, SYS_KCMP_VM, 0, 0) != 0)
			continue;
		c->state = CKPT_TASK_LET_GO;
		c->waits_for_us = t->tid;
		go_on(c, 0);
	}
}

static void call_back(struct ckpt_frozen *f, struct ckpt_task *t)
{
	const struct ckpt_task *parent = find_task(f, t->waits_for_us);

	if (parent && parent->state == CKPT_TASK_SEIZED)
		return;
	t->state = CKPT_TASK_SEIZED;
	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
}

static int too_late(struct ckpt_frozen *f, struct err *e)
{
	const struct ckpt_task *culprit = NULL;
	struct proc_status s = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct ckpt_task *t = &f->tasks[i];

		if (t->state == CKPT_TASK_LET_GO)
			return unfreezable(f, t->tid, -ETIMEDOUT,
				"was started by vfork and has not called exec yet", e);
		if (t->state == CKPT_TASK_SEIZED && !culprit)
			culprit = t;
	}
	if (!culprit)
		return err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
			"tasks come and go too fast to be stopped");
	proc_read_task_status(f->o.host_proc, culprit->pid, culprit->tid, &s, NULL);
	return unfreezable(f, culprit->tid, -ETIMEDOUT,
		s.state == 'D' ? "is in an uninterruptible sleep and can't be stopped"
			       : "does not stop",
		e);
}

/*
 * A thread that was ours is nowhere: it has called exec, and goes on as the first thread of its
 * process.  Whatever we knew of that number was of another.
 */
static void lost_to_exec(struct ckpt_frozen *f, struct ckpt_task *t)
{
	struct ckpt_task *leader = find_task(f, t->pid);
	struct user_regs_struct probe;

	t->state = CKPT_TASK_ENDED;
	f->fresh = true;
	if (!leader || leader == t || !ptrace(PTRACE_GETREGS, leader->tid, 0, &probe))
		return; /* it just ended, and the reaper took it */
	leader->state = CKPT_TASK_SEIZED;
	ptrace(PTRACE_INTERRUPT, leader->tid, 0, 0);
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
		i = lower_bound(f, tid); /* its child may have moved it */
		if (f->tasks[i].state <= CKPT_TASK_LET_GO)
			++*ret_pending;
	}
	return progress;
}

static int collect(struct ckpt_frozen *f, struct err *e)
{
	struct timespec nap = {.tv_nsec = NAP_NS};
	size_t pending;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		int r = collect_once(f, &pending, e);

		if (r < 0 || pending == 0)
			return MIN(r, 0);
		if (r > 0)
			continue;
		if (io_now_ns() > f->deadline)
			return too_late(f, e);
		if (sigtimedwait(&chld, NULL, &nap) >= 0)
			continue;
		for (size_t i = 0; i < f->n; i++) {
			if (f->tasks[i].state == CKPT_TASK_SEIZED)
				let_vfork_child_go(f, &f->tasks[i]);
			else if (f->tasks[i].state == CKPT_TASK_LET_GO)
				call_back(f, &f->tasks[i]);
			else if (f->tasks[i].state == CKPT_TASK_STOPPED)
				reap_killed(f, &f->tasks[i]);
		}
	}
}

/* ---- is that all? ------------------------------------------------------------------------- */

static int compare_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* 1: the session's /proc shows no process but pid 1 and those we know. */
static int nobody_else(struct ckpt_frozen *f, struct err *e)
{
	_cleanup_free_ pid_t *known = calloc(f->n + 1, sizeof(*known));
	_cleanup_free_ int *seen = NULL;
	size_t n_known = 0, n_seen;
	int r;

	if (f->o.session_proc < 0)
		return 1;
	if (!known)
		return err_errno(e, -ENOMEM, "freeze");
	known[n_known++] = 1;
	for (size_t i = 0; i < f->n; i++) {
		const struct ckpt_task *t = &f->tasks[i];
		struct proc_status s;

		if (t->pid == t->tid && t->state != CKPT_TASK_ENDED &&
			!proc_read_status(f->o.host_proc, t->pid, &s, NULL) && s.ns_depth)
			known[n_known++] = s.ns_pid[s.ns_depth - 1];
	}
	qsort(known, n_known, sizeof(*known), compare_pid);
	r = proc_list_numbers(f->o.session_proc, ".", &seen, &n_seen, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_seen; i++)
		if (!bsearch(&seen[i], known, n_known, sizeof(*known), compare_pid))
			return 0;
	return 1;
}

/* ---- what the tasks will go on with ------------------------------------------------------- */

/* linux/rseq.h; libc's header has it only in newer versions. */
struct rseq_section {
	uint32_t version, flags;
	uint64_t start, length, abort;
};
#define RSEQ_CS_OFFSET 8 /* in struct rseq */

static bool copy_in(pid_t tid, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)addr, len};

	return process_vm_readv(tid, &local, 1, &there, 1, 0) == (ssize_t)len;
}

/*
 * Inside a restartable sequence the kernel would move the task to the abort handler before it runs
 * again, if it still found it there.  It would not after our calls, so this is done here.
 */
static bool leave_rseq(pid_t tid, struct user_regs_struct *regs)
{
	struct __ptrace_rseq_configuration conf = {0};
	struct rseq_section cs;
	uint64_t ptr, none = 0;
	struct iovec local = {&none, sizeof(none)}, there;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(conf), &conf) < 0 ||
		!conf.rseq_abi_pointer)
		return false;
	there = (struct iovec){(void *)(conf.rseq_abi_pointer + RSEQ_CS_OFFSET), sizeof(none)};
	if (!copy_in(tid, conf.rseq_abi_pointer + RSEQ_CS_OFFSET, &ptr, sizeof(ptr)) || !ptr ||
		!copy_in(tid, ptr, &cs, sizeof(cs)) || regs->rip - cs.start >= cs.length)
		return false;
	if (process_vm_writev(tid, &local, 1, &there, 1, 0) != sizeof(none))
		return false;
	regs->rip = cs.abort;
	return true;
}

static bool is_notified(const struct ckpt_freeze_options *o, unsigned long nr)
{
	for (size_t i = 0; i < o->n_notified; i++)
		if ((unsigned long)o->notified[i] == nr)
			return true;
	return false;
}

/*
 * A call that was waiting for the supervisor's answer reads as -ERESTARTSYS, which becomes EINTR if
 * a handler without SA_RESTART runs first; but it is not the call that was interrupted, only
 * our way of making it.
 */
static bool protect_notified(const struct ckpt_freeze_options *o, struct user_regs_struct *regs)
{
	if ((long)regs->rax != -ERESTARTSYS || !is_notified(o, regs->orig_rax))
		return false;
	regs->rax = (unsigned long)-ERESTARTNOINTR;
	return true;
}

/* 1: it stands still, with the registers it will go on with.  0: it does not after all. */
static int settle(struct ckpt_frozen *f, struct ckpt_task *t)
{
	unsigned long rax;
	bool changed;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs) < 0)
		return 0;
	rax = t->regs.rax;
	ckpt_restart_note(&t->regs);
	if ((long)t->regs.orig_rax < 0)
		changed = leave_rseq(t->tid, &t->regs);
	else
		changed = protect_notified(&f->o, &t->regs);
	if (!changed && t->regs.rax == rax)
		return 1;
	return ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) == 0;
}

/*
 * The same for all.  Who was killed meanwhile, or has lost its number to an exec, is forgotten, so that
 * the next sweep takes up what it finds there.
 */
static int settle_all(struct ckpt_frozen *f)
{
	int all = 1;

	for (size_t i = 0; i < f->n; i++) {
		struct ckpt_task *t = &f->tasks[i];

		if (t->state != CKPT_TASK_STOPPED || settle(f, t))
			continue;
		waitpid(t->tid, NULL, __WALL | WNOHANG);
		t->state = CKPT_TASK_ENDED;
		all = 0;
	}
	return all;
}

static int compare_task(const void *a, const void *b)
{
	const struct ckpt_task *x = a, *y = b;

	if (x->pid != y->pid)
		return (x->pid > y->pid) - (x->pid < y->pid);
	if ((x->tid == x->pid) != (y->tid == y->pid))
		return x->tid == x->pid ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Drops those that ended, and sorts the others as the survey wants them. */
static void put_in_order(struct ckpt_frozen *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->tasks[i].state != CKPT_TASK_ENDED)
			f->tasks[n++] = f->tasks[i];
	f->n = n;
	qsort(f->tasks, f->n, sizeof(*f->tasks), compare_task);
}

static int freeze_all(struct ckpt_frozen *f, struct err *e)
{
	for (;;) {
		int r;

		f->fresh = false;
		r = sweep(f, e);
		/* From the second sweep on only threads are looked for, until somebody is missing. */
		f->shallow = f->o.session_proc >= 0;
		if (r == 0 && !f->fresh) {
			r = nobody_else(f, e);
			if (r > 0)
				r = settle_all(f);
			if (r != 0)
				return MIN(r, 0);
			f->shallow = false;
		}
		if (r == 0)
			r = collect(f, e);
		if (r == 0 && io_now_ns() > f->deadline)
			r = too_late(f, e);
		if (r < 0)
			return r;
	}
}

/* ---- single steps ------------------------------------------------------------------------- */

/* One instruction; 1 when a step has been made, 0 for another stop on the way. */
static int step(int host_proc, pid_t tid, struct err *e)
{
	int status, r;

	if (ptrace(PTRACE_SINGLESTEP, tid, 0, 0) < 0)
		return err_errno(e, -errno, "step task %d", tid);
	r = trace_wait(host_proc, tid, io_now_ns() + 1000000000ULL, &status);
	if (r < 0)
		return err_errno(e, r, "step task %d", tid);
	return trace_event(status) == 0;
}

static int back_to_event_stop(int host_proc, pid_t tid, struct err *e)
{
	int status, r;

	do {
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		ptrace(PTRACE_CONT, tid, 0, 0);
		r = trace_wait(host_proc, tid, io_now_ns() + 1000000000ULL, &status);
		if (r < 0)
			return err_errno(e, r, "stop task %d", tid);
	} while (trace_event(status) != PTRACE_EVENT_STOP);
	return 0;
}

int ckpt_step_out(int host_proc, pid_t tid, uint64_t start, uint64_t end,
	struct user_regs_struct *regs, struct err *e)
{
	uint64_t mask;
	int r = 0;

	/* A blocked SIGTRAP would be forced, and its handler forgotten. */
	if (trace_get_mask(tid, &mask) < 0 || trace_set_mask(tid, ~(1ULL << (SIGTRAP - 1))) < 0)
		return err_errno(e, -ESRCH, "step task %d", tid);
	for (int i = 0; r >= 0 && regs->rip >= start && regs->rip < end; i++) {
		r = i < MAX_STEPS ? step(host_proc, tid, e)
				  : err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
					    "task %d does not leave the vDSO", tid);
		if (r >= 0 && ptrace(PTRACE_GETREGS, tid, 0, regs) < 0)
			r = err_errno(e, -errno, "step task %d", tid);
	}
	if (r >= 0)
		r = back_to_event_stop(host_proc, tid, e);
	trace_set_mask(tid, mask);
	return MIN(r, 0);
}

/* ---- interface ---------------------------------------------------------------------------- */

int ckpt_frozen_make(struct ckpt_frozen **ret, const struct ckpt_freeze_options *o, struct err *e)
{
	struct ckpt_frozen *f = calloc(1, sizeof(*f));
	uint32_t ms = o->deadline_ms ? o->deadline_ms : DEFAULT_DEADLINE_MS;
	sigset_t chld, old;
	int r;

	if (!f)
		return err_errno(e, -ENOMEM, "freeze");
	f->o = *o;
	f->since = io_now_ns();
	f->deadline = f->since + ms * 1000000ULL;
	/* Blocked, one that comes between the look at a task and the nap ends the nap. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	r = freeze_all(f, e);
	ckpt_reaper_stop(take_ptr(f->reaper));
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		put_in_order(f);
	if (r < 0) {
		ckpt_frozen_release(f);
		return r;
	}
	*ret = f;
	return 0;
}

const struct ckpt_task *ckpt_frozen_tasks(const struct ckpt_frozen *f, size_t *ret_n)
{
	*ret_n = f->n;
	return f->tasks;
}

uint64_t ckpt_frozen_since(const struct ckpt_frozen *f)
{
	return f->since;
}

void ckpt_frozen_release(struct ckpt_frozen *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		struct ckpt_task *t = &f->tasks[i];
		int status, sig = 0;

		/* On the way out of a failed freeze some have stopped since the last look. */
		if (t->state <= CKPT_TASK_LET_GO) {
			if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid ||
				!WIFSTOPPED(status))
				continue;
			if (trace_event(status) == PTRACE_EVENT_SECCOMP)
				answer_enosys(t->tid);
			if (trace_event(status) == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80))
				sig = WSTOPSIG(status);
		}
		if (t->state <= CKPT_TASK_STOPPED)
			ptrace(PTRACE_DETACH, t->tid, 0, (long)sig);
	}
	free(f->tasks);
	free(f);
}
