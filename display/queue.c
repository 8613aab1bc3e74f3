// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * What waits is a set of entries whose regions don't overlap, each in one of these lists:
 *
 *      watched    small ones where the person looks (an input event was near)
 *      aged       ones that were passed over for too long
 *      2^k bytes  by what they will still come to; within a list the oldest comes first
 *
 * and COPYs, which go before all of them, in their order: a COPY reads what the viewer has, so
 * nothing may be sent between the frame of which it was true and itself.  It is cheap enough to go
 * first, 20 bytes.  KEEPs and UNCOVERs, of 16, are among them.
 *
 * A new command takes its area away from the entries that are there (*eviction*), as it is opaque.
 * Of a COPY those parts whose source is waiting itself can't be had by copying: they become RAW.
 * What of a KEEP waits, or was sent lossily, is not in `kept`, where the viewer has kept what the
 * server has; and what of an UNCOVER is not in there becomes RAW.
 *
 * What doesn't fit is *cut*: a band of whole rows goes, the rest is listed again by its remaining
 * size.  Where the next band begins is kept when the area changes again meanwhile (`from`), or the
 * lower part of a film on a slow line would never be sent; and what replaces an entry has its age.
 *
 * Starvation: an entry is aged when the queue has sent AGED_TIMES its size, and AGED_LEAST, since
 * it came.  So each waits for a number of bytes that depends only on itself and on those like it.
 *
 * A region of very many rectangles is made coarser (`simplify`): more may wait than has to, for it
 * is read from the frame, but never less.  So it is where there is no memory for a region
 * (display/region.h); such entries may overlap others, and are RAW, which is right anywhere.
 */
#include "display/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "display/region.h"

enum { LIST_WATCHED, LIST_AGED, LIST_SIZES, LISTS = LIST_SIZES + 32 };
/* What estimates are kept of. */
enum { KIND_PLAIN, KIND_PALETTE, KIND_SMOOTH, KIND_BITMAP, KINDS };

#define HEAD	      20 /* bytes of a command without its pixels */
#define WATCHED_BYTES (32 << 10)
#define AGED_TIMES    4
#define AGED_LEAST    (64 << 10)
#define AGED_LOOK     (32 << 10) /* bytes sent between two looks for aged entries */
#define RECTS_MAX     512	 /* of a region */
#define GRID	      64	 /* pixels, of coarser regions */

struct entry {
	struct display_command command; /* its rect is that of the beginning */
	pixman_region32_t region;
	uint64_t pixels;
	uint64_t born; /* the queue's `sent` then */
	int from;      /* rows above this have been sent last */
	int list;
	struct entry *prev, *next;
};

struct list {
	struct entry *first, *last;
};

struct display_queue {
	int width, height;
	struct list lists[LISTS];
	size_t n;
	struct entry *spare; /* unlinked; is there at least as long as nothing waits */
	uint64_t sent;	     /* bytes, ever */
	uint64_t looked;     /* `sent` when aged ones were looked for */
	struct display_command copies[DISPLAY_QUEUE_COPIES]; /* KEEP and UNCOVER, too */
	size_t n_copies;
	pixman_region32_t lossy;
	pixman_region32_t kept; /* never too much */
	bool keeps;
	struct display_rect held[DISPLAY_QUEUE_HELD];
	size_t n_held;
	pixman_box32_t watched; /* empty: nothing */
	uint32_t cost[KINDS];	/* 1/1024 bytes per pixel */
};

static const uint32_t first_cost[KINDS] = {
	[KIND_PLAIN] = 820, [KIND_PALETTE] = 200, [KIND_SMOOTH] = 1024, [KIND_BITMAP] = 128};

static int kind_of(const struct display_command *c)
{
	if (c->type == DISPLAY_BITMAP)
		return KIND_BITMAP;
	if (c->type == DISPLAY_RAW && c->hint == DISPLAY_SMOOTH)
		return KIND_SMOOTH;
	if (c->type == DISPLAY_RAW && c->hint == DISPLAY_FEW_COLOURS)
		return KIND_PALETTE;
	return KIND_PLAIN;
}

/* Bytes that @pixels of it in @rects rectangles will come to. */
static uint64_t estimate(
	const struct display_queue *q, const struct display_command *c, uint64_t pixels, int rects)
{
	uint64_t heads = (uint64_t)rects * HEAD;

	if (c->type == DISPLAY_SFILL)
		return heads;
	if (c->type == DISPLAY_PFILL)
		return heads + (uint64_t)rects * 3 * (uint64_t)(c->tw * c->th);
	return heads + pixels * q->cost[kind_of(c)] / 1024;
}

static uint64_t entry_bytes(const struct display_queue *q, const struct entry *t)
{
	return estimate(q, &t->command, t->pixels, pixman_region32_n_rects(&t->region));
}

static uint64_t region_pixels(pixman_region32_t *r)
{
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(r, &n);
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += (uint64_t)(b[i].x2 - b[i].x1) * (uint64_t)(b[i].y2 - b[i].y1);
	return sum;
}

/* A region of too many rectangles becomes one of whole squares of a grid. */
static void simplify(struct display_queue *q, pixman_region32_t *r)
{
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(r, &n);
	pixman_region32_t coarse;

	if (n <= RECTS_MAX)
		return;
	pixman_region32_init(&coarse);
	for (int i = 0; i < n; i++) {
		int x = ALIGN_DOWN(b[i].x1, GRID), y = ALIGN_DOWN(b[i].y1, GRID);
		const struct display_rect squares = {
			x, y, ALIGN_UP(b[i].x2, GRID) - x, ALIGN_UP(b[i].y2, GRID) - y};

		display_region_add(&coarse, &squares);
	}
	display_region_clip(r, &coarse, &(struct display_rect){0, 0, q->width, q->height});
	pixman_region32_fini(&coarse);
	if (pixman_region32_n_rects(r) > RECTS_MAX) {
		pixman_box32_t all = *pixman_region32_extents(r);

		pixman_region32_reset(r, &all);
	}
}

/* There may be anything in its region: it is no fill any more. */
static void make_raw(struct entry *t)
{
	t->command.type = DISPLAY_RAW;
	t->command.hint = DISPLAY_PLAIN;
}

static bool boxes_meet(const pixman_box32_t *a, const pixman_box32_t *b)
{
	return a->x1 < b->x2 && b->x1 < a->x2 && a->y1 < b->y2 && b->y1 < a->y2;
}

static void unlink_entry(struct display_queue *q, struct entry *t)
{
	struct list *l = &q->lists[t->list];

	*(t->prev ? &t->prev->next : &l->first) = t->next;
	*(t->next ? &t->next->prev : &l->last) = t->prev;
	q->n--;
}

/* The spare one, when it was made use of, is the next that is freed. */
static void free_entry(struct display_queue *q, struct entry *t)
{
	pixman_region32_fini(&t->region);
	if (q->spare)
		free(t);
	else
		q->spare = t;
}

static int list_of(const struct display_queue *q, const struct entry *t, uint64_t bytes)
{
	if (bytes <= WATCHED_BYTES &&
		boxes_meet(&q->watched, pixman_region32_extents((void *)&t->region)))
		return LIST_WATCHED;
	if (q->sent - t->born > AGED_TIMES * bytes + AGED_LEAST)
		return LIST_AGED;
	return LIST_SIZES + MIN(31, 63 - __builtin_clzll(bytes | 1));
}

/* Puts it where its size belongs, behind those that are older. */
static void link_entry(struct display_queue *q, struct entry *t)
{
	struct list *l;
	struct entry *p;

	t->pixels = region_pixels(&t->region);
	t->list = list_of(q, t, entry_bytes(q, t));
	l = &q->lists[t->list];
	for (p = l->last; p && p->born > t->born; p = p->prev)
		;
	t->prev = p;
	t->next = p ? p->next : l->first;
	*(t->prev ? &t->prev->next : &l->first) = t;
	*(t->next ? &t->next->prev : &l->last) = t;
	q->n++;
}

static void link_or_free(struct display_queue *q, struct entry *t)
{
	if (pixman_region32_not_empty(&t->region))
		link_entry(q, t);
	else
		free_entry(q, t);
}

/* Lists it by what it has become, or frees it if nothing of it is left. */
static void relink(struct display_queue *q, struct entry *t)
{
	unlink_entry(q, t);
	link_or_free(q, t);
}

/* Every entry; @t may be freed, or go to a list that has been passed, but not to a later one. */
#define list_for_each(q, t, next_)                                                           \
	for (int l_ = 0; l_ < LISTS; l_++)                                                   \
		for (struct entry *t = (q)->lists[l_].first, *next_ = t ? t->next : NULL; t; \
			t = next_, next_ = t ? t->next : NULL)

static void clear(struct display_queue *q)
{
	list_for_each (q, t, next)
		free_entry(q, t);
	memset(q->lists, 0, sizeof(q->lists));
	q->n = q->n_copies = 0;
	pixman_region32_clear(&q->lossy);
	pixman_region32_clear(&q->kept);
	q->n_held = 0;
}

struct display_queue *display_queue_new(int width, int height)
{
	struct display_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->spare = calloc(1, sizeof(*q->spare));
	if (!q->spare) {
		free(q);
		return NULL;
	}
	q->width = width;
	q->height = height;
	pixman_region32_init(&q->lossy);
	pixman_region32_init(&q->kept);
	memcpy(q->cost, first_cost, sizeof(q->cost));
	return q;
}

void display_queue_destroy(struct display_queue *q)
{
	if (!q)
		return;
	clear(q);
	pixman_region32_fini(&q->lossy);
	pixman_region32_fini(&q->kept);
	free(q->spare);
	free(q);
}

void display_queue_keeps(struct display_queue *q)
{
	q->keeps = true;
}

void display_queue_forget_kept(struct display_queue *q)
{
	pixman_region32_clear(&q->kept);
}

void display_queue_resize(struct display_queue *q, int width, int height)
{
	clear(q);
	q->width = width;
	q->height = height;
	q->watched = (pixman_box32_t){0};
}

/* The age, and the row to go on with, of what a region replaces. */
struct heritage {
	uint64_t born;
	int from;
};

/* Takes @area away from what waits. */
static struct heritage evict(struct display_queue *q, pixman_region32_t *area)
{
	struct heritage h = {.born = q->sent};
	pixman_box32_t all = *pixman_region32_extents(area);
	struct entry *cut = NULL; /* by ->next; those that are listed again below */

	list_for_each (q, t, next) {
		pixman_box32_t *box = pixman_region32_extents(&t->region);

		if (!boxes_meet(box, &all) ||
			pixman_region32_contains_rectangle(area, box) == PIXMAN_REGION_OUT)
			continue;
		if (t->born < h.born || (t->born == h.born && t->from > h.from))
			h = (struct heritage){t->born, t->from};
		unlink_entry(q, t);
		if (!display_region_subtract(&t->region, &t->region, area))
			make_raw(t);
		t->next = cut;
		cut = t;
	}
	for (struct entry *t = cut, *next; t; t = next) {
		next = t->next;
		if (pixman_region32_n_rects(&t->region) > RECTS_MAX) {
			make_raw(t);
			simplify(q, &t->region);
		}
		link_or_free(q, t);
	}
	display_region_subtract(&q->lossy, &q->lossy, area);
	simplify(q, &q->lossy);
	return h;
}

/* All that waits becomes one RAW, with @more (or NULL). */
static void collapse(struct display_queue *q, pixman_region32_t *more)
{
	struct entry *one = NULL;

	list_for_each (q, t, next) {
		if (!one) {
			one = t;
			continue;
		}
		display_region_union(&one->region, &one->region, &t->region);
		one->born = MIN(one->born, t->born);
		unlink_entry(q, t);
		free_entry(q, t);
	}
	if (!one)
		return;
	if (more)
		display_region_union(&one->region, &one->region, more);
	one->command = (struct display_command){
		.type = DISPLAY_RAW, .hint = DISPLAY_PLAIN, .rect = {0, 0, 1, 1}};
	one->from = 0;
	simplify(q, &one->region);
	relink(q, one);
}

/* Adds an entry; without memory for it, all that waits becomes one with it, or the spare is taken. */
static void put(struct display_queue *q, const struct display_command *c, pixman_region32_t *area,
	struct heritage h)
{
	struct entry *t;

	if (!pixman_region32_not_empty(area))
		return;
	t = calloc(1, sizeof(*t));
	if (!t && q->n) {
		collapse(q, area);
		return;
	}
	if (!t)
		t = take_ptr(q->spare);
	t->command = *c;
	t->born = h.born;
	t->from = h.from;
	pixman_region32_init(&t->region);
	if (!display_region_copy(&t->region, area))
		make_raw(t);
	link_entry(q, t);
	if (q->n > DISPLAY_QUEUE_COMMANDS)
		collapse(q, NULL);
}

static void put_raw(struct display_queue *q, pixman_region32_t *area, struct heritage h)
{
	struct display_command raw = {.type = DISPLAY_RAW, .hint = DISPLAY_PLAIN};

	raw.rect = display_rect_of(pixman_region32_extents(area));
	put(q, &raw, area, h);
}

/* COPYs can't be kept: what they would have drawn is to be sent as it is. */
static void drop_copies(struct display_queue *q)
{
	pixman_region32_t area;
	struct heritage h;

	pixman_region32_init(&area);
	for (size_t i = 0; i < q->n_copies; i++)
		if (q->copies[i].type != DISPLAY_KEEP)
			display_region_add(&area, &q->copies[i].rect);
	q->n_copies = 0;
	pixman_region32_clear(&q->kept);
	h = evict(q, &area);
	put_raw(q, &area, h);
	pixman_region32_fini(&area);
}

/* What of @source waits, or has been sent lossily, moved by @dx, @dy. */
static void moved_parts(struct display_queue *q, const struct display_rect *source, int dx, int dy,
	pixman_region32_t *waits, pixman_region32_t *lossy)
{
	pixman_box32_t box = display_rect_box(source);
	pixman_region32_t part;

	pixman_region32_init(&part);
	list_for_each (q, t, next) {
		if (!boxes_meet(pixman_region32_extents(&t->region), &box))
			continue;
		display_region_clip(&part, &t->region, source);
		display_region_union(waits, waits, &part);
	}
	pixman_region32_fini(&part);
	/* What is held may be older than the frame, too. */
	display_region_copy(lossy, &q->lossy);
	for (size_t i = 0; i < q->n_held; i++)
		display_region_add(lossy, &q->held[i]);
	display_region_clip(lossy, lossy, source);
	pixman_region32_translate(waits, dx, dy);
	pixman_region32_translate(lossy, dx, dy);
}

/*
 * @c is clipped.  The viewer copies the smallest rectangle that has all that can be had so; what
 * else is in it is wrong then, and waits.
 */
static void add_copy(struct display_queue *q, const struct display_command *c)
{
	struct display_rect from = {c->sx, c->sy, c->rect.w, c->rect.h};
	int dx = c->rect.x - c->sx, dy = c->rect.y - c->sy;
	pixman_region32_t to, good, waits, lossy;
	struct heritage h;

	if (q->n_copies == DISPLAY_QUEUE_COPIES)
		drop_copies(q);
	pixman_region32_init_rect(
		&to, c->rect.x, c->rect.y, (unsigned)c->rect.w, (unsigned)c->rect.h);
	pixman_region32_init(&good);
	pixman_region32_init(&waits);
	pixman_region32_init(&lossy);
	moved_parts(q, &from, dx, dy, &waits, &lossy);
	display_region_subtract(&good, &to, &waits);
	h = evict(q, &to);
	if (pixman_region32_not_empty(&good)) {
		struct display_command *copy = &q->copies[q->n_copies++];

		*copy = *c;
		copy->rect = display_rect_of(pixman_region32_extents(&good));
		copy->sx = copy->rect.x - dx;
		copy->sy = copy->rect.y - dy;
	}
	simplify(q, &waits);
	put_raw(q, &waits, h);
	display_region_intersect(&lossy, &lossy, &good);
	display_region_union(&q->lossy, &q->lossy, &lossy);
	simplify(q, &q->lossy);
	pixman_region32_fini(&to);
	pixman_region32_fini(&good);
	pixman_region32_fini(&waits);
	pixman_region32_fini(&lossy);
}

/* @c is clipped.  The viewer keeps all of it; what of that it has as it should is what counts. */
static void add_keep(struct display_queue *q, const struct display_command *c)
{
	pixman_region32_t waits, lossy;
	bool exact;

	if (!q->keeps)
		return;
	if (q->n_copies == DISPLAY_QUEUE_COPIES)
		drop_copies(q);
	q->copies[q->n_copies++] = *c;
	pixman_region32_init(&waits);
	pixman_region32_init(&lossy);
	moved_parts(q, &c->rect, 0, 0, &waits, &lossy);
	exact = display_region_add(&q->kept, &c->rect);
	exact &= display_region_subtract(&q->kept, &q->kept, &waits);
	exact &= display_region_subtract(&q->kept, &q->kept, &lossy);
	if (!exact || pixman_region32_n_rects(&q->kept) > RECTS_MAX)
		pixman_region32_clear(&q->kept);
	pixman_region32_fini(&waits);
	pixman_region32_fini(&lossy);
}

/* @c is clipped.  As with COPY, what is not as it should be waits. */
static void add_uncover(struct display_queue *q, const struct display_command *c)
{
	pixman_region32_t area, good;
	struct heritage h;

	if (q->n_copies == DISPLAY_QUEUE_COPIES)
		drop_copies(q);
	pixman_region32_init_rect(
		&area, c->rect.x, c->rect.y, (unsigned)c->rect.w, (unsigned)c->rect.h);
	pixman_region32_init(&good);
	if (!display_region_clip(&good, &q->kept, &c->rect))
		pixman_region32_clear(&good);
	h = evict(q, &area);
	if (pixman_region32_not_empty(&good)) {
		q->copies[q->n_copies] = *c;
		q->copies[q->n_copies++].rect = display_rect_of(pixman_region32_extents(&good));
	}
	display_region_subtract(&area, &area, &good);
	simplify(q, &area);
	put_raw(q, &area, h);
	pixman_region32_fini(&area);
	pixman_region32_fini(&good);
}

/* What of it is on the screen; false if nothing is. */
static bool clip(const struct display_queue *q, struct display_command *c)
{
	struct display_rect screen = {0, 0, q->width, q->height}, old = c->rect, from;

	if (!display_rect_intersect(&old, &screen, &c->rect))
		return false;
	if (c->type != DISPLAY_COPY)
		return true;
	c->sx += c->rect.x - old.x;
	c->sy += c->rect.y - old.y;
	from = (struct display_rect){c->sx, c->sy, c->rect.w, c->rect.h};
	if (display_rect_within(&from, q->width, q->height))
		return true;
	/* Nobody makes such a one; it is drawn all the same. */
	c->type = DISPLAY_RAW;
	c->hint = DISPLAY_PLAIN;
	return true;
}

static void add_one(struct display_queue *q, const struct display_command *c)
{
	pixman_region32_t area;

	pixman_region32_init_rect(
		&area, c->rect.x, c->rect.y, (unsigned)c->rect.w, (unsigned)c->rect.h);
	put(q, c, &area, evict(q, &area));
	pixman_region32_fini(&area);
}

/*
 * Commands of one update seldom overlap: then what they cover is evicted at once.  Returns false
 * if they do.
 */
static bool evict_together(
	struct display_queue *q, const struct display_command *c, size_t n, struct heritage *ret)
{
	pixman_box32_t *boxes = calloc(n, sizeof(*boxes));
	pixman_region32_t area;
	uint64_t sum = 0;
	bool apart = false;
	size_t m = 0;

	if (!boxes)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct display_command k = c[i];

		if (!clip(q, &k))
			continue;
		boxes[m++] = display_rect_box(&k.rect);
		sum += (uint64_t)display_rect_area(&k.rect);
	}
	if (pixman_region32_init_rects(&area, boxes, (int)m)) {
		apart = region_pixels(&area) == sum;
		if (apart)
			*ret = evict(q, &area);
		pixman_region32_fini(&area);
	}
	free(boxes);
	return apart;
}

void display_queue_add(struct display_queue *q, const struct display_command *c, size_t n)
{
	struct display_command k;
	struct heritage h;
	size_t i = 0;
	bool apart;

	for (; i < n && display_command_is_first(&c[i]); i++) {
		k = c[i];
		if (!clip(q, &k))
			continue;
		if (k.type == DISPLAY_KEEP)
			add_keep(q, &k);
		else if (k.type == DISPLAY_UNCOVER)
			add_uncover(q, &k);
		else if (k.type == DISPLAY_COPY)
			add_copy(q, &k);
		else
			add_one(q, &k);
	}
	apart = n - i > 8 && evict_together(q, c + i, n - i, &h);
	for (; i < n; i++) {
		pixman_region32_t area;

		k = c[i];
		if (!clip(q, &k))
			continue;
		if (!apart) {
			add_one(q, &k);
			continue;
		}
		pixman_region32_init_rect(
			&area, k.rect.x, k.rect.y, (unsigned)k.rect.w, (unsigned)k.rect.h);
		put(q, &k, &area, h);
		pixman_region32_fini(&area);
	}
}

void display_queue_watch(struct display_queue *q, const struct display_rect *r)
{
	q->watched = r ? display_rect_box(r) : (pixman_box32_t){0};
	if (!r)
		return;
	list_for_each (q, t, next)
		if (t->list != LIST_WATCHED && list_of(q, t, entry_bytes(q, t)) == LIST_WATCHED)
			relink(q, t);
}

/* Entries that have waited for too long go to their list. */
static void look_for_aged(struct display_queue *q)
{
	if (q->sent - q->looked < AGED_LOOK)
		return;
	q->looked = q->sent;
	list_for_each (q, t, next)
		if (t->list >= LIST_SIZES && list_of(q, t, entry_bytes(q, t)) < LIST_SIZES)
			relink(q, t);
}

/* The rectangle of @region to go on with below row @from, cut to what @room has. */
static struct display_rect cut(const struct display_queue *q, const struct display_command *c,
	pixman_region32_t *region, int from, size_t room)
{
	int n, i;
	const pixman_box32_t *b = pixman_region32_rectangles(region, &n);
	struct display_rect r;
	uint64_t row, rows;

	for (i = 0; i < n && b[i].y2 <= from; i++)
		;
	r = display_rect_of(&b[i < n ? i : 0]);
	if (i < n && from > r.y) {
		r.h -= from - r.y;
		r.y = from;
	}
	if ((long)r.w * r.h > DISPLAY_COMMAND_PIXELS)
		r.h = DISPLAY_COMMAND_PIXELS / r.w;
	if (c->type == DISPLAY_SFILL || c->type == DISPLAY_PFILL)
		return r;
	row = estimate(q, c, (uint64_t)r.w * 16, 0) + 1; /* of 16 rows */
	rows = room > HEAD ? (room - HEAD) * 16 / row : 0;
	if (rows + rows / 4 < (uint64_t)r.h)
		r.h = (int)MAX(rows, 1u);
	return r;
}

static enum display_queue_result next_refresh(
	struct display_queue *q, size_t room, struct display_command *ret)
{
	struct display_command c = {.type = DISPLAY_RAW, .hint = DISPLAY_PLAIN};
	enum display_queue_result r = DISPLAY_QUEUE_NONE;
	pixman_region32_t area;
	bool exact = true;

	pixman_region32_init(&area);
	display_region_copy(&area, &q->lossy);
	for (size_t i = 0; i < q->n_held; i++)
		exact &= display_region_remove(&area, &q->held[i]);
	/* What is held would be refreshed behind each of its frames. */
	if (exact && pixman_region32_not_empty(&area)) {
		c.rect = cut(q, &c, &area, 0, room);
		display_region_remove(&q->lossy, &c.rect);
		*ret = c;
		r = DISPLAY_QUEUE_REFRESH;
	}
	pixman_region32_fini(&area);
	return r;
}

enum display_queue_result display_queue_next(
	struct display_queue *q, size_t room, bool spare, struct display_command *ret)
{
	struct entry *t = NULL;

	if (q->n_copies) {
		*ret = q->copies[0];
		q->n_copies--;
		memmove(q->copies, q->copies + 1, q->n_copies * sizeof(q->copies[0]));
		return DISPLAY_QUEUE_COMMAND;
	}
	look_for_aged(q);
	for (int l = 0; l < LISTS && !t; l++)
		t = q->lists[l].first;
	if (!t)
		return spare ? next_refresh(q, room, ret) : DISPLAY_QUEUE_NONE;
	*ret = t->command;
	ret->rect = cut(q, &t->command, &t->region, t->from, room);
	t->from = ret->rect.y + ret->rect.h;
	unlink_entry(q, t);
	if (!display_region_remove(&t->region, &ret->rect)) {
		make_raw(t);
		t->from = 0; /* downwards from its upper edge it needs no memory */
	}
	link_or_free(q, t);
	return DISPLAY_QUEUE_COMMAND;
}

static void add_lossy(struct display_queue *q, const struct display_rect *r)
{
	display_region_add(&q->lossy, r);
	simplify(q, &q->lossy);
}

void display_queue_sent(
	struct display_queue *q, const struct display_command *c, size_t bytes, bool lossy)
{
	uint64_t pixels = (uint64_t)display_rect_area(&c->rect);
	int kind = kind_of(c);

	q->sent += bytes;
	if ((c->type == DISPLAY_RAW || c->type == DISPLAY_BITMAP) && pixels >= 256) {
		uint64_t now = (bytes > HEAD ? bytes - HEAD : 0) * 1024 / pixels;

		/* Large ones say more than small ones. */
		q->cost[kind] = (uint32_t)((q->cost[kind] * 7 + MIN(now, 3072u)) / 8 + 1);
	}
	if (lossy && c->type != DISPLAY_COPY)
		add_lossy(q, &c->rect);
}

static bool is_held(const struct display_queue *q, const struct display_rect *r)
{
	for (size_t i = 0; i < q->n_held; i++)
		if (memcmp(&q->held[i], r, sizeof(*r)) == 0)
			return true;
	return false;
}

void display_queue_hold(struct display_queue *q, const struct display_rect *rects, size_t n)
{
	assert(n <= DISPLAY_QUEUE_HELD);
	for (size_t i = 0; i < n; i++) {
		pixman_region32_t area;

		if (is_held(q, &rects[i]))
			continue;
		pixman_region32_init_rect(
			&area, rects[i].x, rects[i].y, (unsigned)rects[i].w, (unsigned)rects[i].h);
		evict(q, &area);
		add_lossy(q, &rects[i]);
		pixman_region32_fini(&area);
	}
	if (n)
		memcpy(q->held, rects, n * sizeof(*rects));
	q->n_held = n;
}

void display_queue_sent_apart(struct display_queue *q, const struct display_rect *r, size_t bytes)
{
	q->sent += bytes;
	add_lossy(q, r);
}

bool display_queue_copies(const struct display_queue *q)
{
	return q->n_copies > 0;
}

bool display_queue_empty(const struct display_queue *q)
{
	return !q->n && !q->n_copies;
}

struct display_queue_state display_queue_state(const struct display_queue *q)
{
	struct display_queue_state s = {.commands = q->n, .copies = q->n_copies};

	list_for_each (q, t, next) {
		s.pixels += t->pixels;
		s.bytes += entry_bytes(q, t);
	}
	s.bytes += q->n_copies * HEAD;
	s.lossy = region_pixels((pixman_region32_t *)&q->lossy);
	s.lossy_rects = (size_t)pixman_region32_n_rects((pixman_region32_t *)&q->lossy);
	return s;
}
