// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of video: colours and sizes by the formulas of proto/SPEC.md, made and drawn again, and
 * what is none.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/codec/i420.h"
#include "display/codec/stretch.h"
#include "display/codec/vp8.h"
#include "display/decode.h"
#include "display/film.h"
#include "display/test_scene.h"
#include "proto/display.pb-c.h"

#define SIDE 64

static int channel(uint32_t p, int i)
{
	return (int)(p >> (8 * i) & 255);
}

/* How far two pixels are apart, at most. */
static int distance(uint32_t a, uint32_t b)
{
	int d = 0;

	for (int i = 0; i < 3; i++)
		d = MAX(d, abs(channel(a, i) - channel(b, i)));
	return d;
}

/* A picture without edges. */
static void smooth(const struct display_frame *f)
{
	for (int y = 0; y < f->height; y++)
		for (int x = 0; x < f->width; x++)
			*display_frame_at(f, x, y) =
				(uint32_t)(x * 200 / f->width + 20) << 16 |
				(uint32_t)(y * 200 / f->height + 30) << 8 |
				(uint32_t)((x + y) * 100 / (f->width + f->height) + 40);
}

static int worst(
	const struct display_frame *a, const struct display_frame *b, const struct display_rect *r)
{
	int d = 0;

	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			d = MAX(d,
				distance(*display_frame_at(a, x, y), *display_frame_at(b, x, y)));
	return d;
}

/* ---- colours --------------------------------------------------------------------------------- */

static double limited(double v)
{
	return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* Each brightness with many colours: as the numbers that are not integers would have it. */
static void test_colours(void **state)
{
	struct display_frame f;
	uint8_t frame[6];

	assert_int_equal(display_i420_size(2, 2), sizeof(frame));
	assert_int_equal(display_i420_size(3, 5), 15 + 2 * 6);
	assert_int_equal(display_frame_init(&f, 2, 2), 0);
	for (int y = 0; y < 256; y++)
		for (int u = 0; u < 256; u += 5)
			for (int v = 0; v < 256; v += 3) {
				const double r = limited(y + 1.402 * (v - 128)),
					     g = limited(y - 0.344136 * (u - 128) -
							 0.714136 * (v - 128)),
					     b = limited(y + 1.772 * (u - 128));
				uint32_t p;

				memset(frame, y, 4);
				frame[4] = (uint8_t)u;
				frame[5] = (uint8_t)v;
				display_i420_unpack(&f, 2, 2, frame);
				p = f.pixels[3];
				assert_true(fabs(channel(p, 2) - r) < 0.51);
				assert_true(fabs(channel(p, 1) - g) < 0.51);
				assert_true(fabs(channel(p, 0) - b) < 0.51);
				assert_int_equal(p & ~DISPLAY_RGB, 0);
			}
	display_frame_fini(&f);
}

/* Sides may be odd; one colour comes back as it was, but for what rounding takes. */
static void test_colours_there_and_back(void **state)
{
	static const uint32_t colours[] = {
		0, 0xffffff, 0xff0000, 0xff00, 0xff, 0xffff00, 0x808080, 0x123456, 0xff00ff};

	for (int w = 1; w < 6; w++)
		for (size_t i = 0; i < ARRAY_SIZE(colours); i++) {
			const struct display_rect all = {0, 0, w, 7 - w};
			struct display_frame f, back;
			uint8_t bytes[64];

			assert_int_equal(display_frame_init(&f, w, 7 - w), 0);
			assert_int_equal(display_frame_init(&back, w, 7 - w), 0);
			display_frame_fill(&f, &all, colours[i]);
			assert_true(display_i420_size(w, 7 - w) <= sizeof(bytes));
			display_i420_pack(&f, &all, bytes);
			display_i420_unpack(&back, w, 7 - w, bytes);
			assert_true(worst(&f, &back, &all) <= 2);
			display_frame_fini(&f);
			display_frame_fini(&back);
		}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static long place(int at, int from, int to)
{
	const long p = (2L * at + 1) * from * 128 / to - 128;

	return p < 0 ? 0 : MIN(p, (from - 1) * 256L);
}

/* The formula, pixel by pixel. */
static uint32_t stretched(const struct display_frame *f, const struct display_rect *r, int x, int y)
{
	const long px = place(x, f->width, r->w), py = place(y, f->height, r->h);
	const int x0 = (int)(px / 256), y0 = (int)(py / 256);
	const int x1 = MIN(x0 + 1, f->width - 1), y1 = MIN(y0 + 1, f->height - 1);
	const uint32_t a = (uint32_t)(px % 256), b = (uint32_t)(py % 256);
	uint32_t out = 0;

	for (int i = 0; i < 3; i++) {
		const uint32_t above =
			(uint32_t)channel(*display_frame_at(f, x0, y0), i) * (256 - a) +
			(uint32_t)channel(*display_frame_at(f, x1, y0), i) * a;
		const uint32_t below =
			(uint32_t)channel(*display_frame_at(f, x0, y1), i) * (256 - a) +
			(uint32_t)channel(*display_frame_at(f, x1, y1), i) * a;

		out |= (above * (256 - b) + below * b + 32768) >> 16 << (8 * i);
	}
	return out;
}

static void test_stretched(void **state)
{
	static const int sizes[][4] = {{1, 1, 5, 3}, {7, 5, 7, 5}, {7, 5, 14, 10}, {7, 5, 60, 61},
		{40, 30, 13, 9}, {2, 60, 64, 3}, {33, 1, 1, 64}, {63, 63, 64, 64}};
	struct scene s;

	assert_int_equal(scene_init(&s, SIDE, SIDE, 3), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const int *n = sizes[i];
		const struct display_rect r = {SIDE - n[2], SIDE - n[3], n[2], n[3]};
		const struct display_rect all = {0, 0, n[0], n[1]};
		struct display_frame from, to;

		assert_int_equal(display_frame_init(&from, n[0], n[1]), 0);
		assert_int_equal(display_frame_init(&to, SIDE, SIDE), 0);
		for (int j = 0; j < n[0] * n[1]; j++)
			from.pixels[j] = (uint32_t)scene_random(&s, 1 << 24);
		assert_int_equal(display_stretch(&to, &r, &from), 0);
		for (int y = 0; y < r.h; y++)
			for (int x = 0; x < r.w; x++)
				assert_int_equal(*display_frame_at(&to, r.x + x, r.y + y),
					stretched(&from, &r, x, y));
		/* Nothing beside it, and the same size is the same picture. */
		assert_int_equal(r.x ? *display_frame_at(&to, r.x - 1, SIDE - 1) : 0, 0);
		if (n[0] == n[2] && n[1] == n[3]) {
			to.pixels = display_frame_at(&to, r.x, r.y);
			assert_int_equal(worst(&to, &from, &all), 0);
			to.pixels -= (size_t)r.y * (size_t)to.stride + (size_t)r.x;
		}
		display_frame_fini(&from);
		display_frame_fini(&to);
	}
	scene_fini(&s);
}

static void test_shrunk(void **state)
{
	const struct display_rect r = {3, 5, 41, 33};
	struct display_frame to;
	struct scene s;

	assert_int_equal(scene_init(&s, SIDE, SIDE, 5), 0);
	for (int i = 0; i < SIDE * SIDE; i++)
		s.screen.pixels[i] = (uint32_t)scene_random(&s, 1 << 24);
	for (int by = 2; by <= 4; by++) {
		assert_int_equal(
			display_frame_init(&to, (r.w + by - 1) / by, (r.h + by - 1) / by), 0);
		display_shrink(&to, &s.screen, &r, by);
		for (int y = 0; y < to.height; y++)
			for (int x = 0; x < to.width; x++)
				for (int c = 0; c < 3; c++) {
					int sum = 0, n = 0;

					for (int j = y * by; j < MIN((y + 1) * by, r.h); j++)
						for (int i = x * by; i < MIN((x + 1) * by, r.w);
							i++, n++)
							sum += channel(*display_frame_at(&s.screen,
									       r.x + i, r.y + j),
								c);
					assert_int_equal(channel(*display_frame_at(&to, x, y), c),
						(sum + n / 2) / n);
				}
		display_frame_fini(&to);
	}
	scene_fini(&s);
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct decoded {
	struct display_message last;
	unsigned changed;
};

static void on_message(void *ctx, const struct display_message *m)
{
	((struct decoded *)ctx)->last = *m;
}

static void on_changed(void *ctx, const struct display_rect *r)
{
	((struct decoded *)ctx)->changed++;
}

static const struct display_decoder_ops ops = {.message = on_message, .changed = on_changed};

static struct display_decoder *decoder(struct decoded *d)
{
	struct display_decoder *ret;
	struct display_message m = {.type = DISPLAY_WELCOME};
	Pb__DisplayWelcome w = PB__DISPLAY_WELCOME__INIT;
	_cleanup_buf_ struct buf b = BUF_INIT;
	uint8_t packed[64];

	*d = (struct decoded){0};
	assert_int_equal(display_decoder_new(&ops, d, &ret), 0);
	w.width = w.height = SIDE;
	m.data = (struct display_bytes){packed, pb__display_welcome__pack(&w, packed)};
	display_wire_put(&b, &m);
	assert_int_equal(display_decoder_feed(ret, b.data, b.len, NULL), 0);
	return ret;
}

static void test_there_and_back(void **state)
{
	static const struct display_film_kind kinds[] = {{DISPLAY_VIDEO_I420, 0, 1},
		{DISPLAY_VIDEO_I420, 0, 2}, {DISPLAY_VIDEO_MJPEG, 85, 1},
		{DISPLAY_VIDEO_MJPEG, 95, 1}, {DISPLAY_VIDEO_MJPEG, 85, 2}};
	const struct display_rect r = {5, 7, 47, 51};
	struct display_film *film;
	struct display_frame f;
	struct decoded got;

	assert_int_equal(display_film_new(&film), 0);
	assert_int_equal(display_frame_init(&f, SIDE, SIDE), 0);
	smooth(&f);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct display_decoder *d = decoder(&got);
		_cleanup_buf_ struct buf out = BUF_INIT;

		assert_int_equal(
			display_film_put(film, &out, 3, 123456789012, &f, &r, &kinds[i], NULL), 0);
		assert_int_equal(display_decoder_feed(d, out.data, out.len, NULL), 0);
		assert_int_equal(got.changed, 1);
		assert_int_equal(got.last.video.stream, 3);
		assert_int_equal(got.last.video.format, kinds[i].format);
		assert_int_equal(got.last.video.fw, (47 + kinds[i].shrink - 1) / kinds[i].shrink);
		assert_int_equal(got.last.video.time, 123456789012);
		assert_true(worst(display_decoder_frame(d), &f, &r) <= 12);
		/* Nothing beside it. */
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 4, 20), 0);
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 5 + 47, 20), 0);
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 20, 7 + 51), 0);
		display_decoder_free(d);
	}
	display_film_free(film);
	display_frame_fini(&f);
}

/* A frame that is anything else than its head says is drawn nowhere. */
static void test_malformed(void **state)
{
	static uint8_t data[64];
	const struct {
		int w, h, format;
		size_t len;
	} bad[] = {{4, 4, DISPLAY_VIDEO_I420, 23}, {4, 4, DISPLAY_VIDEO_I420, 25},
		{3, 3, DISPLAY_VIDEO_I420, 0}, {4, 4, DISPLAY_VIDEO_MJPEG, 24},
		{4, 4, DISPLAY_VIDEO_MJPEG, 0}, {4, 4, DISPLAY_VIDEO_VP8, 24}, {4, 4, 77, 24},
		{65535, 65535, DISPLAY_VIDEO_I420, 24}, {4096, 4096, DISPLAY_VIDEO_MJPEG, 24},
		{8, 8, DISPLAY_VIDEO_I420, 24}};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct display_message m = {.type = DISPLAY_VIDEO, .rect = {0, 0, 4, 4}};
		_cleanup_buf_ struct buf out = BUF_INIT;
		struct decoded got;
		struct display_decoder *d = decoder(&got);

		m.video.fw = (uint16_t)bad[i].w;
		m.video.fh = (uint16_t)bad[i].h;
		m.video.format = (uint8_t)bad[i].format;
		m.data = (struct display_bytes){data, bad[i].len};
		display_wire_put(&out, &m);
		assert_int_equal(display_decoder_feed(d, out.data, out.len, NULL), -EBADMSG);
		assert_int_equal(got.changed, 0);
		display_decoder_free(d);
	}
}

/* A JPEG of another size than the head says, and one that ends too early. */
static void test_other_sizes(void **state)
{
	const struct display_film_kind kind = {DISPLAY_VIDEO_MJPEG, 80, 1};
	const struct display_rect r = {0, 0, SIDE, SIDE};
	_cleanup_buf_ struct buf out = BUF_INIT, other = BUF_INIT;
	struct display_decoder *d;
	struct display_film *film;
	struct display_message m;
	struct display_frame f;
	struct decoded got;
	size_t used;

	assert_int_equal(display_film_new(&film), 0);
	assert_int_equal(display_frame_init(&f, SIDE, SIDE), 0);
	smooth(&f);
	assert_int_equal(display_film_put(film, &out, 0, 0, &f, &r, &kind, NULL), 0);
	assert_int_equal(display_wire_take(out.data, out.len, true, &m, &used, NULL), 1);
	m.video.fw--;
	display_wire_put(&other, &m);
	d = decoder(&got);
	assert_int_equal(display_decoder_feed(d, other.data, other.len, NULL), -EBADMSG);
	display_decoder_free(d);
	m.video.fw++;
	m.data.len -= 40; /* grey, and no reason to end */
	buf_clear(&other);
	display_wire_put(&other, &m);
	d = decoder(&got);
	assert_int_equal(display_decoder_feed(d, other.data, other.len, NULL), 0);
	display_decoder_free(d);
	display_film_free(film);
	display_frame_fini(&f);
}

/* ---- VP8 ------------------------------------------------------------------------------------- */

static const struct display_film_kind vp8 = {.format = DISPLAY_VIDEO_VP8,
	.shrink = 1,
	.kbit = 2000,
	.instead = DISPLAY_VIDEO_MJPEG,
	.instead_shrink = 2,
	.quality = 80};

/* The picture moves by a little. */
static void step(const struct display_frame *f, int n)
{
	smooth(f);
	for (int y = 0; y < 16; y++)
		for (int x = 0; x < 16; x++)
			*display_frame_at(f, 10 + 2 * n + x, 20 + n + y) =
				(uint32_t)(x * 8 + 60) << 16 | (uint32_t)(y * 8 + 60) << 8 | 80;
}

static double mean_distance(
	const struct display_frame *a, const struct display_frame *b, const struct display_rect *r)
{
	double sum = 0;

	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			sum += distance(*display_frame_at(a, x, y), *display_frame_at(b, x, y));
	return sum / (double)display_rect_area(r);
}

#define FRAMES 6

/* Messages of a film's first frames. */
static void make_vp8(struct buf *out, const struct display_rect *r)
{
	struct display_film_stream stream = {0};
	struct display_film *film;
	struct display_frame f;

	assert_int_equal(display_film_new(&film), 0);
	assert_int_equal(display_frame_init(&f, SIDE, SIDE), 0);
	for (int i = 0; i < FRAMES; i++) {
		step(&f, i);
		assert_int_equal(display_film_put(film, &out[i], 3, (uint64_t)i * 40000, &f, r,
					 &vp8, &stream),
			0);
	}
	display_film_end(film, &stream);
	assert_null(stream.packer);
	display_film_free(film);
	display_frame_fini(&f);
}

static struct display_message message_of(const struct buf *b)
{
	struct display_message m;
	size_t used;

	assert_int_equal(display_wire_take(b->data, b->len, true, &m, &used, NULL), 1);
	assert_int_equal(used, b->len);
	return m;
}

static int feed(struct display_decoder *d, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_wire_put(&b, m);
	return display_decoder_feed(d, b.data, b.len, NULL);
}

/* Sides that are odd; each frame is like its picture, and only the first stands alone. */
static void test_vp8(void **state)
{
	const struct display_rect r = {3, 5, 51, 47};
	struct buf out[FRAMES] = {0};
	struct display_vp8_head head;
	struct display_decoder *d;
	struct display_frame f;
	struct decoded got;

	make_vp8(out, &r);
	d = decoder(&got);
	assert_int_equal(display_frame_init(&f, SIDE, SIDE), 0);
	for (int i = 0; i < FRAMES; i++) {
		const struct display_message m = message_of(&out[i]);

		assert_int_equal(m.video.format, DISPLAY_VIDEO_VP8);
		assert_true(display_vp8_look(m.data.data, m.data.len, &head));
		assert_int_equal(head.key, i == 0);
		assert_int_equal(head.w, i ? 0 : r.w);
		assert_int_equal(head.h, i ? 0 : r.h);
		assert_int_equal(feed(d, &m), 0);
		step(&f, i);
		assert_true(mean_distance(display_decoder_frame(d), &f, &r) < 6);
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 2, 20), 0);
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 3 + 51, 20), 0);
		assert_int_equal(*display_frame_at(display_decoder_frame(d), 20, 5 + 47), 0);
	}
	assert_true(message_of(&out[1]).data.len < message_of(&out[0]).data.len);
	display_decoder_free(d);
	display_frame_fini(&f);
	for (int i = 0; i < FRAMES; i++)
		buf_fini(&out[i]);
}

/* An encoder takes memory for each pixel, so that it has no more than it may; the shape stays. */
static void test_vp8_large(void **state)
{
	static const struct {
		int w, h, shrink, fw, fh;
	} sizes[] = {{800, 600, 1, 800, 600}, {801, 600, 2, 401, 300}, {1024, 768, 1, 832, 624},
		{1920, 1080, 1, 960, 540}, {1920, 1080, 2, 960, 540}, {1921, 1081, 2, 961, 541},
		{1920, 1200, 2, 840, 525}, {3840, 2160, 2, 960, 540}, {8192, 8192, 4, 512, 512},
		{8192, 90, 1, 6656, 73}};
	const struct display_rect all = {0, 0, 1000, 700}, r = {11, 20, 900, 640};
	struct display_film_stream stream = {0};
	struct display_film_kind kind = vp8;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_frame f, drawn;
	struct display_film *film;
	struct display_message m;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct display_rect whole = {5, 6, sizes[i].w, sizes[i].h};
		int w, h;

		kind.shrink = sizes[i].shrink;
		display_film_size(&whole, &kind, &w, &h);
		assert_true((long)w * h <= DISPLAY_FILM_VP8_PIXELS);
		assert_int_equal(w, sizes[i].fw);
		assert_int_equal(h, sizes[i].fh);
	}
	assert_int_equal(display_film_new(&film), 0);
	assert_int_equal(display_frame_init(&f, all.w, all.h), 0);
	assert_int_equal(display_frame_init(&drawn, all.w, all.h), 0);
	smooth(&f);
	assert_int_equal(display_film_put(film, &out, 3, 0, &f, &r, &vp8, &stream), 0);
	m = message_of(&out);
	assert_int_equal(m.video.format, DISPLAY_VIDEO_VP8);
	assert_true(m.video.fw < r.w && m.video.fw > r.w * 3 / 4);
	assert_int_equal(display_film_draw(film, &drawn, &m), 0);
	assert_true(mean_distance(&drawn, &f, &r) < 6);
	assert_int_equal(*display_frame_at(&drawn, r.x - 1, r.y), 0);
	assert_int_equal(*display_frame_at(&drawn, r.x + r.w, r.y + r.h), 0);
	display_film_end(film, &stream);
	display_film_free(film);
	display_frame_fini(&f);
	display_frame_fini(&drawn);
}

/* Frames that need others than came, and heads that promise what is not there. */
static void test_vp8_alone(void **state)
{
	const struct display_rect r = {0, 0, 48, 48};
	const struct {
		size_t at;
		uint8_t value;
	} bad[] = {{0, 0x12} /* profile 1 */, {0, 0x00} /* not shown */, {3, 0}, {6, 49}, {7, 0x40},
		{8, 47}, {9, 0x3f}};
	struct buf out[FRAMES] = {0};
	struct display_message m;
	struct display_decoder *d;
	struct decoded got;

	make_vp8(out, &r);
	m = message_of(&out[1]);
	d = decoder(&got);
	assert_int_equal(feed(d, &m), -EBADMSG); /* nothing before it */
	display_decoder_free(d);
	for (int i = 0; i < 3; i++) {
		const struct display_message resize = {
			.type = DISPLAY_RESIZE, .size = {SIDE, SIDE}};

		d = decoder(&got);
		m = message_of(&out[0]);
		assert_int_equal(feed(d, &m), 0);
		m = message_of(&out[1]);
		if (i == 0)
			m.video.stream++;
		else if (i == 1)
			m.video.fw = (uint16_t)--m.rect.w;
		else
			assert_int_equal(feed(d, &resize), 0);
		assert_int_equal(feed(d, &m), -EBADMSG);
		display_decoder_free(d);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct display_vp8_head head;
		uint8_t *bytes;

		m = message_of(&out[0]);
		bytes = (uint8_t *)m.data.data; /* in out[0], which is ours */
		const uint8_t was = bytes[bad[i].at];

		bytes[bad[i].at] = bad[i].at ? bad[i].value : (was & 0xe1) | bad[i].value;
		if (bad[i].at == 0 && bad[i].value == 0)
			bytes[0] &= 0xef;
		assert_int_equal(display_vp8_look(m.data.data, m.data.len, &head),
			bad[i].at == 6 || bad[i].at == 8 || bad[i].at == 9);
		d = decoder(&got);
		assert_int_equal(feed(d, &m), -EBADMSG);
		assert_int_equal(got.changed, 0);
		display_decoder_free(d);
		bytes[bad[i].at] = was;
	}
	/* Larger than it is shown: nobody needs that. */
	m = message_of(&out[0]);
	m.rect.w--;
	d = decoder(&got);
	assert_int_equal(feed(d, &m), -EBADMSG);
	display_decoder_free(d);
	for (int i = 0; i < FRAMES; i++)
		buf_fini(&out[i]);
}

/* Anything in a frame: it is drawn somehow, or refused. */
static void test_vp8_garbage(void **state)
{
	const struct display_rect r = {0, 0, 48, 48};
	struct buf out[FRAMES] = {0};
	unsigned seed = 7, drawn = 0, refused = 0;

	make_vp8(out, &r);
	for (int i = 0; i < 400; i++) {
		struct decoded got;
		struct display_decoder *d = decoder(&got);
		const int which = i % FRAMES;

		for (int k = 0; k <= which; k++) {
			struct display_message m = message_of(&out[k]);
			uint8_t bytes[8192];
			int was;

			assert_true(m.data.len <= sizeof(bytes));
			memcpy(bytes, m.data.data, m.data.len);
			m.data.data = bytes;
			for (int j = 0; k == which && j < 3; j++) {
				seed = seed * 1664525 + 1013904223;
				bytes[(seed >> 8) % m.data.len] ^=
					(uint8_t)(1u << (seed >> 28 & 7));
			}
			if (k == which && i % 7 == 0)
				m.data.len = seed % m.data.len;
			was = feed(d, &m);
			assert_true(was == 0 || (k == which && was == -EBADMSG));
			drawn += k == which && was == 0;
			refused += was != 0;
		}
		display_decoder_free(d);
	}
	assert_true(drawn > 0 && refused > 0);
	for (int i = 0; i < FRAMES; i++)
		buf_fini(&out[i]);
}

/* No more encoders than there may be, and one film each; a new size begins anew. */
static void test_vp8_streams(void **state)
{
	const struct display_rect r = {0, 0, 48, 48}, other = {0, 0, 40, 48};
	struct display_film_stream streams[DISPLAY_FILM_STREAMS + 1] = {{0}};
	struct display_vp8_head head;
	struct display_film *film;
	struct display_frame f;

	assert_int_equal(display_film_new(&film), 0);
	assert_int_equal(display_frame_init(&f, SIDE, SIDE), 0);
	for (int i = 0; i < 2 * DISPLAY_FILM_STREAMS + 2; i++) {
		const int viewer = i % (DISPLAY_FILM_STREAMS + 1);
		const bool full = viewer == DISPLAY_FILM_STREAMS;
		_cleanup_buf_ struct buf out = BUF_INIT;
		struct display_message m;

		assert_int_equal(
			display_film_put(film, &out, 1, 0, &f, &r, &vp8, &streams[viewer]), 0);
		m = message_of(&out);
		assert_int_equal(m.video.format, full ? DISPLAY_VIDEO_MJPEG : DISPLAY_VIDEO_VP8);
		assert_int_equal(m.video.fw, full ? r.w / 2 : r.w);
	}
	for (int i = 0; i < 3; i++) {
		/* another film; another size of the first one; the first one as it was */
		static const enum display_video_format formats[] = {
			DISPLAY_VIDEO_MJPEG, DISPLAY_VIDEO_VP8, DISPLAY_VIDEO_VP8};
		_cleanup_buf_ struct buf out = BUF_INIT;
		struct display_message m;

		assert_int_equal(display_film_put(film, &out, i ? 1 : 2, 0, &f,
					 i == 2 ? &r : &other, &vp8, &streams[0]),
			0);
		m = message_of(&out);
		assert_int_equal(m.video.format, formats[i]);
		if (i)
			assert_true(display_vp8_look(m.data.data, m.data.len, &head) && head.key);
	}
	for (int i = 0; i <= DISPLAY_FILM_STREAMS; i++)
		display_film_end(film, &streams[i]);
	display_film_free(film);
	display_frame_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_colours_there_and_back),
		cmocka_unit_test(test_stretched),
		cmocka_unit_test(test_shrunk),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_other_sizes),
		cmocka_unit_test(test_vp8),
		cmocka_unit_test(test_vp8_large),
		cmocka_unit_test(test_vp8_alone),
		cmocka_unit_test(test_vp8_garbage),
		cmocka_unit_test(test_vp8_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
