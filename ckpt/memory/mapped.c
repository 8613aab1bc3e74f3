// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mapped - a resume that maps long runs of pages from its image at first.
 *
 * Theory of operation
 *
 * Copying a gigabyte takes half a second, mapping it none.  But a private mapping of a file is not
 * anonymous memory: after MADV_DONTNEED it has the file's contents again and not zeros, it knows no
 * MADV_FREE, and when it is made longer it shows what follows in the file.  So it is lent for a
 * moment only, and convert.c turns it into what it should be while the session runs.
 *
 * For each long run the anonymous memory that belongs there is made as ever, and moved aside:
 *
 *      place    a b c | d e f g | h i       the mapping: the run d-g comes from the image now,
 *      spare            . . . .             its own memory waits here, untouched
 *
 * What is moved aside keeps its origin as far as the kernel is concerned (anon_vma and vm_pgoff,
 * since one page of the whole mapping was touched before), its flags and its name.  So when it is
 * moved back, filled, the kernel makes one mapping of the pieces again.  Nobody can read or write
 * there, as where nothing is: by this convert.c knows it from what a program may have mapped over
 * it.
 *
 * Which runs these will be has to be known before the session's filter is made, which is to hold
 * calls on them: a first look at the image, frame heads only, tells (ckpt_mapped_survey).  Of
 * memory that came ahead of its session all has come by then (ckpt_mapped_arrived); its file is the
 * image then.
 *
 * Not mapped, but copied: short runs, stacks, executable, locked and otherwise special mappings,
 * those with guard pages or a protection key, and processes in whose memory anything is locked, or
 * which are not dumpable or limited in size.
 */
#include "ckpt/memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "ckpt/build.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/arrived.h"
#include "ckpt/said.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"
#include "proto/tasks.pb-c.h"

#define HUGE	     (2UL << 20)
#define LOWEST	     (4UL << 30) /* 32-bit calls of a 64-bit program reach no further */
#define MAX_PIECES   8192
#define BATCH	     150   /* pieces: three calls each */
#define MAX_MAPPINGS 30000 /* the kernel allows 65530, and each piece makes some more */

/* ---- the first look ------------------------------------------------------------------------- */

static int compare_start(const void *a, const void *b)
{
	const struct ckpt_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Makes one of the two ranges with the smallest gap between them. */
static size_t join_nearest(struct ckpt_range *v, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i + 1 < n; i++)
		if (v[i + 1].start - v[i].end < v[best + 1].start - v[best].end)
			best = i;
	v[best].end = v[best + 1].end;
	memmove(v + best + 1, v + best + 2, (n - best - 2) * sizeof(*v));
	return n - 1;
}

static void cluster(struct buf *found, struct ckpt_mapped *ret)
{
	struct ckpt_range *v = (struct ckpt_range *)found->data;
	size_t n = found->len / sizeof(*v), k = 0;

	qsort(v, n, sizeof(*v), compare_start);
	for (size_t i = 1; i < n; i++) {
		if (v[i].start <= v[k].end)
			v[k].end = MAX(v[k].end, v[i].end);
		else
			v[++k] = v[i];
	}
	for (n = n ? k + 1 : 0; n > CKPT_MAX_MAPPED;)
		n = join_nearest(v, n);
	if (n)
		memcpy(ret->ranges, v, n * sizeof(*v));
	ret->n = n;
}

static bool is_long(const struct proto_frame *f, uint64_t min_run)
{
	return f->type == PROTO_DATA && f->kind == PROTO_KIND_MM && !f->data && f->len >= min_run &&
	       f->offset >= LOWEST &&
	       (f->offset | f->len | (uint64_t)f->file_offset) % PAGE_SIZE == 0;
}

static int look(struct proto_reader *in, struct buf *found, const struct ckpt_mapped_options *o,
	struct ckpt_mapped *ret, struct err *e)
{
	struct proto_frame f;
	int r;

	while ((r = proto_read(in, &f, e)) == 0 && f.type != PROTO_END) {
		struct ckpt_range range = {f.offset, f.offset + f.len};

		if (!is_long(&f, o->min_run) || ret->bytes + f.len > o->max_total ||
			found->len / sizeof(range) == MAX_PIECES)
			continue;
		buf_put(found, &range, sizeof(range));
		ret->bytes += f.len;
		ret->room += f.len + HUGE;
	}
	return r < 0 ? r : buf_error(found);
}

int ckpt_mapped_survey(
	struct ckpt_mapped *ret, int image, const struct ckpt_mapped_options *o, struct err *e)
{
	struct proto_read_options read = {
		.skip_digests = true, .leave_long = PROTO_KIND_MM, .threads = PROTO_NO_THREADS};
	_cleanup_buf_ struct buf found = BUF_INIT;
	struct proto_reader *in;
	int r;

	*ret = (struct ckpt_mapped){.image = image, .cookie = o->cookie, .min_run = o->min_run};
	r = proto_reader_open(&in, image, &read, e);
	if (r < 0)
		return r;
	r = look(in, &found, o, ret, e);
	proto_reader_close(in);
	if (r == 0 && ret->bytes >= o->min_total)
		cluster(&found, ret);
	return r;
}

/* ---- what came ahead ------------------------------------------------------------------------ */

struct ahead {
	struct buf found;
	struct ckpt_mapped *ret;
};

/* Most of the chunk must be there (kept.c). */
static void look_at_chunk(void *ctx, uint64_t addr, unsigned pages)
{
	struct ckpt_range range = {addr, addr + CKPT_ARRIVED_CHUNK}, *last;
	struct ahead *a = ctx;
	size_t n = a->found.len / sizeof(range);

	if (addr < LOWEST || pages * PAGE_SIZE < CKPT_ARRIVED_CHUNK / 2)
		return;
	last = n ? (struct ckpt_range *)a->found.data + n - 1 : NULL;
	if (last && last->end == addr)
		last->end = range.end;
	else if (n < MAX_PIECES)
		buf_put(&a->found, &range, sizeof(range));
	else
		return;
	a->ret->bytes += CKPT_ARRIVED_CHUNK;
}

int ckpt_mapped_arrived(struct ckpt_mapped *ret, const struct ckpt_arrived *arrived,
	const struct ckpt_mapped_options *o, int image)
{
	struct ahead a = {BUF_INIT, ret};
	uint64_t most;
	int r;

	*ret = (struct ckpt_mapped){
		.image = image, .arrived = true, .cookie = o->cookie, .min_run = o->min_run};
	ckpt_arrived_each(arrived, look_at_chunk, &a);
	/* a piece begins as far from a huge page's begin as it did */
	most = ret->bytes / o->min_run + 1;
	ret->room = ret->bytes + MIN(most, (uint64_t)MAX_PIECES) * HUGE;
	r = buf_error(&a.found);
	if (r == 0 && ret->bytes >= o->min_total && ret->bytes <= o->max_total)
		cluster(&a.found, ret);
	buf_fini(&a.found);
	return r;
}

/* ---- which memory --------------------------------------------------------------------------- */

static bool has_limits(struct ckpt_build *b, pid_t vpid)
{
	const struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_RLIMITS, (uint64_t)vpid);
	Pb__Rlimits *m = r ? pb__rlimits__unpack(NULL, r->len, r->body) : NULL;
	bool limited = !m;

	for (size_t i = 0; m && i < m->n_limits; i++)
		limited |= (m->limits[i]->resource == RLIMIT_AS ||
				   m->limits[i]->resource == RLIMIT_DATA) &&
			   m->limits[i]->soft != RLIM_INFINITY;
	if (m)
		pb__rlimits__free_unpacked(m, NULL);
	return limited;
}

static bool is_dumpable(struct ckpt_build *b, pid_t vpid)
{
	const struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_PRCTL, (uint64_t)vpid);
	Pb__Prctl *m = r ? pb__prctl__unpack(NULL, r->len, r->body) : NULL;
	bool dumpable = m;

	for (size_t i = 0; m && i < m->n_values; i++)
		dumpable &= m->values[i]->option != PR_SET_DUMPABLE || m->values[i]->value == 1;
	if (m)
		pb__prctl__free_unpacked(m, NULL);
	return dumpable;
}

/* All processes that share a memory are bound by what any of them is. */
bool ckpt_mapped_process(struct ckpt_build *b, const struct ckpt_build_proc *p, const Pb__Mm *m)
{
	if (!b->options.mapped || b->i386 || m->n_mappings > MAX_MAPPINGS)
		return false;
	/* a converter would have to ask filters of a program's own about each call */
	if (ckpt_build_record(b, PROTO_KIND_SECCOMP, 0))
		return false;
	for (size_t i = 0; i < m->n_mappings; i++)
		if (m->mappings[i]->flags &
			(PB__MAPPING_FLAG__MAPPING_LOCKED | PB__MAPPING_FLAG__MAPPING_SEALED))
			return false;
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *q = &b->procs[i];

		if (!q->zombie && q->mm == p->mm &&
			(has_limits(b, q->vpid) || !is_dumpable(b, q->vpid)))
			return false;
	}
	return true;
}

bool ckpt_mapped_fits(const Pb__Mapping *m)
{
	const uint32_t fine =
		PB__MAPPING_FLAG__MAPPING_NORESERVE | PB__MAPPING_FLAG__MAPPING_DONTDUMP |
		PB__MAPPING_FLAG__MAPPING_HUGEPAGE | PB__MAPPING_FLAG__MAPPING_NOHUGEPAGE;

	return m->source == PB__MAPPING_SOURCE__MAPPING_ANON && !(m->flags & ~fine) &&
	       !m->huge_page && !m->key && (m->prot == PROT_READ || m->prot == (PROT_READ | PROT_WRITE));
}

static bool is_watched(const struct ckpt_mapped *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->n; i++)
		if (start >= m->ranges[i].start && end <= m->ranges[i].end)
			return true;
	return false;
}

/* Pages come in ascending order, unless the image is a strange one. */
static bool is_behind(const struct ckpt_build *b, pid_t vpid, uint64_t addr)
{
	const struct ckpt_piece *last;

	if (!b->pieces.len)
		return true;
	last = (const struct ckpt_piece *)(b->pieces.data + b->pieces.len) - 1;
	return last->vpid != vpid || addr >= last->addr + last->len;
}

bool ckpt_mapped_is_arrived(const struct ckpt_build *b)
{
	return b->options.mapped && b->options.mapped->arrived;
}

bool ckpt_mapped_watches(const struct ckpt_build *b, uint64_t start, uint64_t end)
{
	return b->options.mapped && is_watched(b->options.mapped, start, end);
}

bool ckpt_mapped_may(const struct ckpt_build *b, pid_t vpid, uint64_t addr, uint64_t len)
{
	const struct ckpt_mapped *m = b->options.mapped;

	return m && len >= m->min_run && is_watched(m, addr, addr + len) &&
	       b->pieces.len / sizeof(struct ckpt_piece) < MAX_PIECES &&
	       b->spare_end - b->spare >= len + HUGE && is_behind(b, vpid, addr);
}

bool ckpt_mapped_wants(const struct ckpt_build *b, const struct proto_frame *f)
{
	const struct ckpt_mapped *m = b->options.mapped;

	return m && !m->arrived && is_long(f, m->min_run) &&
	       ckpt_mapped_may(b, (pid_t)f->subject, f->offset, f->len);
}

/* ---- mapping it ----------------------------------------------------------------------------- */

/* An address for @len bytes, as far from a huge page's begin as @place is. */
static uint64_t take_spare(struct ckpt_build *b, uint64_t place, uint64_t len)
{
	uint64_t at = b->spare + (place - b->spare) % HUGE;

	b->spare = at + len;
	return at;
}

int ckpt_mapped_add(struct ckpt_build *b, struct ckpt_build_proc *p, struct ckpt_private *v,
	uint64_t addr, uint64_t len, uint64_t offset, struct err *e)
{
	struct ckpt_piece piece = {.addr = addr,
		.len = len,
		.offset = offset,
		.spare = take_spare(b, addr, len),
		.area = b->area,
		.vpid = p->vpid,
		.prot = v->prot,
		.flags = v->noreserve ? MAP_NORESERVE : 0};
	int mem = -1, r = 0;

	/* it is overwritten when the piece is filled */
	if (!v->begun)
		r = ckpt_fill(p->threads[0].tid, b->world->proc_fd,
			ckpt_said(b->world, p->threads[0].vtid), &mem, addr, "", 1, false, e);
	v->begun = true;
	b->report.pages += len / PAGE_SIZE;
	close_fd(mem);
	remote_leave(p->threads[0].remote, true);
	buf_put(&b->pieces, &piece, sizeof(piece));
	if (r == 0 && buf_error(&b->pieces))
		r = err_errno(e, -ENOMEM, "pieces");
	return r;
}

size_t ckpt_mapped_find(const struct ckpt_build *b, size_t first, size_t n, uint64_t addr)
{
	const struct ckpt_piece *v = (const struct ckpt_piece *)b->pieces.data + first;
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (v[mid].addr + v[mid].len <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int run_batch(struct remote *r, int lent, struct err *e)
{
	struct remote_arg args[6] = {REMOTE_RESULT(lent)};
	int at = remote_add_args(r, SYS_close, args), ret = remote_run(r, true, e);

	for (int i = 0; ret == 0 && i <= at; i++) {
		long v = remote_result(r, i);

		if (v < 0 && v >= -4095)
			ret = err_errno(e, (int)v, "cannot map memory from the image");
	}
	return ret;
}

/* Pieces of one process: their own memory moves aside, the image's takes its place. */
static int map_some(struct ckpt_build *b, struct ckpt_build_proc *p, const struct ckpt_piece *v,
	size_t n, struct err *e)
{
	struct remote *r = p->threads[0].remote;
	int lent = ckpt_build_lend(b, r, b->options.mapped->image, e);

	if (lent < 0)
		return lent;
	for (size_t i = 0; i < n; i++) {
		struct remote_arg args[6] = {REMOTE_ARG(v[i].addr), REMOTE_ARG(v[i].len),
			REMOTE_ARG(v[i].prot),
			REMOTE_ARG(MAP_PRIVATE | MAP_FIXED_NOREPLACE | v[i].flags),
			REMOTE_RESULT(lent), REMOTE_ARG(v[i].offset)};

		remote_add(r, SYS_mremap, v[i].addr, v[i].len, v[i].len,
			MREMAP_MAYMOVE | MREMAP_FIXED, v[i].spare, b->options.mapped->cookie);
		remote_add(r, SYS_mprotect, v[i].spare, v[i].len, PROT_NONE, 0, 0, 0);
		remote_add_args(r, SYS_mmap, args);
	}
	return run_batch(r, lent, e);
}

int ckpt_mapped_flush(struct ckpt_build *b, struct err *e)
{
	const struct ckpt_piece *v = (const struct ckpt_piece *)b->pieces.data;
	size_t n = b->pieces.len / sizeof(*v), i = b->pieces_done;
	int r = 0;

	while (i < n && r == 0) {
		struct ckpt_build_proc *p = ckpt_build_proc(b, v[i].vpid);
		size_t k = i;

		while (k < n && k - i < BATCH && v[k].vpid == v[i].vpid)
			k++;
		r = map_some(b, p, v + i, k - i, e);
		i = k;
	}
	b->pieces_done = i;
	return r;
}

const struct ckpt_piece *ckpt_build_pieces(const struct ckpt_build *b, size_t *ret_n)
{
	*ret_n = b->pieces.len / sizeof(struct ckpt_piece);
	return (const struct ckpt_piece *)b->pieces.data;
}
