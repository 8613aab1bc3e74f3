// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First it is guessed how far something may have moved, cheaply, then each guess is looked at
 * pixel by pixel.
 *
 * Guessing.  Scrolled text: of some strips of the changed box (for in others there may be a
 * scrollbar, or nothing; behind one that is clear about it no other is looked at) each row has a
 * number that is made of the 16 rows that end in it; a number that is both in the picture before and
 * after is a vote for the distance.  Windows dragged: every pixel has a number that is made of the
 * 32 pixels that end in it; places where that number has certain bits are *points*, which are where
 * they are because of their surroundings, so they move with them.  A point after that is a point
 * before is a vote.  To find out that nothing has moved must not take long, so only some rows are
 * looked at: of the picture after 4 of each 32, of the one before each 4th: for every distance there
 * is a pair of the same rows in each 32.
 *
 * Looking.  Guesses that some of the rows contradict are left out, for each costs as much as all
 * guessing.  The box is cut into cells of 16 x 1 pixels, each of which is the same at that distance
 * or not; the largest rectangles of cells that are are found with the usual stack of a histogram.
 * What counts is how many cells in them have changed and are not of one colour: others are cheap
 * anyway.  At last it grows by the pixels at its sides.
 */
#include "display/move.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "display/region.h"

#define CELL	     16
#define COLUMNS	     (DISPLAY_SIZE_MAX / CELL)
#define STRIP	     32 /* columns of rows that are compared, */
#define STRIPS	     4	/* in so many places */
#define AHEAD	     8	/* rows that are on their way from memory */
#define WINDOW	     32 /* pixels of a point's number: it has as many bits */
#define POINT_BITS   5	/* one of 32 pixels is a point */
#define POINTS	     (1 << 13)
#define SAME	     4 /* points with the same number: more say nothing */
#define VOTES	     (1 << 12)
#define GUESSES	     3 /* that are looked at */
#define MAX_GUESSES  (DISPLAY_MOVES + 1 + GUESSES)
#define LEAST_VOTES  3	  /* of rows or points, */
#define VOTES_PART   128  /* and of one of so many points */
#define LEAST_PIXELS 2048 /* changed, for a search */
#define LEAST_GAIN   24	  /* cells that need not be sent, */
#define LEAST_PART   8	  /* and one of so many of all that would be */
#define SAMPLED	     7	  /* one of so many rows is looked at first: a letter has others */
#define SAMPLE_LEAST 512  /* cells that would have to be sent, in these rows */
#define GOOD_SCROLL  3	  /* one of so many rows says so: no more guesses are needed */

struct point {
	uint32_t number; /* 0: none */
	int16_t x, y;
};

struct vote {
	int dx, dy, n;
};

struct display_mover {
	struct point points[POINTS];
	struct vote votes[VOTES];
	int n_points, n_votes;
	uint32_t rows[2][DISPLAY_SIZE_MAX]; /* numbers of rows, before and after */
	uint32_t *gain;			    /* sums of cells, one row and column more than cells */
	size_t gain_room;
	int height[2][COLUMNS + 1]; /* of the column of equal cells that ends here: rows in turn */
};

/* One search. */
struct search {
	struct display_mover *m;
	const struct display_frame *before, *after;
	pixman_box32_t box; /* of what has changed */
	int columns;	    /* cells across it */
};

int display_mover_new(struct display_mover **ret_mover)
{
	*ret_mover = calloc(1, sizeof(**ret_mover));
	return *ret_mover ? 0 : -ENOMEM;
}

void display_mover_free(struct display_mover *m)
{
	if (m)
		free(m->gain);
	free(m);
}

/* ---- votes ----------------------------------------------------------------------------------- */

static uint32_t mix(uint32_t v)
{
	v *= 0x9e3779b1u;
	return v ^ v >> 15;
}

static void vote(struct search *s, int dx, int dy)
{
	struct display_mover *m = s->m;
	unsigned i = mix((uint32_t)dx * 0x85ebca6bu + (uint32_t)dy) % VOTES;

	if (!dx && !dy)
		return;
	while (m->votes[i].n && (m->votes[i].dx != dx || m->votes[i].dy != dy))
		i = (i + 1) % VOTES;
	if (!m->votes[i].n) {
		if (m->n_votes >= VOTES / 2)
			return;
		m->n_votes++;
		m->votes[i] = (struct vote){.dx = dx, .dy = dy};
	}
	m->votes[i].n++;
}

static struct vote *most_votes(struct search *s)
{
	struct vote *best = &s->m->votes[0];

	for (int i = 1; i < VOTES; i++)
		if (s->m->votes[i].n > best->n)
			best = &s->m->votes[i];
	return best;
}

/* The distance that has most votes, which are forgotten then; n is 0 if there is none. */
static struct vote best_vote(struct search *s)
{
	struct vote *best = most_votes(s), found = *best;

	if (best->n)
		best->n = 1; /* the slot must stay taken: others may lie behind it */
	return found;
}

static void forget_votes(struct search *s)
{
	memset(s->m->votes, 0, sizeof(s->m->votes));
	s->m->n_votes = 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t row_number(const uint32_t *p)
{
	uint64_t lane[4] = {1, 2, 3, 4}, pair;

	for (int i = 0; i < STRIP; i += 8)
		for (int k = 0; k < 4; k++) {
			memcpy(&pair, p + i + 2 * k, sizeof(pair));
			lane[k] = (lane[k] ^ pair) * 0x9e3779b97f4a7c15u;
			lane[k] ^= lane[k] >> 29;
		}
	pair = lane[0] + 3 * lane[1] + 5 * lane[2] + 7 * lane[3];
	return (uint32_t)(pair >> 32);
}

/* numbers[i] is made of the 16 rows of the strip that end in row i; 0 if they are all the same. */
static void number_rows(struct search *s, const struct display_frame *f, int x, uint32_t *numbers)
{
	const int h = s->box.y2 - s->box.y1;
	uint32_t last = 0, number = 0;
	int same = 0;

	for (int i = 0; i < h; i++) {
		uint32_t row = mix(row_number(display_frame_at(f, x, s->box.y1 + i)));

		if (i + AHEAD < h)
			display_prefetch(display_frame_at(f, x, s->box.y1 + i + AHEAD), STRIP + 1);
		same = row == last ? same + 1 : 0;
		last = row;
		number = (number << 2) + row;
		numbers[i] = i < 15 || same >= 15 ? 0 : number;
	}
}

static void guess_by_strip(struct search *s, int x)
{
	const int h = s->box.y2 - s->box.y1;
	struct display_mover *m = s->m;

	number_rows(s, s->before, x, m->rows[0]);
	number_rows(s, s->after, x, m->rows[1]);
	memset(m->points, 0, sizeof(m->points));
	for (int y = 0; y < h && y < POINTS / 2; y++) {
		unsigned i = mix(m->rows[0][y]) % POINTS;

		if (!m->rows[0][y])
			continue;
		while (m->points[i].number)
			i = (i + 1) % POINTS;
		m->points[i] = (struct point){m->rows[0][y], 0, (int16_t)y};
	}
	for (int y = 0; y < h; y++) {
		unsigned i = mix(m->rows[1][y]) % POINTS;
		int same = 0;

		for (; m->rows[1][y] && m->points[i].number && same < SAME; i = (i + 1) % POINTS)
			if (m->points[i].number == m->rows[1][y]) {
				vote(s, 0, y - m->points[i].y);
				same++;
			}
	}
}

static bool is_scroll(const struct search *s, const struct vote *v)
{
	return v->n * GOOD_SCROLL >= s->box.y2 - s->box.y1;
}

/* Votes for vertical distances, until one is good enough; returns the best with its votes. */
static struct vote guess_scroll(struct search *s)
{
	const int w = s->box.x2 - s->box.x1, n = MIN(w / STRIP, STRIPS);
	struct vote best = {0};

	for (int i = 0; i < n && !is_scroll(s, &best); i++) {
		guess_by_strip(s, s->box.x1 + w * i / n);
		best = *most_votes(s);
	}
	forget_votes(s);
	return best;
}

/* ---- points ---------------------------------------------------------------------------------- */

static void point_after(struct search *s, uint32_t number, int x, int y)
{
	struct display_mover *m = s->m;
	unsigned i = mix(number) % POINTS;

	if (m->n_points >= POINTS / 2)
		return;
	for (int same = 0; m->points[i].number; i = (i + 1) % POINTS)
		if (m->points[i].number == number && ++same > SAME)
			return;
	m->points[i] = (struct point){number, (int16_t)x, (int16_t)y};
	m->n_points++;
}

static void point_before(struct search *s, uint32_t number, int x, int y)
{
	const struct point *p = s->m->points;
	const struct point *same[SAME + 1];
	unsigned i = mix(number) % POINTS;
	int n = 0;

	for (; p[i].number && n <= SAME; i = (i + 1) % POINTS)
		if (p[i].number == number)
			same[n++] = &p[i];
	if (n > SAME)
		return;
	while (n-- > 0)
		vote(s, same[n]->x - x, same[n]->y - y);
}

/* Calls @found for each point of a row of the box. */
static void points_of_row(struct search *s, const struct display_frame *f, int y,
	void (*found)(struct search *s, uint32_t number, int x, int y))
{
	const uint32_t *p = display_frame_at(f, 0, y);
	uint32_t number = 0, last = ~0u;
	int same_since = s->box.x1;

	for (int x = s->box.x1; x < s->box.x2; x++) {
		number = (number << 1) + mix(p[x]);
		if (p[x] != last) {
			last = p[x];
			same_since = x;
		} else if (x - same_since > WINDOW) {
			/* The number stays as it is until another colour comes. */
			x += display_row_run(p + x, s->box.x2 - x) - 1;
			continue;
		}
		if (number >> (32 - POINT_BITS) == 0 && number && x - same_since < WINDOW &&
			x - s->box.x1 >= WINDOW)
			found(s, number, x, y);
	}
}

static void guess_distances(struct search *s)
{
	struct display_mover *m = s->m;

	memset(m->points, 0, sizeof(m->points));
	m->n_points = 0;
	for (int y = s->box.y1; y < s->box.y2; y++)
		if ((y - s->box.y1) % 32 < 4)
			points_of_row(s, s->after, y, point_after);
	if (!m->n_points)
		return;
	for (int y = s->box.y1; y < s->box.y2; y += 4)
		points_of_row(s, s->before, y, point_before);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool cell_same(const uint32_t *a, const uint32_t *b)
{
	uint32_t d = 0;

	for (int i = 0; i < CELL; i++)
		d |= a[i] ^ b[i];
	return !d;
}

static bool cell_flat(const uint32_t *a)
{
	uint32_t d = 0;

	for (int i = 1; i < CELL; i++)
		d |= a[i] ^ a[0];
	return !d;
}

/* Whether a cell, as it was in its place and is now, would have to be sent. */
static bool cell_counts(const uint32_t *before, const uint32_t *now)
{
	return !cell_same(before, now) && !cell_flat(now);
}

/* Sums of the cells that would have to be sent, over all above and to the left. */
static int sum_gains(struct search *s)
{
	const int h = s->box.y2 - s->box.y1;
	const size_t stride = (size_t)s->columns + 1, need = stride * ((size_t)h + 1);
	struct display_mover *m = s->m;

	if (need > m->gain_room) {
		uint32_t *more = realloc(m->gain, need * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->gain = more;
		m->gain_room = need;
	}
	memset(m->gain, 0, stride * sizeof(*m->gain));
	for (int y = 0; y < h; y++) {
		const uint32_t *a = display_frame_at(s->before, s->box.x1, s->box.y1 + y);
		const uint32_t *b = display_frame_at(s->after, s->box.x1, s->box.y1 + y);
		uint32_t *above = m->gain + (size_t)y * stride, *sum = above + stride, row = 0;

		sum[0] = 0;
		for (int i = 0; i < s->columns; i++) {
			const uint32_t *now = b + i * CELL;

			row += cell_counts(a + i * CELL, now);
			sum[i + 1] = above[i + 1] + row;
		}
	}
	return 0;
}

/* Of cells x1..x2, rows y1..y2 of the box. */
static uint32_t gain_of(const struct search *s, int x1, int y1, int x2, int y2)
{
	const size_t stride = (size_t)s->columns + 1;
	const uint32_t *g = s->m->gain, *top = g + (size_t)y1 * stride,
		       *bottom = g + (size_t)y2 * stride;

	return bottom[x2] - bottom[x1] - top[x2] + top[x1];
}

/* The best rectangle so far, in cells and rows of the box. */
struct best {
	uint32_t gain;
	int x1, y1, x2, y2;
};

static void consider(const struct search *s, struct best *best, int x1, int y1, int x2, int y2)
{
	uint32_t gain = gain_of(s, x1, y1, x2, y2);

	if (gain > best->gain)
		*best = (struct best){gain, x1, y1, x2, y2};
}

/* All largest rectangles whose last row is @y: the stack holds columns of growing height. */
static void consider_row(const struct search *s, struct best *best, int y, const int *height)
{
	int stack[COLUMNS + 1], n = 0;

	for (int x = 0; x <= s->columns; x++) {
		int end = x < s->columns ? height[x] : 0;

		while (n && height[stack[n - 1]] >= end) {
			int h = height[stack[--n]];

			if (h)
				consider(s, best, n ? stack[n - 1] + 1 : 0, y + 1 - h, x, y + 1);
		}
		stack[n++] = x;
	}
}

static bool cell_came(const struct search *s, int x, int y, int dx, int dy)
{
	const int sx = x - dx, sy = y - dy;

	return sx >= 0 && sx + CELL <= s->before->width && sy >= 0 && sy < s->before->height &&
	       cell_same(display_frame_at(s->after, x, y), display_frame_at(s->before, sx, sy));
}

/* Which cells of row @y of the box came from @dx, @dy; true if any column of them ends above. */
static bool compare_row(
	const struct search *s, int y, int dx, int dy, const int *above, int *height)
{
	const int sy = s->box.y1 + y - dy, sx = s->box.x1 - dx;
	const bool inside = sy >= 0 && sy < s->before->height;
	const uint32_t *now = display_frame_at(s->after, s->box.x1, s->box.y1 + y);
	bool ended = false;

	for (int i = 0; i < s->columns; i++) {
		int from = sx + i * CELL;
		bool same = inside && from >= 0 && from + CELL <= s->before->width &&
			    cell_same(now + i * CELL, display_frame_at(s->before, from, sy));

		height[i] = same ? above[i] + 1 : 0;
		ended |= !same && above[i];
	}
	return ended;
}

/*
 * Leaves out guesses that will come to nothing, by one of SAMPLED rows: of the cells there that
 * would have to be sent, half of the part that is asked for must have come from that far.  Where
 * only few would have to be sent, none is left out.  Returns how many are left.
 */
static int leave_out(const struct search *s, struct vote *guesses, int n)
{
	uint32_t all = 0, same[MAX_GUESSES] = {0};
	int left = 0;

	if (!n)
		return 0;
	for (int y = s->box.y1; y < s->box.y2; y += SAMPLED) {
		const uint32_t *before = display_frame_at(s->before, s->box.x1, y);
		const uint32_t *now = display_frame_at(s->after, s->box.x1, y);

		for (int i = 0; i < s->columns; i++) {
			if (!cell_counts(before + i * CELL, now + i * CELL))
				continue;
			all++;
			for (int k = 0; k < n; k++)
				same[k] += cell_came(
					s, s->box.x1 + i * CELL, y, guesses[k].dx, guesses[k].dy);
		}
	}
	for (int i = 0; i < n; i++)
		if (all < SAMPLE_LEAST || same[i] * 2 * LEAST_PART >= all)
			guesses[left++] = guesses[i];
	return left;
}

static bool column_moved(
	const struct search *s, const struct display_rect *r, int x, int dx, int dy)
{
	if (x < s->box.x1 || x >= s->box.x2 || x - dx < 0 || x - dx >= s->before->width)
		return false;
	for (int y = r->y; y < r->y + r->h; y++)
		if (*display_frame_at(s->after, x, y) !=
			*display_frame_at(s->before, x - dx, y - dy))
			return false;
	return true;
}

/* By the pixels at its left and right that have moved with it. */
static void grow(const struct search *s, struct display_rect *r, int dx, int dy)
{
	while (column_moved(s, r, r->x - 1, dx, dy)) {
		r->x--;
		r->w++;
	}
	while (column_moved(s, r, r->x + r->w, dx, dy))
		r->w++;
}

/* What is best at this distance; false if it isn't better than *best_gain. */
static bool look(
	const struct search *s, int dx, int dy, uint32_t *best_gain, struct display_move *ret_move)
{
	const int h = s->box.y2 - s->box.y1;
	struct best best = {.gain = *best_gain};
	struct display_rect r;

	memset(s->m->height, 0, sizeof(s->m->height));
	for (int y = 0; y < h; y++) {
		const int *above = s->m->height[y % 2];

		/* A rectangle is complete where the row below it differs. */
		if (compare_row(s, y, dx, dy, above, s->m->height[(y + 1) % 2]))
			consider_row(s, &best, y - 1, above);
	}
	consider_row(s, &best, h - 1, s->m->height[h % 2]);
	if (best.gain <= *best_gain)
		return false;
	r = (struct display_rect){s->box.x1 + best.x1 * CELL, s->box.y1 + best.y1,
		(best.x2 - best.x1) * CELL, best.y2 - best.y1};
	grow(s, &r, dx, dy);
	*best_gain = best.gain;
	*ret_move = (struct display_move){r, r.x - dx, r.y - dy};
	return true;
}

static int add_guess(struct vote *guesses, int n, struct vote v)
{
	for (int i = 0; i < n; i++)
		if (guesses[i].dx == v.dx && guesses[i].dy == v.dy)
			return n;
	guesses[n] = v;
	return n + 1;
}

/* Distances that are worth a look, the likeliest first; returns how many. */
static int guess(struct search *s, const struct display_move *hints, size_t n_hints,
	struct vote guesses[MAX_GUESSES])
{
	struct vote v;
	int n = 0;

	for (size_t i = 0; i < n_hints && i < DISPLAY_MOVES; i++)
		n = add_guess(guesses, n,
			(struct vote){
				hints[i].rect.x - hints[i].sx, hints[i].rect.y - hints[i].sy, 0});
	v = guess_scroll(s);
	if (v.n >= LEAST_VOTES)
		n = add_guess(guesses, n, v);
	if (is_scroll(s, &v))
		return n;
	guess_distances(s);
	for (int i = 0; i < GUESSES; i++) {
		v = best_vote(s);
		if (v.n < MAX(LEAST_VOTES, s->m->n_points / VOTES_PART))
			break;
		n = add_guess(guesses, n, v);
	}
	return n;
}

int display_move_find(struct display_mover *m, const struct display_frame *before,
	const struct display_frame *after, pixman_region32_t *changed,
	const struct display_move *hints, size_t n_hints, struct display_move *ret_move)
{
	struct search s = {.m = m, .before = before, .after = after};
	struct vote guesses[MAX_GUESSES];
	uint32_t gain, all;
	bool found = false;
	int n;

	s.box = *pixman_region32_extents(changed);
	s.columns = (s.box.x2 - s.box.x1) / CELL;
	if (s.columns < 2 || display_region_area(changed) < LEAST_PIXELS)
		return 0;
	forget_votes(&s);
	n = guess(&s, hints, n_hints, guesses);
	if (n > 0)
		n = leave_out(&s, guesses, n);
	if (!n || sum_gains(&s) < 0)
		return 0;
	all = gain_of(&s, 0, 0, s.columns, s.box.y2 - s.box.y1);
	gain = MAX(LEAST_GAIN - 1u, all / LEAST_PART);
	for (int i = 0; i < n && gain <= all / 2; i++)
		found |= look(&s, guesses[i].dx, guesses[i].dy, &gain, ret_move);
	return found;
}
