// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows are stretched one at a time, two colours in a word and the third in another, each with 16
 * bits; a row of the result lies between two of those.
 */
#include "display/codec/stretch.h"

#include <string.h>

#include "base/base.h"

#define ONE	 256
#define RED_BLUE 0x00ff00ffu

/* A row of the picture, as wide as the result: colours times ONE. */
struct row {
	uint32_t *red_blue, *green;
	int y; /* of the picture, or -1 */
};

struct stretch {
	const struct display_frame *from;
	int w;
	struct row rows[2];
	int *places; /* of each column: pixels of the picture times ONE */
};

/* Where in @from pixels the middle of the pixel @at of @to is, times ONE. */
static int place(int at, int from, int to)
{
	long p = (2L * at + 1) * from * (ONE / 2) / to - ONE / 2;

	return (int)(p < 0 ? 0 : MIN(p, (long)(from - 1) * ONE));
}

static void stretch_row(const struct stretch *s, struct row *row, int y)
{
	const uint32_t *p = display_frame_at(s->from, 0, y);
	const int last = s->from->width - 1;

	for (int x = 0; x < s->w; x++) {
		const uint32_t i = (uint32_t)s->places[x] / ONE,
			       part = (uint32_t)s->places[x] % ONE;
		const uint32_t a = p[i], b = p[MIN((int)i + 1, last)];

		row->red_blue[x] = (a & RED_BLUE) * (ONE - part) + (b & RED_BLUE) * part;
		row->green[x] = (a >> 8 & 255) * (ONE - part) + (b >> 8 & 255) * part;
	}
	row->y = y;
}

/* The row @y of the picture, stretched; the one at @keep stays. */
static const struct row *row_at(struct stretch *s, int y, const struct row *keep)
{
	for (int i = 0; i < 2; i++)
		if (s->rows[i].y == y)
			return &s->rows[i];
	for (int i = 0; i < 2; i++)
		if (&s->rows[i] != keep && (keep || s->rows[i].y <= s->rows[1 - i].y)) {
			stretch_row(s, &s->rows[i], y);
			return &s->rows[i];
		}
	return NULL; /* never: one of two is not the other */
}

static uint32_t mix(uint32_t a, uint32_t b, uint32_t part)
{
	return (a * (ONE - part) + b * part + ONE * ONE / 2) / (ONE * ONE);
}

static void put_row(
	uint32_t *to, int w, const struct row *above, const struct row *below, uint32_t part)
{
	for (int x = 0; x < w; x++)
		to[x] = mix(above->red_blue[x] >> 16, below->red_blue[x] >> 16, part) << 16 |
			mix(above->green[x], below->green[x], part) << 8 |
			mix(above->red_blue[x] & 0xffff, below->red_blue[x] & 0xffff, part);
}

static void copy(const struct display_frame *to, const struct display_rect *r,
	const struct display_frame *from)
{
	for (int y = 0; y < r->h; y++)
		memcpy(display_frame_at(to, r->x, r->y + y), display_frame_at(from, 0, y),
			(size_t)r->w * sizeof(*from->pixels));
}

int display_stretch(const struct display_frame *to, const struct display_rect *r,
	const struct display_frame *from)
{
	struct stretch s = {.from = from, .w = r->w};
	uint32_t *room;

	if (from->width == r->w && from->height == r->h) {
		copy(to, r, from);
		return 0;
	}
	room = calloc((size_t)r->w, 4 * sizeof(*room) + sizeof(*s.places));
	if (!room)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		s.rows[i] = (struct row){room + 2 * i * r->w, room + (2 * i + 1) * r->w, -1};
	s.places = (int *)(room + 4 * (size_t)r->w);
	for (int x = 0; x < r->w; x++)
		s.places[x] = place(x, from->width, r->w);
	for (int y = 0; y < r->h; y++) {
		const int at = place(y, from->height, r->h);
		const struct row *above = row_at(&s, at / ONE, NULL);
		const struct row *below = row_at(&s, MIN(at / ONE + 1, from->height - 1), above);

		put_row(display_frame_at(to, r->x, r->y + y), r->w, above, below,
			(uint32_t)at % ONE);
	}
	free(room);
	return 0;
}

static uint32_t mean(const struct display_frame *f, const struct display_rect *r)
{
	const uint32_t n = (uint32_t)display_rect_area(r);
	uint32_t red = n / 2, green = n / 2, blue = n / 2;

	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *p = display_frame_at(f, r->x, y);

		for (int i = 0; i < r->w; i++) {
			red += p[i] >> 16 & 255;
			green += p[i] >> 8 & 255;
			blue += p[i] & 255;
		}
	}
	return red / n << 16 | green / n << 8 | blue / n;
}

/* The means of 2x2, of whole ones. */
static void shrink_row(uint32_t *to, int n, const uint32_t *p, const uint32_t *q)
{
	for (int x = 0; x < n; x++) {
		const uint32_t a = p[2 * x], b = p[2 * x + 1], c = q[2 * x], d = q[2 * x + 1];
		const uint32_t red_blue =
			(a & RED_BLUE) + (b & RED_BLUE) + (c & RED_BLUE) + (d & RED_BLUE) + 0x20002;
		const uint32_t green = (a & 0xff00) + (b & 0xff00) + (c & 0xff00) + (d & 0xff00);

		to[x] = (red_blue >> 2 & RED_BLUE) | ((green + 0x200) >> 2 & 0xff00);
	}
}

void display_shrink(const struct display_frame *to, const struct display_frame *f,
	const struct display_rect *r, int by)
{
	const int w = (r->w + by - 1) / by, h = (r->h + by - 1) / by;

	for (int y = 0; y < h; y++) {
		struct display_rect part = {r->x, r->y + y * by, by, MIN(by, r->h - y * by)};
		uint32_t *row = display_frame_at(to, 0, y);
		int x = 0;

		if (by == 2 && part.h == 2) {
			x = r->w / 2;
			shrink_row(row, x, display_frame_at(f, r->x, part.y),
				display_frame_at(f, r->x, part.y + 1));
		}
		for (; x < w; x++) {
			part.x = r->x + x * by;
			part.w = MIN(by, r->w - x * by);
			row[x] = mean(f, &part);
		}
	}
}
