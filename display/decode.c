// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole messages are taken where they lie; what is left of a piece waits in a buffer, which is
 * never larger than the largest message and a piece.  Memory for pixels on their way is taken once
 * a message wants it, and no message may want more than DISPLAY_COMMAND_PIXELS.
 */
#include "display/decode.h"

#include <string.h>

#include "base/base.h"
#include "display/codec/block.h"
#include "display/codec/jpeg.h"
#include "display/codec/palette.h"
#include "display/codec/raw24.h"
#include "display/codec/stream.h"
#include "display/command.h"
#include "proto/display.pb-c.h"

struct display_decoder {
	const struct display_decoder_ops *ops;
	void *ctx;
	struct display_frame frame;
	struct display_frame kept; /* of 0x0 as long as it is black */
	struct buf waiting;	   /* the beginning of a message */
	struct buf pixels;	   /* decompressed */
	struct display_block *block;
	struct display_stream *stream; /* of this connection */
	struct display_jpeg *jpeg;
	struct display_film *film;
};

int display_decoder_new(
	const struct display_decoder_ops *ops, void *ctx, struct display_decoder **ret_decoder)
{
	static const struct display_decoder_ops none;
	struct display_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ops = ops ? ops : &none;
	d->ctx = ctx;
	if (display_block_new(&d->block) < 0 || display_stream_new(&d->stream) < 0 ||
		display_jpeg_new(&d->jpeg) < 0 || display_film_new(&d->film) < 0) {
		display_decoder_free(d);
		return -ENOMEM;
	}
	*ret_decoder = d;
	return 0;
}

void display_decoder_free(struct display_decoder *d)
{
	if (!d)
		return;
	display_frame_fini(&d->frame);
	display_frame_fini(&d->kept);
	buf_fini(&d->waiting);
	buf_fini(&d->pixels);
	display_block_free(d->block);
	display_stream_free(d->stream);
	display_jpeg_free(d->jpeg);
	display_film_free(d->film);
	free(d);
}

const struct display_frame *display_decoder_frame(const struct display_decoder *d)
{
	return &d->frame;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* @data decompressed to @n bytes, owned by @d; NULL if it is not that, or there is no memory. */
static const uint8_t *inflate(
	struct display_decoder *d, unsigned codec, const struct display_bytes *data, size_t n)
{
	uint8_t *to;
	bool good;

	buf_clear(&d->pixels);
	d->pixels.failed = false;
	to = buf_grow(&d->pixels, n);
	if (!to)
		return NULL;
	switch (codec) {
	case DISPLAY_CODEC_LEFT_STREAM:
	case DISPLAY_CODEC_PALETTE_STREAM:
	case DISPLAY_CODEC_INDEX_STREAM:
		good = display_stream_unpack(d->stream, data->data, data->len, to, n);
		break;
	case DISPLAY_CODEC_LEFT_ZSTD:
	case DISPLAY_CODEC_PALETTE_ZSTD:
		good = display_block_unpack(
			d->block, DISPLAY_BLOCK_ZSTD, data->data, data->len, to, n);
		break;
	default:
		good = display_block_unpack(
			d->block, DISPLAY_BLOCK_LZ4, data->data, data->len, to, n);
		break;
	}
	return good ? to : NULL;
}

static bool draw_24(struct display_decoder *d, const struct display_message *m)
{
	size_t n = display_raw24_size(&m->rect);
	const uint8_t *bytes = m->data.data;

	if (m->codec != DISPLAY_CODEC_NONE)
		bytes = inflate(d, m->codec, &m->data, n);
	else if (m->data.len != n)
		return false;
	if (!bytes)
		return false;
	if (m->codec == DISPLAY_CODEC_NONE || m->codec == DISPLAY_CODEC_LZ4)
		display_raw24_unpack(&d->frame, &m->rect, bytes);
	else
		display_raw24_unpack_left(&d->frame, &m->rect, bytes);
	return true;
}

static bool draw_palette(struct display_decoder *d, const struct display_message *m)
{
	struct cursor c = cursor_of(m->data.data, m->data.len);
	struct display_palette pal;
	struct display_bytes rest;
	const uint8_t *indices;
	size_t n;

	pal.n = cursor_u8(&c);
	if (!pal.n)
		pal.n = 256;
	if (pal.n < 2)
		return false;
	for (int i = 0; i < pal.n; i++)
		pal.colours[i] = cursor_u32(&c) & DISPLAY_RGB;
	if (c.bad)
		return false;
	rest = (struct display_bytes){c.p, cursor_left(&c)};
	n = display_palette_size(&m->rect, pal.n);
	if (m->codec != DISPLAY_CODEC_PALETTE)
		indices = inflate(d, m->codec, &rest, n);
	else
		indices = rest.len == n ? rest.data : NULL;
	return indices && display_palette_unpack(&d->frame, &m->rect, &pal, indices);
}

/* Indices of the palette that is kept. */
static bool draw_indices(struct display_decoder *d, const struct display_message *m)
{
	struct cursor c = cursor_of(m->data.data, m->data.len);
	struct display_bytes rest;
	const uint8_t *indices;

	if (!display_stream_take_colours(d->stream, &c))
		return false;
	rest = (struct display_bytes){c.p, cursor_left(&c)};
	indices = inflate(d, m->codec, &rest, (size_t)display_rect_area(&m->rect));
	return indices && display_stream_draw(d->stream, &d->frame, &m->rect, indices);
}

static bool draw_raw(struct display_decoder *d, const struct display_message *m)
{
	switch (m->codec) {
	case DISPLAY_CODEC_NONE:
	case DISPLAY_CODEC_LZ4:
	case DISPLAY_CODEC_LEFT_LZ4:
	case DISPLAY_CODEC_LEFT_ZSTD:
	case DISPLAY_CODEC_LEFT_STREAM:
		return draw_24(d, m);
	case DISPLAY_CODEC_JPEG:
		return display_jpeg_unpack(d->jpeg, m->data.data, m->data.len, &d->frame, &m->rect);
	case DISPLAY_CODEC_PALETTE:
	case DISPLAY_CODEC_PALETTE_LZ4:
	case DISPLAY_CODEC_PALETTE_ZSTD:
	case DISPLAY_CODEC_PALETTE_STREAM:
		return draw_palette(d, m);
	case DISPLAY_CODEC_INDEX_STREAM:
		return draw_indices(d, m);
	}
	return false;
}

static bool draw_copy(struct display_decoder *d, const struct display_message *m)
{
	struct display_rect source = {m->sx, m->sy, m->rect.w, m->rect.h};

	if (!display_rect_within(&source, d->frame.width, d->frame.height))
		return false;
	display_frame_move(&d->frame, &m->rect, m->sx, m->sy);
	return true;
}

static bool draw_bits(struct display_decoder *d, const struct display_message *m)
{
	const struct display_palette pal = {2, {m->colour[0], m->colour[1]}};

	return m->data.len == display_palette_size(&m->rect, 2) &&
	       display_palette_unpack(&d->frame, &m->rect, &pal, m->data.data);
}

/* The first tile, then what is there already, again and again. */
static bool draw_tiles(struct display_decoder *d, const struct display_message *m)
{
	const struct display_rect *r = &m->rect;
	uint32_t tile[DISPLAY_TILE_MAX * DISPLAY_TILE_MAX];
	const struct display_frame from = {tile, m->tw, m->th, m->tw};
	const struct display_rect whole = {0, 0, m->tw, m->th};

	if (m->data.len != display_raw24_size(&whole))
		return false;
	display_raw24_unpack(&from, &whole, m->data.data);
	for (int y = 0; y < r->h; y++) {
		uint32_t *to = display_frame_at(&d->frame, r->x, r->y + y);
		const uint32_t *row = display_frame_at(&from, 0, y % m->th);

		for (int x = 0; x < r->w; x += m->tw)
			memcpy(to + x, row, (size_t)MIN(m->tw, r->w - x) * sizeof(*row));
	}
	return true;
}

static bool draw_command(struct display_decoder *d, const struct display_message *m)
{
	switch (m->type) {
	case DISPLAY_RAW:
		return draw_raw(d, m);
	case DISPLAY_COPY:
		return draw_copy(d, m);
	case DISPLAY_SFILL:
		display_frame_fill(&d->frame, &m->rect, m->colour[0]);
		return true;
	case DISPLAY_BITMAP:
		return draw_bits(d, m);
	case DISPLAY_PFILL:
		return draw_tiles(d, m);
	default:
		return false;
	}
}

/* To the second picture, or from there.  0 or -ENOMEM. */
static int keep(struct display_decoder *d, const struct display_message *m)
{
	if (!d->kept.pixels && display_frame_init(&d->kept, d->frame.width, d->frame.height) < 0)
		return -ENOMEM;
	if (m->type == DISPLAY_KEEP)
		display_frame_copy(&d->kept, &d->frame, &m->rect);
	else
		display_frame_copy(&d->frame, &d->kept, &m->rect);
	return 0;
}

/* A message that has a rectangle of the picture.  0, -EBADMSG or -ENOMEM. */
static int draw(struct display_decoder *d, const struct display_message *m)
{
	if (!display_rect_within(&m->rect, d->frame.width, d->frame.height) ||
		(m->type == DISPLAY_RAW && display_rect_area(&m->rect) > DISPLAY_COMMAND_PIXELS))
		return -EBADMSG;
	if (m->type == DISPLAY_VIDEO)
		return display_film_draw(d->film, &d->frame, m);
	if (m->type == DISPLAY_KEEP || m->type == DISPLAY_UNCOVER)
		return keep(d, m);
	return draw_command(d, m) ? 0 : -EBADMSG;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int resize(struct display_decoder *d, int w, int h)
{
	struct display_frame f;
	int r = display_frame_init(&f, w, h);

	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r;
	display_frame_fini(&d->frame);
	display_frame_fini(&d->kept);
	d->frame = f;
	display_film_forget(d->film);
	if (d->ops->resized)
		d->ops->resized(d->ctx, w, h);
	return 0;
}

static int welcome(struct display_decoder *d, const struct display_message *m)
{
	Pb__DisplayWelcome *w;
	int r = -EBADMSG;

	/* Another connection, of which nothing has been sent yet. */
	display_stream_free(d->stream);
	d->stream = NULL;
	if (display_stream_new(&d->stream) < 0)
		return -ENOMEM;
	w = pb__display_welcome__unpack(NULL, m->data.len, m->data.data);
	if (w && w->width <= DISPLAY_SIZE_MAX && w->height <= DISPLAY_SIZE_MAX)
		r = resize(d, (int)w->width, (int)w->height);
	if (w)
		pb__display_welcome__free_unpacked(w, NULL);
	return r;
}

static int carry_out(struct display_decoder *d, const struct display_message *m)
{
	int r = 0;

	switch (m->type) {
	case DISPLAY_SKIP:
		return 0;
	case DISPLAY_WELCOME:
		r = welcome(d, m);
		break;
	case DISPLAY_RESIZE:
		r = resize(d, m->size.w, m->size.h);
		break;
	case DISPLAY_RAW:
	case DISPLAY_COPY:
	case DISPLAY_SFILL:
	case DISPLAY_BITMAP:
	case DISPLAY_PFILL:
	case DISPLAY_VIDEO:
	case DISPLAY_KEEP:
	case DISPLAY_UNCOVER:
		r = draw(d, m);
		if (r == 0 && m->type != DISPLAY_KEEP && d->ops->changed)
			d->ops->changed(d->ctx, &m->rect);
		break;
	default:
		break;
	}
	if (r == 0 && d->ops->message)
		d->ops->message(d->ctx, m);
	return r;
}

/* Carries whole messages out; *ret_used is how many bytes they were. */
static int decode(
	struct display_decoder *d, const uint8_t *data, size_t n, size_t *ret_used, struct err *e)
{
	struct display_message m;
	size_t used;
	int r;

	*ret_used = 0;
	while ((r = display_wire_take(data + *ret_used, n - *ret_used, true, &m, &used, e)) > 0) {
		*ret_used += used;
		r = carry_out(d, &m);
		if (r == -EBADMSG)
			return err_set(e, ERR_FAILED, r,
				"a display message of type %d cannot be drawn", (int)m.type);
		if (r < 0)
			return err_errno(e, r, "cannot decode a display message");
	}
	return r;
}

int display_decoder_feed(struct display_decoder *d, const void *data, size_t n, struct err *e)
{
	size_t used;
	int r;

	if (!d->waiting.len) {
		r = decode(d, data, n, &used, e);
		if (r == 0 && n > used)
			buf_put(&d->waiting, (const uint8_t *)data + used, n - used);
	} else {
		buf_put(&d->waiting, data, n);
		r = decode(d, d->waiting.data, d->waiting.len, &used, e);
		buf_consume(&d->waiting, used);
	}
	if (d->waiting.failed)
		return err_errno(e, -ENOMEM, "cannot decode a display message");
	return r;
}
