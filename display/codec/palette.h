/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * palette - few colours, and indices of one, two, four or eight bits; rows padded to a byte, the
 * first pixel in the most significant bits.
 */
#ifndef DISPLAY_CODEC_PALETTE_H
#define DISPLAY_CODEC_PALETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

#define DISPLAY_PALETTE_MAX 256

struct display_palette {
	int n; /* 1..DISPLAY_PALETTE_MAX */
	uint32_t colours[DISPLAY_PALETTE_MAX];
};

/* Bits of an index: 1, 2, 4 or 8. */
static inline int display_palette_bits(int n)
{
	return n <= 2 ? 1 : n <= 4 ? 2 : n <= 16 ? 4 : 8;
}

/* Bytes of all indices. */
static inline size_t display_palette_size(const struct display_rect *r, int n)
{
	return ((size_t)r->w * (size_t)display_palette_bits(n) + 7) / 8 * (size_t)r->h;
}

/*
 * The colours of @r in the order in which they come, and the indices in @out, which has room for a
 * byte for each pixel; display_palette_size of them are used.  False if there are more than @max
 * colours.
 */
bool display_palette_pack(const struct display_frame *f, const struct display_rect *r, int max,
	struct display_palette *ret_palette, uint8_t *out);

/* The other way.  False, and nothing is drawn, if an index is not below p->n. */
bool display_palette_unpack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, const uint8_t *in);

/* The same with indices of @bits, whatever p->n says. */
bool display_palette_draw(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, int bits, const uint8_t *in);

/* How many colours there are in @r, and the first two of them; @max + 1 if there are more. */
int display_palette_count(const struct display_frame *f, const struct display_rect *r, int max,
	uint32_t ret_colours[2]);

#endif
