// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is taken for a film, and what is not: scenes over some seconds of a clock of the test's own,
 * through display_update_run as the server has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/test_scene.h"
#include "display/update.h"
#include "display/video.h"

#define WIDTH  640
#define HEIGHT 480
#define MS     1000000ull
#define FRAME  (42 * MS)

struct world {
	struct scene scene;
	struct display_update *update;
	struct display_video *video;
	uint64_t now;
	pixman_region32_t damage; /* of what is drawn before the next step */
	unsigned begun, others;	  /* films; looks at which they were other ones */
};

static void world_init(struct world *w, uint64_t seed)
{
	*w = (struct world){.now = 5000 * MS};
	assert_int_equal(scene_init(&w->scene, WIDTH, HEIGHT, seed), 0);
	assert_int_equal(display_update_new(WIDTH, HEIGHT, &w->update), 0);
	w->video = display_video_new(WIDTH, HEIGHT);
	assert_non_null(w->video);
	pixman_region32_init(&w->damage);
}

static void world_fini(struct world *w)
{
	scene_fini(&w->scene);
	display_update_free(w->update);
	display_video_free(w->video);
	pixman_region32_fini(&w->damage);
}

static void drawn(struct world *w, const struct display_rect *r)
{
	pixman_region32_union_rect(
		&w->damage, &w->damage, r->x, r->y, (unsigned)r->w, (unsigned)r->h);
}

static const struct display_video_film *film(const struct world *w)
{
	const struct display_video_film *f = display_video_films(w->video);

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		if (f[i].id)
			return &f[i];
	return NULL;
}

static unsigned films(const struct world *w)
{
	unsigned n = 0;

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		n += display_video_films(w->video)[i].id != 0;
	return n;
}

/* What has been drawn is shown, and @ns pass. */
static void step(struct world *w, uint64_t ns)
{
	struct display_commands c = {0};
	pixman_region32_t changed;
	unsigned before = films(w);

	pixman_region32_init(&changed);
	assert_true(display_update_run(
			    w->update, &w->scene.screen, &w->damage, NULL, 0, &c, &changed) >= 0);
	display_video_change(w->video, w->now, &changed);
	if (display_video_look(w->video, w->now, display_update_shadow(w->update), &c)) {
		w->others++;
		w->begun += films(w) > before;
		display_update_leave(w->update, display_video_region(w->video));
	}
	display_commands_fini(&c);
	pixman_region32_fini(&changed);
	pixman_region32_clear(&w->damage);
	w->now += ns;
}

static void picture(struct world *w, struct display_rect r)
{
	scene_picture(&w->scene, &r);
	drawn(w, &r);
}

static void plays(struct world *w, struct display_rect r, unsigned frames)
{
	while (frames--) {
		picture(w, r);
		step(w, FRAME);
	}
}

static void rests(struct world *w, unsigned frames)
{
	while (frames--)
		step(w, FRAME);
}

static void is_film(const struct world *w, struct display_rect r)
{
	const struct display_video_film *f = film(w);

	assert_non_null(f);
	assert_int_equal(f->rect.x, r.x);
	assert_int_equal(f->rect.y, r.y);
	assert_int_equal(f->rect.w, r.w);
	assert_int_equal(f->rect.h, r.h);
}

/* ---- films ----------------------------------------------------------------------------------- */

static void test_found(void **state)
{
	const struct display_rect places[] = {
		{0, 0, WIDTH, HEIGHT}, {37, 51, 352, 240}, {100, 100, 100, 97}, {543, 381, 97, 99}};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct world w;
		pixman_box32_t box = display_rect_box(&places[i]);
		uint64_t frame;

		world_init(&w, 10 + i);
		plays(&w, places[i], 12);
		assert_null(film(&w)); /* half a second is no film yet */
		plays(&w, places[i], 24);
		is_film(&w, places[i]);
		assert_int_equal(
			pixman_region32_contains_rectangle(display_video_region(w.video), &box),
			PIXMAN_REGION_IN);
		frame = film(&w)->frame;
		plays(&w, places[i], 240);
		is_film(&w, places[i]);
		assert_int_equal(film(&w)->frame, frame + 240);
		assert_int_equal(w.others, 1);
		rests(&w, 30);
		assert_null(film(&w));
		assert_false(pixman_region32_not_empty(display_video_region(w.video)));
		assert_int_equal(w.others, 2);
		world_fini(&w);
	}
}

/* Ten frames a second, with gaps: it goes on.  Paused and played again it is another one, soon. */
static void test_goes_on(void **state)
{
	const struct display_rect r = {64, 40, 400, 300};
	struct world w;
	uint16_t id;

	world_init(&w, 2);
	for (int i = 0; i < 40; i++) {
		picture(&w, r);
		step(&w, 99 * MS);
	}
	is_film(&w, r);
	id = film(&w)->id;
	for (int i = 0; i < 40; i++) {
		picture(&w, r);
		step(&w, i % 10 ? 110 * MS : 380 * MS);
	}
	assert_int_equal(w.others, 1);
	rests(&w, 40);
	assert_null(film(&w));
	plays(&w, r, 36);
	is_film(&w, r);
	assert_int_not_equal(film(&w)->id, id);
	world_fini(&w);
}

/* Two at a time, each by itself; what is typed beside them is in neither. */
static void test_two(void **state)
{
	const struct display_rect a = {0, 0, 200, 150}, b = {330, 250, 300, 200};
	struct world w;

	world_init(&w, 3);
	for (int i = 0; i < 100; i++) {
		const struct display_rect letter = {20 + i % 60 * 7, 200, 6, 12};

		display_frame_fill(&w.scene.screen, &letter, 0x112233);
		drawn(&w, &letter);
		picture(&w, a);
		if (i > 30)
			picture(&w, b);
		step(&w, FRAME);
	}
	assert_int_equal(films(&w), 2);
	is_film(&w, a);
	assert_int_equal(display_video_films(w.video)[1].rect.x, b.x);
	assert_int_equal(display_video_films(w.video)[1].rect.h, b.h);
	/* One of them ends. */
	plays(&w, b, 40);
	assert_int_equal(films(&w), 1);
	assert_int_equal(film(&w)->rect.x, b.x);
	world_fini(&w);
}

/* From a window to the full screen and back. */
static void test_other_sizes(void **state)
{
	const struct display_rect small = {128, 128, 256, 192}, all = {0, 0, WIDTH, HEIGHT};
	struct world w;

	world_init(&w, 4);
	plays(&w, small, 40);
	is_film(&w, small);
	plays(&w, all, 40);
	is_film(&w, all);
	plays(&w, small, 60);
	is_film(&w, small);
	assert_int_equal(films(&w), 1);
	world_fini(&w);
}

/* What comes in its place and is no picture is no film, however quick it is. */
static void test_text_in_its_place(void **state)
{
	const struct display_rect r = {64, 64, 400, 300};
	struct world w;

	world_init(&w, 5);
	plays(&w, r, 40);
	is_film(&w, r);
	for (int i = 0; i < 40; i++) {
		scene_text(&w.scene, &r, true);
		drawn(&w, &r);
		step(&w, FRAME);
	}
	assert_null(film(&w));
	world_fini(&w);
}

/* ---- no films -------------------------------------------------------------------------------- */

static void test_terminal(void **state)
{
	const struct display_rect r = {16, 16, 560, 416}, line = {16, 420, 560, 12},
				  stays = {16, 16, 560, 404};
	struct world w;

	world_init(&w, 6);
	for (int i = 0; i < 120; i++) { /* scrolled by a line */
		display_frame_move(&w.scene.screen, &stays, 16, 28);
		scene_text(&w.scene, &line, i % 2);
		drawn(&w, &r);
		step(&w, 20 * MS);
	}
	for (int i = 0; i < 120; i++) { /* all of it is new */
		scene_text(&w.scene, &r, i % 2);
		drawn(&w, &r);
		step(&w, 20 * MS);
	}
	assert_int_equal(w.others, 0);
	world_fini(&w);
}

static void test_cursor_and_spinner(void **state)
{
	const struct display_rect cursor = {300, 200, 9, 16}, spinner = {400, 100, 48, 48};
	struct world w;

	world_init(&w, 7);
	for (int i = 0; i < 200; i++) {
		if (i % 6 == 0) {
			display_frame_fill(&w.scene.screen, &cursor, i % 12 ? 0 : 0xffffff);
			drawn(&w, &cursor);
		}
		picture(&w, spinner);
		step(&w, 33 * MS);
	}
	assert_int_equal(w.others, 0);
	world_fini(&w);
}

/* A photograph is scrolled, and a window with one is dragged about over another one. */
static void test_moved(void **state)
{
	const struct display_rect all = {0, 0, WIDTH, HEIGHT}, stays = {0, 0, WIDTH, HEIGHT - 24},
				  comes = {0, HEIGHT - 24, WIDTH, 24};
	struct world w;

	world_init(&w, 8);
	picture(&w, all);
	step(&w, FRAME);
	for (int i = 0; i < 120; i++) {
		display_frame_move(&w.scene.screen, &stays, 0, 24);
		picture(&w, comes);
		drawn(&w, &all);
		step(&w, 25 * MS);
	}
	assert_int_equal(w.others, 0);
	for (int i = 0; i < 120; i++) {
		scene_do(&w.scene, SCENE_DRAG, &w.damage);
		step(&w, 25 * MS);
	}
	assert_int_equal(w.others, 0);
	world_fini(&w);
}

/* Pictures that change every now and then: a slide show, pages that are leafed through. */
static void test_slides(void **state)
{
	const struct display_rect all = {0, 0, WIDTH, HEIGHT};
	struct world w;

	world_init(&w, 9);
	for (int i = 0; i < 60; i++) {
		picture(&w, all);
		step(&w, 250 * MS);
	}
	assert_int_equal(w.others, 0);
	world_fini(&w);
}

/* ---- anything -------------------------------------------------------------------------------- */

/*
 * Any mix and any clock: films lie on the screen, apart from each other, and the region is theirs.
 */
static void test_anything(void **state)
{
	struct world w;

	world_init(&w, 11);
	for (int i = 0; i < 700; i++) {
		static struct display_rect r = {0, 0, 300, 200};
		const struct display_video_film *f = display_video_films(w.video);
		long sum = 0, area = 0;
		int n;
		const pixman_box32_t *b;

		if (scene_random(&w.scene, 50) == 0)
			r = scene_rect(&w.scene);
		if (scene_random(&w.scene, 4))
			picture(&w, r);
		if (scene_random(&w.scene, 8) == 0)
			scene_do(&w.scene, scene_random(&w.scene, SCENE_STEPS), &w.damage);
		step(&w, (uint64_t)scene_random(&w.scene, scene_random(&w.scene, 40) ? 90 : 3000) *
				 MS);
		for (int k = 0; k < DISPLAY_VIDEO_FILMS; k++) {
			if (!f[k].id)
				continue;
			assert_true(display_rect_within(&f[k].rect, WIDTH, HEIGHT));
			sum += display_rect_area(&f[k].rect);
		}
		b = pixman_region32_rectangles(display_video_region(w.video), &n);
		for (int k = 0; k < n; k++) {
			const struct display_rect part = display_rect_of(&b[k]);

			area += display_rect_area(&part);
		}
		assert_int_equal(area, sum);
	}
	assert_true(w.begun > 1);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_other_sizes),
		cmocka_unit_test(test_text_in_its_place),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_cursor_and_spinner),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_slides),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
