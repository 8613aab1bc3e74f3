// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * aside - pages of stopped processes in memory of our own, to be written when the session runs.
 *
 * Theory of operation
 *
 * Not every memory space can be forked for a snapshot (fork.c).  To copy one takes longer than to
 * fork it, but a small part of what it takes to compare, hash and write it; and it leaves nothing
 * in the session, so it is done where a fork would.
 *
 * The pages lie one behind the other in one mapping for each process, in the order in which they
 * will be asked for; a list tells where each stretch came from.  All that reads pages of a task
 * (pages.c) finds them there instead.
 *
 * What has no place in the reserve (reserve.h) is written while all are stopped.
 */
#include "ckpt/memory/aside.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

struct stretch {
	uint64_t start, end;
	size_t at; /* in the mapping */
};

struct ckpt_aside {
	struct buf stretches; /* in order */
	uint8_t *data;
	size_t room, used;
};

/* ---- one process --------------------------------------------------------------------------- */

/* As many bytes as may have to be put aside of it: what is in use, and files nobody else has. */
static uint64_t most(const struct ckpt_proc *p)
{
	const struct ckpt_run *runs = (const struct ckpt_run *)p->memory_pages.data;
	uint64_t n = 0;

	for (size_t i = 0; i < p->memory_pages.len / sizeof(*runs); i++)
		n += runs[i].end - runs[i].start;
	for (size_t i = 0; i < p->maps.n; i++)
		if (p->maps.vmas[i].deleted && !p->maps.vmas[i].shared)
			n += p->maps.vmas[i].end - p->maps.vmas[i].start;
	return n;
}

/* @data is its own from now on. */
static struct ckpt_aside *make(uint8_t *data, size_t room)
{
	struct ckpt_aside *a = data ? calloc(1, sizeof(*a)) : NULL;

	if (a) {
		a->data = data;
		a->room = room;
	} else if (data) {
		munmap(data, room);
	}
	return a;
}

void ckpt_aside_free(struct ckpt_aside *a)
{
	if (!a)
		return;
	munmap(a->data, a->room);
	buf_fini(&a->stretches);
	free(a);
}

int ckpt_aside_put(
	struct ckpt_aside *a, struct ckpt_pages *pages, struct ckpt_run run, struct err *e)
{
	const struct stretch s = {run.start, run.end, a->used};
	size_t len = run.end - run.start;

	if (len > a->room - a->used)
		return err_errno(e, -ENOSPC, "copy of memory");
	ckpt_pages_read(pages, run.start, a->data + a->used, len);
	a->used += len;
	buf_put(&a->stretches, &s, sizeof(s));
	return buf_error(&a->stretches) ? err_errno(e, -ENOMEM, "copy of memory") : 0;
}

void ckpt_aside_read(const struct ckpt_aside *a, uint64_t addr, uint8_t *to, size_t len)
{
	const struct stretch *s = (const struct stretch *)a->stretches.data;
	size_t low = 0, high = a->stretches.len / sizeof(*s), n;

	/* the last that begins at @addr or before it */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s[middle].start <= addr)
			low = middle;
		else
			high = middle;
	}
	assert(high > low && s[low].start <= addr && addr + len <= s[low].end);
	n = s[low].at + (addr - s[low].start);
	memcpy(to, a->data + n, len);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* If there is room for @p, it has it; true then. */
static bool give_room(struct ckpt_reserve *r, struct ckpt_proc *p)
{
	uint64_t size = most(p);

	if (size)
		p->memory_aside = make(ckpt_reserve_draw(r, size), size);
	return p->memory_aside;
}

static int take(void *ctx, size_t i, struct err *e)
{
	struct ckpt_dump *d = ctx;
	struct ckpt_proc *p = d->procs[i];
	int r = p->memory_aside ? ckpt_space_take(d, p, p->memory_aside, e) : 0;

	return r < 0 ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm) : 0;
}

int ckpt_aside_take(struct ckpt_dump *d, struct err *e)
{
	uint64_t then = io_now_ns();
	size_t n = 0;
	int r;

	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state != CKPT_ZOMBIE && p->mm == p->vpid && !p->memory_copy &&
			!p->memory_waits && p->memory_scanned)
			n += give_room(&d->reserve, p);
	}
	if (!n)
		return 0;
	r = par_each(d->n_procs, take, d, e);
	ckpt_report_stage(&d->report, "aside", then);
	return r;
}
