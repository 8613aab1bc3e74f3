// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a picture to commands to bytes to a picture: not one pixel is wrong, whatever happens on the
 * screen, whatever a viewer takes (as long as that is lossless), however commands are cut and
 * in whatever order they are sent, and in whatever pieces the bytes arrive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "display/codec/stream.h"
#include "display/display.h"
#include "display/test_scene.h"
#include "proto/display.pb-c.h"

#define FRAMES 20000

struct world {
	struct scene scene;
	struct display_update *update;
	struct display_encoder *encoder;
	struct display_decoder *decoder;
	struct display_codecs codecs;
	size_t copied, uncovered; /* pixels */
};

static void put_welcome(struct buf *out, int w, int h)
{
	Pb__DisplayWelcome welcome = PB__DISPLAY_WELCOME__INIT;
	struct display_message m = {.type = DISPLAY_WELCOME};
	uint8_t packed[64];

	welcome.version = DISPLAY_VERSION;
	welcome.width = (uint32_t)w;
	welcome.height = (uint32_t)h;
	m.data = (struct display_bytes){packed, pb__display_welcome__pack(&welcome, packed)};
	display_wire_put(out, &m);
}

static void feed(struct world *w, const struct buf *b)
{
	struct err e = {0};

	for (size_t at = 0, n; at < b->len; at += n) {
		n = MIN(b->len - at, (size_t)1 + (size_t)scene_random(&w->scene, 60000));
		if (display_decoder_feed(w->decoder, b->data + at, n, &e) < 0)
			fail_msg("%s", e.msg);
	}
}

static void begin(struct world *w, int width, int height, uint64_t seed)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	*w = (struct world){0};
	assert_int_equal(scene_init(&w->scene, width, height, seed), 0);
	assert_int_equal(display_update_new(width, height, &w->update), 0);
	assert_int_equal(display_encoder_new(&w->encoder), 0);
	assert_int_equal(display_stream_new(&w->codecs.stream), 0);
	assert_int_equal(display_decoder_new(NULL, NULL, &w->decoder), 0);
	w->codecs.mask = (uint32_t)scene_random(&w->scene, 1 << DISPLAY_CODECS);
	put_welcome(&out, width, height);
	feed(w, &out);
}

static void end(struct world *w)
{
	scene_fini(&w->scene);
	display_update_free(w->update);
	display_encoder_free(w->encoder);
	display_stream_free(w->codecs.stream);
	display_decoder_free(w->decoder);
}

/* Half of the command, the upper or the left one; the other half is in *c. */
static struct display_command cut(struct world *w, struct display_command *c)
{
	struct display_command first = *c;
	int at;

	if (c->rect.h > 1 && scene_random(&w->scene, 2)) {
		at = 1 + scene_random(&w->scene, c->rect.h - 1);
		first.rect.h = at;
		c->rect.y += at;
		c->rect.h -= at;
	} else if (c->rect.w > 1) {
		at = 1 + scene_random(&w->scene, c->rect.w - 1);
		first.rect.w = at;
		c->rect.x += at;
		c->rect.w -= at;
	}
	return first;
}

static void put(struct world *w, struct buf *out, const struct display_command *c)
{
	assert_int_equal(display_command_put(
				 w->encoder, out, c, display_update_shadow(w->update), &w->codecs),
		0);
}

/* Those that are first in their order, the rest in any, and some in halves. */
static void send(struct world *w, struct display_commands *l)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t i = 0;

	for (; i < l->n && display_command_is_first(&l->list[i]); i++) {
		put(w, &out, &l->list[i]);
		if (l->list[i].type == DISPLAY_COPY)
			w->copied += (size_t)display_rect_area(&l->list[i].rect);
		if (l->list[i].type == DISPLAY_UNCOVER)
			w->uncovered += (size_t)display_rect_area(&l->list[i].rect);
	}
	for (; i < l->n; i++) {
		size_t other = i + (size_t)scene_random(&w->scene, (int)(l->n - i));
		struct display_command c = l->list[other], first;

		l->list[other] = l->list[i];
		assert_false(display_command_is_first(&c));
		if (scene_random(&w->scene, 3) == 0) {
			first = cut(w, &c);
			put(w, &out, &first);
		}
		put(w, &out, &c);
	}
	feed(w, &out);
}

/* Anywhere, partly not on the screen, from somewhere or nowhere to somewhere or nowhere. */
static struct display_cover random_cover(struct world *w)
{
	struct display_cover c = {scene_rect(&w->scene), scene_rect(&w->scene)};

	if (scene_random(&w->scene, 3) == 0)
		c.before = (struct display_rect){0};
	if (scene_random(&w->scene, 3) == 0)
		c.now = (struct display_rect){0};
	else if (scene_random(&w->scene, 3) == 0)
		c.now.x -= c.now.w / 2;
	return c;
}

static void step(struct world *w, enum scene_step what)
{
	struct display_cover covers[2] = {{.before = w->scene.window}};
	struct display_commands l = {0};
	pixman_region32_t damage;

	pixman_region32_init(&damage);
	scene_do(&w->scene, what, &damage);
	covers[0].now = w->scene.window;
	covers[1] = random_cover(w);
	display_update_cover(w->update, covers, (size_t)scene_random(&w->scene, 2) + 1);
	assert_true(
		display_update_run(w->update, &w->scene.screen, &damage, NULL, 0, &l, NULL) >= 0);
	send(w, &l);
	assert_true(display_frame_same(display_update_shadow(w->update), &w->scene.screen));
	if (!display_frame_same(display_decoder_frame(w->decoder), &w->scene.screen))
		fail_msg("wrong pixels after step %d, codecs %#x", (int)what, w->codecs.mask);
	pixman_region32_fini(&damage);
	display_commands_fini(&l);
}

/* Anything after anything, on screens of any size. */
static void test_random(void **state)
{
	for (int frames = 0, seed = 1; frames < FRAMES; seed++) {
		struct world w;

		begin(&w, 1 + seed * 37 % 290, 1 + seed * 53 % 210, (uint64_t)seed);
		for (int i = 0; i < 60; i++, frames++)
			step(&w, (enum scene_step)scene_random(&w.scene, SCENE_STEPS));
		end(&w);
	}
}

/* A whole desktop: each step several times, so that windows go on being dragged. */
static void test_large(void **state)
{
	struct world w;

	begin(&w, 1024, 768, 7);
	for (int i = 0; i < 3 * SCENE_STEPS; i++)
		for (int k = 0; k < 3; k++)
			step(&w, (enum scene_step)(i % SCENE_STEPS));
	end(&w);
}

/* What is dragged or scrolled is sent as copies. */
static void test_copies(void **state)
{
	size_t moved = 0;
	struct world w;

	begin(&w, 640, 480, 3);
	step(&w, SCENE_PAGE);
	step(&w, SCENE_DRAG);
	w.copied = 0;
	for (int i = 0; i < 20; i++) {
		struct display_rect before = w.scene.window;

		step(&w, SCENE_DRAG);
		if (before.x != w.scene.window.x || before.y != w.scene.window.y)
			moved += (size_t)display_rect_area(&before);
	}
	assert_true(moved > 0);
	if (w.copied < moved * 9 / 10)
		fail_msg("%zu of %zu pixels were copied", w.copied, moved);
	end(&w);
}

/* What a window that is dragged leaves is brought back from what was there before it came. */
static void test_uncovered(void **state)
{
	size_t left = 0;
	struct world w;

	begin(&w, 640, 480, 3);
	step(&w, SCENE_PAGE);
	for (int i = 0; i < 41; i++) {
		const struct display_rect before = w.scene.window;
		struct display_rect both = {0};

		step(&w, SCENE_DRAG);
		if (before.w && display_rect_intersect(&before, &w.scene.window, &both))
			left += (size_t)(display_rect_area(&before) - display_rect_area(&both));
	}
	assert_true(left > 0);
	if (w.uncovered < left / 2)
		fail_msg("%zu of %zu pixels were uncovered", w.uncovered, left);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_uncovered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
