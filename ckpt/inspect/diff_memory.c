// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Mappings are in the order of their addresses in both images, and walked together.  Pages are
 * compared where both have a mapping of the same at the same address, and only where one of them
 * has stored something: what neither has is zero, or what the file has, in both.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/inspect/diff.h"
#include "proto/memory.pb-c.h"

#define CHUNK (64u << 10) /* compared at once; a multiple of the page size */

/* ---- mappings -------------------------------------------------------------------------------- */

static const char *path_of(const Pb__Mm *mm, const Pb__Mapping *m)
{
	return m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->object < mm->n_files
		       ? mm->files[m->object]->path
		       : "";
}

/* What a mapping shows, as /proc/PID/maps calls it. */
static const char *name_of(const Pb__Mm *mm, const Pb__Mapping *m)
{
	static const char *const names[] = {
		[PB__MAPPING_SOURCE__MAPPING_SHARED] = "[shared]",
		[PB__MAPPING_SOURCE__MAPPING_SYSV] = "[sysv]",
		[PB__MAPPING_SOURCE__MAPPING_VDSO] = "[vdso]",
		[PB__MAPPING_SOURCE__MAPPING_VVAR] = "[vvar]",
	};

	if (*path_of(mm, m))
		return path_of(mm, m);
	if ((unsigned)m->source < ARRAY_SIZE(names) && names[m->source])
		return names[m->source];
	if (*m->name)
		return m->name;
	if (m->start <= mm->start_stack && mm->start_stack < m->end)
		return "[stack]";
	return m->start < mm->brk && mm->start_brk < m->end ? "[heap]" : "";
}

/* Do both show the same, at the same addresses where they overlap? */
static bool same_source(
	const Pb__Mm *a, const Pb__Mapping *x, const Pb__Mm *b, const Pb__Mapping *y)
{
	if (x->source != y->source || strcmp(path_of(a, x), path_of(b, y)) != 0)
		return false;
	return x->source == PB__MAPPING_SOURCE__MAPPING_ANON ||
	       x->offset - x->start == y->offset - y->start;
}

static bool same_mapping(
	const Pb__Mm *a, const Pb__Mapping *x, const Pb__Mm *b, const Pb__Mapping *y)
{
	return x->start == y->start && x->end == y->end && x->prot == y->prot &&
	       x->flags == y->flags && x->key == y->key && same_source(a, x, b, y) && strcmp(x->name, y->name) == 0;
}

static void tell_mapping(
	struct ckpt_diff_text *t, const Pb__Mm *mm, const Pb__Mapping *m, bool added)
{
	FILE *out = ckpt_diff_part(t, "mappings");
	const char prot[5] = {m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
		m->prot & PROT_EXEC ? 'x' : '-',
		m->flags & PB__MAPPING_FLAG__MAPPING_IS_SHARED ? 's' : 'p'};

	if (t->json) {
		fprintf(out,
			"\"change\":\"%s\",\"start\":\"%" PRIx64 "\",\"end\":\"%" PRIx64
			"\",\"protection\":\"%s\",\"name\":\"",
			added ? "new" : "gone", m->start, m->end, prot);
		text_put_json(out, name_of(mm, m));
		fputs("\"}", out);
		return;
	}
	fprintf(out, "mapping %c %" PRIx64 "-%" PRIx64 " %s ", added ? '+' : '-', m->start, m->end,
		prot);
	text_put(out, name_of(mm, m));
	putc('\n', out);
}

static void compare_mappings(struct ckpt_diff_text *t, const Pb__Mm *a, const Pb__Mm *b)
{
	size_t i = 0, k = 0;

	while (i < a->n_mappings || k < b->n_mappings) {
		const Pb__Mapping *x = i < a->n_mappings ? a->mappings[i] : NULL;
		const Pb__Mapping *y = k < b->n_mappings ? b->mappings[k] : NULL;

		if (x && y && same_mapping(a, x, b, y)) {
			i++;
			k++;
		} else if (x && (!y || x->start <= y->start)) {
			tell_mapping(t, a, x, false);
			i++;
		} else {
			tell_mapping(t, b, y, true);
			k++;
		}
	}
}

/* ---- pages ----------------------------------------------------------------------------------- */

struct walk {
	struct ckpt_diff_text *t;
	struct ckpt_space *a, *b;
	uint8_t *x, *y; /* CHUNK bytes each */
};

/* A page that can't be had in one of them is not the same, unless in none. */
static uint64_t count_one(struct walk *w, uint64_t addr)
{
	int r = ckpt_space_read(w->a, addr, w->x, PAGE_SIZE),
	    s = ckpt_space_read(w->b, addr, w->y, PAGE_SIZE);

	return r != s || (r == 0 && memcmp(w->x, w->y, PAGE_SIZE) != 0);
}

static uint64_t count_pages(struct walk *w, uint64_t start, uint64_t end)
{
	uint64_t n = 0;

	for (uint64_t len; start < end; start += len) {
		len = MIN(end - start, (uint64_t)CHUNK);
		if (ckpt_space_read(w->a, start, w->x, len) == 0 &&
			ckpt_space_read(w->b, start, w->y, len) == 0 &&
			memcmp(w->x, w->y, len) == 0)
			continue;
		for (uint64_t at = start; at < start + len; at += PAGE_SIZE)
			n += count_one(w, at);
	}
	return n;
}

/*
 * Pages between @from and @end, where mapping @i of one and @k of the other show the same, that
 * differ.
 */
static uint64_t count_range(struct walk *w, size_t i, size_t k, uint64_t from, uint64_t end)
{
	uint64_t n = 0;

	while (from < end) {
		uint64_t x = end, x_end = end, y = end, y_end = end;

		if (!ckpt_space_stored(w->a, i, from, &x, &x_end))
			x = x_end = end;
		if (!ckpt_space_stored(w->b, k, from, &y, &y_end))
			y = y_end = end;
		from = ALIGN_DOWN(MIN(x, y), PAGE_SIZE);
		x_end = MIN(ALIGN_UP(x <= y ? x_end : y_end, PAGE_SIZE), end);
		if (from >= end)
			break;
		n += count_pages(w, from, x_end);
		from = x_end;
	}
	return n;
}

static void tell_pages(struct ckpt_diff_text *t, const Pb__Mm *mm, const Pb__Mapping *m, uint64_t n)
{
	FILE *out = ckpt_diff_part(t, "memory");

	if (t->json) {
		fprintf(out,
			"\"start\":\"%" PRIx64 "\",\"end\":\"%" PRIx64 "\",\"pages\":%" PRIu64
			",\"name\":\"",
			m->start, m->end, n);
		text_put_json(out, name_of(mm, m));
		fputs("\"}", out);
		return;
	}
	fprintf(out, "memory %" PRIx64 "-%" PRIx64 ": %" PRIu64 " of %" PRIu64 " pages changed ",
		m->start, m->end, n, (m->end - m->start) / PAGE_SIZE);
	text_put(out, name_of(mm, m));
	putc('\n', out);
}

static void compare_pages(struct walk *w)
{
	const Pb__Mm *a = w->a->mm, *b = w->b->mm;
	size_t i = 0;

	for (size_t k = 0; k < b->n_mappings; k++) {
		const Pb__Mapping *y = b->mappings[k];
		uint64_t n = 0;

		while (i && a->mappings[i - 1]->end > y->start)
			i--; /* one of them may reach into several of the others */
		while (i < a->n_mappings && a->mappings[i]->end <= y->start)
			i++;
		for (; i < a->n_mappings && a->mappings[i]->start < y->end; i++) {
			const Pb__Mapping *x = a->mappings[i];

			if (same_source(a, x, b, y))
				n += count_range(
					w, i, k, MAX(x->start, y->start), MIN(x->end, y->end));
		}
		if (n)
			tell_pages(w->t, b, y, n);
	}
}

int ckpt_diff_memory(
	struct ckpt_diff_text *t, struct ckpt_space *a, struct ckpt_space *b, struct err *e)
{
	_cleanup_free_ uint8_t *room = malloc(2 * CHUNK);
	struct walk w = {.t = t, .a = a, .b = b, .x = room, .y = room + CHUNK};

	if (!room)
		return err_errno(e, -ENOMEM, "memory");
	compare_mappings(t, a->mm, b->mm);
	compare_pages(&w);
	return 0;
}
