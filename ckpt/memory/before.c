// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * before - what smaps says of processes that sleep, read before the session is stopped for a snapshot.
 *
 * Theory of operation
 *
 * Only /proc/PID/smaps tells a mapping's flags, and for each mapping it counts pages and prints twenty lines: five
 * times the time that `maps` takes, and of all that a desktop stands still for the longest part.  But most of its
 * processes do nothing at any moment, and who has not run since then has the mappings that he had:
 *
 *      how often each thread has given up its CPU, and that it sleeps; then smaps        (the session runs)
 *      the same number, but for the one time that our stop has taken                     (it stands still)
 *
 * What can change without the process is read again, with `maps`: paths of files.  It must agree in all else.  Nobody
 * else can change a process' mappings: those who share its memory are not looked at ahead, and process_madvise(2)
 * changes no flags of others.
 *
 * That number leaves a gap: a thread that had been woken and was on its way to sleep again, in the same call or in another,
 * when our stop came, has given up its CPU but once.  So what was taken over is looked at again, in the forked copy (fork.c), when the
 * session runs: a fork inherits all flags but two of locked memory, and leaves DONTFORK out.  If it is not the same, which takes an
 * madvise(2) within these microseconds, the snapshot fails and says so.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey.h"

#define WORTH_KB  2048UL /* less is perhaps not forked, and is read fast */
#define MAX_PROCS 4096

struct thread {
	pid_t tid;
	uint64_t switches;
};

struct process {
	pid_t pid;
	uint64_t start_time;
	struct thread *threads;
	size_t n_threads;
	struct proc_maps maps; /* empty: nothing is known */
};

struct ckpt_before {
	int host_proc;
	struct process *all; /* by pid */
	size_t n;
};

static uint64_t switches_of(const struct proc_status *s)
{
	return s->switches + s->forced_switches;
}

/* ---- while it runs -------------------------------------------------------------------------- */

/* True if all threads of @p sleep. */
static bool take_threads(int host_proc, struct process *p)
{
	_cleanup_free_ int *tids = NULL;
	struct proc_status s;
	char path[32];
	size_t n;

	snprintf(path, sizeof(path), "%d/task", p->pid);
	if (proc_list_numbers(host_proc, path, &tids, &n, NULL) < 0)
		return false;
	p->threads = calloc(n, sizeof(*p->threads));
	for (size_t i = 0; p->threads && i < n; i++) {
		if (proc_read_task_status(host_proc, p->pid, tids[i], &s, NULL) < 0 ||
			s.state != 'S')
			return false;
		if (i == 0 && (s.rss_anon_kb < WORTH_KB || s.vm_locked_kb))
			return false;
		if (i == 0)
			p->start_time = s.start_time;
		p->threads[p->n_threads++] = (struct thread){tids[i], switches_of(&s)};
	}
	return p->threads && n;
}

static int read_process(void *ctx, size_t i, struct err *e)
{
	struct ckpt_before *b = ctx;
	struct process *p = &b->all[i];

	/* Who has gone, or can't be read yet, is read later. */
	if (take_threads(b->host_proc, p) &&
		proc_read_maps(b->host_proc, p->pid, true, &p->maps, NULL) < 0)
		p->maps = (struct proc_maps){0};
	return 0;
}

/* Those below @pid, which is not among them. */
static void list_below(int host_proc, pid_t pid, struct buf *ret)
{
	_cleanup_free_ int *tids = NULL;
	char path[32];
	size_t n = 0;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (proc_list_numbers(host_proc, path, &tids, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ pid_t *children = NULL;
		size_t n_children = 0;

		if (proc_read_children(host_proc, pid, tids[i], &children, &n_children, NULL) == 0)
			buf_put(ret, children, n_children * sizeof(*children));
	}
}

static int compare(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

struct ckpt_before *ckpt_before_read(const struct ckpt_dump *d)
{
	struct ckpt_before *b = calloc(1, sizeof(*b));
	_cleanup_buf_ struct buf pids = BUF_INIT;

	if (!b)
		return NULL;
	b->host_proc = d->host_proc;
	list_below(d->host_proc, d->world->init_pid, &pids);
	for (size_t i = 0; i < pids.len / sizeof(pid_t) && i < MAX_PROCS; i++)
		list_below(d->host_proc, ((pid_t *)pids.data)[i], &pids);
	b->n = buf_error(&pids) < 0 ? 0 : pids.len / sizeof(pid_t);
	b->all = calloc(b->n + 1, sizeof(*b->all));
	if (!b->all)
		b->n = 0;
	for (size_t i = 0; i < b->n; i++)
		b->all[i].pid = ((pid_t *)pids.data)[i];
	sort_array(b->all, b->n, sizeof(*b->all), compare);
	par_each(b->n, read_process, b, NULL);
	b->host_proc = -1;
	return b;
}

void ckpt_before_free(struct ckpt_before *b)
{
	for (size_t i = 0; b && i < b->n; i++) {
		free(b->all[i].threads);
		proc_maps_fini(&b->all[i].maps);
	}
	if (b)
		free(b->all);
	free(b);
}

/* ---- while it stands still ------------------------------------------------------------------ */

/* It was stopped in the middle of a call, which will be made again. */
static bool in_call(const struct ckpt_thread *t)
{
	long long result = (long long)t->regs.rax;

	return (long long)t->regs.orig_rax >= 0 && result <= -512 && result >= -516;
}

static bool has_slept(const struct process *b, const struct ckpt_proc *p)
{
	if (b->n_threads != p->n_threads || b->start_time != p->status.start_time)
		return false;
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct ckpt_thread *t = p->threads[i];
		size_t k = 0;

		while (k < b->n_threads && b->threads[k].tid != t->tid)
			k++;
		if (k == b->n_threads || !in_call(t) ||
			switches_of(&t->status) != b->threads[k].switches + 1)
			return false;
	}
	return true;
}

/* Nobody else has its memory. */
static bool is_alone(const struct ckpt_proc *p)
{
	const struct ckpt_dump *d = p->dump;

	for (size_t i = 0; i < d->n_procs; i++)
		if (d->procs[i] != p && d->procs[i]->mm == p->vpid)
			return false;
	return p->mm == p->vpid && !p->i386 && p->state == CKPT_RUNNING && !p->headless;
}

static bool is_same(const struct proc_vma *a, const struct proc_vma *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->prot == b->prot && a->shared == b->shared && a->ino == b->ino &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Path and extents are those of now. */
static bool take_details(struct proc_maps *now, const struct proc_maps *before)
{
	if (now->n != before->n)
		return false;
	for (size_t i = 0; i < now->n; i++)
		if (!is_same(&now->vmas[i], &before->vmas[i]))
			return false;
	for (size_t i = 0; i < now->n; i++) {
		struct proc_vma *v = &now->vmas[i];
		const struct proc_vma *from = &before->vmas[i];

		memcpy(v->vm_flags, from->vm_flags, sizeof(v->vm_flags));
		v->swap_kb = from->swap_kb;
		v->rss_kb = from->rss_kb;
		v->anonymous_kb = from->anonymous_kb;
		v->page_kb = from->page_kb;
	}
	return true;
}

bool ckpt_before_take(struct ckpt_proc *p)
{
	const struct ckpt_before *b = p->dump->before;
	struct process key = {.pid = p->pid}, *found;

	found = b && b->n ? bsearch(&key, b->all, b->n, sizeof(key), compare) : NULL;
	if (!found || !found->maps.n || !is_alone(p) || !has_slept(found, p) ||
		!ckpt_pages_scanned(p) ||
		proc_read_maps(p->dump->host_proc, p->look, false, &p->maps, NULL) < 0)
		return false;
	p->from_before = take_details(&p->maps, &found->maps);
	if (!p->from_before)
		proc_maps_fini(&p->maps);
	return p->from_before;
}

/* ---- and afterwards ------------------------------------------------------------------------- */

/* Of the two-letter words of @flags the next that a fork inherits; NULL: no more. */
static const char *next_inherited(const char *flags)
{
	static const char *const others[] = {"lo", "lf", "sd"};

	for (;; flags += 2) {
		bool other = false;

		flags += strspn(flags, " ");
		if (!flags[0] || !flags[1])
			return NULL;
		for (size_t i = 0; i < ARRAY_SIZE(others); i++)
			other = other || !memcmp(flags, others[i], 2);
		if (!other)
			return flags;
	}
}

static bool are_same_flags(const char *a, const char *b)
{
	for (;; a += 2, b += 2) {
		a = next_inherited(a);
		b = next_inherited(b);
		if (!a || !b)
			return !a && !b;
		if (memcmp(a, b, 2) != 0)
			return false;
	}
}

int ckpt_before_check(struct ckpt_proc *p, pid_t pid, struct err *e)
{
	struct proc_maps now;
	size_t k = 0;
	int r = p->from_before ? proc_read_maps(p->dump->host_proc, pid, true, &now, e) : 1;

	if (r != 0)
		return MIN(r, 0);
	for (size_t i = 0; i < p->maps.n && r == 0; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];
		bool same;

		while (k < now.n && now.vmas[k].end <= v->start)
			k++;
		/* Neighbours that differed only in what a fork leaves out are one. */
		same = k < now.n && now.vmas[k].start <= v->start && now.vmas[k].end >= v->end
			       ? are_same_flags(v->vm_flags, now.vmas[k].vm_flags)
			       : proc_vma_has(v, "dc");
		if (!same && v->end <= CKPT_TASK_SIZE)
			r = err_set(e, ERR_UNFREEZABLE, -EAGAIN,
				"mapping %llx-%llx was changed while it was being stopped",
				(unsigned long long)v->start, (unsigned long long)v->end);
	}
	proc_maps_fini(&now);
	if (r < 0) {
		err_hint(e, "it happens once in many thousand snapshots: take another");
		err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	}
	return r;
}

static int check_copy(void *ctx, size_t i, struct err *e)
{
	struct ckpt_dump *d = ctx;
	struct ckpt_proc *p = d->procs[i];

	return p->memory_copy ? ckpt_before_check(p, remote_tid(p->memory_copy), e) : 0;
}

int ckpt_before_check_copies(struct ckpt_dump *d, struct err *e)
{
	return par_each(d->n_procs, check_copy, d, e);
}
