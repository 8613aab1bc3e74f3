// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Colours are looked up in a small open hash table; the colour of the pixel before is tried first,
 * for most pixels have it.
 */
#include "display/codec/palette.h"

#include <string.h>

#include "base/base.h"

#define SLOTS 64
#define FREE  0xffffffffu /* no colour */

struct lookup {
	uint32_t colour[SLOTS];
	uint8_t index[SLOTS];
};

static void lookup_init(struct lookup *l)
{
	memset(l->colour, 0xff, sizeof(l->colour));
}

/* Where @colour is, or where it would be. */
static unsigned slot_of(const struct lookup *l, uint32_t colour)
{
	unsigned i = (colour * 0x9e3779b1u) >> 26;

	while (l->colour[i] != colour && l->colour[i] != FREE)
		i = (i + 1) % SLOTS;
	return i;
}

static void enter(struct lookup *l, uint32_t colour, int index)
{
	unsigned i = slot_of(l, colour);

	l->colour[i] = colour;
	l->index[i] = (uint8_t)index;
}

bool display_palette_find(const struct display_frame *f, const struct display_rect *r, int max,
	struct display_palette *ret_palette)
{
	struct display_palette p = {0};
	struct lookup l;
	uint32_t last = FREE;

	lookup_init(&l);
	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *row = display_frame_at(f, r->x, y);

		for (int i = 0; i < r->w; i++) {
			if (row[i] == last)
				continue;
			last = row[i];
			if (l.colour[slot_of(&l, last)] == last)
				continue;
			if (p.n == max)
				return false;
			enter(&l, last, p.n);
			p.colours[p.n++] = last;
		}
	}
	*ret_palette = p;
	return true;
}

static bool pack_row(const struct lookup *l, const uint32_t *row, int n, int bits, uint8_t **out)
{
	uint32_t last = FREE;
	unsigned index = 0, byte = 0;
	int room = 8;

	for (int i = 0; i < n; i++) {
		if (row[i] != last) {
			unsigned slot = slot_of(l, row[i]);

			last = row[i];
			if (l->colour[slot] != last)
				return false;
			index = l->index[slot];
		}
		room -= bits;
		byte |= index << room;
		if (!room) {
			*(*out)++ = (uint8_t)byte;
			byte = 0;
			room = 8;
		}
	}
	if (room < 8)
		*(*out)++ = (uint8_t)byte;
	return true;
}

bool display_palette_pack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, uint8_t *out)
{
	const int bits = display_palette_bits(p->n);
	struct lookup l;

	lookup_init(&l);
	for (int i = 0; i < p->n; i++)
		enter(&l, p->colours[i], i);
	for (int y = r->y; y < r->y + r->h; y++)
		if (!pack_row(&l, display_frame_at(f, r->x, y), r->w, bits, &out))
			return false;
	return true;
}

static unsigned index_at(const uint8_t *row, int i, int bits)
{
	int at = i * bits;

	return row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
}

bool display_palette_unpack(const struct display_frame *f, const struct display_rect *r,
	const struct display_palette *p, const uint8_t *in)
{
	const int bits = display_palette_bits(p->n);
	const size_t stride = ((size_t)r->w * (size_t)bits + 7) / 8;

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
