// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes and threads of a frozen session.  Everything is asked from outside, of /proc; the one
 * exception is a thread inside the vDSO, which is stepped out of it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "base/base.h"
#include "ckpt/code.h"
#include "ckpt/filters.h"
#include "ckpt/freeze/foreseen.h"
#include "ckpt/freeze/freeze.h"
#include "ckpt/freeze/step.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/i386.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"

#define OPEN_AT_ONCE  32
#define WORTH_THREADS 16 /* tasks, to be asked about by more than one thread */

struct ckpt_proc *ckpt_proc_by_vpid(const struct ckpt_dump *d, pid_t vpid)
{
	size_t lo = 0, hi = d->n_procs;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (d->procs[mid]->vpid == vpid)
			return d->procs[mid];
		if (d->procs[mid]->vpid < vpid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

struct ckpt_proc *ckpt_proc_by_pid(const struct ckpt_dump *d, pid_t pid)
{
	for (size_t i = 0; i < d->n_procs; i++)
		if (d->procs[i]->pid == pid)
			return d->procs[i];
	return NULL;
}

/* ---- processes and threads ---------------------------------------------------------------- */

/* A number as the session has it: in its namespace, or where that is the host's, by the table. */
static pid_t own_number(const struct ckpt_dump *d, const pid_t *levels, const struct proc_status *s)
{
	const struct ckpt_names *names = d->world->names;
	pid_t number = proc_at_level(levels, s, d->level);

	return names && number ? names->number(names->ctx, number) : number;
}

/* What /proc says of a task, if it does. */
struct said {
	struct proc_status status;
	bool known;
};

struct asking {
	const struct ckpt_dump *d;
	const struct ckpt_task *tasks;
	struct said *said;
};

static int ask_of_task(void *ctx, size_t i, struct err *e)
{
	const struct asking *a = ctx;
	const struct ckpt_task *t = &a->tasks[i];
	struct said *s = &a->said[i];

	s->known = (ckpt_foreseen_status(a->d->foreseen, t->tid, &s->status) == 0 &&
			   s->status.tgid == t->pid) ||
		   proc_read_task_status(
			   a->d->host_proc, t->pid, t->tid, &s->status, NULL) == 0;
	return 0;
}

/* Of few by one thread: to start another takes longer. */
static int ask_of_all(const struct ckpt_dump *d, const struct ckpt_task *tasks, size_t n,
	struct said **ret, struct err *e)
{
	struct asking a = {.d = d, .tasks = tasks, .said = calloc(n + 1, sizeof(struct said))};

	if (!a.said)
		return err_errno(e, -ENOMEM, "survey");
	if (n >= WORTH_THREADS)
		par_each(n, ask_of_task, &a, NULL);
	for (size_t i = 0; n < WORTH_THREADS && i < n; i++)
		ask_of_task(&a, i, NULL);
	*ret = a.said;
	return 0;
}

static int add_thread(struct ckpt_dump *d, struct ckpt_proc *p, const struct ckpt_task *t,
	const struct said *said, struct err *e)
{
	struct ckpt_thread *th = calloc(1, sizeof(*th));
	int r = 0;

	if (!th)
		return err_errno(e, -ENOMEM, "survey");
	p->threads[p->n_threads++] = th;
	th->proc = p;
	th->tid = t->tid;
	th->regs = t->regs;
	th->asleep_ns = t->asleep_ns;
	th->slept = t->slept;
	if (said->known)
		th->status = said->status;
	else
		r = proc_read_task_status(d->host_proc, t->pid, t->tid, &th->status, e);
	th->vtid = own_number(d, th->status.ns_pid, &th->status);
	return r;
}

static void free_proc(struct ckpt_proc *p)
{
	for (size_t i = 0; i < p->n_threads; i++) {
		remote_forget(p->threads[i]->remote);
		free(p->threads[i]->asked);
		free(p->threads[i]);
	}
	free(p->threads);
	free(p->mappings);
	proc_maps_fini(&p->maps);
	buf_fini(&p->memory_pages);
	buf_fini(&p->memory_guards);
	buf_fini(&p->memory_kept);
	close_fd(p->pidfd);
	free(p->fds);
	free(p);
}

/* Numbers and threads of @p, whose tasks these are. */
static int fill_threads(struct ckpt_dump *d, struct ckpt_proc *p, const struct ckpt_task *tasks,
	const struct said *said, size_t n, struct err *e)
{
	struct proc_status leader = said->status;
	int r = 0;

	if (!said->known || tasks[0].tid != p->pid)
		r = proc_read_task_status(d->host_proc, p->pid, p->pid, &leader, e);
	/* /proc shows little of a process whose leader is dead, and ptrace can't reach that. */
	p->headless = n > 1 && tasks[0].state == CKPT_TASK_ZOMBIE;
	for (size_t i = p->headless; i < n && r == 0; i++) {
		r = add_thread(d, p, &tasks[i], &said[i], e);
		if (tasks[i].stop_signal) {
			p->state = CKPT_STOPPED;
			p->stop_signal = tasks[i].stop_signal;
		}
	}
	if (r < 0)
		return r;
	p->look = p->threads[0]->tid;
	p->status = p->threads[0]->status;
	memcpy(p->status.comm, leader.comm, sizeof(leader.comm));
	p->status.exit_signal = leader.exit_signal;
	p->vpid = own_number(d, leader.ns_pid, &leader);
	return 0;
}

/* Of the @n tasks that are one process, the leader first. */
static int make_proc(struct ckpt_dump *d, const struct ckpt_task *tasks, const struct said *said,
	size_t n, struct ckpt_proc **ret, struct err *e)
{
	struct ckpt_proc *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return err_errno(e, -ENOMEM, "survey");
	p->dump = d;
	p->pidfd = -1;
	p->pid = tasks[0].pid;
	p->threads = calloc(n, sizeof(struct ckpt_thread *));
	if (!p->threads)
		r = err_errno(e, -ENOMEM, "survey");
	if (r == 0)
		r = fill_threads(d, p, tasks, said, n, e);
	if (r < 0) {
		free_proc(p);
		return r;
	}
	if (n == 1 && tasks[0].state == CKPT_TASK_ZOMBIE)
		p->state = CKPT_ZOMBIE;
	p->vpgid = own_number(d, p->status.ns_pgid, &p->status);
	p->vsid = own_number(d, p->status.ns_sid, &p->status);
	p->mm = p->files = p->fs = p->sighand = p->vpid;
	*ret = p;
	return 0;
}

static int compare_vpid(const void *a, const void *b)
{
	const struct ckpt_proc *x = *(struct ckpt_proc *const *)a;
	const struct ckpt_proc *y = *(struct ckpt_proc *const *)b;

	return (x->vpid > y->vpid) - (x->vpid < y->vpid);
}

static int find_parents(struct ckpt_dump *d, struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];
		const struct ckpt_proc *parent = ckpt_proc_by_pid(d, p->status.ppid);

		if (p->status.ppid == d->world->init_pid)
			p->vppid = 1;
		else if (parent)
			p->vppid = parent->vpid;
		else
			return err_set(e, ERR_UNFREEZABLE, -ESRCH,
				"task %d (%s) has a parent outside the session", p->vpid,
				p->status.comm);
	}
	return 0;
}

int ckpt_survey_tasks(struct ckpt_dump *d, const struct ckpt_frozen *f, struct err *e)
{
	_cleanup_free_ struct said *said = NULL;
	size_t n, count;
	const struct ckpt_task *t = ckpt_frozen_tasks(f, &n);

	d->procs = calloc(n + 1, sizeof(struct ckpt_proc *));
	if (!d->procs)
		return err_errno(e, -ENOMEM, "survey");
	if (ask_of_all(d, t, n, &said, e) < 0)
		return e->error;
	for (size_t i = 0; i < n; i += count) {
		struct ckpt_proc *p = NULL;
		bool zombie;
		int r;

		for (count = 1; i + count < n && t[i + count].pid == t[i].pid;)
			count++;
		/* Pid 1 runs, and may reap its dead children now: it has told of them then. */
		zombie = count == 1 && t[i].state == CKPT_TASK_ZOMBIE;
		r = make_proc(d, t + i, said + i, count, &p, zombie ? NULL : e);
		if (r < 0 && zombie)
			continue;
		if (r < 0)
			return r;
		d->procs[d->n_procs++] = p;
		d->report.tasks += (uint32_t)p->n_threads;
	}
	d->report.processes = (uint32_t)d->n_procs;
	sort_array(d->procs, d->n_procs, sizeof(struct ckpt_proc *), compare_vpid);
	return find_parents(d, e);
}

/* ---- 32-bit programs ----------------------------------------------------------------------- */

static int look_at_code(const struct ckpt_proc *p, const struct ckpt_thread *t, struct err *e)
{
	int r = remote_judge_code(t->tid, &t->regs, e);

	if (r == 0 && i386_runs(&t->regs) != p->i386)
		r = err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a process that runs both 64-bit and 32-bit code is not supported");
	return r < 0 ? err_wrap(e, "task %d (%s)", t->vtid, t->status.comm) : 0;
}

int ckpt_survey_code(struct ckpt_dump *d, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state == CKPT_ZOMBIE)
			continue;
		p->i386 = i386_runs(&p->threads[0]->regs);
		for (size_t k = 0; r == 0 && k < p->n_threads; k++)
			if (p->threads[k]->status.state != 'Z')
				r = look_at_code(p, p->threads[k], e);
	}
	return r;
}

/* ---- seccomp filters ----------------------------------------------------------------------- */

static int look_at_filters(
	const struct ckpt_dump *d, struct ckpt_thread *t, int of_init, struct err *e)
{
	if (t->status.state == 'Z')
		return 0;
	t->own_filters = t->status.seccomp_filters - of_init;
	if (t->own_filters && t->proc->i386) {
		err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a 32-bit program under seccomp filters of the session's own is not supported");
		return err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
	}
	if (!t->own_filters || (d->options.filters && !ckpt_filters_foreign(d->options.filters)))
		return 0;
	err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "it may have a seccomp filter that is not known");
	err_hint(e, "one was installed while traced, by a 32-bit program, or was too long");
	return err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
}

int ckpt_survey_filters(struct ckpt_dump *d, struct err *e)
{
	struct proc_status init;
	int r = proc_read_status(d->host_proc, d->world->init_pid, &init, e);

	/* Without a filter of podrun's there is nobody who could know others. */
	if (r == 0 && !init.seccomp_filters)
		return 0;
	for (size_t i = 0; i < d->n_procs; i++)
		for (size_t k = 0; r == 0 && k < d->procs[i]->n_threads; k++)
			r = look_at_filters(d, d->procs[i]->threads[k], init.seccomp_filters, e);
	return r;
}

/* ---- memory maps, and out of the vDSO ----------------------------------------------------- */

static bool inside(const struct proc_vma *v, const struct ckpt_thread *t)
{
	return v && (long)t->regs.orig_rax < 0 && t->regs.rip >= v->start && t->regs.rip < v->end;
}

/* Being stepped makes the kernel forget that SIGTRAP was ignored. */
static int ignore_again(struct ckpt_thread *t, struct err *e)
{
	struct {
		uint64_t handler, flags, restorer, mask;
	} action = {.handler = (uint64_t)(uintptr_t)SIG_IGN};
	struct remote *r;
	int k = ckpt_thread_remote(t, &r, e);

	return k < 0 ? k
		     : remote_must(r, NULL, e, SYS_rt_sigaction, SIGTRAP,
			       remote_put(r, &action, sizeof(action)), 0, sizeof(action.mask), 0,
			       0);
}

static int leave_vdso(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	const struct proc_vma *vdso = NULL;
	bool stepped = false;
	int r = 0;

	for (size_t i = 0; i < p->maps.n; i++)
		if (!strcmp(p->maps.vmas[i].path, "[vdso]"))
			vdso = &p->maps.vmas[i];
	if (vdso)
		r = ckpt_code_check_vdso(p->look, p->i386, vdso->start, e);
	for (size_t i = 0; i < p->n_threads && r == 0; i++) {
		struct ckpt_thread *t = p->threads[i];

		if (!inside(vdso, t) ||
			(p->i386 && ckpt_code_leave_vsyscall(t->tid, &t->regs, vdso->start)))
			continue;
		r = ckpt_step_out(d->host_proc, t->tid, &p->maps, vdso, &t->regs, e);
		stepped = true;
	}
	/* what it did on the way may have touched a page, of whoever shares its memory */
	if (stepped)
		ckpt_proc_by_vpid(d, p->mm)->memory_scanned = false;
	if (r == 0 && stepped && (p->status.sig_ignored & 1ULL << (SIGTRAP - 1)))
		r = ignore_again(p->threads[0], e);
	return r;
}

/*
 * A program that has made itself not dumpable (ssh-agent does) keeps its files of /proc from
 * everybody but root; that they belong to him gives it away.  While it is frozen it is dumpable,
 * which is noted where ckpt/mend.c finds it should we die.
 */
int ckpt_survey_open_up(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	struct remote *r;
	struct stat st;
	char path[24];
	int k;

	snprintf(path, sizeof(path), "%d/fd", p->look);
	if (geteuid() == 0 || fstatat(d->host_proc, path, &st, 0) < 0 || st.st_uid == geteuid())
		return 0;
	k = ckpt_proc_remote(p, &r, e);
	if (k == 0)
		k = remote_note(r, CKPT_NOTE_CLOSED, e);
	if (k == 0)
		k = remote_must(r, NULL, e, SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0);
	p->closed = k == 0;
	return k;
}

static void close_again(struct ckpt_proc *p)
{
	struct remote *r = p->n_threads ? p->threads[0]->remote : NULL;
	struct err e = {0};

	if (p->closed && r &&
		remote_must(r, NULL, &e, SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0) < 0)
		log_info("thaw: %s", e.msg);
	p->closed = false;
}

/*
 * A file that is on the host may be there no more for the session, which is said as the kernel says
 * it.
 */
static void note_deleted(const struct ckpt_world *w, struct proc_vma *v)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(v->path), tail = strlen(deleted);

	if (!w->paths || v->deleted || len <= tail || v->path[0] != '/' ||
		strcmp(v->path + len - tail, deleted))
		return;
	v->deleted = true;
	v->path[len - tail] = '\0';
}

static int read_maps_of(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	if (!p->from_before && proc_read_maps(d->host_proc, p->look, !p->outlined, &p->maps, e) < 0)
		return err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	for (size_t k = 0; k < p->maps.n; k++) {
		struct proc_vma *v = &p->maps.vmas[k];

		v->path = ckpt_where_say(d->world, v->path);
		if (!v->path)
			return err_errno(e, -ENOMEM, "maps");
		note_deleted(d->world, v);
	}
	/* Beside others, while the page tables are still at hand. */
	if (p->mm != p->vpid || d->options.ahead)
		return 0;
	return ckpt_space_scan(d, p, e) < 0 ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm)
					    : 0;
}

static int read_maps(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	if (p->state == CKPT_ZOMBIE)
		return 0;
	p->from_before = ckpt_before_take(p);
	p->outlined = !p->from_before && ckpt_outline_pays(p);
	return read_maps_of(d, p, e);
}

/* What is read of /proc: number 0 is something else, the others are maps. */
struct reading {
	struct ckpt_dump *d;
	int (*other)(struct ckpt_dump *d, struct err *e);
};

static int read_one(void *ctx, size_t i, struct err *e)
{
	const struct reading *r = ctx;

	return i ? read_maps(r->d, r->d->procs[i - 1], e) : r->other(r->d, e);
}

/* Out of the vDSO: what its copy has in memory belongs to these registers. */
static int take_outline(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	bool outlined = p->outlined;
	struct err why = {0};

	p->outlined = false;
	if (!outlined || ckpt_outline_take(d, p, &why) == 0)
		return 0;
	log_info("task %d: %s", p->vpid, why.msg);
	proc_maps_fini(&p->maps);
	return read_maps_of(d, p, e);
}

static int each_living(struct ckpt_dump *d,
	int (*each)(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e), struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state != CKPT_ZOMBIE && each(d, p, e) < 0)
			return err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	}
	return 0;
}

/*
 * What is traced is up to this thread; smaps and page maps, the longest part by far, to all CPUs.
 */
int ckpt_survey_memory(
	struct ckpt_dump *d, int (*other)(struct ckpt_dump *d, struct err *e), struct err *e)
{
	int r = each_living(d, ckpt_survey_open_up, e);

	ckpt_before_look_again(d->before);
	if (r == 0)
		r = par_each(d->n_procs + 1, read_one, &(struct reading){d, other}, e);
	if (r == 0)
		r = each_living(d, leave_vdso, e);
	if (r == 0)
		r = each_living(d, take_outline, e);
	return r;
}

/* ---- remotes ------------------------------------------------------------------------------ */

static struct remote *remote_of_same_memory(const struct ckpt_dump *d, const struct ckpt_proc *p)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *q = d->procs[i];

		for (size_t k = 0; q->mm == p->mm && k < q->n_threads; k++)
			if (q->threads[k]->remote)
				return q->threads[k]->remote;
	}
	return NULL;
}

int ckpt_thread_remote(struct ckpt_thread *t, struct remote **ret, struct err *e)
{
	const struct ckpt_dump *d = t->proc->dump;
	struct remote *sibling;
	int r = 0;

	if (!t->remote) {
		sibling = remote_of_same_memory(d, t->proc);
		if (sibling)
			r = remote_open_thread(&t->remote, t->tid, sibling, e);
		else if (t->own_filters)
			r = remote_open_guarded(&t->remote, d->host_proc, t->tid, 0, e);
		else
			r = remote_open(&t->remote, d->host_proc, t->tid, 0, e);
		if (r == 0 && t->own_filters)
			remote_set_guarded(t->remote);
	}
	if (r < 0)
		return err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
	*ret = t->remote;
	return 0;
}

/* Those which are opened without further ado. */
static bool opens_plainly(const struct ckpt_dump *d, const struct ckpt_proc *p)
{
	return p->state != CKPT_ZOMBIE && p->mm == p->vpid && !p->threads[0]->own_filters &&
	       !remote_of_same_memory(d, p);
}

void ckpt_survey_enter(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs;) {
		struct ckpt_thread *of[OPEN_AT_ONCE];
		struct remote *opened[OPEN_AT_ONCE] = {0};
		pid_t tids[OPEN_AT_ONCE];
		size_t n = 0;

		for (; i < d->n_procs && n < OPEN_AT_ONCE; i++) {
			if (!opens_plainly(d, d->procs[i]))
				continue;
			of[n] = d->procs[i]->threads[0];
			tids[n] = of[n]->tid;
			n++;
		}
		remote_open_many(opened, d->host_proc, tids, n);
		for (size_t k = 0; k < n; k++)
			of[k]->remote = opened[k];
	}
}

void ckpt_survey_leave(struct ckpt_dump *d)
{
	_cleanup_free_ struct remote **list = NULL;
	size_t n = 0, all = 0;

	for (size_t i = 0; i < d->n_procs; i++) {
		close_again(d->procs[i]);
		all += d->procs[i]->n_threads;
	}
	list = calloc(all + 1, sizeof(struct remote *));
	for (size_t i = 0; i < d->n_procs; i++) {
		for (size_t k = 0; k < d->procs[i]->n_threads; k++) {
			struct remote *r = take_ptr(d->procs[i]->threads[k]->remote);

			if (list)
				list[n++] = r;
			else
				remote_close_all(&r, 1);
		}
	}
	if (list)
		remote_close_all(list, n);
}

void ckpt_survey_free(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs; i++)
		free_proc(d->procs[i]);
	free(d->procs);
	free(take_ptr(d->nested));
	d->procs = NULL;
	d->n_procs = d->n_nested = 0;
}
