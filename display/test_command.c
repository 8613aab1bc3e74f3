// SPDX-License-Identifier: GPL-2.0-or-later
/* Commands as bytes: which codec, what is no longer so, and bytes that no encoder has made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "display/codec/stream.h"
#include "display/command.h"
#include "display/decode.h"
#include "display/test_scene.h"

#define WIDTH  200
#define HEIGHT 120
#define SINGLE (DISPLAY_DECODER_CODECS & ((1u << DISPLAY_CODEC_LEFT_STREAM) - 1)) /* no streams */
/* No palettes of their own in streams. */
#define INDICES (DISPLAY_DECODER_CODECS & ~(1u << DISPLAY_CODEC_PALETTE_STREAM))

static const struct display_rect whole = {0, 0, WIDTH, HEIGHT};

struct world {
	struct scene scene;
	struct display_encoder *encoder;
	struct display_decoder *decoder;
	struct display_stream *stream;
	struct buf out;
	struct display_message m; /* what was put last */
};

/* A decoder and a stream that have had nothing yet. */
static int begin(struct world *w)
{
	const struct display_message resize = {.type = DISPLAY_RESIZE, .size = {WIDTH, HEIGHT}};

	display_decoder_free(w->decoder);
	display_stream_free(w->stream);
	if (display_stream_new(&w->stream) < 0 || display_decoder_new(NULL, NULL, &w->decoder) < 0)
		return -1;
	buf_clear(&w->out);
	display_wire_put(&w->out, &resize);
	return display_decoder_feed(w->decoder, w->out.data, w->out.len, NULL);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	if (scene_init(&w->scene, WIDTH, HEIGHT, 11) < 0 || display_encoder_new(&w->encoder) < 0)
		return -1;
	return begin(w);
}

static int teardown(void **state)
{
	struct world *w = *state;

	scene_fini(&w->scene);
	display_encoder_free(w->encoder);
	display_stream_free(w->stream);
	display_decoder_free(w->decoder);
	buf_fini(&w->out);
	free(w);
	return 0;
}

/* Puts and draws it; returns what put does. */
static int put(struct world *w, const struct display_command *c, uint32_t mask, int quality)
{
	const struct display_codecs to = {.mask = mask, .quality = quality, .stream = w->stream};
	struct err e = {0};
	size_t used;
	int r;

	buf_clear(&w->out);
	r = display_command_put(w->encoder, &w->out, c, &w->scene.screen, &to);
	assert_true(r >= 0);
	assert_int_equal(display_wire_take(w->out.data, w->out.len, true, &w->m, &used, &e), 1);
	assert_int_equal(used, w->out.len);
	if (display_decoder_feed(w->decoder, w->out.data, w->out.len, &e) < 0)
		fail_msg("%s", e.msg);
	return r;
}

static bool is_right(struct world *w)
{
	return display_frame_same(&w->scene.screen, display_decoder_frame(w->decoder));
}

/* Everything as RAW, exactly, with one codec beside 0. */
static void assert_codec(
	struct world *w, enum display_hint hint, uint32_t mask, enum display_codec codec)
{
	const struct display_command c = {.type = DISPLAY_RAW, .rect = whole, .hint = hint};

	assert_int_equal(put(w, &c, mask, 0), 0);
	assert_int_equal(w->m.type, DISPLAY_RAW);
	assert_int_equal(w->m.codec, codec);
	assert_true(is_right(w));
}

static void test_codecs(void **state)
{
	struct world *w = *state;

	scene_text(&w->scene, &whole, true);
	assert_codec(w, DISPLAY_PLAIN, 0, DISPLAY_CODEC_NONE);
	for (int codec = 0; codec <= DISPLAY_CODEC_LEFT_ZSTD; codec++)
		assert_codec(w, DISPLAY_PLAIN, 1u << codec, (enum display_codec)codec);
	for (int codec = DISPLAY_CODEC_PALETTE; codec <= DISPLAY_CODEC_LEFT_STREAM; codec++)
		assert_codec(w, DISPLAY_FEW_COLOURS, 1u << codec, (enum display_codec)codec);
	assert_codec(w, DISPLAY_FEW_COLOURS, SINGLE, DISPLAY_CODEC_PALETTE_ZSTD);
	assert_codec(w, DISPLAY_FEW_COLOURS, DISPLAY_DECODER_CODECS, DISPLAY_CODEC_PALETTE_STREAM);
	assert_codec(w, DISPLAY_FEW_COLOURS, INDICES, DISPLAY_CODEC_INDEX_STREAM);
	scene_picture(&w->scene, &whole);
	assert_codec(w, DISPLAY_FEW_COLOURS, SINGLE, DISPLAY_CODEC_LEFT_ZSTD);
	assert_codec(w, DISPLAY_FEW_COLOURS, DISPLAY_DECODER_CODECS, DISPLAY_CODEC_LEFT_STREAM);
	assert_codec(w, DISPLAY_SMOOTH, DISPLAY_DECODER_CODECS, DISPLAY_CODEC_LEFT_ZSTD);
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		w->scene.screen.pixels[i] = (uint32_t)(scene_random(&w->scene, 1 << 24));
	assert_codec(w, DISPLAY_PLAIN, SINGLE, DISPLAY_CODEC_NONE);
}

/* What was sent before makes it shorter, and colours keep their places. */
static void test_stream(void **state)
{
	const struct display_command c = {.type = DISPLAY_RAW, .rect = whole};
	struct world *w = *state;
	size_t first, again;

	scene_text(&w->scene, &whole, true);
	put(w, &c, INDICES, 0);
	assert_int_equal(w->m.codec, DISPLAY_CODEC_INDEX_STREAM);
	first = w->out.len;
	put(w, &c, INDICES, 0);
	again = w->out.len;
	assert_true(again < first / 10);
	assert_true(is_right(w));
	/* Too many colours for a palette, for a while, and then it begins anew. */
	scene_picture(&w->scene, &whole);
	assert_codec(w, DISPLAY_PLAIN, INDICES, DISPLAY_CODEC_LEFT_STREAM);
	scene_text(&w->scene, &whole, true);
	for (int i = 0; i < 8; i++) {
		put(w, &c, INDICES, 0);
		assert_true(is_right(w));
	}
	assert_int_equal(w->m.codec, DISPLAY_CODEC_INDEX_STREAM);
	scene_text(&w->scene, &whole, false);
	assert_codec(w, DISPLAY_PLAIN, DISPLAY_DECODER_CODECS, DISPLAY_CODEC_PALETTE_STREAM);
}

static void test_jpeg(void **state)
{
	struct display_command c = {
		.type = DISPLAY_RAW, .rect = {3, 5, 100, 90}, .hint = DISPLAY_SMOOTH};
	struct world *w = *state;
	const uint32_t all = DISPLAY_DECODER_CODECS;

	scene_picture(&w->scene, &whole);
	for (int quality = 80; quality <= 95; quality += 15) {
		const struct display_frame *f = display_decoder_frame(w->decoder);
		long difference = 0;

		assert_int_equal(put(w, &c, all, quality), 1);
		assert_int_equal(w->m.codec, DISPLAY_CODEC_JPEG);
		for (int y = 5; y < 95; y++)
			for (int x = 3; x < 103; x++)
				difference += labs(
					(long)(*display_frame_at(f, x, y) >> 8 & 255) -
					(long)(*display_frame_at(&w->scene.screen, x, y) >> 8 &
						255));
		assert_true(difference < 90 * 100 * 20);
	}
	assert_int_equal(put(w, &c, all & ~(1u << DISPLAY_CODEC_JPEG), 75), 0);
	c.hint = DISPLAY_PLAIN;
	assert_int_equal(put(w, &c, all, 75), 0);
	c.hint = DISPLAY_SMOOTH;
	buf_clear(&w->out);
	assert_int_equal(display_command_put_exact(w->encoder, &w->out, &c, &w->scene.screen,
				 &(struct display_codecs){.mask = all, .quality = 75}),
		0);
}

/* What has changed since it was classified is drawn as it is now. */
static void test_stale(void **state)
{
	const struct display_command stale[] = {
		{.type = DISPLAY_SFILL, .rect = whole, .colour = {0xffffff}},
		{.type = DISPLAY_BITMAP, .rect = whole, .colour = {0xffffff, 0x222222}},
		{.type = DISPLAY_PFILL, .rect = whole, .tw = 8, .th = 8},
		{.type = DISPLAY_PFILL, .rect = whole, .tw = 0, .th = 65},
		{.type = DISPLAY_RAW, .rect = whole, .hint = DISPLAY_FEW_COLOURS},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(stale); i++)
		for (uint32_t mask = 0; mask <= DISPLAY_DECODER_CODECS;
			mask += DISPLAY_DECODER_CODECS) {
			scene_picture(&w->scene, &whole);
			assert_int_equal(put(w, &stale[i], mask, 0), 0);
			assert_true(is_right(w));
			scene_text(&w->scene, &whole, true);
			*display_frame_at(&w->scene.screen, WIDTH - 1, HEIGHT - 1) = 0xabcdef;
			assert_int_equal(put(w, &stale[i], mask, 0), 0);
			assert_true(is_right(w));
			display_frame_fill(&w->scene.screen, &whole, 0x123456);
			assert_int_equal(put(w, &stale[i], mask, 0), 0);
			assert_true(is_right(w));
		}
}

/* A letter typed is a few bytes. */
static void test_short(void **state)
{
	const struct display_command letter = {
		.type = DISPLAY_BITMAP, .rect = {70, 26, 7, 13}, .colour = {0xffffff, 0}};
	struct world *w = *state;

	display_frame_fill(&w->scene.screen, &whole, 0xffffff);
	for (int i = 0; i < 13; i++)
		*display_frame_at(&w->scene.screen, 70 + i % 5, 26 + i) = 0;
	assert_int_equal(put(w, &letter, DISPLAY_DECODER_CODECS, 0), 0);
	assert_int_equal(w->m.type, DISPLAY_BITMAP);
	assert_int_equal(w->out.len, DISPLAY_WIRE_HEAD + 16 + 13);
}

/* ---- bytes of others ------------------------------------------------------------------------- */

static int draw(const struct display_message *m)
{
	const struct display_message resize = {.type = DISPLAY_RESIZE, .size = {WIDTH, HEIGHT}};
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_decoder *d;
	int r;

	assert_int_equal(display_decoder_new(NULL, NULL, &d), 0);
	display_wire_put(&out, &resize);
	display_wire_put(&out, m);
	r = display_decoder_feed(d, out.data, out.len, NULL);
	display_decoder_free(d);
	return r;
}

/* Data of RAW that is too short, too long or damaged. */
static void test_data(void **state)
{
	struct display_command c = {.type = DISPLAY_RAW, .rect = {1, 2, 64, 40}};
	struct world *w = *state;

	scene_text(&w->scene, &whole, true);
	for (int codec = 0; codec < DISPLAY_CODECS; codec++) {
		struct display_message m;

		c.hint = codec >= DISPLAY_CODEC_PALETTE ? DISPLAY_FEW_COLOURS
			 : codec == DISPLAY_CODEC_JPEG	? DISPLAY_SMOOTH
							: DISPLAY_PLAIN;
		if (c.hint == DISPLAY_SMOOTH)
			scene_picture(&w->scene, &whole);
		/* A piece is drawn by whoever has had those before it: none. */
		assert_int_equal(begin(w), 0);
		put(w, &c, 1u << codec, 75);
		m = w->m;
		assert_int_equal(draw(&m), 0);
		m.rect.w++;
		assert_int_equal(draw(&m), -EBADMSG);
		m.rect.w--;
		m.data.len /= 2;
		if (codec != DISPLAY_CODEC_JPEG)
			assert_int_equal(draw(&m), -EBADMSG);
		m.data.len = 0;
		assert_int_equal(draw(&m), -EBADMSG);
		if (c.hint == DISPLAY_SMOOTH)
			scene_text(&w->scene, &whole, true);
	}
}

static void test_refused(void **state)
{
	static const uint8_t one[] = {1, 0, 0, 0, 0, 0},
			     three[] = {3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0xff};
	const struct display_message bad[] = {
		{.type = DISPLAY_SFILL, .rect = {WIDTH - 1, 0, 2, 1}},
		{.type = DISPLAY_SFILL, .rect = {0, HEIGHT, 1, 1}},
		{.type = DISPLAY_SFILL, .rect = {65535, 65535, 65535, 65535}},
		{.type = DISPLAY_COPY, .rect = {0, 0, 2, 2}, .sx = WIDTH - 1, .sy = 0},
		{.type = DISPLAY_COPY, .rect = {0, 0, 2, 2}, .sx = 0, .sy = HEIGHT - 1},
		{.type = DISPLAY_BITMAP, .rect = {0, 0, 9, 1}, .data = {one, 1}},
		{.type = DISPLAY_PFILL, .rect = {0, 0, 9, 1}, .tw = 1, .th = 1, .data = {one, 2}},
		{.type = DISPLAY_RAW, .rect = {0, 0, 1, 1}, .codec = DISPLAY_CODECS},
		{.type = DISPLAY_RAW, .rect = {0, 0, 1, 1}, .codec = 5, .data = {one, 6}},
		{.type = DISPLAY_RAW, .rect = {0, 0, 4, 1}, .codec = 5, .data = {three, 14}},
		{.type = DISPLAY_RAW, .rect = {0, 0, 4, 1}, .codec = 8, .data = {three, 14}},
		{.type = DISPLAY_RAW, .rect = {0, 0, 4, 1}, .codec = 10, .data = {three, 14}},
		{.type = DISPLAY_RAW, .rect = {0, 0, 4, 1}, .codec = 10, .data = {one, 6}},
		{.type = DISPLAY_RESIZE, .size = {DISPLAY_SIZE_MAX + 1, 1}},
		{.type = DISPLAY_WELCOME, .data = {one, 3}},
		{.type = DISPLAY_WELCOME},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (draw(&bad[i]) != -EBADMSG)
			fail_msg("message %zu is drawn", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_codecs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_jpeg, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_data, setup, teardown),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
