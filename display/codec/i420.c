// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers are 1/65536.  A row of colour is that of two rows of pixels, and what it adds to their
 * brightness is looked up: there are 256 values of each.
 */
#include "display/codec/i420.h"

#include "base/base.h"

#define HALF	32768
#define CENTRE	128
#define RED_V	91881  /* 1.402 */
#define GREEN_U 22554  /* 0.344136 */
#define GREEN_V 46802  /* 0.714136 */
#define BLUE_U	116130 /* 1.772 */

static int half(int n)
{
	return (n + 1) / 2;
}

size_t display_i420_size(int w, int h)
{
	return (size_t)w * (size_t)h + 2 * (size_t)half(w) * (size_t)half(h);
}

static void pack_row(const uint32_t *p, int w, uint8_t *to)
{
	for (int x = 0; x < w; x++) {
		int r = (int)(p[x] >> 16 & 255), g = (int)(p[x] >> 8 & 255), b = (int)(p[x] & 255);

		to[x] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + HALF) >> 16);
	}
}

/* The mean of the pixels of two rows, whose last is taken twice where there are too few. */
static void pack_colours(const uint32_t *p, const uint32_t *q, int w, uint8_t *u, uint8_t *v)
{
	for (int x = 0; x < w; x += 2) {
		const int next = x + 1 < w ? x + 1 : x;
		const uint32_t four[] = {p[x], p[next], q[x], q[next]};
		int r = 2, g = 2, b = 2;

		for (int i = 0; i < 4; i++) {
			r += (int)(four[i] >> 16 & 255);
			g += (int)(four[i] >> 8 & 255);
			b += (int)(four[i] & 255);
		}
		r /= 4;
		g /= 4;
		b /= 4;
		/* All of 0..255: the sum of each row's factors is 0. */
		u[x / 2] = (uint8_t)((-11059 * r - 21709 * g + 32768 * b + (CENTRE << 16) + HALF -
					     1) >>
				     16);
		v[x / 2] =
			(uint8_t)((32768 * r - 27439 * g - 5329 * b + (CENTRE << 16) + HALF - 1) >>
				  16);
	}
}

void display_i420_pack(const struct display_frame *f, const struct display_rect *r, uint8_t *to)
{
	uint8_t *u = to + (size_t)r->w * (size_t)r->h;
	uint8_t *v = u + (size_t)half(r->w) * (size_t)half(r->h);

	for (int y = 0; y < r->h; y++, to += r->w) {
		const uint32_t *p = display_frame_at(f, r->x, r->y + y);

		pack_row(p, r->w, to);
		if (y % 2)
			continue;
		pack_colours(p, y + 1 < r->h ? p + f->stride : p, r->w, u, v);
		u += half(r->w);
		v += half(r->w);
	}
}

static uint32_t clamped(int v)
{
	return (uint32_t)(v < 0 ? 0 : MIN(v, 255));
}

struct colours {
	int red[256], green_u[256], green_v[256], blue[256];
};

static void unpack_row(const struct colours *c, uint32_t *to, int w, const uint8_t *luma,
	const uint8_t *u, const uint8_t *v)
{
	for (int x = 0; x < w; x++) {
		const int cu = u[x / 2], cv = v[x / 2];
		const int green = (c->green_u[cu] + c->green_v[cv]) >> 16;

		to[x] = clamped(luma[x] + c->red[cv]) << 16 | clamped(luma[x] + green) << 8 |
			clamped(luma[x] + c->blue[cu]);
	}
}

void display_i420_draw(
	const struct display_frame *f, int w, int h, const struct display_i420 *planes)
{
	struct colours c;

	for (int i = 0; i < 256; i++) {
		c.red[i] = (RED_V * (i - CENTRE) + HALF) >> 16;
		c.blue[i] = (BLUE_U * (i - CENTRE) + HALF) >> 16;
		c.green_u[i] = -GREEN_U * (i - CENTRE) + HALF;
		c.green_v[i] = -GREEN_V * (i - CENTRE);
	}
	for (int y = 0; y < h; y++) {
		const ptrdiff_t row = (ptrdiff_t)(y / 2) * planes->stride_uv;

		unpack_row(&c, display_frame_at(f, 0, y), w,
			planes->y + (ptrdiff_t)y * planes->stride, planes->u + row,
			planes->v + row);
	}
}

void display_i420_unpack(const struct display_frame *f, int w, int h, const uint8_t *from)
{
	const uint8_t *u = from + (size_t)w * (size_t)h;
	const uint8_t *v = u + (size_t)half(w) * (size_t)half(h);
	const struct display_i420 planes = {from, u, v, w, half(w)};

	display_i420_draw(f, w, h, &planes);
}
