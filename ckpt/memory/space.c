// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * space - the private pages of a memory space.
 *
 * Theory of operation
 *
 * They are looked for while the session stands still; but where a snapshot will copy the space
 * (fork.c), only the guard pages, which belong into the record, are.  A copy has the same private
 * pages where the task has them, none of those that the task has of files, and its own to be looked
 * at when the session runs.  What a fork leaves out is looked for, mapping by mapping, as it is
 * written.  Where the kernel does not scan pages (Linux 6.7), this is not done: guard pages alone
 * take as long as all.
 *
 * Shared mappings belong to their files, to kind SHARED_MEM or to System V segments.  Droppable
 * memory (vgetrandom's state) comes back empty on purpose: a copy must not repeat random numbers.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/memory/ahead.h"
#include "ckpt/memory/aside.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"

#define RESERVED (1ull << 30)
#define LARGE	 (4ull << 20)

#define UNFORKED (PB__MAPPING_FLAG__MAPPING_DONTFORK | PB__MAPPING_FLAG__MAPPING_WIPEONFORK)

static bool is_private(const Pb__Mapping *m)
{
	return m->source <= PB__MAPPING_SOURCE__MAPPING_SHARED &&
	       !(m->flags &
		       (PB__MAPPING_FLAG__MAPPING_IS_SHARED | PB__MAPPING_FLAG__MAPPING_DROPPABLE));
}

/*
 * Of a fork's huge pages one of the two loses its own when the pool is empty: they count as not
 * forked.
 */
static bool is_forked(const Pb__Mapping *m)
{
	return !(m->flags & UNFORKED) && !m->huge_page;
}

static bool is_wanted(const Pb__Mapping *m, enum ckpt_space_part part)
{
	if (!is_private(m))
		return false;
	return part == CKPT_SPACE_ALL || is_forked(m) == (part == CKPT_SPACE_FORKED);
}

/*
 * Address space that somebody has reserved and not used: a terabyte of it has two gigabytes of page
 * map, which an older kernel would have to write for us.  What smaps counts leaves huge pages out.
 * Where nothing was read of smaps, which has flags of every mapping, nothing is known.
 */
static bool is_untouched(const struct proc_vma *v)
{
	return v->end - v->start >= RESERVED && *v->vm_flags && !v->anonymous_kb && !v->swap_kb &&
	       !strstr(v->vm_flags, "ht");
}

/*
 * The whole space in one call, where the kernel can, but for what is large and nobody's file: of
 * that the kernel need not look at each page to say whose it is, which is most of the time it
 * takes.
 */
static int scan_whole(
	struct ckpt_proc *p, struct ckpt_pages *pages, struct buf *guards, struct err *e)
{
	uint64_t at = 0;
	int r = 0;

	for (size_t i = 0; i < p->maps.n && r >= 0; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];

		if (v->ino || v->shared || *v->path || v->end - v->start < LARGE)
			continue;
		if (v->start > at)
			r = ckpt_pages_find(pages, at, v->start, &p->memory_pages, guards, e);
		pages->no_files = true;
		if (r >= 0)
			r = ckpt_pages_find(pages, v->start, v->end, &p->memory_pages, guards, e);
		pages->no_files = false;
		at = v->end;
	}
	return r < 0 ? r : ckpt_pages_find(pages, at, CKPT_TASK_SIZE, &p->memory_pages, guards, e);
}

/* Where a part of the memory has been copied before. */
static int scan_watched(
	struct ckpt_dump *d, struct ckpt_proc *p, struct ckpt_pages *pages, struct err *e)
{
	struct buf *guards = &p->memory_guards;
	int r = 0;

	for (size_t i = 0; i < p->maps.n && r >= 0; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];

		if (v->start >= CKPT_TASK_SIZE || is_untouched(v))
			continue;
		if (ckpt_ahead_watches(d->options.ahead, v))
			r = ckpt_ahead_look(d->options.ahead, pages->pagemap, v, &p->memory_pages,
				&p->memory_kept, guards, e);
		else
			r = ckpt_pages_find(pages, v->start, v->end, &p->memory_pages, guards, e);
	}
	return r;
}

static int scan_each(struct ckpt_proc *p, struct ckpt_pages *pages, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < p->maps.n && r >= 0; i++)
		if (p->maps.vmas[i].start < CKPT_TASK_SIZE && !is_untouched(&p->maps.vmas[i]))
			r = ckpt_pages_find(pages, p->maps.vmas[i].start, p->maps.vmas[i].end,
				&p->memory_pages, &p->memory_guards, e);
	return r;
}

int ckpt_space_scan(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	int r = ckpt_pages_open(&pages, d->host_proc, p->look, e);

	if (r < 0)
		return r;
	buf_clear(&p->memory_pages);
	if (!p->guards_from_before)
		buf_clear(&p->memory_guards);
	buf_clear(&p->memory_kept);
	p->memory_waits = false;
	if (ckpt_ahead_space(d->options.ahead, p)) {
		r = scan_watched(d, p, &pages, e);
	} else if (!ckpt_pages_scans(&pages)) {
		r = scan_each(p, &pages, e);
	} else if (ckpt_fork_pays(p)) {
		if (!p->guards_from_before)
			r = ckpt_pages_find_guards(&pages, 0, CKPT_TASK_SIZE, &p->memory_guards, e);
		p->memory_waits = true;
	} else {
		r = scan_whole(p, &pages, &p->memory_guards, e);
	}
	p->memory_scanned = r >= 0;
	return r;
}

/* What has waited, in the task of @pages.  Its guard pages are known. */
static int scan_waiting(struct ckpt_proc *p, struct ckpt_pages *pages, struct err *e)
{
	int r;

	buf_clear(&p->memory_pages);
	r = scan_whole(p, pages, NULL, e);
	p->memory_waits = r < 0;
	return r;
}

static int scan_copy(void *ctx, size_t i, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	struct ckpt_dump *d = ctx;
	struct ckpt_proc *p = d->procs[i];
	int r;

	if (!p->memory_copy || !p->memory_waits)
		return 0;
	r = ckpt_pages_open(&pages, d->host_proc, remote_tid(p->memory_copy), e);
	if (r >= 0)
		r = scan_waiting(p, &pages, e);
	return r < 0 ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm) : 0;
}

int ckpt_space_scan_copies(struct ckpt_dump *d, struct err *e)
{
	return par_each(d->n_procs, scan_copy, d, e);
}

static int write_run(struct ckpt_dump *d, struct ckpt_pages *pages, struct ckpt_proc *p,
	struct ckpt_run run, bool zeros, struct buf *refs, struct err *e)
{
	if (pages->into)
		return ckpt_aside_put(pages->into, pages, run, e);
	if (d->options.base && refs)
		return ckpt_pages_compare(
			pages, d->out, d->options.base, p->vpid, run, zeros, refs, e);
	return ckpt_pages_write(pages, d->out, PROTO_KIND_MM, (uint64_t)p->vpid, run, 0, zeros, e);
}

/* The pages of one mapping; @next is the first run that may touch it.  A run may go on into the
 * next mapping. */
static int write_mapping(struct ckpt_dump *d, struct ckpt_pages *pages, struct ckpt_proc *p,
	const struct proc_vma *v, const Pb__Mapping *m, size_t *next, struct buf *refs,
	struct err *e)
{
	bool anon = m->source == PB__MAPPING_SOURCE__MAPPING_ANON;
	const struct ckpt_run *runs = (const struct ckpt_run *)p->memory_pages.data;
	size_t n = p->memory_pages.len / sizeof(*runs);
	int r = 0;

	/* a deleted file that nobody else has: all of it */
	if (anon && v->deleted && !m->huge_page)
		return write_run(d, pages, p, (struct ckpt_run){v->start, v->end}, false, NULL, e);
	while (*next < n && runs[*next].end <= v->start)
		++*next;
	for (size_t k = *next; k < n && runs[k].start < v->end && r >= 0; k++) {
		struct ckpt_run run = {MAX(runs[k].start, v->start), MIN(runs[k].end, v->end)};

		/* They can't be filled past their protection, as others can. */
		if (m->huge_page && !(v->prot & PROT_WRITE))
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"mapping %llx-%llx: huge pages in use that are read-only",
				(unsigned long long)v->start, (unsigned long long)v->end);
		r = write_run(d, pages, p, run, !anon, refs, e);
	}
	return r;
}

/*
 * Before the first mapping that is written, and where pages have waited that a fork leaves out,
 * before each.
 */
static int prepare(struct ckpt_dump *d, struct ckpt_pages *pages, struct ckpt_proc *p, pid_t pid,
	const struct proc_vma *v, enum ckpt_space_part part, struct err *e)
{
	int r = 0;

	if (pages->aside)
		return 0;
	if (pages->pagemap < 0)
		r = ckpt_pages_open(pages, d->host_proc, pid, e);
	pages->forked = p->memory_copy && remote_tid(p->memory_copy) == pid;
	if (r < 0 || !p->memory_waits)
		return r;
	if (part != CKPT_SPACE_UNFORKED)
		return scan_waiting(p, pages, e);
	buf_clear(&p->memory_pages);
	return ckpt_pages_find(pages, v->start, v->end, &p->memory_pages, NULL, e);
}

/* Each mapping of which @part is wanted. */
static int write_mappings(struct ckpt_dump *d, struct ckpt_pages *pages, struct ckpt_proc *p,
	pid_t pid, enum ckpt_space_part part, struct buf *refs, struct err *e)
{
	size_t next = 0;
	int r = 0;

	for (size_t i = 0; i < p->maps.n && r >= 0; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];
		Pb__Mapping m;

		r = ckpt_mapping_describe(d, p, v, &m, e);
		if (r != 0 || !is_wanted(&m, part))
			continue;
		r = prepare(d, pages, p, pid, v, part, e);
		if (p->memory_waits)
			next = 0;
		if (r >= 0)
			r = write_mapping(d, pages, p, v, &m, &next, refs, e);
	}
	if (r >= 0 && pages->gone)
		r = err_set(
			e, ERR_UNFREEZABLE, -ESRCH, "it was killed while its memory was written");
	return MIN(r, 0);
}

int ckpt_space_take(
	struct ckpt_dump *d, struct ckpt_proc *p, struct ckpt_aside *aside, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	int r = ckpt_pages_open(&pages, d->host_proc, p->look, e);

	pages.into = aside;
	return r < 0 ? r : write_mappings(d, &pages, p, p->look, CKPT_SPACE_ALL, NULL, e);
}

int ckpt_space_write(struct ckpt_dump *d, struct ckpt_proc *p, pid_t pid, enum ckpt_space_part part,
	struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	_cleanup_buf_ struct buf refs = BUF_INIT;
	int r;

	pages.aside = p->memory_aside;
	r = write_mappings(d, &pages, p, pid, part, &refs, e);
	if (r >= 0 && buf_error(&refs))
		r = err_errno(e, -ENOMEM, "pages");
	if (r >= 0 && refs.len)
		r = proto_write_data(
			d->out, PROTO_KIND_REFS, (uint64_t)p->vpid, 0, refs.data, refs.len, e);
	d->report.pages += pages.written;
	/* It is large, and not asked for again. */
	ckpt_aside_free(take_ptr(p->memory_aside));
	return MIN(r, 0);
}
