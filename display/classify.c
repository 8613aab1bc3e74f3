// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What compresses best is one large rectangle: letters repeat, and each rectangle begins anew.  So
 * only that is cut out which a command of its own is much better for: large areas of one colour,
 * or of a pattern that repeats, and pictures (which a viewer may want lossy).
 *
 * The region is cut into cells of a fixed grid, and of each cell it is said what its pixels are
 * like. Then, from the upper left one on, cells of the same sort are gathered in rectangles as
 * large as possible.  What is drawn of a cell is the extents of the region within it, so that of a
 * letter only its own few pixels are sent.
 */
#include "display/classify.h"

#include <string.h>

#include "base/base.h"
#include "display/codec/palette.h"

#define CELL	      32
#define LEAST_FILL    (1 << 16) /* pixels of one colour that are cut out */
#define LEAST_TILES   (1 << 14) /* pixels of a pattern */
#define LEAST_PICTURE (1 << 13)
#define FEW_COLOURS   16
#define TILE	      8 /* the period that is looked for, and its divisors */
#define FILL_FROM     3 /* one of so many cells in the region: flat ones between them are fillers */
#define PICTURE_OF    3 /* in a picture fewer than 1 of so many pixels is as the one to the left */

enum sort {
	NOTHING, /* no part of the region, or done */
	FILLER,	 /* no part of it, of one colour, among cells that are */
	FLAT,
	TILED,
	OTHER, /* text, widgets */
	PICTURE,
};

struct cell {
	enum sort sort;
	pixman_box32_t box; /* of the region, within the cell */
	uint32_t colour;    /* FLAT: its; TILED: a number of the pattern */
};

struct grid {
	const struct display_frame *f;
	struct display_commands *out;
	struct cell *cells;
	int x, y, columns, rows; /* x, y: of the first cell, in cells */
	bool failed;
};

/* ---- cells ----------------------------------------------------------------------------------- */

static struct cell *cell_at(const struct grid *g, int column, int row)
{
	return &g->cells[(size_t)row * (size_t)g->columns + (size_t)column];
}

static struct display_rect cell_rect(const struct cell *c)
{
	return display_rect_of(&c->box);
}

static void cover(struct grid *g, const pixman_box32_t *b)
{
	for (int row = b->y1 / CELL - g->y; row <= (b->y2 - 1) / CELL - g->y; row++)
		for (int column = b->x1 / CELL - g->x; column <= (b->x2 - 1) / CELL - g->x;
			column++) {
			int x = (column + g->x) * CELL, y = (row + g->y) * CELL;
			pixman_box32_t part = {MAX(b->x1, x), MAX(b->y1, y), MIN(b->x2, x + CELL),
				MIN(b->y2, y + CELL)};
			struct cell *c = cell_at(g, column, row);

			if (c->sort == NOTHING)
				c->box = part;
			c->sort = OTHER;
			c->box = (pixman_box32_t){MIN(c->box.x1, part.x1), MIN(c->box.y1, part.y1),
				MAX(c->box.x2, part.x2), MAX(c->box.y2, part.y2)};
		}
}

static bool is_picture(const struct display_frame *f, const struct display_rect *r)
{
	int same = 0;

	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *p = display_frame_at(f, r->x, y);

		for (int i = 1; i < r->w; i++)
			same += p[i] == p[i - 1];
	}
	return same * PICTURE_OF < (r->w - 1) * r->h;
}

/* Whether all of a whole cell repeats every TILE pixels; *ret_number tells tiles apart. */
static bool is_tiled(const struct grid *g, const struct display_rect *r, uint32_t *ret_number)
{
	uint32_t number = 0;

	if (r->w < CELL || r->h < CELL)
		return false;
	for (int y = 0; y < CELL; y++) {
		const uint32_t *p = display_frame_at(g->f, r->x, r->y + y);

		if (memcmp(p, p + TILE, (CELL - TILE) * sizeof(*p)) ||
			(y >= TILE && memcmp(p, display_frame_at(g->f, r->x, r->y + y - TILE),
					      CELL * sizeof(*p))))
			return false;
		for (int i = 0; y < TILE && i < TILE; i++)
			number = (number ^ p[i]) * 0x9e3779b1u;
	}
	*ret_number = number;
	return true;
}

static void prefetch_cell(const struct grid *g, const struct cell *c)
{
	for (int y = c->box.y1; c->sort != NOTHING && y < c->box.y2; y++)
		display_prefetch(display_frame_at(g->f, c->box.x1, y), c->box.x2 - c->box.x1);
}

static void sort_cell(const struct grid *g, struct cell *c)
{
	const struct display_rect r = cell_rect(c);
	uint32_t colours[2] = {0};
	int n = display_palette_count(g->f, &r, FEW_COLOURS, colours);

	c->sort = OTHER;
	c->colour = colours[0];
	if (n == 1)
		c->sort = FLAT;
	else if (n > FEW_COLOURS && is_picture(g->f, &r))
		c->sort = PICTURE;
	else if (n <= FEW_COLOURS && is_tiled(g, &r, &c->colour))
		c->sort = TILED;
}

/*
 * Where much has changed, what has not is covered, too, if it is of one colour: it costs next to
 * nothing, and pieces around it would.
 */
static void fill(struct grid *g, const pixman_box32_t *all)
{
	const int n = g->columns * g->rows;
	int changed = 0;

	for (int i = 0; i < n; i++)
		changed += g->cells[i].sort != NOTHING;
	if (changed == n || changed * FILL_FROM < n)
		return;
	for (int i = 0; i < n; i++) {
		const int x = (i % g->columns + g->x) * CELL, y = (i / g->columns + g->y) * CELL;
		struct cell *c = &g->cells[i];
		uint32_t colours[2];
		struct display_rect r;

		if (c->sort != NOTHING)
			continue;
		c->box = (pixman_box32_t){MAX(all->x1, x), MAX(all->y1, y), MIN(all->x2, x + CELL),
			MIN(all->y2, y + CELL)};
		r = cell_rect(c);
		if (display_palette_count(g->f, &r, 1, colours) == 1)
			c->sort = FILLER;
	}
}

/* ---- rectangles ------------------------------------------------------------------------------ */

/* Cells x1..x2, y1..y2. */
struct group {
	int x1, y1, x2, y2;
	enum sort sort;	 /* OTHER: any */
	uint32_t colour; /* FLAT, TILED */
};

static bool joins(const struct group *gr, const struct cell *c)
{
	if (gr->sort == OTHER)
		return c->sort != NOTHING && c->sort != PICTURE; /* also a filler */
	return c->sort == gr->sort && (c->sort == PICTURE || c->colour == gr->colour);
}

/* As many cells as join, first to the right, then rows of as many. */
static struct group group_from(const struct grid *g, int x, int y, enum sort sort)
{
	struct group gr = {x, y, x + 1, y + 1, sort, cell_at(g, x, y)->colour};

	while (gr.x2 < g->columns && joins(&gr, cell_at(g, gr.x2, y)))
		gr.x2++;
	for (; gr.y2 < g->rows; gr.y2++)
		for (x = gr.x1; x < gr.x2; x++)
			if (!joins(&gr, cell_at(g, x, gr.y2)))
				return gr;
	return gr;
}

/* The extents of what is to be drawn of the group. */
static struct display_rect group_rect(const struct grid *g, const struct group *gr)
{
	pixman_box32_t b = cell_at(g, gr->x1, gr->y1)->box;

	for (int y = gr->y1; y < gr->y2; y++)
		for (int x = gr->x1; x < gr->x2; x++) {
			const pixman_box32_t *c = &cell_at(g, x, y)->box;

			b = (pixman_box32_t){MIN(b.x1, c->x1), MIN(b.y1, c->y1), MAX(b.x2, c->x2),
				MAX(b.y2, c->y2)};
		}
	return display_rect_of(&b);
}

static void done(const struct grid *g, const struct group *gr)
{
	for (int y = gr->y1; y < gr->y2; y++)
		for (int x = gr->x1; x < gr->x2; x++)
			cell_at(g, x, y)->sort = NOTHING;
}

/* In bands that are not too large for one command. */
static void add(struct grid *g, struct display_command c)
{
	const struct display_rect all = c.rect;
	const int band = DISPLAY_COMMAND_PIXELS / all.w;

	for (int y = 0; y < all.h; y += band) {
		c.rect.y = all.y + y;
		c.rect.h = MIN(band, all.h - y);
		if (display_commands_add(g->out, &c) < 0)
			g->failed = true;
	}
}

static void add_other(struct grid *g, const struct display_rect *r)
{
	struct display_command c = {.type = DISPLAY_RAW, .rect = *r};
	int n = display_palette_count(g->f, r, FEW_COLOURS, c.colour);

	if (n == 1)
		c.type = DISPLAY_SFILL;
	else if (n == 2)
		c.type = DISPLAY_BITMAP;
	else if (n <= FEW_COLOURS)
		c.hint = DISPLAY_FEW_COLOURS;
	add(g, c);
}

static void add_group(struct grid *g, const struct group *gr, const struct display_rect *r)
{
	struct display_command c = {.type = DISPLAY_RAW, .rect = *r};

	switch (gr->sort) {
	case TILED:
		c.type = DISPLAY_PFILL;
		c.tw = c.th = TILE;
		break;
	case FLAT:
		c.type = DISPLAY_SFILL;
		c.colour[0] = gr->colour;
		break;
	case PICTURE:
		c.hint = DISPLAY_SMOOTH;
		break;
	default:
		return add_other(g, r);
	}
	add(g, c);
}

/* What is large and of a sort of its own.  A small picture is none. */
static void take_large(struct grid *g, int x, int y)
{
	static const long least[] = {
		[FLAT] = LEAST_FILL, [TILED] = LEAST_TILES, [PICTURE] = LEAST_PICTURE};
	const enum sort sort = cell_at(g, x, y)->sort;
	struct display_rect r;
	struct group gr;

	if (sort == NOTHING || sort == FILLER || sort == OTHER)
		return;
	gr = group_from(g, x, y, sort);
	r = group_rect(g, &gr);
	if (display_rect_area(&r) >= least[sort]) {
		add_group(g, &gr, &r);
		done(g, &gr);
	} else if (sort == PICTURE) {
		cell_at(g, x, y)->sort = OTHER;
	}
}

static void take_rest(struct grid *g, int x, int y)
{
	struct display_rect r;
	struct group gr;

	if (cell_at(g, x, y)->sort == NOTHING || cell_at(g, x, y)->sort == FILLER)
		return;
	gr = group_from(g, x, y, OTHER);
	r = group_rect(g, &gr);
	add_group(g, &gr, &r);
	done(g, &gr);
}

static void each_cell(struct grid *g, void (*f)(struct grid *g, int x, int y))
{
	for (int y = 0; y < g->rows; y++)
		for (int x = 0; x < g->columns; x++)
			f(g, x, y);
}

bool display_classify_is_picture(const struct display_frame *f, const struct display_rect *r)
{
	uint32_t colours[FEW_COLOURS + 1];

	return display_palette_count(f, r, FEW_COLOURS, colours) > FEW_COLOURS && is_picture(f, r);
}

int display_classify(
	const struct display_frame *f, pixman_region32_t *region, struct display_commands *out)
{
	const pixman_box32_t *all = pixman_region32_extents(region);
	struct grid g = {.f = f, .out = out};
	const pixman_box32_t *boxes;
	int n;

	if (!pixman_region32_not_empty(region))
		return 0;
	g.x = all->x1 / CELL;
	g.y = all->y1 / CELL;
	g.columns = (all->x2 - 1) / CELL + 1 - g.x;
	g.rows = (all->y2 - 1) / CELL + 1 - g.y;
	g.cells = calloc((size_t)g.columns * (size_t)g.rows, sizeof(*g.cells));
	if (!g.cells)
		return -ENOMEM;
	boxes = pixman_region32_rectangles(region, &n);
	for (int i = 0; i < n; i++)
		cover(&g, &boxes[i]);
	for (int i = 0; i < g.columns * g.rows; i++) {
		if (i + 1 < g.columns * g.rows)
			prefetch_cell(&g, &g.cells[i + 1]);
		if (g.cells[i].sort != NOTHING)
			sort_cell(&g, &g.cells[i]);
	}
	fill(&g, all);
	each_cell(&g, take_large);
	each_cell(&g, take_rest);
	free(g.cells);
	return g.failed ? -ENOMEM : 0;
}
