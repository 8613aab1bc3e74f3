// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The screen is a grid of cells.  Each has a bit for every tenth of a second: it has changed then,
 * not by a COPY.  What is copied, or copied from, has no past: it scrolls, or is dragged.
 *
 * Ten times a second cells that changed in most of the tenths of the last second (*lively* ones)
 * are gathered into pieces.  A piece that is large, whole, and mostly of pictures becomes a film.
 *
 * A film stays one with less: cells in it are lively with fewer changes, of its pieces only a part
 * must be, and fewer of them pictures.  It ends when nothing has changed for REST_NS, when it was
 * not enough of a film at WEAK looks one behind the other, or when something large is copied out of
 * it.
 */
#include "display/video.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "display/classify.h"
#include "display/region.h"

#define CELL	    32
#define TENTHS	    10 /* that count */
#define BEGINS	    7  /* of them with a change make a cell lively */
#define GOES_ON	    3  /* and in a film so many */
#define LEAST_SIDE  64 /* pixels of a film */
#define LEAST_AREA  (96 * 96)
#define WHOLE	    60 /* per cent of a piece's rectangle that its cells have */
#define PICTURES    40 /* per cent of them that are pictures */
#define PICTURES_ON 20 /* in a film */
#define LOOKED_AT   64 /* cells of a piece, when that is counted */
#define PART_ON	    3  /* one of so many pixels of a film must be in its pieces */
#define COPIED_PART 8  /* one of so many pixels copied: it is no film */
#define WEAK	    7
#define REST_NS	    500000000ull

struct cell {
	uint16_t tenths;    /* bit 0: the present one */
	uint8_t mark;	    /* of a piece, while they are gathered */
	pixman_box32_t box; /* all that changed since the bits were 0 */
};

struct display_video {
	int columns, rows;
	uint64_t tenth; /* the present one's number */
	bool unseen;	/* it is new, and nothing has been looked at */
	uint16_t last_id;
	struct display_video_film films[DISPLAY_VIDEO_FILMS];
	unsigned weak[DISPLAY_VIDEO_FILMS];
	pixman_region32_t region; /* of films; empty where there was no memory for it */
	bool lacks_region;
	int *stack;
	struct cell cells[];
};

struct piece {
	struct display_rect rect;
	long area; /* of what changes */
	int pictures, looked_at;
};

struct display_video *display_video_new(int width, int height)
{
	const int columns = (width + CELL - 1) / CELL, rows = (height + CELL - 1) / CELL;
	const size_t n = (size_t)columns * (size_t)rows;
	struct display_video *v = calloc(1, sizeof(*v) + n * sizeof(v->cells[0]));

	if (!v)
		return NULL;
	v->columns = columns;
	v->rows = rows;
	pixman_region32_init(&v->region);
	v->stack = calloc(n, sizeof(*v->stack));
	if (!v->stack) {
		display_video_free(v);
		return NULL;
	}
	return v;
}

void display_video_free(struct display_video *v)
{
	if (!v)
		return;
	pixman_region32_fini(&v->region);
	free(v->stack);
	free(v);
}

const struct display_video_film *display_video_films(const struct display_video *v)
{
	return v->films;
}

pixman_region32_t *display_video_region(struct display_video *v)
{
	return &v->region;
}

bool display_video_plays(const struct display_video *v)
{
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		if (v->films[i].id)
			return true;
	return false;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* Those that @r touches. */
#define for_each_cell(v, r, c)                                                                  \
	for (int row_ = (r)->y / CELL; row_ < MIN(((r)->y + (r)->h - 1) / CELL + 1, (v)->rows); \
		row_++)                                                                         \
		for (struct cell *c = &(v)->cells[row_ * (v)->columns + (r)->x / CELL],         \
				 *end_ = &(v)->cells[row_ * (v)->columns +                      \
						     MIN(((r)->x + (r)->w - 1) / CELL + 1,      \
							     (v)->columns)];                    \
			c < end_; c++)

static struct display_rect cell_rect(const struct display_video *v, const struct cell *c)
{
	const int i = (int)(c - v->cells);

	return (struct display_rect){i % v->columns * CELL, i / v->columns * CELL, CELL, CELL};
}

static void mark(struct display_video *v, const struct display_rect *r)
{
	for_each_cell(v, r, c)
	{
		const struct display_rect own = cell_rect(v, c);
		struct display_rect part;
		pixman_box32_t b;

		if (!display_rect_intersect(&own, r, &part))
			continue;
		b = display_rect_box(&part);
		if (!c->tenths)
			c->box = b;
		c->tenths |= 1;
		c->box = (pixman_box32_t){MIN(c->box.x1, b.x1), MIN(c->box.y1, b.y1),
			MAX(c->box.x2, b.x2), MAX(c->box.y2, b.y2)};
	}
}

static void forget(struct display_video *v, const struct display_rect *r)
{
	for_each_cell(v, r, c) c->tenths = 0;
}

/* Time goes on by @n tenths. */
static void shift(struct display_video *v, uint64_t n)
{
	for (int i = 0; i < v->columns * v->rows; i++)
		v->cells[i].tenths =
			n > TENTHS ? 0 : (uint16_t)(v->cells[i].tenths << n & ((2 << TENTHS) - 1));
}

static bool within_film(const struct display_video *v, const pixman_box32_t *b)
{
	return pixman_region32_contains_rectangle(
		       (pixman_region32_t *)&v->region, (pixman_box32_t *)b) == PIXMAN_REGION_IN;
}

static bool is_lively(const struct display_video *v, const struct cell *c)
{
	const int n = __builtin_popcount((unsigned)c->tenths >> 1);

	return n >= BEGINS || (n >= GOES_ON && within_film(v, &c->box));
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct display_rect around(const struct display_rect *a, const struct display_rect *b)
{
	struct display_rect r = {MIN(a->x, b->x), MIN(a->y, b->y), 0, 0};

	r.w = MAX(a->x + a->w, b->x + b->w) - r.x;
	r.h = MAX(a->y + a->h, b->y + b->h) - r.y;
	return r;
}

/* Puts a lively neighbour on the stack. */
static void reach(struct display_video *v, int column, int row, int *n)
{
	struct cell *c;

	if (column < 0 || row < 0 || column >= v->columns || row >= v->rows)
		return;
	c = &v->cells[row * v->columns + column];
	if (c->mark || !is_lively(v, c))
		return;
	c->mark = 1;
	v->stack[(*n)++] = row * v->columns + column;
}

/* All cells that hang together with @first, which is marked. */
static struct piece gather(struct display_video *v, int first, const struct display_frame *f)
{
	struct piece p = {.rect = display_rect_of(&v->cells[first].box)};
	int n = 0, all, step;

	v->stack[n++] = first;
	/* The stack keeps what has been looked at: it is the piece then. */
	for (int i = 0; i < n; i++) {
		const int column = v->stack[i] % v->columns, row = v->stack[i] / v->columns;

		reach(v, column - 1, row, &n);
		reach(v, column + 1, row, &n);
		reach(v, column, row - 1, &n);
		reach(v, column, row + 1, &n);
	}
	all = n;
	step = (all + LOOKED_AT - 1) / LOOKED_AT;
	for (int i = 0; i < all; i++) {
		const struct display_rect r = display_rect_of(&v->cells[v->stack[i]].box);

		p.rect = around(&p.rect, &r);
		p.area += display_rect_area(&r);
		if (i % step)
			continue;
		p.looked_at++;
		p.pictures += display_classify_is_picture(f, &r);
	}
	return p;
}

static void end(struct display_video *v, int i)
{
	v->films[i] = (struct display_video_film){0};
	v->weak[i] = 0;
}

/* A piece that films have: the first of them becomes it, the others are a part of that. */
static bool goes_on(struct display_video *v, const struct piece *p, uint64_t now, bool *ret_changed)
{
	const bool is_film = p->pictures * 100 >= p->looked_at * PICTURES_ON;
	struct display_rect common, all = p->rect;
	int found = -1;

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		struct display_video_film *film = &v->films[i];

		if (!film->id || !display_rect_intersect(&film->rect, &all, &common))
			continue;
		if (found < 0 && (!is_film || p->area * PART_ON < display_rect_area(&film->rect)))
			return true; /* weaker by one, and as it was */
		all = around(&all, &film->rect);
		if (found >= 0)
			end(v, i);
		else
			found = i;
	}
	if (found < 0)
		return false;
	v->weak[found] = 0;
	if (memcmp(&all, &v->films[found].rect, sizeof(all)) != 0) {
		v->films[found].rect = all;
		v->films[found].frame++;
		v->films[found].ns = now;
		*ret_changed = true;
	}
	return true;
}

static bool begins(struct display_video *v, const struct piece *p, uint64_t now)
{
	if (p->rect.w < LEAST_SIDE || p->rect.h < LEAST_SIDE ||
		display_rect_area(&p->rect) < LEAST_AREA ||
		p->area * 100 < display_rect_area(&p->rect) * WHOLE ||
		p->pictures * 100 < p->looked_at * PICTURES)
		return false;
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		if (v->films[i].id)
			continue;
		v->last_id = (uint16_t)(v->last_id == UINT16_MAX ? 1 : v->last_id + 1);
		v->films[i] = (struct display_video_film){v->last_id, p->rect, 1, now};
		v->weak[i] = 0;
		return true;
	}
	return false;
}

static bool look_at_pieces(struct display_video *v, uint64_t now, const struct display_frame *f)
{
	bool changed = false;

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		v->weak[i] += v->films[i].id != 0;
	for (int i = 0; i < v->columns * v->rows; i++)
		v->cells[i].mark = 0;
	for (int i = 0; i < v->columns * v->rows; i++) {
		struct piece p;

		if (v->cells[i].mark || !is_lively(v, &v->cells[i]))
			continue;
		v->cells[i].mark = 1;
		p = gather(v, i, f);
		if (!goes_on(v, &p, now, &changed))
			changed |= begins(v, &p, now);
	}
	return changed;
}

/* ---- changes --------------------------------------------------------------------------------- */

static long common_area(const struct display_rect *a, const struct display_rect *b)
{
	struct display_rect r;

	return display_rect_intersect(a, b, &r) ? display_rect_area(&r) : 0;
}

/* What was copied from and to is no film. */
static bool take_copies(struct display_video *v, const struct display_commands *c)
{
	bool ended = false;

	for (size_t i = 0; i < c->n && display_command_is_first(&c->list[i]); i++) {
		const struct display_rect *to = &c->list[i].rect;
		const struct display_rect from = {c->list[i].sx, c->list[i].sy, to->w, to->h};

		if (c->list[i].type != DISPLAY_COPY)
			continue;
		for (int k = 0; k < DISPLAY_VIDEO_FILMS; k++) {
			const struct display_video_film *film = &v->films[k];

			if (!film->id ||
				(common_area(&film->rect, &from) + common_area(&film->rect, to)) *
						COPIED_PART <
					display_rect_area(&film->rect))
				continue;
			end(v, k);
			ended = true;
		}
		forget(v, to);
		forget(v, &from);
	}
	return ended;
}

/* Time goes on: true if another tenth has begun. */
static bool go_on(struct display_video *v, uint64_t now)
{
	const uint64_t tenth = now / DISPLAY_VIDEO_LOOK_NS;

	if (tenth <= v->tenth)
		return false;
	shift(v, tenth - v->tenth);
	v->tenth = tenth;
	return true;
}

void display_video_change(struct display_video *v, uint64_t now, pixman_region32_t *changed)
{
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(changed, &n);

	v->unseen |= go_on(v, now);
	for (int i = 0; i < n; i++) {
		const struct display_rect r = display_rect_of(&b[i]);

		mark(v, &r);
	}
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		struct display_video_film *film = &v->films[i];
		pixman_box32_t box = display_rect_box(&film->rect);

		if (!film->id ||
			pixman_region32_contains_rectangle(changed, &box) == PIXMAN_REGION_OUT)
			continue;
		film->frame++;
		film->ns = now;
	}
}

static bool end_some(struct display_video *v, uint64_t now)
{
	bool ended = false;

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		if (!v->films[i].id || (now - v->films[i].ns < REST_NS && v->weak[i] < WEAK))
			continue;
		end(v, i);
		ended = true;
	}
	return ended;
}

static void make_region(struct display_video *v)
{
	v->lacks_region = false;
	pixman_region32_clear(&v->region);
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		if (v->films[i].id && !display_region_add(&v->region, &v->films[i].rect))
			v->lacks_region = true;
	/*
	 * What isn't in it is shown as all else; what is between films must be.  So films are shown
	 * twice, until there is memory for it.
	 */
	if (v->lacks_region)
		pixman_region32_clear(&v->region);
}

bool display_video_look(struct display_video *v, uint64_t now, const struct display_frame *f,
	const struct display_commands *c)
{
	bool other = false;

	if (go_on(v, now) || v->unseen)
		other = look_at_pieces(v, now, f);
	v->unseen = false;
	if (c)
		other |= take_copies(v, c);
	other |= end_some(v, now);
	other |= v->lacks_region;
	if (other)
		make_region(v);
	return other;
}

void display_video_forget(struct display_video *v)
{
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		end(v, i);
	shift(v, TENTHS + 1);
	make_region(v);
}
