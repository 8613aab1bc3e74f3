// SPDX-License-Identifier: GPL-2.0-or-later
/* What has changed, what has moved, and which commands are made of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "display/change.h"
#include "display/classify.h"
#include "display/cover.h"
#include "display/move.h"
#include "display/test_scene.h"
#include "display/update.h"

#define WIDTH  640
#define HEIGHT 480

static const struct display_rect whole = {0, 0, WIDTH, HEIGHT};

static void region_of(pixman_region32_t *region, const struct display_rect *r)
{
	pixman_region32_init_rect(region, r->x, r->y, (unsigned)r->w, (unsigned)r->h);
}

static void assert_rect(const struct display_rect *r, int x, int y, int w, int h)
{
	if (r->x != x || r->y != y || r->w != w || r->h != h)
		fail_msg(
			"%dx%d at %d, %d, not %dx%d at %d, %d", r->w, r->h, r->x, r->y, w, h, x, y);
}

/* ---- changes --------------------------------------------------------------------------------- */

struct two {
	struct display_frame shadow, now;
	pixman_region32_t damage, changed;
};

static int setup_two(void **state)
{
	struct two *t = calloc(1, sizeof(*t));

	*state = t;
	pixman_region32_init(&t->changed);
	region_of(&t->damage, &whole);
	return display_frame_init(&t->shadow, WIDTH, HEIGHT) |
	       display_frame_init(&t->now, WIDTH, HEIGHT);
}

static int teardown_two(void **state)
{
	struct two *t = *state;

	pixman_region32_fini(&t->changed);
	pixman_region32_fini(&t->damage);
	display_frame_fini(&t->shadow);
	display_frame_fini(&t->now);
	free(t);
	return 0;
}

/* The rectangles that have changed. */
static int changes(struct two *t, const pixman_box32_t **ret_boxes)
{
	int n;

	display_change_find(&t->shadow, &t->now, &t->damage, &t->changed);
	*ret_boxes = pixman_region32_rectangles(&t->changed, &n);
	return n;
}

static void test_change_exact(void **state)
{
	struct two *t = *state;
	const pixman_box32_t *b;
	struct display_rect r;

	assert_int_equal(changes(t, &b), 0);
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		t->now.pixels[i] = 0xff000000; /* no colour */
	assert_int_equal(changes(t, &b), 0);
	display_frame_fill(&t->now, &(struct display_rect){101, 33, 7, 13}, 0x123456);
	assert_int_equal(changes(t, &b), 1);
	r = display_rect_of(b);
	assert_rect(&r, 101, 33, 7, 13);
	*display_frame_at(&t->now, WIDTH - 1, HEIGHT - 1) = 1;
	*display_frame_at(&t->now, 0, 0) = 1;
	assert_int_equal(changes(t, &b), 3);
	r = display_rect_of(&b[2]);
	assert_rect(&r, WIDTH - 1, HEIGHT - 1, 1, 1);
}

/* Only where there is damage, of which as much as is on the screen counts. */
static void test_change_damage(void **state)
{
	struct two *t = *state;
	const pixman_box32_t *b;
	struct display_rect r;

	display_frame_fill(&t->now, &whole, 1);
	pixman_region32_fini(&t->damage);
	region_of(&t->damage, &(struct display_rect){WIDTH - 5, -7, 100, 10});
	assert_int_equal(changes(t, &b), 1);
	r = display_rect_of(b);
	assert_rect(&r, WIDTH - 5, 0, 5, 3);
	pixman_region32_fini(&t->damage);
	region_of(&t->damage, &(struct display_rect){WIDTH, 0, 100, 10});
	assert_int_equal(changes(t, &b), 0);
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* A scene before and after, and what changed. */
struct moved {
	struct scene scene;
	struct display_frame before;
	pixman_region32_t changed;
	struct display_mover *mover;
};

static int setup_moved(void **state)
{
	struct moved *m = calloc(1, sizeof(*m));
	pixman_region32_t damage;

	*state = m;
	pixman_region32_init(&damage);
	pixman_region32_init(&m->changed);
	if (scene_init(&m->scene, WIDTH, HEIGHT, 5) < 0 ||
		display_frame_init(&m->before, WIDTH, HEIGHT) < 0 ||
		display_mover_new(&m->mover) < 0)
		return -1;
	scene_do(&m->scene, SCENE_PAGE, &damage);
	pixman_region32_fini(&damage);
	return 0;
}

static int teardown_moved(void **state)
{
	struct moved *m = *state;

	pixman_region32_fini(&m->changed);
	display_frame_fini(&m->before);
	display_mover_free(m->mover);
	scene_fini(&m->scene);
	free(m);
	return 0;
}

static void keep(struct moved *m)
{
	display_frame_copy(&m->before, &m->scene.screen, &whole);
}

static bool find(struct moved *m, const struct display_move *hint, struct display_move *ret_move)
{
	pixman_region32_t all;
	bool found;

	region_of(&all, &whole);
	display_change_find(&m->before, &m->scene.screen, &all, &m->changed);
	display_frame_copy(&m->scene.screen, &m->scene.screen, &whole);
	found = display_move_find(
		m->mover, &m->before, &m->scene.screen, &m->changed, hint, hint != NULL, ret_move);
	pixman_region32_fini(&all);
	return found;
}

static void test_scroll(void **state)
{
	struct display_rect area = {32, 40, 500, 400}, stays = {32, 53, 500, 387};
	struct moved *m = *state;
	struct display_move move;

	scene_text(&m->scene, &area, false);
	keep(m);
	display_frame_move(&m->scene.screen, &stays, 32, 40);
	assert_true(find(m, NULL, &move));
	assert_int_equal(move.sx - move.rect.x, 0);
	assert_int_equal(move.sy - move.rect.y, -13);
	assert_true(display_rect_area(&move.rect) >= 480L * 370);
}

static void test_drag(void **state)
{
	struct display_rect window = {60, 50, 301, 222}, new = {77, 41, 301, 222};
	struct moved *m = *state;
	struct display_move move;

	scene_text(&m->scene, &window, true);
	keep(m);
	display_frame_move(&m->scene.screen, &new, window.x, window.y);
	assert_true(find(m, NULL, &move));
	assert_int_equal(move.sx - move.rect.x, -17);
	assert_int_equal(move.sy - move.rect.y, 9);
	assert_true(display_rect_area(&move.rect) >= 301L * 222 * 95 / 100);
}

/* Most of what has changed is new, and a part of it has moved. */
static void test_part(void **state)
{
	struct display_rect window = {16, 16, 400, 150}, new = {37, 29, 400, 150};
	struct display_rect rest = {0, 200, WIDTH, 280};
	struct moved *m = *state;
	struct display_move move;

	scene_picture(&m->scene, &window);
	keep(m);
	display_frame_move(&m->scene.screen, &new, window.x, window.y);
	scene_picture(&m->scene, &rest);
	assert_true(find(m, NULL, &move));
	assert_int_equal(move.sx - move.rect.x, -21);
	assert_int_equal(move.sy - move.rect.y, -13);
	assert_true(display_rect_area(&move.rect) >= 400L * 150 * 95 / 100);
}

/* A picture of noise that has moved by so little and is so small that nothing but a hint tells. */
static void test_hint(void **state)
{
	struct display_rect window = {60, 50, 49, 49}, new = {61, 50, 49, 49};
	const struct display_move hint = {new, window.x, window.y};
	struct moved *m = *state;
	struct display_move move;

	scene_picture(&m->scene, &window);
	keep(m);
	display_frame_move(&m->scene.screen, &new, window.x, window.y);
	assert_true(find(m, &hint, &move));
	assert_int_equal(move.sx - move.rect.x, -1);
	assert_int_equal(move.sy - move.rect.y, 0);
}

/* Something that is new has come from nowhere, whatever a hint says. */
static void test_no_move(void **state)
{
	const struct display_move hint = {{100, 100, 300, 300}, 90, 90};
	struct display_rect area = {32, 40, 500, 400};
	struct moved *m = *state;
	struct display_move move;

	keep(m);
	scene_picture(&m->scene, &area);
	assert_false(find(m, &hint, &move));
	keep(m);
	assert_false(find(m, &hint, &move));
}

/* ---- commands -------------------------------------------------------------------------------- */

static struct display_commands commands_of(struct scene *s, const struct display_rect *r)
{
	struct display_commands l = {0};
	pixman_region32_t region;

	display_frame_copy(&s->screen, &s->screen, &whole);
	region_of(&region, r);
	assert_int_equal(display_classify(&s->screen, &region, &l), 0);
	pixman_region32_fini(&region);
	return l;
}

/* Everything in @r is one command of this type. */
static void assert_one(
	struct scene *s, struct display_rect r, enum display_type type, enum display_hint hint)
{
	struct display_commands l = commands_of(s, &r);

	assert_int_equal(l.n, 1);
	assert_int_equal(l.list[0].type, type);
	assert_int_equal(l.list[0].hint, hint);
	assert_rect(&l.list[0].rect, r.x, r.y, r.w, r.h);
	display_commands_fini(&l);
}

/* Every pixel one of @n colours. */
static void speckle(struct scene *s, int n)
{
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		s->screen.pixels[i] = (uint32_t)scene_random(s, n) * 0x0a0b0c;
}

static void test_sorts(void **state)
{
	struct moved *m = *state;
	struct scene *s = &m->scene;

	display_frame_fill(&s->screen, &whole, 0xeeeeec);
	assert_one(s, whole, DISPLAY_SFILL, 0);
	assert_one(s, (struct display_rect){31, 77, 2, 3}, DISPLAY_SFILL, 0);
	speckle(s, 2);
	assert_one(s, whole, DISPLAY_BITMAP, 0);
	assert_one(s, (struct display_rect){61, 20, 7, 13}, DISPLAY_BITMAP, 0);
	speckle(s, 16);
	assert_one(s, whole, DISPLAY_RAW, DISPLAY_FEW_COLOURS);
	scene_picture(s, &whole);
	assert_one(s, whole, DISPLAY_RAW, DISPLAY_SMOOTH);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			*display_frame_at(&s->screen, x, y) = (uint32_t)((x % 4) * (y % 8));
	assert_one(s, (struct display_rect){64, 64, 256, 128}, DISPLAY_PFILL, 0);
}

/* A picture in a page, and what is around it. */
static void test_page(void **state)
{
	struct display_rect picture = {320, 96, 192, 192};
	struct moved *m = *state;
	struct display_commands l;
	long smooth = 0, all = 0;

	display_frame_fill(&m->scene.screen, &whole, 0xffffff);
	scene_text(&m->scene, &(struct display_rect){0, 0, 300, HEIGHT}, true);
	scene_picture(&m->scene, &picture);
	l = commands_of(&m->scene, &whole);
	for (size_t i = 0; i < l.n; i++) {
		all += display_rect_area(&l.list[i].rect);
		if (l.list[i].type == DISPLAY_RAW && l.list[i].hint == DISPLAY_SMOOTH)
			smooth += display_rect_area(&l.list[i].rect);
	}
	assert_int_equal(all, (long)WIDTH * HEIGHT);
	assert_int_equal(smooth, display_rect_area(&picture));
	assert_in_range(l.n, 3, 8);
	display_commands_fini(&l);
}

/* However many windows come to one place at once, it is kept once. */
static void test_keep_once(void **state)
{
	const struct display_rect part = {100, 100, 50, 50};
	struct display_cover covers[16];
	struct display_commands l = {0};
	struct display_kept kept = {0};
	struct moved *m = *state;
	long all = 0;

	covers[0] = (struct display_cover){.now = part};
	for (size_t i = 1; i < ARRAY_SIZE(covers); i++)
		covers[i] = (struct display_cover){.now = whole};
	scene_picture(&m->scene, &whole);
	assert_int_equal(
		display_kept_keep(&kept, &m->scene.screen, covers, ARRAY_SIZE(covers), &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		assert_int_equal(l.list[i].type, DISPLAY_KEEP);
		all += display_rect_area(&l.list[i].rect);
	}
	assert_int_equal(all, (long)WIDTH * HEIGHT);
	assert_true(display_frame_same(&kept.frame, &m->scene.screen));
	display_commands_fini(&l);
	display_kept_fini(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_change_exact, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_change_damage, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_scroll, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_drag, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_part, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_hint, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_no_move, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_sorts, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_page, setup_moved, teardown_moved),
		cmocka_unit_test_setup_teardown(test_keep_once, setup_moved, teardown_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
