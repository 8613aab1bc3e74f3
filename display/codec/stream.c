// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The window is a mebibyte: a screenful of indices and a little more.  Every piece is flushed, so
 * that it can be unpacked at once.
 *
 * Where a palette is full, colours that nobody uses any more are in it: it begins anew with those
 * of the rectangle.  If these are too many themselves, the next rectangles hardly have fewer, and
 * are not looked at for a while.
 */
#include "display/codec/stream.h"

#include <string.h>
#include <zstd.h>

#include "base/base.h"
#include "display/codec/palette.h"

#define WINDOW_LOG 20
#define LEVEL	   1 /* the third comes to 1/14 less, and takes half as long again */
#define SLOT_BITS  10
#define SLOTS	   (1 << SLOT_BITS)
#define FREE	   0xffffffffu /* no colour */
#define SKIPPED	   3	       /* rectangles, behind one of too many colours */

struct display_stream {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
	struct display_palette palette;
	uint32_t colour[SLOTS]; /* where to find them: an open hash table */
	uint8_t index[SLOTS];
	int skipped;
};

static void clear(struct display_stream *s)
{
	s->palette.n = 0;
	memset(s->colour, 0xff, sizeof(s->colour));
}

int display_stream_new(struct display_stream **ret_stream)
{
	struct display_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	clear(s);
	*ret_stream = s;
	return 0;
}

void display_stream_free(struct display_stream *s)
{
	if (!s)
		return;
	ZSTD_freeCCtx(s->pack);
	ZSTD_freeDCtx(s->unpack);
	free(s);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool begin_packing(struct display_stream *s)
{
	if (s->pack)
		return true;
	s->pack = ZSTD_createCCtx();
	return s->pack &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(s->pack, ZSTD_c_compressionLevel, LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(s->pack, ZSTD_c_windowLog, WINDOW_LOG));
}

int display_stream_pack(struct display_stream *s, const void *data, size_t n, struct buf *out)
{
	ZSTD_inBuffer from = {data, n, 0};
	size_t left;

	if (!begin_packing(s))
		return -ENOMEM;
	do {
		const size_t room = ZSTD_compressBound(n - from.pos) + 64;
		ZSTD_outBuffer to = {buf_reserve(out, room), room, 0};

		if (!to.dst)
			return -ENOMEM;
		left = ZSTD_compressStream2(s->pack, &to, &from, ZSTD_e_flush);
		out->len += to.pos;
		if (ZSTD_isError(left))
			return -ENOMEM; /* nothing else can be wrong */
	} while (left > 0 || from.pos < n);
	return 0;
}

static bool begin_unpacking(struct display_stream *s)
{
	if (s->unpack)
		return true;
	s->unpack = ZSTD_createDCtx();
	return s->unpack &&
	       !ZSTD_isError(ZSTD_DCtx_setParameter(s->unpack, ZSTD_d_windowLogMax, WINDOW_LOG));
}

bool display_stream_unpack(
	struct display_stream *s, const void *data, size_t len, void *out, size_t n)
{
	ZSTD_inBuffer from = {data, len, 0};
	ZSTD_outBuffer to = {out, n, 0};
	size_t at;

	if (!begin_unpacking(s))
		return false;
	do {
		at = from.pos + to.pos;
		if (ZSTD_isError(ZSTD_decompressStream(s->unpack, &to, &from)))
			return false;
	} while (from.pos + to.pos > at && (from.pos < len || to.pos < n));
	return from.pos == len && to.pos == n;
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Where @colour is, or where it would be. */
static unsigned slot_of(const struct display_stream *s, uint32_t colour)
{
	unsigned i = (colour * 0x9e3779b1u) >> (32 - SLOT_BITS);

	while (s->colour[i] != colour && s->colour[i] != FREE)
		i = (i + 1) % SLOTS;
	return i;
}

/* The index of a colour, which may be new; -1 if there is no room for it. */
static int index_of(struct display_stream *s, uint32_t colour)
{
	unsigned slot = slot_of(s, colour);

	if (s->colour[slot] == colour)
		return s->index[slot];
	if (s->palette.n == DISPLAY_PALETTE_MAX)
		return -1;
	s->colour[slot] = colour;
	s->index[slot] = (uint8_t)s->palette.n;
	s->palette.colours[s->palette.n] = colour;
	return s->palette.n++;
}

static bool indices_of(struct display_stream *s, const struct display_frame *f,
	const struct display_rect *r, uint8_t *to)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		const uint32_t *row = display_frame_at(f, r->x, y);

		for (int i = 0, n; i < r->w; i += n, to += n) {
			int index = index_of(s, row[i]);

			if (index < 0)
				return false;
			n = display_row_run(row + i, r->w - i);
			memset(to, index, (size_t)n);
		}
	}
	return true;
}

int display_stream_pack_colours(struct display_stream *s, const struct display_frame *f,
	const struct display_rect *r, uint8_t *indices, struct buf *out)
{
	int known = s->palette.n;

	if (s->skipped > 0) {
		s->skipped--;
		return 0;
	}
	if (!indices_of(s, f, r, indices)) {
		clear(s);
		known = 0;
		if (!indices_of(s, f, r, indices)) {
			clear(s);
			s->skipped = SKIPPED;
			return 0;
		}
	}
	buf_put_u8(out, known == 0);
	buf_put_u8(out, (uint8_t)(s->palette.n - known));
	buf_put_u8(out, (uint8_t)((s->palette.n - known) >> 8));
	for (int i = known; i < s->palette.n; i++)
		buf_put_u32(out, s->palette.colours[i]);
	return 1;
}

bool display_stream_take_colours(struct display_stream *s, struct cursor *c)
{
	const uint8_t anew = cursor_u8(c);
	int n = cursor_u8(c);

	n |= cursor_u8(c) << 8;
	if (anew)
		s->palette.n = 0;
	if (anew > 1 || n > DISPLAY_PALETTE_MAX - s->palette.n)
		return false;
	while (n-- > 0)
		s->palette.colours[s->palette.n++] = cursor_u32(c) & DISPLAY_RGB;
	return !c->bad;
}

bool display_stream_draw(const struct display_stream *s, const struct display_frame *f,
	const struct display_rect *r, const uint8_t *indices)
{
	return s->palette.n > 0 && display_palette_draw(f, r, &s->palette, 8, indices);
}
