/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * palette - few colours, and indices of one, two or four bits; rows padded to a byte, the first
 * pixel in the most significant bits.
 */
#ifndef DISPLAY_CODEC_PALETTE_H
#define DISPLAY_CODEC_PALETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/pixels.h"

#define DISPLAY_PALETTE_MAX 16

struct display_palette {
	int n; /* 1..DISPLAY_PALETTE_MAX */
	uint32_t colours[DISPLAY_PALETTE_MAX];
};

/* The colours of @r in the order in which they come; false if there are more than @max. */
bool display_palette_find(const struct display_frame *f, const struct display_rect *r, int max,
	struct display_palette *ret_palette);

/* Bits of an index: 1, 2 or 4. */
static inline int display_palette_bits(int n)
{
	return n <= 2 ? 1 : n <= 4 ? 2 : 4;
}

/* Bytes of all indices. */
static inline size_t display_palette_size(const struct display_rect *r, int n)
{
	return ((size_t)r->w * (size_t)display_palette_bits(n) + 7) / 8 * (size_t)r->h;
}

/*
 * @out has room for display_palette_size bytes.  False, and what is in @out means nothing, if a
 * pixel has none of the colours.
 */
bool display_palette_pack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, uint8_t *out);

/* The other way.  False, and nothing is drawn, if an index is not below p->n. */
bool display_palette_unpack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, const uint8_t *in);

#endif
