// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Colours are looked up in a small open hash table, once for each run of pixels of the same one.
 * In text runs are short, but there are mostly two colours: rows that have no others than the first
 * two that were found are dealt with as a whole.
 */
#include "display/codec/palette.h"

#include <endian.h>
#include <string.h>

#include "base/base.h"

#define PIECE	  16 /* pixels, in which two colours are looked for */
#define SLOT_BITS 10
#define SLOTS	  (1 << SLOT_BITS)
#define FREE	  0xffffffffu /* no colour */

struct lookup {
	uint32_t colour[SLOTS];
	uint8_t index[SLOTS];
};

/* For @max colours only so many slots are used: a smaller table is sooner made. */
static unsigned lookup_init(struct lookup *l, int max)
{
	unsigned bits = max <= 16 ? 6 : SLOT_BITS;

	memset(l->colour, 0xff, sizeof(*l->colour) << bits);
	return 32 - bits;
}

/* Where @colour is, or where it would be. */
static unsigned slot_of(const struct lookup *l, uint32_t colour, unsigned shift)
{
	unsigned mask = (1u << (32 - shift)) - 1, i = (colour * 0x9e3779b1u) >> shift;

	while (l->colour[i] != colour && l->colour[i] != FREE)
		i = (i + 1) & mask;
	return i;
}

/* True if all of @n pixels have one of these colours. */
static bool only_two(const uint32_t *p, int n, uint32_t a, uint32_t b)
{
	int i = 0;

	for (; i + PIECE <= n; i += PIECE) {
		uint32_t other = 0;

		for (int k = 0; k < PIECE; k++)
			other |= (p[i + k] != a) & (p[i + k] != b);
		if (other)
			return false;
	}
	while (i < n && (p[i] == a || p[i] == b))
		i++;
	return i == n;
}

/* Eight indices of one bit each: the multiplication brings each to its place in the upper byte. */
static uint8_t squeeze_eight(const uint8_t *indices)
{
	uint64_t all;

	memcpy(&all, indices, sizeof(all));
	return (uint8_t)(le64toh(all) * 0x8040201008040201u >> 56);
}

/* The bytes of a row's indices as bits of them, in place; returns where the next row goes. */
static uint8_t *squeeze(const uint8_t *indices, int n, int bits, uint8_t *out)
{
	const int each = 8 / bits;
	int i = 0;

	for (; bits == 1 && i + 8 <= n; i += 8)
		*out++ = squeeze_eight(indices + i);
	for (; i < n; i += each) {
		unsigned byte = 0;

		for (int k = 0; k < each; k++)
			byte = byte << bits | (i + k < n ? indices[i + k] : 0);
		*out++ = (uint8_t)byte;
	}
	return out;
}

bool display_palette_pack(const struct display_frame *f, const struct display_rect *r, int max,
	struct display_palette *ret_palette, uint8_t *out)
{
	struct display_palette *p = ret_palette;
	uint8_t *to = out;
	struct lookup l;
	unsigned shift = lookup_init(&l, max);

	p->n = 0;
	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *row = display_frame_at(f, r->x, y);

		if (p->n >= 2 && only_two(row, r->w, p->colours[0], p->colours[1])) {
			for (int i = 0; i < r->w; i++)
				*to++ = row[i] == p->colours[1];
			continue;
		}
		for (int i = 0, n; i < r->w; i += n, to += n) {
			unsigned slot = slot_of(&l, row[i], shift);

			if (l.colour[slot] != row[i]) {
				if (p->n == max)
					return false;
				l.colour[slot] = row[i];
				l.index[slot] = (uint8_t)p->n;
				p->colours[p->n++] = row[i];
			}
			n = display_row_run(row + i, r->w - i);
			memset(to, l.index[slot], (size_t)n);
		}
	}
	to = out;
	if (display_palette_bits(p->n) < 8)
		for (int y = 0; y < r->h; y++)
			to = squeeze(out + (size_t)y * (size_t)r->w, r->w,
				display_palette_bits(p->n), to);
	return true;
}

int display_palette_count(const struct display_frame *f, const struct display_rect *r, int max,
	uint32_t ret_colours[2])
{
	struct lookup l;
	unsigned shift = lookup_init(&l, max);
	int n = 0;

	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *row = display_frame_at(f, r->x, y);

		if (n >= 2 && only_two(row, r->w, ret_colours[0], ret_colours[1]))
			continue;
		for (int i = 0; i < r->w; i += display_row_run(row + i, r->w - i)) {
			unsigned slot = slot_of(&l, row[i], shift);

			if (l.colour[slot] == row[i])
				continue;
			if (n == max)
				return max + 1;
			l.colour[slot] = row[i];
			if (n < 2)
				ret_colours[n] = row[i];
			n++;
		}
	}
	return n;
}

/* Index @i of a row of indices of @bits. */
static unsigned index_at(const uint8_t *row, int i, int bits)
{
	int at = i * bits;

	return row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
}

/* The same where each has a byte. */
static bool draw_bytes(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, const uint8_t *in)
{
	const size_t n = (size_t)display_rect_area(r);
	uint8_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, in[i]);
	if (most >= p->n)
		return false;
	for (int y = 0; y < r->h; y++, in += r->w) {
		uint32_t *row = display_frame_at(f, r->x, r->y + y);

		for (int i = 0; i < r->w; i++)
			row[i] = p->colours[in[i]];
	}
	return true;
}

bool display_palette_draw(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, int bits, const uint8_t *in)
{
	const size_t stride = ((size_t)r->w * (size_t)bits + 7) / 8;

	if (bits == 8)
		return draw_bytes(f, r, p, in);
	if (p->n < 1 << bits)
		for (int y = 0; y < r->h; y++)
			for (int i = 0; i < r->w; i++)
				if (index_at(in + (size_t)y * stride, i, bits) >= (unsigned)p->n)
					return false;
	for (int y = 0; y < r->h; y++, in += stride) {
		uint32_t *row = display_frame_at(f, r->x, r->y + y);

		for (int i = 0; i < r->w; i++)
			row[i] = p->colours[index_at(in, i, bits)];
	}
	return true;
}

bool display_palette_unpack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, const uint8_t *in)
{
	return display_palette_draw(f, r, p, display_palette_bits(p->n), in);
}
