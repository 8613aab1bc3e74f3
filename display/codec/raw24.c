// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/codec/raw24.h"

#include <endian.h>
#include <string.h>

#include "base/base.h"

static void store3(uint8_t *out, uint32_t v)
{
	out[0] = (uint8_t)v;
	out[1] = (uint8_t)(v >> 8);
	out[2] = (uint8_t)(v >> 16);
}

static uint32_t load3(const uint8_t *in)
{
	return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16;
}

/* Four pixels, put together in registers: what is stored in parts and loaded whole takes longer. */
static void store12(uint8_t *out, const uint32_t *p)
{
	const uint64_t low = htole64(p[0] | (uint64_t)p[1] << 24 | (uint64_t)p[2] << 48);
	const uint32_t high = htole32(p[2] >> 16 | p[3] << 8);

	memcpy(out, &low, sizeof(low));
	memcpy(out + sizeof(low), &high, sizeof(high));
}

static uint8_t *pack_row(uint8_t *out, const uint32_t *p, int n)
{
	int i;

	for (i = 0; i + 4 <= n; i += 4, out += 12)
		store12(out, p + i);
	for (; i < n; i++, out += 3)
		store3(out, p[i]);
	return out;
}

void display_raw24_pack(const struct display_frame *f, const struct display_rect *r, uint8_t *out)
{
	for (int y = r->y; y < r->y + r->h; y++)
		out = pack_row(out, display_frame_at(f, r->x, y), r->w);
}

/* Byte by byte, without a carry from one to the next. */
static uint32_t sub_bytes(uint32_t a, uint32_t b)
{
	return ((a | 0x80808080) - (b & 0x7f7f7f7f)) ^ ((a ^ ~b) & 0x80808080);
}

static uint32_t add_bytes(uint32_t a, uint32_t b)
{
	return ((a & 0x7f7f7f7f) + (b & 0x7f7f7f7f)) ^ ((a ^ b) & 0x80808080);
}

void display_raw24_pack_left(
	const struct display_frame *f, const struct display_rect *r, uint8_t *out)
{
	uint32_t d[256];

	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *p = display_frame_at(f, r->x, y);

		for (int x = 0; x < r->w; x += 256) {
			int n = MIN(256, r->w - x);

			d[0] = sub_bytes(p[x], x ? p[x - 1] : 0) & DISPLAY_RGB;
			for (int i = 1; i < n; i++)
				d[i] = sub_bytes(p[x + i], p[x + i - 1]) & DISPLAY_RGB;
			out = pack_row(out, d, n);
		}
	}
}

void display_raw24_unpack(
	const struct display_frame *f, const struct display_rect *r, const uint8_t *in)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		uint32_t *p = display_frame_at(f, r->x, y);

		for (int i = 0; i < r->w; i++, in += 3)
			p[i] = load3(in);
	}
}

void display_raw24_unpack_left(
	const struct display_frame *f, const struct display_rect *r, const uint8_t *in)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		uint32_t *p = display_frame_at(f, r->x, y);
		uint32_t sum = 0;

		for (int i = 0; i < r->w; i++, in += 3) {
			sum = add_bytes(sum, load3(in));
			p[i] = sum;
		}
	}
}
