// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A session can't be stopped at one moment: tasks fork, exec and end while we go from one to the
 * next.  So it is swept, as often as needed:
 *
 *      sweep     seize and interrupt everything found below pid 1 that is not ours yet
 *      collect   take stops until every task that is ours stands still (collect.c)
 *      again, until a sweep that began with everything standing still has found nothing new
 *
 * A task that forks after it was seized gives us its child from birth (PTRACE_O_TRACEFORK and
 * friends); one that forked before is found by the next sweep.  Sweeps follow the parents' lists
 * of children, and a task whose parent ends between two reads can slip through; the session's
 * own /proc, which has no parents in it, is the proof that nobody did.  So the first sweep needs not
 * look for anybody who was met ahead (foreseen.h).
 *
 * Stops which are not the wanted one (PTRACE_EVENT_STOP) are passed: a signal that was about to be
 * delivered is delivered, and the task interrupted again, so it stops at the first instruction of
 * its handler, as if the signal had come a moment earlier.  There is no state "between" to keep.
 *
 * A vfork parent sleeps uninterruptibly until its child has called exec or has ended.  Its child
 * is let go until then.
 *
 * At last every task is settled (settle.c): its registers are made such
 * that it can go on from them.
 */
#include "ckpt/freeze/freeze.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/freeze/collect.h"
#include "ckpt/freeze/foreseen.h"
#include "ckpt/freeze/reaper.h"
#include "ckpt/freeze/restart.h"
#include "ckpt/freeze/settle.h"
#include "ckpt/freeze/taskset.h"
#include "ckpt/remote/trace.h"

#define DEFAULT_DEADLINE_MS 5000
#define LEAVE_MS	    200
#define PF_IO_WORKER	    0x10 /* linux/sched.h: made for io_uring */
#define ORPHAN_NS	    (500 * 1000000ULL)
#define ORPHAN_NAP_US	    100
#define SEIZE_TRIES	    3 /* the number may change hands between two looks */

/* ---- sweep -------------------------------------------------------------------------------- */

/* A zombie may be the first thread of a process whose others go on; by exec
 * one goes by its number. */
static bool known(const struct ckpt_frozen *f, pid_t tid)
{
	const struct ckpt_task *t = ckpt_taskset_find(f, tid);

	if (!t || t->state == CKPT_TASK_ENDED)
		return false;
	return t->state != CKPT_TASK_ZOMBIE || trace_gone(f->o.host_proc, tid);
}

static int blame_tracer(const struct ckpt_frozen *f, pid_t tid, struct err *e)
{
	char why[128] = "can't be stopped: another process traces it";
	struct proc_status s, tracer;

	if (proc_read_status(f->o.host_proc, tid, &s, NULL) == 0 && s.tracer > 0 &&
		proc_read_status(f->o.host_proc, s.tracer, &tracer, NULL) == 0)
		snprintf(why, sizeof(why), "can't be stopped: %s traces it", tracer.comm);
	return ckpt_taskset_blame(f, tid, -EPERM, why, e);
}

static int seize(struct ckpt_frozen *f, pid_t pid, pid_t tid, struct err *e)
{
	struct ckpt_task *t;
	bool slept = false;
	uint64_t asleep_ns;
	int r;

	if (known(f, tid))
		return 0;
	if (!ckpt_foreseen_asleep(f->o.foreseen, tid, &asleep_ns, &slept))
		asleep_ns = ckpt_restart_asleep(f->o.host_proc, tid, &f->clocks);
	for (int tries = 0; tries < SEIZE_TRIES; tries++) {
		if (ptrace(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) == 0) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			r = ckpt_taskset_put(f, pid, tid, CKPT_TASK_SEIZED, e);
			t = r == 0 ? ckpt_taskset_find(f, tid) : NULL;
			if (t) {
				t->asleep_ns = asleep_ns;
				t->slept = slept;
			}
			return r;
		}
		if (errno == ESRCH)
			return 0;
		if (trace_gone(f->o.host_proc, tid)) {
			/* Zombie threads are reaped by the kernel, zombie
			 * processes are somebody's. */
			if (pid == tid)
				return ckpt_taskset_put(f, pid, tid, CKPT_TASK_ZOMBIE, e);
			return 0;
		}
		/* Ours by the fork or the exec of one that is, and not noticed yet? */
		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
			return ckpt_taskset_put(f, pid, tid, CKPT_TASK_SEIZED, e);
	}
	return blame_tracer(f, tid, e);
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

/* Of who was met ahead the process that was met, never another of its number. */
static int list_threads(const struct ckpt_frozen *f, pid_t pid, int **ret, size_t *ret_n)
{
	int r = ckpt_foreseen_list(f->o.foreseen, pid, ret, ret_n);
	char path[32];

	if (r == 0 || f->hinted)
		return r;
	snprintf(path, sizeof(path), "%d/task", pid);
	return proc_list_numbers(f->o.host_proc, path, ret, ret_n, NULL);
}

static bool is_ring_worker(const struct ckpt_frozen *f, pid_t pid, pid_t tid)
{
	struct proc_status s;

	return f->o.ring_workers && pid != tid &&
	       proc_read_task_status(f->o.host_proc, pid, tid, &s, NULL) == 0 &&
	       s.flags & PF_IO_WORKER;
}

static int count_ring_workers(const struct ckpt_frozen *f, pid_t pid)
{
	_cleanup_free_ int *tids = NULL;
	char path[32];
	size_t n;
	int ret = 0;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (!f->o.ring_workers ||
		proc_list_numbers(f->o.host_proc, path, &tids, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		ret += is_ring_worker(f, pid, tids[i]);
	return ret;
}

/* Seizes the threads of one process (not of pid 1) and notes its children.  What has gone in the
 * meantime is passed over in silence: the next sweep finds what it left. */
static int sweep_process(struct ckpt_frozen *f, pid_t pid, struct todo *todo, struct err *e)
{
	_cleanup_free_ int *tids = NULL;
	size_t n;
	int r = 0;

	if (list_threads(f, pid, &tids, &n) < 0)
		return 0;
	if (pid != f->o.init_pid) {
		if (n > 1 && !f->reaper)
			f->reaper = ckpt_reaper_start(f->o.host_proc);
		ckpt_reaper_watch(f->reaper, n > 1 ? pid : 0);
		for (size_t i = 0; i < n && r == 0; i++)
			r = is_ring_worker(f, pid, tids[i]) ? 0 : seize(f, pid, tids[i], e);
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

/* No thread of it can be new: all that it has are known, and stand still. */
static bool is_complete(const struct ckpt_frozen *f, pid_t pid)
{
	pid_t number;
	int n = ckpt_foreseen_count(f->o.foreseen, pid, f->level, &number);

	if (n <= 0)
		return false;
	for (size_t i = 0; i < f->n; i++)
		n -= f->tasks[i].pid == pid && f->tasks[i].state == CKPT_TASK_STOPPED;
	return n == 0;
}

static int sweep(struct ckpt_frozen *f, struct err *e)
{
	struct todo todo = {0};
	int r = f->o.n_only || f->hinted ? 0 : todo_push(&todo, f->o.init_pid, e);
	pid_t pid;

	for (size_t i = 0; i < f->o.n_only && r == 0; i++)
		r = todo_push(&todo, f->o.only[i], e);
	for (size_t i = 0; f->hinted && r == 0; i++) {
		pid = ckpt_foreseen_process(f->o.foreseen, i);
		if (!pid)
			break;
		r = todo_push(&todo, pid, e);
	}
	for (size_t i = 0; i < f->n && r == 0 && f->shallow; i++) {
		const struct ckpt_task *t = &f->tasks[i];

		if (t->pid == t->tid && (t->state < CKPT_TASK_ZOMBIE || !known(f, t->tid)) &&
			!is_complete(f, t->pid))
			r = todo_push(&todo, t->pid, e);
	}
	while (r == 0 && todo.n)
		r = sweep_process(f, todo.pids[--todo.n], &todo, e);
	free(todo.pids);
	return r;
}

/* ---- is that all? ------------------------------------------------------------------------- */

static int compare_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int count_known(const struct ckpt_frozen *f, pid_t pid)
{
	int n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->tasks[i].pid == pid && f->tasks[i].state != CKPT_TASK_ENDED;
	return n;
}

/* How many threads a process has, and its number in the session; negative if it has gone. */
static int look_at_process(const struct ckpt_frozen *f, pid_t pid, pid_t *ret_number)
{
	int n = ckpt_foreseen_count(f->o.foreseen, pid, f->level, ret_number);
	struct proc_status s;

	if (n > 0)
		return n;
	n = proc_read_status(f->o.host_proc, pid, &s, NULL);
	*ret_number = n < 0 ? 0 : proc_at_level(s.ns_pid, &s, f->level);
	return n < 0 ? n : s.threads;
}

/*
 * 1: the session's /proc shows no process but pid 1 and those we know, and of these no thread more.
 * Threads are counted, because a list of them ends early where the one that is being looked at is
 * just gone: who comes behind it would run on.
 */
static int nobody_else(struct ckpt_frozen *f, struct err *e)
{
	_cleanup_free_ pid_t *numbers = calloc(f->n + 1, sizeof(*numbers));
	_cleanup_free_ int *seen = NULL;
	size_t n = 0, n_seen;
	int r;

	if (f->o.session_proc < 0)
		return 1;
	if (!numbers)
		return err_errno(e, -ENOMEM, "freeze");
	numbers[n++] = 1;
	for (size_t i = 0; i < f->n; i++) {
		const struct ckpt_task *t = &f->tasks[i];
		pid_t number;
		int threads;

		if (t->pid != t->tid || t->state == CKPT_TASK_ENDED)
			continue;
		threads = look_at_process(f, t->pid, &number);
		if (threads < 0)
			continue;
		if (threads > count_known(f, t->pid) + count_ring_workers(f, t->pid) ||
			!known(f, t->tid))
			return 0;
		numbers[n++] = number;
	}
	sort_array(numbers, n, sizeof(*numbers), compare_pid);
	r = proc_list_numbers(f->o.session_proc, ".", &seen, &n_seen, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_seen; i++)
		if (!sort_find(&seen[i], numbers, n, sizeof(*numbers), compare_pid))
			return 0;
	return 1;
}

/*
 * Pid 1 runs on and reaps: who has ended and is its child is gone in a moment, and would be neither
 * in the session nor told of by then.  So he is waited for; not for long, it may be another pid 1
 * that does not care.  0: look again.
 */
static int no_orphan(struct ckpt_frozen *f)
{
	struct proc_status s;

	if (f->o.session_proc < 0)
		return 1;
	for (size_t i = 0; i < f->n; i++) {
		struct ckpt_task *t = &f->tasks[i];

		if (t->state != CKPT_TASK_ZOMBIE)
			continue;
		if (proc_read_status(f->o.host_proc, t->pid, &s, NULL) < 0) {
			t->state = CKPT_TASK_ENDED;
			continue;
		}
		if (s.ppid != f->o.init_pid || s.threads > 1)
			continue;
		if (!f->orphan_ns)
			f->orphan_ns = io_now_ns();
		if (io_now_ns() - f->orphan_ns > ORPHAN_NS)
			continue;
		usleep(ORPHAN_NAP_US);
		return 0;
	}
	return 1;
}

/*
 * All get the registers they will go on with.  Who was killed meanwhile, or has lost its number to
 * an exec, is forgotten, so that the next sweep takes up what it finds there.
 */
static int settle_all(struct ckpt_frozen *f)
{
	int all = 1;

	for (size_t i = 0; i < f->n; i++) {
		struct ckpt_task *t = &f->tasks[i];

		if (t->state != CKPT_TASK_STOPPED || ckpt_settle(&f->o, t->tid, &t->regs))
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
	sort_array(f->tasks, f->n, sizeof(*f->tasks), compare_task);
}

static int freeze_all(struct ckpt_frozen *f, struct err *e)
{
	for (;;) {
		int r;

		f->fresh = false;
		r = sweep(f, e);
		f->hinted = false;
		if (r == 0)
			r = fault_at(FAULT_FREEZE_SWEPT, e);
		/* From the second sweep on only threads are looked for, until
		 * somebody is missing. */
		f->shallow = f->o.session_proc >= 0 || f->o.n_only;
		if (r == 0 && !f->fresh) {
			r = nobody_else(f, e);
			if (r > 0)
				r = no_orphan(f);
			if (r > 0)
				r = settle_all(f);
			if (r != 0)
				return MIN(r, 0);
			f->shallow = f->o.n_only;
		}
		if (r == 0)
			r = ckpt_collect(f, e);
		if (r == 0 && io_now_ns() > f->deadline)
			r = ckpt_collect_too_late(f, e);
		if (r < 0)
			return r;
	}
}

/* ---- tasks that are traced already -------------------------------------------------------- */

static int note_sleepers(struct ckpt_frozen *f, struct err *e)
{
	_cleanup_free_ struct ckpt_held *held = NULL;
	ssize_t n = f->o.names->list(f->o.names->ctx, &held);
	int r = n < 0 ? err_errno(e, (int)n, "freeze") : 0;

	for (ssize_t i = 0; r == 0 && i < n; i++) {
		if (held[i].zombie)
			continue;
		r = ckpt_taskset_put(f, held[i].pid, held[i].tid, CKPT_TASK_ENDED, e);
		if (r == 0)
			ckpt_taskset_find(f, held[i].tid)->asleep_ns =
				ckpt_restart_asleep(f->o.host_proc, held[i].tid, &f->clocks);
	}
	return r;
}

static int take_held(struct ckpt_frozen *f, struct err *e)
{
	_cleanup_free_ struct ckpt_held *held = NULL;
	ssize_t n = f->o.names->list(f->o.names->ctx, &held);
	int r = n < 0 ? err_errno(e, (int)n, "freeze") : 0;

	for (ssize_t i = 0; r == 0 && i < n; i++) {
		struct ckpt_task *t = ckpt_taskset_find(f, held[i].tid);
		uint64_t asleep_ns = t ? t->asleep_ns : 0;

		r = ckpt_taskset_put(f, held[i].pid, held[i].tid,
			held[i].zombie ? CKPT_TASK_ZOMBIE : CKPT_TASK_STOPPED, e);
		t = r == 0 ? ckpt_taskset_find(f, held[i].tid) : NULL;
		if (t) {
			t->asleep_ns = asleep_ns;
			t->stop_signal = held[i].stop_signal;
		}
	}
	return r;
}

static int freeze_held(struct ckpt_frozen *f, struct err *e)
{
	int r = note_sleepers(f, e);

	if (r == 0)
		r = f->o.names->stop(
			f->o.names->ctx, (uint32_t)((f->deadline - f->since) / 1000000), e);
	if (r == 0)
		r = fault_at(FAULT_FREEZE_SWEPT, e);
	if (r == 0)
		r = take_held(f, e);
	if (r == 0 && !settle_all(f))
		r = err_set(e, ERR_UNFREEZABLE, -EAGAIN, "a task was killed while it was frozen");
	return r;
}

/* A freeze fails: whoever stands still already goes on as after one that succeeds. */
static void settle_held(struct ckpt_frozen *f)
{
	_cleanup_free_ struct ckpt_held *held = NULL;
	ssize_t n = f->o.names->list(f->o.names->ctx, &held);
	struct user_regs_struct regs;

	for (ssize_t i = 0; i < n; i++)
		if (!held[i].zombie)
			ckpt_settle(&f->o, held[i].tid, &regs);
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
	f->level = proc_level(o->host_proc, o->names ? 0 : o->init_pid);
	/* Who was met ahead needs not be looked for; whoever is missing is noticed. */
	f->hinted = o->session_proc >= 0 && ckpt_foreseen_process(o->foreseen, 0);
	f->shallow = o->n_only || f->hinted;
	f->since = io_now_ns();
	f->deadline = f->since + ms * 1000000ULL;
	/* Blocked, one that comes between the look at a task and the nap ends the nap. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	r = f->o.names ? freeze_held(f, e) : freeze_all(f, e);
	ckpt_reaper_stop(take_ptr(f->reaper));
	if (r < 0 && f->o.names)
		settle_held(f);
	f->settled = r == 0;
	if (r < 0)
		ckpt_frozen_release(f);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;
	put_in_order(f);
	*ret = f;
	return 0;
}

const struct ckpt_task *ckpt_frozen_tasks(const struct ckpt_frozen *f, size_t *ret_n)
{
	*ret_n = f->n;
	return f->tasks;
}

bool ckpt_frozen_expects(const struct ckpt_frozen *f, pid_t tid)
{
	const struct ckpt_task *t = ckpt_taskset_find(f, tid);

	return t && t->state == CKPT_TASK_SEIZED;
}

uint64_t ckpt_frozen_since(const struct ckpt_frozen *f)
{
	return f->since;
}

/*
 * On the way out of a failed freeze: what was told to stop will do so, and a call it is in would
 * end with EINTR.  So it is waited for, and told how to go on, as after a freeze that succeeds.
 */
static void settle_rest(struct ckpt_frozen *f)
{
	struct err ignored = {0};

	f->deadline = io_now_ns() + LEAVE_MS * 1000000ULL;
	ckpt_collect(f, &ignored);
	settle_all(f);
}

void ckpt_frozen_release(struct ckpt_frozen *f)
{
	if (!f)
		return;
	if (f->o.names)
		f->o.names->release(f->o.names->ctx);
	else if (!f->settled)
		settle_rest(f);
	for (size_t i = 0; i < f->n && !f->o.names; i++) {
		struct ckpt_task *t = &f->tasks[i];
		int status, sig = 0;

		/* On the way out of a failed freeze some have stopped since the last look. */
		if (t->state <= CKPT_TASK_LET_GO) {
			if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid ||
				!WIFSTOPPED(status))
				continue;
			if (trace_event(status) == PTRACE_EVENT_SECCOMP)
				ckpt_collect_enosys(t->tid);
			if (trace_event(status) == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80))
				sig = WSTOPSIG(status);
		}
		if (t->state <= CKPT_TASK_STOPPED &&
			ptrace(PTRACE_DETACH, t->tid, 0, (long)sig) == 0)
			continue;
		/* was it ours, and has ended or been killed, its parent is told only now */
		if (t->state <= CKPT_TASK_ZOMBIE)
			waitpid(t->tid, NULL, __WALL | WNOHANG);
	}
	free(f->tasks);
	free(f);
}
