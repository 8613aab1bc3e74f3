// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * layout - where an image leaves room.
 *
 * The executor's pages must lie at one address that is free in every memory space of the image,
 * from before the first mapping is made until after the last.  All mappings of all records are put
 * in one list, sorted, and the highest gap that is large enough is taken: above the libraries there
 * is nearly always one, and the area where the heap grows is left alone.  If one of them is of a
 * 32-bit program it must lie where that can see it.
 */
#include "ckpt/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/build.h"
#include "ckpt/remote/remote.h"
#include "ckpt/survey/survey.h"
#include "proto/memory.pb-c.h"

#define LOWEST	0x10000000UL
#define HIGHEST 0x7fff00000000UL
#define HIGHEST_I386 0xffffe000UL
#define HIGHEST_3GB  0xc0000000UL /* with ADDR_LIMIT_3GB they see no more */
/* to each side, more than CKPT_LAYOUT_BELOW: stacks grow, and guard gaps are a megabyte */
#define MARGIN (2UL << 20)

struct range {
	uint64_t start, end;
};

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The segments of a library lie side by side: one range for all of them. */
static void put_range(struct buf *ranges, size_t first, struct range v)
{
	struct range *before = NULL;

	if (ranges->len > first)
		before = (struct range *)(ranges->data + ranges->len) - 1;
	if (before && v.start >= before->start && v.start <= before->end)
		before->end = MAX(before->end, v.end);
	else
		buf_put(ranges, &v, sizeof(v));
}

static int collect(
	struct ckpt_build *b, const struct ckpt_record *r, struct buf *ranges, struct err *e)
{
	Pb__Mm *m = pb__mm__unpack(NULL, r->len, r->body);
	size_t first = ranges->len;

	if (!m)
		return err_set(e, ERR_IMAGE, -EBADMSG, "memory record %llu is damaged",
			(unsigned long long)r->subject);
	for (size_t i = 0; i < m->n_mappings; i++) {
		const Pb__Mapping *v = m->mappings[i];
		struct range range = {v->start, v->end};

		/* restored with all the room it may take (map.c) */
		if (v->flags & PB__MAPPING_FLAG__MAPPING_GROWSDOWN)
			range.start -= MIN(range.start, CKPT_STACK_ROOM);
		put_range(ranges, first, range);
	}
	/* the heap may grow from here to the next mapping; a little way is kept free */
	struct range heap = {m->start_brk, m->brk};

	if (heap.end > heap.start)
		buf_put(ranges, &heap, sizeof(heap));
	b->i386 |= m->i386;
	pb__mm__free_unpacked(m, NULL);
	return 0;
}

int ckpt_layout_read(struct ckpt_build *b, struct buf *ranges, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n_records && r == 0; i++)
		if (b->records[i].kind && b->records[i].kind->number == PROTO_KIND_MM)
			r = collect(b, &b->records[i], ranges, e);
	if (r == 0 && buf_error(ranges))
		r = err_errno(e, -ENOMEM, "looking for free addresses");
	return r;
}

/*
 * The end of the highest gap of @need bytes that ends at @top or below; 0 if there is none.
 * @ranges is put in order.
 */
static uint64_t find_gap(struct buf *ranges, uint64_t need, uint64_t top)
{
	struct range *v = (struct range *)ranges->data;
	size_t n = ranges->len / sizeof(*v);

	if (n)
		sort_array(v, n, sizeof(*v), compare);
	/* mappings of different spaces overlap: let every end be the highest so far */
	for (size_t i = 1; i < n; i++)
		v[i].end = MAX(v[i].end, v[i - 1].end);
	/* from the top down; `top` is the lowest start seen so far */
	for (size_t i = n; i > 0; i--) {
		if (top > v[i - 1].end && top - v[i - 1].end >= need)
			break;
		top = MIN(top, v[i - 1].start);
	}
	return top < LOWEST + need ? 0 : top;
}

static uint64_t find_gap_i386(struct buf *ranges, uint64_t need)
{
	uint64_t top = find_gap(ranges, need, HIGHEST_3GB);

	return top ? top : find_gap(ranges, need, HIGHEST_I386);
}

int ckpt_layout_check(struct ckpt_dump *d, struct err *e)
{
	_cleanup_buf_ struct buf ranges = BUF_INIT;
	const struct ckpt_proc *i386 = NULL;

	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *p = d->procs[i];

		if (p->i386 && (!i386 || i386->maps.n < p->maps.n))
			i386 = p;
	}
	/* Elsewhere there is always such a place. */
	if (!i386)
		return 0;
	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *p = d->procs[i];

		for (size_t k = 0; k < p->maps.n; k++) {
			const struct proc_vma *v = &p->maps.vmas[k];
			struct range range = {v->start, v->end};

			if (strstr(v->vm_flags, "gd"))
				range.start -= MIN(range.start, CKPT_STACK_ROOM);
			buf_put(&ranges, &range, sizeof(range));
		}
	}
	if (buf_error(&ranges))
		return err_errno(e, -ENOMEM, "looking for free addresses");
	if (find_gap_i386(&ranges, REMOTE_AREA_SIZE + 2 * MARGIN))
		return 0;
	err_set(e, ERR_UNFREEZABLE, -ENOMEM,
		"a 32-bit program that leaves no addresses free is not supported");
	return err_wrap(e, "task %d (%s)", i386->vpid, i386->status.comm);
}

int ckpt_layout_free(
	const struct ckpt_build *b, struct buf *ranges, uint64_t size, uint64_t *ret, struct err *e)
{
	uint64_t need = ALIGN_UP(size, PAGE_SIZE) + 2 * MARGIN;
	uint64_t top = b->i386 ? find_gap_i386(ranges, need) : find_gap(ranges, need, HIGHEST);

	if (!top)
		return err_set(e, ERR_IMAGE, -ENOMEM, "no free addresses for %llu bytes",
			(unsigned long long)size);
	*ret = ALIGN_DOWN(top - MARGIN - ALIGN_UP(size, PAGE_SIZE), PAGE_SIZE);
	return 0;
}
