// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/film.h"

#include "base/base.h"
#include "display/codec/i420.h"
#include "display/codec/jpeg.h"
#include "display/codec/stretch.h"
#include "display/codec/vp8.h"

#define PARTS 16 /* of a side, one after the other of which a frame loses that is too large */

struct display_film {
	struct display_jpeg *jpeg;
	struct display_vp8_unpacker *vp8;
	int streams;		      /* that are made */
	struct display_frame scratch; /* a frame in its own size; grows */
};

int display_film_new(struct display_film **ret_film)
{
	struct display_film *film = calloc(1, sizeof(*film));

	if (!film)
		return -ENOMEM;
	if (display_jpeg_new(&film->jpeg) < 0 || display_vp8_unpacker_new(&film->vp8) < 0) {
		display_film_free(film);
		return -ENOMEM;
	}
	*ret_film = film;
	return 0;
}

void display_film_free(struct display_film *film)
{
	if (!film)
		return;
	display_jpeg_free(film->jpeg);
	display_vp8_unpacker_free(film->vp8);
	display_frame_fini(&film->scratch);
	free(film);
}

static bool is_too_large(int w, int h)
{
	return w > DISPLAY_SIZE_MAX || h > DISPLAY_SIZE_MAX || (long)w * h > DISPLAY_FILM_PIXELS;
}

/* A frame of exactly this size.  -ENOMEM or 0. */
static int scratch(struct display_film *film, int w, int h, struct display_frame *ret)
{
	int r = 0;

	if (film->scratch.width != w || film->scratch.height != h) {
		display_frame_fini(&film->scratch);
		r = display_frame_init(&film->scratch, w, h);
	}
	*ret = film->scratch;
	return r;
}

/* ---- making ---------------------------------------------------------------------------------- */

void display_film_end(struct display_film *film, struct display_film_stream *vp8)
{
	if (vp8->packer)
		film->streams--;
	display_vp8_packer_free(vp8->packer);
	*vp8 = (struct display_film_stream){0};
}

/* Is there an encoder for frames of @w x @h of @stream?  If there may be one, it is made. */
static bool may_pack(
	struct display_film *film, struct display_film_stream *vp8, uint16_t stream, int w, int h)
{
	if (!vp8 || (vp8->packer && vp8->id != stream))
		return false;
	if (vp8->packer && display_vp8_packer_fits(vp8->packer, w, h))
		return true;
	display_film_end(film, vp8);
	if (film->streams >= DISPLAY_FILM_STREAMS || display_vp8_packer_new(w, h, &vp8->packer) < 0)
		return false;
	film->streams++;
	vp8->id = stream;
	return true;
}

static int put_frame(struct display_film *film, struct buf *out, const struct display_message *m,
	const struct display_frame *f, const struct display_rect *r,
	const struct display_film_kind *kind, struct display_film_stream *vp8)
{
	uint8_t *to;

	if (kind->format == DISPLAY_VIDEO_VP8)
		return display_vp8_pack(vp8->packer, f, r, m->video.time, kind->kbit, out);
	if (kind->format == DISPLAY_VIDEO_MJPEG)
		return display_jpeg_pack(film->jpeg, f, r, kind->quality, out);
	to = buf_grow(out, display_i420_size(r->w, r->h));
	if (!to)
		return -ENOMEM;
	display_i420_pack(f, r, to);
	return 0;
}

static struct display_rect shrunk(const struct display_rect *r, int by)
{
	return (struct display_rect){0, 0, (r->w + by - 1) / by, (r->h + by - 1) / by};
}

/*
 * The size of a frame of @r, and by which whole number it is smaller; 1 as well if that is none,
 * which is for VP8 alone.
 */
static struct display_rect size_of(
	const struct display_rect *r, const struct display_film_kind *kind, int *ret_shrink)
{
	struct display_rect all = shrunk(r, kind->shrink);
	int parts = PARTS;

	*ret_shrink = kind->shrink;
	while (kind->format == DISPLAY_VIDEO_VP8 && parts > 1 &&
		display_rect_area(&all) > DISPLAY_FILM_VP8_PIXELS) {
		parts--;
		*ret_shrink = PARTS % parts == 0 ? PARTS / parts : 1;
		all = shrunk(r, *ret_shrink);
		if (*ret_shrink == 1)
			all = (struct display_rect){
				0, 0, MAX(r->w * parts / PARTS, 1), MAX(r->h * parts / PARTS, 1)};
	}
	return all;
}

void display_film_size(const struct display_rect *r, const struct display_film_kind *kind,
	int *ret_width, int *ret_height)
{
	int shrink;
	const struct display_rect all = size_of(r, kind, &shrink);

	*ret_width = all.w;
	*ret_height = all.h;
}

/* @r of @f, as large as @to. */
static int make_smaller(const struct display_frame *to, const struct display_frame *f,
	const struct display_rect *r, int shrink)
{
	const struct display_rect all = {0, 0, to->width, to->height};
	struct display_frame part = *f;

	if (shrink > 1) {
		display_shrink(to, f, r, shrink);
		return 0;
	}
	part.pixels = display_frame_at(f, r->x, r->y);
	part.width = r->w;
	part.height = r->h;
	return display_stretch(to, &all, &part);
}

/* What is to be sent instead, where it can't be VP8. */
static struct display_film_kind possible(struct display_film *film, uint16_t stream,
	const struct display_rect *r, const struct display_film_kind *kind,
	struct display_film_stream *vp8)
{
	struct display_film_kind k = *kind;
	int w, h;

	display_film_size(r, kind, &w, &h);
	if (kind->format == DISPLAY_VIDEO_VP8 &&
		(is_too_large(w, h) || !may_pack(film, vp8, stream, w, h))) {
		k.format = kind->instead;
		k.shrink = kind->instead_shrink;
	}
	return k;
}

int display_film_put(struct display_film *film, struct buf *out, uint16_t stream, uint64_t us,
	const struct display_frame *f, const struct display_rect *r,
	const struct display_film_kind *wish, struct display_film_stream *vp8)
{
	const struct display_film_kind kind = possible(film, stream, r, wish, vp8);
	struct display_message m = {.type = DISPLAY_VIDEO, .rect = *r};
	struct display_rect from = *r;
	struct display_frame small;
	const size_t before = out->len;
	size_t begin;
	int k = 0, shrink;
	const struct display_rect all = size_of(r, &kind, &shrink);

	if (is_too_large(all.w, all.h))
		return -EMSGSIZE;
	if (all.w != r->w || all.h != r->h) {
		k = scratch(film, all.w, all.h, &small);
		if (k == 0)
			k = make_smaller(&small, f, r, shrink);
		if (k < 0)
			return k;
		f = &small;
		from = all;
	}
	m.video.stream = stream;
	m.video.format = (uint8_t)kind.format;
	m.video.fw = (uint16_t)all.w;
	m.video.fh = (uint16_t)all.h;
	m.video.time = us;
	begin = display_wire_begin(out, &m);
	k = put_frame(film, out, &m, f, &from, &kind, vp8);
	display_wire_end(out, begin);
	if (k == 0 && out->failed)
		k = -ENOMEM;
	if (k == 0 && out->len - begin - DISPLAY_WIRE_HEAD > DISPLAY_WIRE_SERVER_MAX)
		k = -EMSGSIZE;
	if (k < 0) {
		out->len = before;
		/* The next frame must not need this one. */
		if (kind.format == DISPLAY_VIDEO_VP8)
			display_vp8_packer_restart(vp8->packer);
	}
	return k;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static int draw_frame(struct display_film *film, const struct display_frame *f,
	const struct display_rect *r, const struct display_message *m)
{
	const int w = m->video.fw, h = m->video.fh;
	struct display_frame part = *f;

	if (m->video.format == DISPLAY_VIDEO_VP8)
		return display_vp8_unpack(
			film->vp8, m->video.stream, m->data.data, m->data.len, f, r);
	if (m->video.format == DISPLAY_VIDEO_MJPEG)
		return display_jpeg_unpack(film->jpeg, m->data.data, m->data.len, f, r) ? 0
											: -EBADMSG;
	if (m->data.len != display_i420_size(w, h))
		return -EBADMSG;
	part.pixels = display_frame_at(f, r->x, r->y);
	display_i420_unpack(&part, w, h, m->data.data);
	return 0;
}

int display_film_draw(
	struct display_film *film, const struct display_frame *f, const struct display_message *m)
{
	const struct display_rect all = {0, 0, m->video.fw, m->video.fh};
	struct display_frame own;
	int k;

	if (is_too_large(all.w, all.h) || m->video.format > DISPLAY_VIDEO_VP8)
		return -EBADMSG;
	/* What is kept from frame to frame is never larger than the screen. */
	if (m->video.format == DISPLAY_VIDEO_VP8 && (all.w > m->rect.w || all.h > m->rect.h))
		return -EBADMSG;
	if (all.w == m->rect.w && all.h == m->rect.h)
		return draw_frame(film, f, &m->rect, m);
	/* Only what has that many pixels gets memory for them. */
	if (m->video.format == DISPLAY_VIDEO_I420 && m->data.len != display_i420_size(all.w, all.h))
		return -EBADMSG;
	k = scratch(film, all.w, all.h, &own);
	if (k == 0)
		k = draw_frame(film, &own, &all, m);
	return k < 0 ? k : display_stretch(f, &m->rect, &own);
}

void display_film_forget(struct display_film *film)
{
	display_vp8_unpacker_clear(film->vp8);
}
