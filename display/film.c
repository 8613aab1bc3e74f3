// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/film.h"

#include "base/base.h"
#include "display/codec/i420.h"
#include "display/codec/jpeg.h"
#include "display/codec/stretch.h"

struct display_film {
	struct display_jpeg *jpeg;
	struct display_frame scratch; /* a frame in its own size; grows */
};

int display_film_new(struct display_film **ret_film)
{
	struct display_film *film = calloc(1, sizeof(*film));

	if (!film)
		return -ENOMEM;
	if (display_jpeg_new(&film->jpeg) < 0) {
		free(film);
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

static int put_frame(struct display_film *film, struct buf *out, const struct display_frame *f,
	const struct display_rect *r, const struct display_film_kind *kind)
{
	uint8_t *to;

	if (kind->format == DISPLAY_VIDEO_MJPEG)
		return display_jpeg_pack(film->jpeg, f, r, kind->quality, out);
	to = buf_grow(out, display_i420_size(r->w, r->h));
	if (!to)
		return -ENOMEM;
	display_i420_pack(f, r, to);
	return 0;
}

int display_film_put(struct display_film *film, struct buf *out, uint16_t stream, uint64_t us,
	const struct display_frame *f, const struct display_rect *r,
	const struct display_film_kind *kind)
{
	struct display_message m = {.type = DISPLAY_VIDEO, .rect = *r};
	struct display_rect all = *r;
	struct display_frame small;
	const size_t before = out->len;
	size_t begin;
	int k = 0;

	if (kind->shrink > 1) {
		all = (struct display_rect){0, 0, (r->w + kind->shrink - 1) / kind->shrink,
			(r->h + kind->shrink - 1) / kind->shrink};
		if (is_too_large(all.w, all.h))
			return -EMSGSIZE;
		k = scratch(film, all.w, all.h, &small);
		if (k < 0)
			return k;
		display_shrink(&small, f, r, kind->shrink);
		f = &small;
	}
	if (is_too_large(all.w, all.h))
		return -EMSGSIZE;
	m.video.stream = stream;
	m.video.format = (uint8_t)kind->format;
	m.video.fw = (uint16_t)all.w;
	m.video.fh = (uint16_t)all.h;
	m.video.time = us;
	begin = display_wire_begin(out, &m);
	k = put_frame(film, out, f, &all, kind);
	display_wire_end(out, begin);
	if (k == 0 && out->failed)
		k = -ENOMEM;
	if (k == 0 && out->len - begin - DISPLAY_WIRE_HEAD > DISPLAY_WIRE_SERVER_MAX)
		k = -EMSGSIZE;
	if (k < 0)
		out->len = before;
	return k;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static int draw_frame(struct display_film *film, const struct display_frame *f,
	const struct display_rect *r, const struct display_message *m)
{
	const int w = m->video.fw, h = m->video.fh;
	struct display_frame part = *f;

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

	if (is_too_large(all.w, all.h) || m->video.format > DISPLAY_VIDEO_MJPEG)
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
