// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is short enough by itself is sent as it is; the rest is packed as palette indices where
 * there are few colours, as JPEG where that is wanted, else as left-delta (codec/raw24.h), and
 * compressed.  What has not become smaller is sent plain.  Where the viewer takes streams, all but
 * the smallest pieces and pictures are compressed with what it has been sent before.
 */
#include "display/command.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "display/codec/block.h"
#include "display/codec/jpeg.h"
#include "display/codec/palette.h"
#include "display/codec/raw24.h"
#include "display/codec/stream.h"

#define SMALL	     4096 /* bytes and pixels, below which everything is tried */
#define STREAM_LEAST 512  /* pixels, from which on a piece of a stream is shorter than they */
#define FEW	     16	  /* colours, of a palette of their own */
#define JPEG_LEAST   1024 /* pixels, below which it isn't worth its tables */
#define SAMPLE_ROWS  16
#define LEVEL	     3 /* of zstd: letters that repeat are worth some time */

struct display_encoder {
	struct display_block *block;
	struct display_jpeg *jpeg;
	struct buf pixels;    /* not yet compressed */
	struct buf packed[2]; /* compressed, by display_block_format */
};

/* One command on its way. */
struct put {
	struct display_encoder *enc;
	struct buf *out;
	const struct display_frame *f;
	struct display_rect rect;
	const struct display_codecs *to;
	int level; /* of zstd, or DISPLAY_BLOCK_PICTURE */
};

/* ---- lists ----------------------------------------------------------------------------------- */

int display_commands_add(struct display_commands *l, const struct display_command *c)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 32;
		struct display_command *more = realloc(l->list, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->list = more;
		l->room = room;
	}
	l->list[l->n++] = *c;
	return 0;
}

void display_commands_fini(struct display_commands *l)
{
	free(l->list);
	*l = (struct display_commands){0};
}

/* ---- the encoder ----------------------------------------------------------------------------- */

int display_encoder_new(struct display_encoder **ret_encoder)
{
	struct display_encoder *enc = calloc(1, sizeof(*enc));

	if (!enc)
		return -ENOMEM;
	if (display_block_new(&enc->block) < 0 || display_jpeg_new(&enc->jpeg) < 0) {
		display_encoder_free(enc);
		return -ENOMEM;
	}
	*ret_encoder = enc;
	return 0;
}

void display_encoder_free(struct display_encoder *enc)
{
	if (!enc)
		return;
	display_block_free(enc->block);
	display_jpeg_free(enc->jpeg);
	buf_fini(&enc->pixels);
	for (size_t i = 0; i < ARRAY_SIZE(enc->packed); i++)
		buf_fini(&enc->packed[i]);
	free(enc);
}

static bool takes(const struct put *p, enum display_codec codec)
{
	return p->to->mask & 1u << codec && (codec < DISPLAY_CODEC_LEFT_STREAM || p->to->stream);
}

static void empty(struct buf *b)
{
	buf_clear(b);
	b->failed = false;
}

/* Compresses enc->pixels; returns the result if the viewer takes @codec and it is below @less. */
static const struct buf *compress(
	struct put *p, enum display_codec codec, enum display_block_format format, size_t less)
{
	struct buf *to = &p->enc->packed[format];
	const struct buf *from = &p->enc->pixels;

	if (!takes(p, codec))
		return NULL;
	empty(to);
	if (display_block_pack(p->enc->block, format, p->level, from->data, from->len, to) < 0)
		return NULL;
	return to->len < less ? to : NULL;
}

/*
 * The smaller of enc->pixels compressed in the ways that the viewer takes, with its codec; NULL if
 * none is smaller than @less.  A frame of zstd is nearly always smaller than lz4's block where
 * there is much of it.
 */
static const struct buf *smallest(struct put *p, enum display_codec lz4, enum display_codec zstd,
	size_t less, enum display_codec *ret_codec)
{
	const struct buf *best = compress(p, zstd, DISPLAY_BLOCK_ZSTD, less), *other;

	if (best)
		*ret_codec = zstd;
	if (best && p->enc->pixels.len > SMALL)
		return best;
	other = compress(p, lz4, DISPLAY_BLOCK_LZ4, best ? best->len : less);
	if (!other)
		return best;
	*ret_codec = lz4;
	return other;
}

/* Room for @n bytes in enc->pixels, or NULL. */
static uint8_t *pixels(struct put *p, size_t n)
{
	empty(&p->enc->pixels);
	return buf_grow(&p->enc->pixels, n);
}

static int put_fill(struct put *p, uint32_t colour)
{
	struct display_message m = {.type = DISPLAY_SFILL, .rect = p->rect, .colour = {colour}};

	display_wire_put(p->out, &m);
	return 0;
}

static void put_raw(struct put *p, enum display_codec codec, const void *data, size_t n)
{
	struct display_message m = {
		.type = DISPLAY_RAW, .rect = p->rect, .codec = (uint8_t)codec, .data = {data, n}};

	display_wire_put(p->out, &m);
}

static void put_palette(struct buf *out, const struct display_palette *pal)
{
	buf_put_u8(out, (uint8_t)pal->n); /* 256 is 0 */
	for (int i = 0; i < pal->n; i++)
		buf_put_u32(out, pal->colours[i]);
}

/* The palette and then @indices. */
static void put_indices(struct put *p, enum display_codec codec, const struct display_palette *pal,
	const struct buf *indices)
{
	struct display_message m = {.type = DISPLAY_RAW, .rect = p->rect, .codec = (uint8_t)codec};
	size_t begin = display_wire_begin(p->out, &m);

	put_palette(p->out, pal);
	buf_put(p->out, indices->data, indices->len);
	display_wire_end(p->out, begin);
}

static int put_bits(struct put *p, const struct display_palette *pal, const struct buf *bits)
{
	struct display_message m = {
		.type = DISPLAY_BITMAP, .rect = p->rect, .data = {bits->data, bits->len}};

	m.colour[0] = pal->colours[0];
	m.colour[1] = pal->colours[1];
	display_wire_put(p->out, &m);
	return 1;
}

/*
 * 1 if it has few colours and has been put; 0 if there are too many, or the viewer does not take
 * palettes and it needs more than bits.
 */
static int put_few(struct put *p)
{
	uint8_t *indices = pixels(p, (size_t)display_rect_area(&p->rect));
	enum display_codec codec = DISPLAY_CODEC_PALETTE;
	struct buf *plain = &p->enc->pixels;
	struct display_palette pal;
	const struct buf *best;

	if (!indices)
		return -ENOMEM;
	if (!display_palette_pack(p->f, &p->rect, DISPLAY_PALETTE_MAX, &pal, indices))
		return 0;
	if (pal.n == 1)
		return put_fill(p, pal.colours[0]), 1;
	if (pal.n > 16 && 4 * pal.n > display_rect_area(&p->rect))
		return 0; /* the palette alone is too long */
	plain->len = display_palette_size(&p->rect, pal.n);
	best = smallest(
		p, DISPLAY_CODEC_PALETTE_LZ4, DISPLAY_CODEC_PALETTE_ZSTD, plain->len, &codec);
	if (!best && pal.n == 2)
		return put_bits(p, &pal, plain);
	if (!best && !takes(p, DISPLAY_CODEC_PALETTE))
		return 0;
	put_indices(p, codec, &pal, best ? best : plain);
	return 1;
}

/* Puts RAW; what comes before the piece is in the buffer for it already.  0 or -ENOMEM. */
static int put_piece(struct put *p, enum display_codec codec, size_t n)
{
	struct buf *to = &p->enc->packed[DISPLAY_BLOCK_ZSTD];
	int r = display_stream_pack(p->to->stream, p->enc->pixels.data, n, to);

	if (r < 0 || buf_error(to) < 0)
		return -ENOMEM;
	put_raw(p, codec, to->data, to->len);
	return 0;
}

/*
 * With what was sent before, which is shorter for all but the smallest pieces.  1 if it has been
 * put, 0 if the viewer takes no streams, or -ENOMEM.
 */
static int put_stream(struct put *p)
{
	struct buf *head = &p->enc->packed[DISPLAY_BLOCK_ZSTD];
	const size_t area = (size_t)display_rect_area(&p->rect);
	struct display_palette pal;
	uint8_t *bytes;
	int r;

	empty(head);
	bytes = pixels(p, area);
	if (!bytes)
		return -ENOMEM;
	if (takes(p, DISPLAY_CODEC_PALETTE_STREAM) &&
		display_palette_pack(p->f, &p->rect, FEW, &pal, bytes)) {
		if (pal.n == 1)
			return put_fill(p, pal.colours[0]), 1;
		put_palette(head, &pal);
		r = put_piece(
			p, DISPLAY_CODEC_PALETTE_STREAM, display_palette_size(&p->rect, pal.n));
		return r < 0 ? r : 1;
	}
	if (takes(p, DISPLAY_CODEC_INDEX_STREAM) &&
		display_stream_pack_colours(p->to->stream, p->f, &p->rect, bytes, head)) {
		r = put_piece(p, DISPLAY_CODEC_INDEX_STREAM, area);
		return r < 0 ? r : 1;
	}
	if (!takes(p, DISPLAY_CODEC_LEFT_STREAM))
		return 0;
	bytes = pixels(p, 3 * area);
	if (!bytes)
		return -ENOMEM;
	display_raw24_pack_left(p->f, &p->rect, bytes);
	r = put_piece(p, DISPLAY_CODEC_LEFT_STREAM, 3 * area);
	return r < 0 ? r : 1;
}

static int put_jpeg(struct put *p)
{
	struct buf *to = &p->enc->packed[0];
	int r;

	empty(to);
	r = display_jpeg_pack(p->enc->jpeg, p->f, &p->rect, p->to->quality, to);
	if (r < 0)
		return r;
	put_raw(p, DISPLAY_CODEC_JPEG, to->data, to->len);
	return 1;
}

/* For lz4 it depends on the pixels what is better: some rows of the middle are tried both ways. */
static bool is_better_left(struct put *p)
{
	struct display_rect r = p->rect;
	size_t len[2] = {0};

	if (!takes(p, DISPLAY_CODEC_LZ4) || !takes(p, DISPLAY_CODEC_LEFT_LZ4))
		return takes(p, DISPLAY_CODEC_LEFT_LZ4);
	r.y += MAX(0, r.h - SAMPLE_ROWS) / 2;
	r.h = MIN(r.h, SAMPLE_ROWS);
	for (int left = 0; left < 2; left++) {
		struct buf *to = &p->enc->packed[DISPLAY_BLOCK_LZ4];
		uint8_t *bytes = pixels(p, display_raw24_size(&r));

		if (!bytes)
			return true;
		(left ? display_raw24_pack_left : display_raw24_pack)(p->f, &r, bytes);
		empty(to);
		display_block_pack(
			p->enc->block, DISPLAY_BLOCK_LZ4, 0, bytes, p->enc->pixels.len, to);
		len[left] = to->len;
	}
	return len[1] < len[0];
}

/* Exactly, whatever it is. */
static int put_lossless(struct put *p)
{
	const bool left = takes(p, DISPLAY_CODEC_LEFT_ZSTD) || is_better_left(p);
	enum display_codec codec = DISPLAY_CODEC_NONE;
	size_t n = display_raw24_size(&p->rect);
	uint8_t *bytes = pixels(p, n);
	const struct buf *best;

	if (!bytes)
		return -ENOMEM;
	if (left) {
		display_raw24_pack_left(p->f, &p->rect, bytes);
		best = smallest(p, DISPLAY_CODEC_LEFT_LZ4, DISPLAY_CODEC_LEFT_ZSTD, n, &codec);
	} else {
		display_raw24_pack(p->f, &p->rect, bytes);
		best = compress(p, codec = DISPLAY_CODEC_LZ4, DISPLAY_BLOCK_LZ4, n);
	}
	if (!best) {
		codec = DISPLAY_CODEC_NONE;
		best = &p->enc->pixels;
		if (left)
			display_raw24_pack(p->f, &p->rect, bytes);
	}
	put_raw(p, codec, best->data, best->len);
	return 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static int put_any(struct put *p, enum display_hint hint)
{
	long area = display_rect_area(&p->rect);
	int r = 0;

	p->level = hint == DISPLAY_SMOOTH ? DISPLAY_BLOCK_PICTURE : LEVEL;
	if (p->to->level)
		p->level = p->to->level;
	if (hint != DISPLAY_SMOOTH && area >= STREAM_LEAST)
		r = put_stream(p);
	if (!r && (hint != DISPLAY_SMOOTH || area <= SMALL))
		r = put_few(p);
	if (r)
		return MIN(r, 0);
	if (hint == DISPLAY_SMOOTH && area >= JPEG_LEAST && p->to->quality > 0 &&
		takes(p, DISPLAY_CODEC_JPEG))
		return put_jpeg(p);
	return put_lossless(p);
}

static bool is_filled(const struct put *p, uint32_t colour)
{
	uint32_t d = 0;

	for (int y = p->rect.y; y < p->rect.y + p->rect.h; y++) {
		const uint32_t *row = display_frame_at(p->f, p->rect.x, y);

		for (int i = 0; i < p->rect.w; i++)
			d |= row[i] ^ colour;
	}
	return !d;
}

/* True if everything repeats with a period of @tw and @th. */
static bool is_tiled(const struct put *p, int tw, int th)
{
	const struct display_rect *r = &p->rect;

	for (int y = 0; y < r->h; y++) {
		const uint32_t *row = display_frame_at(p->f, r->x, r->y + y);

		if (y >= th && memcmp(row, display_frame_at(p->f, r->x, r->y + y - th),
				       (size_t)r->w * sizeof(*row)))
			return false;
		if (r->w > tw && memcmp(row, row + tw, (size_t)(r->w - tw) * sizeof(*row)))
			return false;
	}
	return true;
}

static int put_tile(struct put *p, int tw, int th)
{
	struct display_rect tile = {p->rect.x, p->rect.y, MIN(tw, p->rect.w), MIN(th, p->rect.h)};
	struct display_message m = {.type = DISPLAY_PFILL, .rect = p->rect};
	uint8_t *bytes = pixels(p, display_raw24_size(&tile));

	if (!bytes)
		return -ENOMEM;
	display_raw24_pack(p->f, &tile, bytes);
	m.tw = (uint8_t)tile.w;
	m.th = (uint8_t)tile.h;
	m.data = (struct display_bytes){bytes, display_raw24_size(&tile)};
	display_wire_put(p->out, &m);
	return 0;
}

static int put_copy(struct put *p, int sx, int sy)
{
	struct display_message m = {.type = DISPLAY_COPY, .rect = p->rect};

	m.sx = sx;
	m.sy = sy;
	display_wire_put(p->out, &m);
	return 0;
}

static int put_place(struct put *p, enum display_type type)
{
	struct display_message m = {.type = type, .rect = p->rect};

	display_wire_put(p->out, &m);
	return 0;
}

static bool is_tile(int tw, int th)
{
	return tw >= 1 && th >= 1 && tw <= DISPLAY_TILE_MAX && th <= DISPLAY_TILE_MAX;
}

static int put(struct put *p, const struct display_command *c)
{
	switch (c->type) {
	case DISPLAY_COPY:
		return put_copy(p, c->sx, c->sy);
	case DISPLAY_KEEP:
	case DISPLAY_UNCOVER:
		return put_place(p, c->type);
	case DISPLAY_SFILL:
		return is_filled(p, c->colour[0]) ? put_fill(p, c->colour[0])
						  : put_any(p, DISPLAY_PLAIN);
	case DISPLAY_BITMAP:
		return put_any(p, DISPLAY_FEW_COLOURS);
	case DISPLAY_PFILL:
		return is_tile(c->tw, c->th) && is_tiled(p, c->tw, c->th)
			       ? put_tile(p, c->tw, c->th)
			       : put_any(p, DISPLAY_PLAIN);
	default:
		return put_any(p, c->hint);
	}
}

int display_command_put(struct display_encoder *enc, struct buf *out,
	const struct display_command *c, const struct display_frame *f,
	const struct display_codecs *to)
{
	struct put p = {.enc = enc, .out = out, .f = f, .rect = c->rect, .to = to};
	size_t before = out->len;
	int r;

	assert(display_rect_within(&c->rect, f->width, f->height));
	assert(display_rect_area(&c->rect) <= DISPLAY_COMMAND_PIXELS);
	r = out->failed ? -ENOMEM : put(&p, c);
	if (out->failed)
		r = -ENOMEM;
	if (r < 0)
		out->len = before;
	return r;
}

int display_command_put_exact(struct display_encoder *enc, struct buf *out,
	const struct display_command *c, const struct display_frame *f,
	const struct display_codecs *to)
{
	struct display_codecs exact = *to;

	exact.quality = 0;
	return display_command_put(enc, out, c, f, &exact);
}

size_t display_command_size(const struct display_command *c)
{
	const size_t head = DISPLAY_WIRE_HEAD + 12;
	size_t area = (size_t)display_rect_area(&c->rect);

	switch (c->type) {
	case DISPLAY_COPY:
	case DISPLAY_KEEP:
	case DISPLAY_UNCOVER:
	case DISPLAY_SFILL:
		return head;
	case DISPLAY_BITMAP:
		return head + 4 + area / 8;
	case DISPLAY_PFILL:
		return head + 3 * (size_t)MIN(c->tw, c->rect.w) * (size_t)MIN(c->th, c->rect.h);
	default:
		break;
	}
	switch (c->hint) {
	case DISPLAY_FEW_COLOURS:
		return head + area / 8;
	case DISPLAY_SMOOTH:
		return head + area;
	default:
		return head + area / 2;
	}
}
