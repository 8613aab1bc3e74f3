// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * before - what smaps says of processes that sleep, read before the session is stopped for a
 * snapshot.
 *
 * Theory of operation
 *
 * Only /proc/PID/smaps tells a mapping's flags, and for each mapping it counts pages and prints
 * twenty lines: five times the time that `maps` takes, and of all that a desktop stands still for
 * the longest part.  But most of its processes do nothing at any moment, and who has not run since
 * then has the mappings that he had:
 *
 *      how often each thread has given up its CPU, and that it sleeps; then smaps        (the session runs)
 *      the same number, but for the one time that our stop has taken                     (it stands still)
 *
 * Where many are stopped at the same time one may lose its CPU to another on its way, and has given it
 * up twice.  So who is known to have slept all the time until just before its stop (foreseen.h) is
 * believed at once, where the kernel tells that.
 *
 * Nobody else can change a process' mappings: those who share its memory are not looked at ahead,
 * and process_madvise(2) changes no flags of others.  The names of their files others can change:
 * those are looked at, each once (seen.c).
 *
 * Both leave a gap: a thread that was woken just before, or had been woken and was on its way to
 * sleep again, in the same call or in another, when our stop came.  So what was taken over is looked
 * at again, in the forked copy (fork.c), when the session runs: a fork inherits all mappings and
 * their flags but two of locked memory, and leaves DONTFORK out.  If it is not the same, which takes
 * an mmap(2) or madvise(2) within these microseconds, the snapshot fails and says so.
 *
 * Guard pages, for which the kernel walks over all of its pages, are of the same kind: only the
 * process itself can make or remove them, and a fork inherits those of the mappings that it
 * copies.  One that has others tells of them when it stands still.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

#define WORTH_KB  256UL /* less is read fast, and copied faster than forked */
#define MAX_PROCS 4096
#define RECORDS	  (64UL << 10) /* of a process, more or less */
#define FILES	  (1UL << 20)  /* small ones of the session's own */
#define HEAP	  (512UL << 10) /* of the heap, whoever is there */
#define HEAP_MAPPING 256	/* and for each mapping: described, and packed */
#define SHARED_KB 1024UL       /* shared memory in use: less is nothing to ask for in advance */

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
	struct buf guards;     /* struct ckpt_run: its guard pages, if they are known */
	bool guards_known;
	uint64_t unforked_kb; /* its private memory, if it won't be forked */
	uint64_t shared_kb;   /* shared memory that it uses */
	struct proc_maps plain; /* where that is, if @maps does not tell */
};

struct ckpt_before {
	const struct ckpt_dump *dump;
	int host_proc;
	struct process *all; /* by pid */
	size_t n;
	struct ckpt_seen *seen; /* files of all of them */
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

/* Its guard pages may be left out of a copy. */
static bool may_lose_guards(const struct proc_vma *v)
{
	return v->shared || v->ino || proc_vma_has(v, "dc") || proc_vma_has(v, "wf");
}

/* A copy will have all of them: there they can be looked at again. */
static bool are_inherited(const struct process *p)
{
	const struct ckpt_run *g = (const struct ckpt_run *)p->guards.data;
	size_t n = p->guards.len / sizeof(*g), k = 0;

	for (size_t i = 0; i < p->maps.n; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];

		while (k < n && g[k].end <= v->start)
			k++;
		if (k < n && g[k].start < v->end && may_lose_guards(v))
			return false;
	}
	return true;
}

static bool find_guards(int host_proc, pid_t pid, struct buf *ret, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;

	return ckpt_pages_open(&pages, host_proc, pid, e) == 0 && ckpt_pages_scans(&pages) &&
	       ckpt_pages_find_guards(&pages, 0, CKPT_TASK_SIZE, ret, e) == 0;
}

/* Who can't be read yet is read later; so is who has no copy to be read of. */
static void read_sleeper(struct ckpt_before *b, struct process *p)
{
	if (p->unforked_kb || !take_threads(b->host_proc, p))
		return;
	if (proc_read_maps(b->host_proc, p->pid, true, &p->maps, NULL) < 0)
		p->maps = (struct proc_maps){0};
	else
		p->guards_known =
			find_guards(b->host_proc, p->pid, &p->guards, NULL) && are_inherited(p);
}

static int read_process(void *ctx, size_t i, struct err *e)
{
	struct ckpt_before *b = ctx;
	struct process *p = &b->all[i];
	struct proc_status s;

	if (proc_read_status(b->host_proc, p->pid, &s, NULL) < 0)
		return 0; /* it has gone */
	if (ckpt_has_another_pid_1(b->dump, &s))
		p->unforked_kb = MAX(s.rss_anon_kb, 1UL);
	p->shared_kb = s.rss_shmem_kb;
	read_sleeper(b, p);
	if (p->shared_kb >= SHARED_KB && !p->maps.n &&
		proc_read_maps(b->host_proc, p->pid, false, &p->plain, NULL) < 0)
		p->plain = (struct proc_maps){0};
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

static void look_at_files(struct ckpt_before *b, const struct ckpt_world *w, bool may_open)
{
	_cleanup_free_ struct proc_maps **maps = calloc(b->n + 1, sizeof(struct proc_maps *));

	for (size_t i = 0; maps && i < b->n; i++)
		maps[i] = &b->all[i].maps;
	b->seen = maps ? ckpt_seen_look(w, may_open, maps, b->n) : NULL;
}

struct ckpt_before *ckpt_before_read(const struct ckpt_dump *d, bool may_open)
{
	struct ckpt_before *b = calloc(1, sizeof(*b));
	_cleanup_buf_ struct buf pids = BUF_INIT;

	if (!b)
		return NULL;
	b->dump = d;
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
	look_at_files(b, d->world, may_open);
	b->dump = NULL;
	b->host_proc = -1;
	return b;
}

uint64_t ckpt_before_unforked(const struct ckpt_before *b)
{
	uint64_t kb = 0;

	for (size_t i = 0; b && i < b->n; i++)
		kb += b->all[i].unforked_kb;
	return kb * 1024;
}

/* A shared mapping of what is on no disk. */
static bool is_memory(const struct proc_vma *v)
{
	return v->shared && v->ino && (v->deleted || !v->dev_major);
}

/* How far a mapping reaches in its object. */
struct reach {
	uint64_t ino, end;
};

static int compare_reach(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;

	return x->ino == y->ino ? (x->end > y->end) - (x->end < y->end)
				: (x->ino > y->ino) - (x->ino < y->ino);
}

/* Bytes of all objects of which somebody has a mapping, each once. */
static uint64_t objects_of(const struct ckpt_before *b)
{
	_cleanup_buf_ struct buf all = BUF_INIT;
	struct reach *x;
	uint64_t bytes = 0;
	size_t n;

	for (size_t i = 0; i < b->n; i++) {
		const struct process *p = &b->all[i];
		const struct proc_maps *maps = p->maps.n ? &p->maps : &p->plain;

		for (size_t k = 0; k < maps->n; k++) {
			const struct proc_vma *v = &maps->vmas[k];
			struct reach one = {v->ino, v->offset + (v->end - v->start)};

			if (is_memory(v))
				buf_put(&all, &one, sizeof(one));
		}
	}
	x = (struct reach *)all.data;
	n = all.len / sizeof(*x);
	sort_array(x, n, sizeof(*x), compare_reach);
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || x[i + 1].ino != x[i].ino)
			bytes += x[i].end;
	return bytes;
}

/* As many as are used, which several may share, and as there can be, of which few may be used. */
uint64_t ckpt_before_shared(const struct ckpt_before *b)
{
	uint64_t kb = 0, most;

	for (size_t i = 0; b && i < b->n; i++)
		kb += b->all[i].shared_kb;
	if (kb < SHARED_KB)
		return 0;
	most = objects_of(b);
	return MIN(kb * 1024, most);
}

size_t ckpt_before_heap(const struct ckpt_before *b)
{
	size_t n = 0;

	for (size_t i = 0; b && i < b->n; i++)
		n += b->all[i].maps.n;
	return HEAP + n * HEAP_MAPPING;
}

uint64_t ckpt_before_records(const struct ckpt_before *b)
{
	return b ? FILES + b->n * RECORDS : 0;
}

void ckpt_before_free(struct ckpt_before *b)
{
	for (size_t i = 0; b && i < b->n; i++) {
		free(b->all[i].threads);
		buf_fini(&b->all[i].guards);
		proc_maps_fini(&b->all[i].maps);
		proc_maps_fini(&b->all[i].plain);
	}
	if (b) {
		ckpt_seen_free(b->seen);
		free(b->all);
	}
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
			(!t->slept && switches_of(&t->status) != b->threads[k].switches + 1))
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

void ckpt_before_look_again(struct ckpt_before *b)
{
	if (b && b->seen)
		ckpt_seen_look_again(b->seen);
}

bool ckpt_before_take(struct ckpt_proc *p)
{
	struct ckpt_before *b = p->dump->before;
	struct process key = {.pid = p->pid}, *found;

	found = b && b->n && b->seen ? bsearch(&key, b->all, b->n, sizeof(key), compare) : NULL;
	if (!found || found->unforked_kb || !found->maps.n || !is_alone(p) ||
		!has_slept(found, p) || !ckpt_seen_all(b->seen, &found->maps) ||
		!ckpt_pages_scanned(p))
		return false;
	p->maps = found->maps;
	found->maps = (struct proc_maps){0};
	if (found->guards_known) {
		p->memory_guards = found->guards;
		found->guards = BUF_INIT;
	}
	p->guards_from_before = found->guards_known;
	p->from_before = true;
	return true;
}

bool ckpt_before_mark(
	const struct ckpt_before *b, const char *path, uint64_t ino, struct ckpt_file_mark *ret)
{
	return b && b->seen && ckpt_seen_mark(b->seen, path, ino, ret);
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

/*
 * Is @v a part of @now, or all of it?  Neighbours that differed only in what a fork leaves out may
 * be one.
 */
static bool is_part(const struct proc_vma *v, const struct proc_vma *now)
{
	return now->start <= v->start && now->end >= v->end && now->prot == v->prot &&
	       now->shared == v->shared && now->ino == v->ino && now->dev_major == v->dev_major &&
	       now->dev_minor == v->dev_minor && now->key == v->key &&
	       (!v->ino || now->offset + (v->start - now->start) == v->offset) &&
	       are_same_flags(v->vm_flags, now->vm_flags);
}

static int has_changed(uint64_t start, uint64_t end, struct err *e)
{
	err_set(e, ERR_UNFREEZABLE, -EAGAIN,
		"mapping %llx-%llx was changed while it was being stopped",
		(unsigned long long)start, (unsigned long long)end);
	return err_hint(e, "it happens once in many thousand snapshots: take another");
}

/* All that it had it has. */
static int lacks_nothing(const struct ckpt_proc *p, const struct proc_maps *now, struct err *e)
{
	size_t k = 0;

	for (size_t i = 0; i < p->maps.n && p->maps.vmas[i].end <= CKPT_TASK_SIZE; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];
		bool there;

		while (k < now->n && now->vmas[k].end <= v->start)
			k++;
		there = k < now->n && now->vmas[k].start < v->end;
		if (there ? !is_part(v, &now->vmas[k]) : !proc_vma_has(v, "dc"))
			return has_changed(v->start, v->end, e);
	}
	return 0;
}

/* And nothing more, but the executor's pages. */
static int has_no_more(const struct ckpt_proc *p, const struct proc_maps *now, struct err *e)
{
	size_t k = 0;

	for (size_t i = 0; i < now->n && now->vmas[i].end <= CKPT_TASK_SIZE; i++) {
		const uint64_t end = now->vmas[i].end;
		struct proc_vma v = now->vmas[i];

		while (v.start < end) {
			while (k < p->maps.n && p->maps.vmas[k].end <= v.start)
				k++;
			v.end = v.start + PAGE_SIZE;
			if (k < p->maps.n && p->maps.vmas[k].start <= v.start)
				v.start = p->maps.vmas[k].end;
			else if (ckpt_mapping_is_ours(p, &v))
				v.start = v.end;
			else
				return has_changed(v.start, end, e);
		}
	}
	return 0;
}

/* The first place where the two, in order, differ; 0: none. */
static uint64_t first_difference(const struct buf *a, const struct buf *b)
{
	const struct ckpt_run *x = (const struct ckpt_run *)a->data;
	const struct ckpt_run *y = (const struct ckpt_run *)b->data;
	size_t n = a->len / sizeof(*x), m = b->len / sizeof(*y), i = 0;

	while (i < n && i < m && x[i].start == y[i].start && x[i].end == y[i].end)
		i++;
	if (i < n && i < m)
		return MIN(x[i].start, y[i].start);
	return i < n ? x[i].start : i < m ? y[i].start : 0;
}

static int has_same_guards(const struct ckpt_proc *p, pid_t pid, struct err *e)
{
	_cleanup_buf_ struct buf now = BUF_INIT;
	uint64_t at;

	if (!p->guards_from_before)
		return 0;
	if (!find_guards(p->dump->host_proc, pid, &now, e))
		return err_is(e) ? e->error : err_errno(e, -EIO, "guard pages");
	at = first_difference(&p->memory_guards, &now);
	return at ? has_changed(at, at + PAGE_SIZE, e) : 0;
}

int ckpt_before_check(struct ckpt_proc *p, pid_t pid, struct err *e)
{
	struct proc_maps now;
	int r = p->from_before ? proc_read_maps(p->dump->host_proc, pid, true, &now, e) : 1;

	if (r != 0)
		return MIN(r, 0);
	r = lacks_nothing(p, &now, e);
	if (r == 0)
		r = has_no_more(p, &now, e);
	proc_maps_fini(&now);
	if (r == 0)
		r = has_same_guards(p, pid, e);
	return r < 0 ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm) : 0;
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
