// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kept - memory that was copied ahead comes into its process.
 *
 * Theory of operation
 *
 * What came ahead lies in a file (ckpt/memory/arrived.h), and the session stands still while it is
 * taken from there.  Copying a gigabyte takes half a second; so, where a resume may map memory at
 * all (mapped.c), it is mapped, and becomes the session's own afterwards.
 *
 *      windows   0 2m          4m          6m          8m       chunks of the file, as far as they lie in the mapping
 *      kept      |.xxx.........|.xxxxxxxxxx|xxxxx.xxxxx|xxxx
 *                  copied       ---------- mapped ---------
 *
 * A window is mapped if most of its pages are as they were copied; or half of them, where that is
 * so of all such windows of the mapping together.  The others are zero in the file first: they were
 * written to meanwhile, and come later, or were given back.  So what is left of a busy program does
 * not break it into pieces.
 *
 * What is copied, the heaps of small programs, is done by several threads (fillers.h): each of its
 * pages is new to the task, and a kernel that has to find one can take longer for that than for all
 * else here.
 */
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/memory/arrived.h"
#include "ckpt/memory/fillers.h"
#include "ckpt/memory/memory.h"
#include "ckpt/said.h"

/*
 * Each page of a piece becomes memory in the end, also one that nobody had: no more than an eighth
 * of it.
 */
#define SHARE	  (64UL << 10) /* of what is copied, for one thread */
#define MOST(len) ((len) - (len) / 8)
#define HALF(len) ((len) / 2)

struct keeping {
	struct ckpt_build *b;
	struct ckpt_build_proc *p;
	uint64_t space;
	struct ckpt_private *v;
	const struct ckpt_run *runs;
	size_t n;
	int *mem;
};

static int copy_piece(
	const struct keeping *k, uint64_t at, const void *data, uint64_t len, struct err *e)
{
	const struct ckpt_build_thread *t = &k->p->threads[0];
	struct ckpt_filling w = {
		.pid = t->tid,
		.vpid = ckpt_said(k->b->world, t->vtid),
		.proc_fd = k->b->world->proc_fd,
		.mem = k->mem,
		.writable = k->v->prot & PROT_WRITE,
		.addr = at,
		.data = data,
	};
	int r = 0;

	k->b->report.pages += len / PAGE_SIZE;
	for (; len && r == 0; len -= w.len, w.addr += w.len, w.data += w.len) {
		w.len = MIN(len, SHARE);
		r = ckpt_fillers_add(k->b->fillers, &w, e);
	}
	return r;
}

/* Of the runs what lies in [@start, @end), as @each is told; @gaps: of what is no run. */
static int each_part(const struct keeping *k, uint64_t start, uint64_t end, bool gaps,
	int (*each)(const struct keeping *k, uint64_t at, uint64_t to, struct err *e),
	struct err *e)
{
	size_t low = 0, high = k->n;
	uint64_t at = start;
	int r = 0;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (k->runs[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < k->n && k->runs[low].start < end && r == 0; low++) {
		uint64_t from = MAX(k->runs[low].start, start), to = MIN(k->runs[low].end, end);

		if (!gaps)
			r = each(k, from, to, e);
		else if (from > at)
			r = each(k, at, from, e);
		at = to;
	}
	return r == 0 && gaps && at < end ? each(k, at, end, e) : r;
}

static int copy(const struct keeping *k, uint64_t at, uint64_t to, struct err *e)
{
	const void *data;
	int r = 0;

	for (uint64_t len; at < to && r == 0; at += len) {
		len = ckpt_arrived_find(k->b->options.arrived, k->space, at, to, &data);
		if (data)
			r = copy_piece(k, at, data, len, e);
	}
	return r;
}

static int clear(const struct keeping *k, uint64_t at, uint64_t to, struct err *e)
{
	return ckpt_arrived_clear(k->b->options.arrived, k->space, at, to, e);
}

static int map_or_copy(const struct keeping *k, uint64_t at, uint64_t to, struct err *e)
{
	uint64_t offset;
	int r;

	if (at == to)
		return 0;
	if (!ckpt_mapped_may(k->b, k->p->vpid, at, to - at) ||
		ckpt_arrived_place(k->b->options.arrived, k->space, at, &offset) < 0 ||
		ckpt_arrived_fill(k->b->options.arrived, offset, to - at) < 0)
		return each_part(k, at, to, false, copy, e);
	r = each_part(k, at, to, true, clear, e);
	if (r == 0)
		r = ckpt_mapped_add(k->b, k->p, k->v, at, to - at, offset, e);
	return r;
}

/* Kept bytes of a window, its runs being from number *at on. */
static uint64_t count(const struct keeping *k, size_t *at, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	while (*at < k->n && k->runs[*at].end <= start)
		++*at;
	for (size_t i = *at; i < k->n && k->runs[i].start < end; i++)
		sum += MIN(k->runs[i].end, end) - MAX(k->runs[i].start, start);
	return sum;
}

static uint64_t window_end(const struct keeping *k, uint64_t at)
{
	return MIN(ALIGN_DOWN(at, CKPT_ARRIVED_CHUNK) + CKPT_ARRIVED_CHUNK, k->v->end);
}

/* Is a window to be mapped of which half is kept? */
static bool half_will_do(const struct keeping *k)
{
	uint64_t kept = 0, all = 0;
	size_t run = 0;

	for (uint64_t at = k->v->start, end; at < k->v->end; at = end) {
		uint64_t n;

		end = window_end(k, at);
		n = count(k, &run, at, end);
		if (n < HALF(end - at))
			continue;
		kept += n;
		all += end - at;
	}
	return kept >= MOST(all);
}

/*
 * Goes from window to window; those that can be mapped, and lie together in the file, are one
 * piece.
 */
static int put_windows(const struct keeping *k, struct err *e)
{
	const struct ckpt_arrived *a = k->b->options.arrived;
	uint64_t from = k->v->start, offset, next = 0;
	bool half = half_will_do(k);
	size_t run = 0;
	int r = 0;

	for (uint64_t at = from, end; at < k->v->end && r == 0; at = end) {
		uint64_t kept;
		bool whole;

		end = window_end(k, at);
		kept = count(k, &run, at, end);
		whole = kept >= (half ? HALF(end - at) : MOST(end - at)) && ckpt_mapped_watches(k->b, at, end) &&
			ckpt_arrived_place(a, k->space, at, &offset) == 0;
		if (!whole || (at > from && offset != next)) {
			r = map_or_copy(k, from, at, e);
			from = at;
		}
		if (r == 0 && !whole) {
			r = kept ? each_part(k, at, end, false, copy, e) : 0;
			from = end;
		}
		if (whole)
			next = offset + (end - at);
	}
	return r == 0 ? map_or_copy(k, from, k->v->end, e) : r;
}

int ckpt_kept_put(struct ckpt_build *b, struct ckpt_build_proc *p, uint64_t space,
	struct ckpt_private *v, const struct ckpt_run *runs, size_t n, int *mem, struct err *e)
{
	const struct keeping k = {b, p, space, v, runs, n, mem};

	if (!n)
		return 0;
	if (v->fits && ckpt_mapped_is_arrived(b))
		return put_windows(&k, e);
	return each_part(&k, v->start, v->end, false, copy, e);
}
