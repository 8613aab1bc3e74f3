// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows are compared whole, in the order of memory, which is what caches like (in tiles it takes six
 * times as long).  Rows that differ are gathered in bands of up to BAND of them; of a band it is
 * noted which blocks of BLOCK columns differ in any row, and each run of such blocks is a rectangle
 * once rows and columns that do not differ have been cropped from its sides.
 *
 * @now may change meanwhile, so that what differed need not differ when it is looked at again:
 * whatever is read, the rectangles lie within the damage.
 */
#include "display/change.h"

#include <string.h>

#include "base/base.h"
#include "display/region.h"

#define BAND   16
#define BLOCK  16
#define BLOCKS (DISPLAY_SIZE_MAX / BLOCK)

struct search {
	const struct display_frame *shadow, *now;
	pixman_box32_t *boxes; /* what was found */
	int n, room;
	bool failed;
	uint8_t differs[BLOCKS]; /* in the band: by block, from the left of the damage's box */
};

static bool row_differs(const struct search *s, int x, int y, int n)
{
	const uint32_t *a = display_frame_at(s->shadow, x, y), *b = display_frame_at(s->now, x, y);

	/* Long rows in pieces, so that a difference at their beginning is seen soon. */
	for (int done = 0; done < n; done += 256) {
		int end = MIN(done + 256, n);
		uint32_t d = 0;

		for (int i = done; i < end; i++)
			d |= a[i] ^ b[i];
		if (d & DISPLAY_RGB)
			return true;
	}
	return false;
}

/* Of a whole block: the loop has a length that the compiler knows. */
static bool block_differs(const uint32_t *a, const uint32_t *b)
{
	uint32_t d = 0;

	for (int i = 0; i < BLOCK; i++)
		d |= a[i] ^ b[i];
	return d & DISPLAY_RGB;
}

/* Which of @n columns (at most BLOCK) differ in any row: a bit each. */
static unsigned columns_differ(const struct search *s, int x, int n, int y1, int y2)
{
	uint32_t d[BLOCK] = {0};
	unsigned columns = 0;

	for (int y = y1; y < y2; y++) {
		const uint32_t *a = display_frame_at(s->shadow, x, y);
		const uint32_t *b = display_frame_at(s->now, x, y);

		if (n == BLOCK)
			for (int i = 0; i < BLOCK; i++)
				d[i] |= a[i] ^ b[i];
		else
			for (int i = 0; i < n; i++)
				d[i] |= a[i] ^ b[i];
	}
	for (int i = 0; i < n; i++)
		columns |= (unsigned)((d[i] & DISPLAY_RGB) != 0) << i;
	return columns;
}

/* Columns that don't differ are in the first block of a run, and in the last: not elsewhere. */
static void crop_columns(const struct search *s, pixman_box32_t *b)
{
	const int last = b->x1 + (b->x2 - b->x1 - 1) / BLOCK * BLOCK;
	unsigned columns = columns_differ(s, last, b->x2 - last, b->y1, b->y2);

	b->x2 = columns ? last + 32 - __builtin_clz(columns) : last;
	if (b->x1 < last)
		columns = columns_differ(s, b->x1, BLOCK, b->y1, b->y2);
	b->x1 += columns ? __builtin_ctz(columns) : MIN(BLOCK, b->x2 - b->x1);
}

static void found(struct search *s, pixman_box32_t b)
{
	pixman_box32_t *more;

	while (b.y1 < b.y2 && !row_differs(s, b.x1, b.y1, b.x2 - b.x1))
		b.y1++;
	while (b.y1 < b.y2 && !row_differs(s, b.x1, b.y2 - 1, b.x2 - b.x1))
		b.y2--;
	if (b.y1 < b.y2)
		crop_columns(s, &b);
	if (b.x1 == b.x2 || b.y1 == b.y2)
		return;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		more = realloc(s->boxes, (size_t)s->room * sizeof(*more));
		if (!more) {
			s->failed = true;
			s->room = s->n;
			return;
		}
		s->boxes = more;
	}
	s->boxes[s->n++] = b;
}

/* The band's rows are y1..y2 of @damage: its runs of blocks that differ. */
static void end_band(struct search *s, const pixman_box32_t *damage, int y1, int y2)
{
	const int n = (damage->x2 - damage->x1 + BLOCK - 1) / BLOCK;

	for (int i = 0, end; i < n; i = end + 1) {
		for (end = i; end < n && s->differs[end]; end++)
			;
		if (end > i)
			found(s, (pixman_box32_t){damage->x1 + i * BLOCK, y1,
					 MIN(damage->x1 + end * BLOCK, damage->x2), y2});
	}
	memset(s->differs, 0, (size_t)n);
}

/* Blocks that differ in row @y; true if there are any that had not been noted. */
static bool note_blocks(struct search *s, const pixman_box32_t *damage, int y)
{
	const int whole = (damage->x2 - damage->x1) / BLOCK, x = damage->x1 + whole * BLOCK;
	const uint32_t *a = display_frame_at(s->shadow, damage->x1, y);
	const uint32_t *b = display_frame_at(s->now, damage->x1, y);
	bool any = false;

	for (int i = 0; i < whole; i++)
		if (!s->differs[i] && block_differs(a + i * BLOCK, b + i * BLOCK))
			s->differs[i] = any = true;
	if (x < damage->x2 && !s->differs[whole] && row_differs(s, x, y, damage->x2 - x))
		s->differs[whole] = any = true;
	return any;
}

static void search_box(struct search *s, const pixman_box32_t *damage)
{
	int begin = -1, y;

	for (y = damage->y1; y < damage->y2; y++) {
		if (begin >= 0 && y - begin == BAND) {
			end_band(s, damage, begin, y);
			begin = -1;
		}
		if (begin < 0 && !row_differs(s, damage->x1, y, damage->x2 - damage->x1))
			continue;
		/* What has been noted is not looked at again: where all changes, that is most. */
		if (note_blocks(s, damage, y) && begin < 0)
			begin = y;
	}
	if (begin >= 0)
		end_band(s, damage, begin, y);
}

void display_change_find(const struct display_frame *shadow, const struct display_frame *now,
	pixman_region32_t *damage, pixman_region32_t *changed)
{
	struct search s = {.shadow = shadow, .now = now};
	pixman_region32_t within;
	pixman_box32_t *boxes;
	int n;

	pixman_region32_init(&within);
	display_region_clip(
		&within, damage, &(struct display_rect){0, 0, shadow->width, shadow->height});
	boxes = pixman_region32_rectangles(&within, &n);
	for (int i = 0; i < n; i++)
		search_box(&s, &boxes[i]);
	pixman_region32_fini(changed);
	if (s.failed || !pixman_region32_init_rects(changed, s.boxes, s.n)) {
		/* Without memory for less: all that may have changed. */
		pixman_region32_init(changed);
		display_region_copy(changed, &within);
	}
	pixman_region32_fini(&within);
	free(s.boxes);
}
