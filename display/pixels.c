// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/pixels.h"

#include <string.h>

#include "base/base.h"

#define PIECE 64 /* pixels, for which memory is asked ahead */

int display_frame_init(struct display_frame *f, int width, int height)
{
	if (width < 1 || height < 1 || width > DISPLAY_SIZE_MAX || height > DISPLAY_SIZE_MAX)
		return -EINVAL;
	*f = (struct display_frame){.width = width, .height = height, .stride = width};
	f->pixels = calloc((size_t)width * (size_t)height, sizeof(*f->pixels));
	return f->pixels ? 0 : -ENOMEM;
}

void display_frame_fini(struct display_frame *f)
{
	free(f->pixels);
	*f = (struct display_frame){0};
}

static uint32_t row_difference(const uint32_t *a, const uint32_t *b, int n)
{
	uint32_t d = 0;

	for (int i = 0; i < n; i++)
		d |= a[i] ^ b[i];
	return d & DISPLAY_RGB;
}

bool display_frame_same(const struct display_frame *a, const struct display_frame *b)
{
	if (a->width != b->width || a->height != b->height)
		return false;
	for (int y = 0; y < a->height; y++)
		if (row_difference(display_frame_at(a, 0, y), display_frame_at(b, 0, y), a->width))
			return false;
	return true;
}

void display_frame_copy(const struct display_frame *to, const struct display_frame *from,
	const struct display_rect *r)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *s = display_frame_at(from, r->x, y);
		/* Rows as long as a page of memory begin where no processor looks ahead to. */
		const uint32_t *next = y + 1 < r->y + r->h ? s + from->stride : s;
		uint32_t *d = display_frame_at(to, r->x, y);

		for (int x = 0; x < r->w; x += PIECE) {
			const int end = MIN(x + PIECE, r->w);

			display_prefetch(next + x, end - x);
			for (int i = x; i < end; i++)
				d[i] = s[i] & DISPLAY_RGB;
		}
	}
}

void display_frame_fill(
	const struct display_frame *f, const struct display_rect *r, uint32_t colour)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		uint32_t *d = display_frame_at(f, r->x, y);

		for (int i = 0; i < r->w; i++)
			d[i] = colour & DISPLAY_RGB;
	}
}

void display_frame_move(const struct display_frame *f, const struct display_rect *r, int sx, int sy)
{
	const bool up = sy >= r->y;

	for (int i = 0; i < r->h; i++) {
		int row = up ? i : r->h - 1 - i;

		memmove(display_frame_at(f, r->x, r->y + row), display_frame_at(f, sx, sy + row),
			(size_t)r->w * sizeof(*f->pixels));
	}
}

bool display_rect_within(const struct display_rect *r, int width, int height)
{
	return r->x >= 0 && r->y >= 0 && r->w >= 1 && r->h >= 1 && r->w <= width &&
	       r->h <= height && r->x <= width - r->w && r->y <= height - r->h;
}

bool display_rect_intersect(
	const struct display_rect *a, const struct display_rect *b, struct display_rect *ret)
{
	int x1 = MAX(a->x, b->x), x2 = MIN(a->x + a->w, b->x + b->w);
	int y1 = MAX(a->y, b->y), y2 = MIN(a->y + a->h, b->y + b->h);

	*ret = (struct display_rect){0};
	if (x1 >= x2 || y1 >= y2)
		return false;
	*ret = (struct display_rect){x1, y1, x2 - x1, y2 - y1};
	return true;
}
