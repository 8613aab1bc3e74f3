// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "watch.h"

#define BLOCK  16
#define SLIGHT 4 /* a difference, mean over a block's colours, that JPEG may make */
#define NEARER 3 /* times */
#define PATCH  8
#define C1     (0.01 * 255 * 0.01 * 255)
#define C2     (0.03 * 255 * 0.03 * 255)

void watch_same_init(struct watch_same *s, int width, int height)
{
	s->width = width;
	s->height = height;
	s->blocks = calloc((size_t)((width + BLOCK - 1) / BLOCK * ((height + BLOCK - 1) / BLOCK)),
		sizeof(*s->blocks));
	if (!s->blocks)
		watch_die("no memory");
}

static unsigned apart(
	const uint32_t *a, size_t a_stride, const uint32_t *b, size_t b_stride, int w, int h)
{
	unsigned sum = 0;

	for (int y = 0; y < h; y++) {
		const uint8_t *p = (const uint8_t *)(a + (size_t)y * a_stride);
		const uint8_t *q = (const uint8_t *)(b + (size_t)y * b_stride);

		for (int x = 0; x < w * 4; x++)
			sum += x % 4 == 3 ? 0u : (unsigned)abs(p[x] - q[x]);
	}
	return sum;
}

bool watch_same_begin(struct watch_same *s, const uint32_t *before, const uint32_t *now)
{
	size_t stride = (size_t)s->width;

	s->n = s->first = 0;
	for (int y = 0; y < s->height; y += BLOCK)
		for (int x = 0; x < s->width; x += BLOCK) {
			int w = s->width - x < BLOCK ? s->width - x : BLOCK;
			int h = s->height - y < BLOCK ? s->height - y : BLOCK;
			size_t at = (size_t)y * stride + (size_t)x;
			unsigned slight = SLIGHT * 3 * (unsigned)(w * h);
			unsigned d = apart(before + at, stride, now + at, stride, w, h);

			if (d > slight)
				s->blocks[s->n++] =
					(struct watch_block){(short)x, (short)y, (short)w, (short)h,
						d / NEARER > slight ? d / NEARER : slight};
		}
	return s->n > 0;
}

static bool there(const struct watch_same *s, const struct watch_end *e, const uint32_t *now,
	const struct watch_block *b)
{
	return apart(e->pixels + (size_t)b->y * (size_t)e->stride + b->x, (size_t)e->stride,
		       now + (size_t)b->y * (size_t)s->width + b->x, (size_t)s->width, b->w,
		       b->h) <= b->most;
}

bool watch_same_check(struct watch_same *s, const struct watch_end *e, const uint32_t *now)
{
	if (!e->pixels || e->width != s->width || e->height != s->height)
		return false;
	while (s->first < s->n && there(s, e, now, &s->blocks[s->first]))
		s->first++;
	if (s->first < s->n)
		return false;
	/* what was there at first may have been overwritten */
	for (s->first = 0; s->first < s->n; s->first++)
		if (!there(s, e, now, &s->blocks[s->first]))
			return false;
	return true;
}

static double luma(uint32_t p)
{
	return 0.299 * (p >> 16 & 0xff) + 0.587 * (p >> 8 & 0xff) + 0.114 * (p & 0xff);
}

static double patch(const uint32_t *a, const uint32_t *b, int width)
{
	double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0, va, vb, cov, n = PATCH * PATCH;

	for (int y = 0; y < PATCH; y++)
		for (int x = 0; x < PATCH; x++) {
			double p = luma(a[y * width + x]), q = luma(b[y * width + x]);

			sa += p;
			sb += q;
			saa += p * p;
			sbb += q * q;
			sab += p * q;
		}
	va = saa / n - sa / n * (sa / n);
	vb = sbb / n - sb / n * (sb / n);
	cov = sab / n - sa / n * (sb / n);
	return (2 * sa / n * (sb / n) + C1) * (2 * cov + C2) /
	       ((sa / n * (sa / n) + sb / n * (sb / n) + C1) * (va + vb + C2));
}

double watch_ssim(const uint32_t *a, const uint32_t *b, int width, int height)
{
	double sum = 0;
	long n = 0;

	for (int y = 0; y + PATCH <= height; y += PATCH)
		for (int x = 0; x + PATCH <= width; x += PATCH, n++)
			sum += patch(a + (long)y * width + x, b + (long)y * width + x, width);
	return n ? sum / (double)n : 0;
}
