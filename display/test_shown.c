// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Not one pixel is wrong behind the whole of the server either: what a screen shows goes through
 * its queues and the order that they decide, to several viewers of which each takes other codecs
 * and reads at another pace.  Whoever reads all at once has each frame, the others now and then;
 * also when there was no memory for an update, or for the regions that it works with.
 *
 * PODRUN_TEST_FRAMES says how many frames, PODRUN_TEST_SEED which, and what there is no memory for.
 */
#include <event2/event.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/classify.h"
#include "display/decode.h"
#include "display/memory.h"
#include "display/server.h"
#include "display/test_regions.h"
#include "display/test_scene.h"
#include "display/test_world.h"
#include "display/update.h"
#include "proto/display.pb-c.h"

#define FRAMES	  1000
#define VIEWERS	  4
#define KEEPS_NOT 3    /* the viewer that does not keep what is covered */
#define SCREEN	  40   /* frames on one screen */
#define SETTLE	  16   /* frames, between two that everybody is to have */
#define IDLE	  1000 /* turns in which nothing comes: nothing will */

struct client {
	int fd;
	struct display_decoder *decoder;
	uint32_t serial, answered;
	unsigned kept, uncovered; /* messages */
	bool ended;
};

struct show {
	struct world world;
	struct scene scene; /* its screen is the source's picture */
	struct client viewers[VIEWERS];
	int seed;
	bool quiet; /* nothing is said of what covers what */
};

/* ---- memory that there isn't ----------------------------------------------------------------- */

/* So many of the calls are to fail that the linker leads here. */
static int fail_classify, fail_update;

int __wrap_display_classify(
	const struct display_frame *f, pixman_region32_t *area, struct display_commands *out);
int __real_display_classify(
	const struct display_frame *f, pixman_region32_t *area, struct display_commands *out);
int __wrap_display_update_new(int width, int height, struct display_update **ret_update);
int __real_display_update_new(int width, int height, struct display_update **ret_update);

int __wrap_display_classify(
	const struct display_frame *f, pixman_region32_t *area, struct display_commands *out)
{
	if (fail_classify == 0)
		return __real_display_classify(f, area, out);
	fail_classify--;
	return -ENOMEM;
}

int __wrap_display_update_new(int width, int height, struct display_update **ret_update)
{
	if (fail_update == 0)
		return __real_display_update_new(width, height, ret_update);
	fail_update--;
	return -ENOMEM;
}

/* ---- viewers --------------------------------------------------------------------------------- */

static void on_message(void *ctx, const struct display_message *m)
{
	struct client *c = ctx;

	if (m->type == DISPLAY_MARK || m->type == DISPLAY_UPDATED)
		c->serial = m->serial;
	c->kept += m->type == DISPLAY_KEEP;
	c->uncovered += m->type == DISPLAY_UNCOVER;
}

static const struct display_decoder_ops ops = {.message = on_message};

static void send_message(struct client *c, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_wire_put(&b, m);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(io_write_full(c->fd, b.data, b.len), 0);
}

static void connect_client(struct show *w, struct client *c, uint32_t codecs, bool keeps)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;

	*c = (struct client){0};
	assert_int_equal(display_decoder_new(&ops, c, &c->decoder), 0);
	h.codecs = codecs;
	h.keeps = keeps;
	c->fd = world_connect(&w->world, &h);
}

/* Reads at most @max bytes and answers what is to be; returns how many. */
static size_t read_some(struct client *c, size_t max)
{
	static uint8_t bytes[65536];
	struct display_message ack = {.type = DISPLAY_ACK};
	ssize_t n = recv(c->fd, bytes, MIN(max, sizeof(bytes)), MSG_DONTWAIT);
	struct err e = {0};

	c->ended |= n == 0;
	if (n <= 0)
		return 0;
	if (display_decoder_feed(c->decoder, bytes, (size_t)n, &e) < 0)
		fail_msg("%s", e.msg);
	if (c->serial != c->answered) {
		ack.serial = c->answered = c->serial;
		send_message(c, &ack);
	}
	return (size_t)n;
}

static bool shows(const struct client *c, const struct show *w)
{
	const struct display_frame *f = display_decoder_frame(c->decoder);

	return f->pixels && display_frame_same(f, &w->world.source->picture);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void show_init(struct show *w, int width, int height, uint64_t seed)
{
	*w = (struct show){.seed = (int)seed};
	regions_seed = (unsigned)seed;
	assert_int_equal(scene_init(&w->scene, width, height, seed), 0);
	world_init(&w->world, width, height);
	display_frame_fini(&w->scene.screen);
	w->scene.screen = w->world.source->picture;
	for (int i = 0; i < VIEWERS; i++)
		connect_client(w, &w->viewers[i],
			(uint32_t)scene_random(&w->scene, 1 << DISPLAY_CODECS), i != KEEPS_NOT);
}

static void show_fini(struct show *w)
{
	for (int i = 0; i < VIEWERS; i++) {
		display_decoder_free(w->viewers[i].decoder);
		close_fd(w->viewers[i].fd);
	}
	w->scene.screen = (struct display_frame){0};
	scene_fini(&w->scene);
	world_fini(&w->world);
}

/* Where somebody points, what changes comes sooner, and first. */
static void point(struct show *w)
{
	struct display_message m = {.type = DISPLAY_POINTER};

	m.pointer.x = scene_random(&w->scene, w->scene.screen.width);
	m.pointer.y = scene_random(&w->scene, w->scene.screen.height);
	send_message(&w->viewers[0], &m);
}

/* One of @gaps regions that the server works with can't be had from then on. */
static void draw(struct show *w, enum scene_step what, int gaps)
{
	struct display_cover cover = {.before = w->scene.window};
	pixman_region32_t damage;
	const pixman_box32_t *b;
	int n;

	pixman_region32_init(&damage);
	scene_do(&w->scene, what, &damage);
	cover.now = w->scene.window;
	display_memory_cover(w->world.source, &cover);
	b = pixman_region32_rectangles(&damage, &n);
	regions_fail = gaps;
	for (int i = 0; i < n; i++) {
		const struct display_rect r = display_rect_of(&b[i]);

		display_memory_damage(w->world.source, &r);
	}
	pixman_region32_fini(&damage);
}

/* Until the server has seen what has been drawn. */
static void look(struct show *w)
{
	do
		event_base_loop(
			w->world.base, EVLOOP_ONCE | (w->world.source->told ? 0 : EVLOOP_NONBLOCK));
	while (w->world.source->told);
}

/* @n viewers, from the first, have the picture, when they have read all that comes. */
static void settle(struct show *w, int n)
{
	look(w);
	for (int i = 0; i < n; i++) {
		struct client *c = &w->viewers[i];

		for (int idle = 0; !shows(c, w);) {
			event_base_loop(w->world.base, EVLOOP_NONBLOCK);
			idle = read_some(c, 65536) ? 0 : idle + 1;
			if (c->ended || idle > IDLE)
				fail_msg("viewer %d has wrong pixels (seed %d)", i, w->seed);
		}
	}
}

/* The first reads all there is, the second little, the third in bursts, the fourth hardly. */
static void read_each(struct show *w)
{
	static const int most[VIEWERS] = {0, 3000, 65536, 200}, seldom[VIEWERS] = {1, 1, 6, 2};

	for (int i = 1; i < VIEWERS; i++)
		if (scene_random(&w->scene, seldom[i]) == 0)
			read_some(&w->viewers[i], 1 + (size_t)scene_random(&w->scene, most[i]));
}

static int number(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Anything after anything; one of @gaps updates, and of @holes regions, can't be had; 0: none. */
static void play(int frames, uint64_t seed, int gaps, int holes)
{
	for (int done = 0; done < frames; seed++) {
		const int width = 1 + (int)(seed * 37 % 290), height = 1 + (int)(seed * 53 % 210);
		struct show w;

		show_init(&w, width, height, seed);
		settle(&w, VIEWERS);
		for (int i = 0; i < SCREEN && done < frames; i++, done++) {
			point(&w);
			draw(&w, (enum scene_step)scene_random(&w.scene, SCENE_STEPS), holes);
			fail_classify = gaps && scene_random(&w.scene, gaps) == 0;
			settle(&w, 1);
			read_each(&w);
			fail_classify = regions_fail = 0;
			if (i % SETTLE == SETTLE - 1)
				settle(&w, VIEWERS);
		}
		settle(&w, VIEWERS);
		show_fini(&w);
	}
}

static void test_exact(void **state)
{
	play(number("PODRUN_TEST_FRAMES", FRAMES), (uint64_t)number("PODRUN_TEST_SEED", 1), 0, 0);
}

static void test_without_memory(void **state)
{
	play(FRAMES / 4, (uint64_t)number("PODRUN_TEST_SEED", 1), 2, 0);
}

static void test_without_regions(void **state)
{
	play(FRAMES / 2, (uint64_t)number("PODRUN_TEST_SEED", 1), 0, 8);
}

/* Nor for a picture of another size, which the source tells once. */
static void test_no_memory_for_a_picture(void **state)
{
	struct show w;

	show_init(&w, 100, 80, 3);
	draw(&w, SCENE_PAGE, 0);
	settle(&w, VIEWERS);
	fail_update = 1;
	assert_int_equal(display_memory_resize(w.world.source, 90, 120), 0);
	look(&w);
	while (fail_update)
		event_base_loop(w.world.base, EVLOOP_ONCE);
	for (int i = 0; i < VIEWERS; i++)
		while (!shows(&w.viewers[i], &w)) {
			event_base_loop(w.world.base, EVLOOP_NONBLOCK);
			read_some(&w.viewers[i], 65536);
			assert_false(w.viewers[i].ended);
		}
	show_fini(&w);
}

/* Who comes while there is none is shown the picture all the same. */
static void test_no_memory_for_who_comes(void **state)
{
	struct show w;

	show_init(&w, 100, 80, 4);
	draw(&w, SCENE_PAGE, 0);
	fail_classify = INT_MAX;
	settle(&w, VIEWERS);
	assert_int_not_equal(fail_classify, INT_MAX);
	fail_classify = 0;
	show_fini(&w);
}

/* What a window leaves is brought back by those who keep it, and drawn for others. */
static void test_uncovered(void **state)
{
	struct show w;

	show_init(&w, 290, 210, 5);
	draw(&w, SCENE_PAGE, 0);
	settle(&w, VIEWERS);
	for (int i = 0; i < 20; i++) {
		draw(&w, SCENE_DRAG, 0);
		settle(&w, VIEWERS);
	}
	for (int i = 0; i < VIEWERS; i++) {
		assert_int_equal(w.viewers[i].kept > 0, i != KEEPS_NOT);
		assert_int_equal(w.viewers[i].uncovered > 0, i != KEEPS_NOT);
	}
	show_fini(&w);
}

/* Fills @r and says that a window covers it from now on, or (false) no longer. */
static void fill(struct show *w, const struct display_rect *r, uint32_t colour, bool covers)
{
	const struct display_cover c[] = {{.before = *r}, {.now = *r}};

	display_frame_fill(&w->scene.screen, r, colour);
	if (!w->quiet)
		display_memory_cover(w->world.source, &c[covers]);
	display_memory_damage(w->world.source, r);
	settle(w, VIEWERS);
}

/* What is kept while nothing is drawn, or in an update there is no memory for, is what is known. */
static void test_kept_is_known(void **state)
{
	const struct display_rect r = {20, 30, 90, 70};

	for (int failing = 0; failing < 2; failing++) {
		struct show w;

		show_init(&w, 290, 210, 6);
		fill(&w, &r, 1, false);
		fill(&w, &r, 2, true); /* 1 is kept */
		fill(&w, &r, 3, false);
		if (failing) {
			fail_classify = 1;
			fill(&w, &r, 4, true); /* 3 is, but nobody is told */
			assert_int_equal(fail_classify, 0);
		} else {
			fill(&w, &r, 3, true); /* 3 is, though nothing is new */
			w.quiet = true;
			fill(&w, &r, 4, true); /* which is not told again */
			w.quiet = false;
		}
		fill(&w, &r, 3, false);
		show_fini(&w);
	}
}

/* Who asks for something again has lost what it kept, too. */
static void test_kept_is_lost(void **state)
{
	const struct display_message again = {.type = DISPLAY_REFRESH, .rect = {0, 0, 290, 210}};
	const struct display_rect r = {20, 30, 90, 70};
	struct show w;

	show_init(&w, 290, 210, 7);
	fill(&w, &r, 1, false);
	fill(&w, &r, 2, true);
	send_message(&w.viewers[0], &again);
	event_base_loop(w.world.base, EVLOOP_NONBLOCK);
	fill(&w, &r, 1, false);
	for (int i = 0; i < VIEWERS; i++)
		assert_int_equal(w.viewers[i].uncovered > 0, i != 0 && i != KEEPS_NOT);
	fill(&w, &r, 2, true);
	fill(&w, &r, 1, false);
	assert_int_not_equal(w.viewers[0].uncovered, 0);
	show_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_without_regions),
		cmocka_unit_test(test_no_memory_for_a_picture),
		cmocka_unit_test(test_no_memory_for_who_comes),
		cmocka_unit_test(test_uncovered),
		cmocka_unit_test(test_kept_is_known),
		cmocka_unit_test(test_kept_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
