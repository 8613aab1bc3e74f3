// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A model viewer, which executes commands on pixels by their meaning, without any encoding: what
 * is to be true of it at every moment and in the end, over random frames.
 */
#include "display/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/test_regions.h"

#define WIDTH  200
#define HEIGHT 120

struct model {
	struct display_frame frame, viewer;
	struct display_frame kept[2]; /* by the server, by the viewer */
	bool keeps;
	struct display_queue *q;
	uint64_t seed;
	uint64_t bytes; /* sent */
};

/* One of so many entries, and of what else the queue wants, can't be had; 0: all can. */
static unsigned fail_calloc;

void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	static unsigned seed;

	seed = seed * 1664525 + 1013904223;
	return fail_calloc && (seed >> 8) % fail_calloc == 0 ? NULL : __real_calloc(n, size);
}

static uint32_t rnd(struct model *m, uint32_t below)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->seed >> 33) % below;
}

static void model_init(struct model *m, uint64_t seed)
{
	*m = (struct model){.seed = seed * 77 + 1};
	assert_int_equal(display_frame_init(&m->frame, WIDTH, HEIGHT), 0);
	assert_int_equal(display_frame_init(&m->viewer, WIDTH, HEIGHT), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(display_frame_init(&m->kept[i], WIDTH, HEIGHT), 0);
	m->q = display_queue_new(WIDTH, HEIGHT);
	assert_non_null(m->q);
	m->keeps = seed % 4 > 0;
	if (m->keeps)
		display_queue_keeps(m->q);
}

static void model_fini(struct model *m)
{
	display_queue_destroy(m->q);
	display_frame_fini(&m->frame);
	display_frame_fini(&m->viewer);
	for (int i = 0; i < 2; i++)
		display_frame_fini(&m->kept[i]);
}

static size_t size_of(const struct display_command *c)
{
	if (display_command_is_first(c) || c->type == DISPLAY_SFILL)
		return 20;
	return 20 + (size_t)display_rect_area(&c->rect) * 820 / 1024;
}

/* What a viewer would do; sent lossily, the lowest bit is wrong. */
static void execute(struct model *m, const struct display_command *c, bool lossy)
{
	assert_true(display_rect_within(&c->rect, WIDTH, HEIGHT));
	switch (c->type) {
	case DISPLAY_COPY:
		display_frame_move(&m->viewer, &c->rect, c->sx, c->sy);
		break;
	case DISPLAY_KEEP:
		assert_true(m->keeps);
		display_frame_copy(&m->kept[1], &m->viewer, &c->rect);
		break;
	case DISPLAY_UNCOVER:
		assert_true(m->keeps);
		display_frame_copy(&m->viewer, &m->kept[1], &c->rect);
		break;
	case DISPLAY_SFILL:
		display_frame_fill(&m->viewer, &c->rect, c->colour[0]);
		break;
	default:
		display_frame_copy(&m->viewer, &m->frame, &c->rect);
	}
	if (!lossy)
		return;
	for (int y = 0; y < c->rect.h; y++)
		for (int x = 0; x < c->rect.w; x++)
			*display_frame_at(&m->viewer, c->rect.x + x, c->rect.y + y) ^= 1;
}

/* Sends one; false if there was none. */
static bool send_one(struct model *m, size_t room, bool spare)
{
	struct display_command c;
	enum display_queue_result r = display_queue_next(m->q, room, spare, &c);
	bool lossy = r == DISPLAY_QUEUE_COMMAND && c.type == DISPLAY_RAW &&
		     c.hint == DISPLAY_SMOOTH && rnd(m, 4) > 0;

	if (r == DISPLAY_QUEUE_NONE)
		return false;
	execute(m, &c, lossy);
	m->bytes += size_of(&c);
	display_queue_sent(m->q, &c, size_of(&c), lossy);
	return true;
}

static void drain(struct model *m, bool spare)
{
	for (int n = 0; send_one(m, 5000, spare); n++)
		assert_true(n < 100000);
	assert_true(display_queue_empty(m->q));
}

static struct display_rect random_rect(struct model *m)
{
	struct display_rect r = {.w = 1 + (int)rnd(m, rnd(m, 3) ? 40 : WIDTH),
		.h = 1 + (int)rnd(m, rnd(m, 3) ? 30 : HEIGHT)};

	r.x = (int)rnd(m, (uint32_t)(WIDTH - r.w + 1));
	r.y = (int)rnd(m, (uint32_t)(HEIGHT - r.h + 1));
	return r;
}

static struct display_command draw(struct model *m, const struct display_rect *r)
{
	struct display_command c = {.type = DISPLAY_RAW, .rect = *r, .hint = rnd(m, 3)};

	if (rnd(m, 3) == 0) {
		c.type = DISPLAY_SFILL;
		c.colour[0] = rnd(m, 1 << 24) & ~1u;
		display_frame_fill(&m->frame, r, c.colour[0]);
		return c;
	}
	for (int y = 0; y < r->h; y++)
		for (int x = 0; x < r->w; x++)
			*display_frame_at(&m->frame, r->x + x, r->y + y) = rnd(m, 1 << 24) & ~1u;
	return c;
}

/* What is there is kept. */
static struct display_command keep(struct model *m)
{
	const struct display_rect r = random_rect(m);

	display_frame_copy(&m->kept[0], &m->frame, &r);
	return (struct display_command){.type = DISPLAY_KEEP, .rect = r};
}

/* What was kept is there again. */
static struct display_command uncover(struct model *m)
{
	const struct display_rect r = random_rect(m);

	display_frame_copy(&m->frame, &m->kept[0], &r);
	return (struct display_command){.type = DISPLAY_UNCOVER, .rect = r};
}

/* What the server has kept is something else. */
static void keep_anew(struct model *m)
{
	const struct display_rect all = {0, 0, WIDTH, HEIGHT};

	display_frame_fill(&m->kept[0], &all, rnd(m, 1 << 24) & ~1u);
	display_queue_forget_kept(m->q);
}

/* One change of the frame, told to the queue: moved, drawn over, or drawn apart. */
static void change(struct model *m)
{
	struct display_command c[16];
	struct display_rect r = random_rect(m);
	size_t n = 0;

	if (rnd(m, 50) == 0)
		keep_anew(m);
	if (rnd(m, 3) == 0)
		c[n++] = keep(m);
	if (rnd(m, 3) == 0) {
		c[n] = (struct display_command){.type = DISPLAY_COPY,
			.rect = r,
			.sx = (int)rnd(m, (uint32_t)(WIDTH - r.w + 1)),
			.sy = (int)rnd(m, (uint32_t)(HEIGHT - r.h + 1))};
		display_frame_move(&m->frame, &r, c[n].sx, c[n].sy);
		n++;
	}
	if (rnd(m, 3) == 0)
		c[n++] = uncover(m);
	if (rnd(m, 3) == 0) {
		for (int i = 0; i < 12; i++, n++) {
			r = (struct display_rect){
				i * 16, (int)rnd(m, 50), 1 + (int)rnd(m, 16), 1 + (int)rnd(m, 60)};
			c[n] = draw(m, &r);
		}
	} else if (!n) {
		c[n++] = draw(m, &r);
	}
	display_queue_add(m->q, c, n);
}

static unsigned differing(const struct model *m, uint32_t mask)
{
	unsigned n = 0;

	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			n += ((*display_frame_at(&m->frame, x, y) ^
				      *display_frame_at(&m->viewer, x, y)) &
				     mask) != 0;
	return n;
}

/*
 * Whatever happens between: when nothing waits, the viewer has the frame, and then exactly; also
 * when one of @gaps pieces of memory can't be had.
 */
static void no_stale_pixel(unsigned gaps)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct model m;

		model_init(&m, seed);
		fail_calloc = gaps;
		for (int round = 0; round < 60; round++) {
			for (uint32_t n = rnd(&m, 6); n; n--)
				change(&m);
			if (rnd(&m, 5) == 0) {
				struct display_rect w = random_rect(&m);

				display_queue_watch(m.q, rnd(&m, 2) ? &w : NULL);
			}
			for (uint32_t n = rnd(&m, 12); n; n--)
				send_one(&m, rnd(&m, 3000), false);
			if (rnd(&m, 10) == 0) {
				drain(&m, false);
				assert_int_equal(differing(&m, ~1u), 0);
				assert_true(differing(&m, ~0u) <= display_queue_state(m.q).lossy);
			}
			if (rnd(&m, 15) == 0) {
				drain(&m, true);
				assert_int_equal(differing(&m, ~0u), 0);
				assert_int_equal(display_queue_state(m.q).lossy, 0);
			}
		}
		drain(&m, true);
		assert_int_equal(differing(&m, ~0u), 0);
		fail_calloc = 0;
		model_fini(&m);
	}
}

static void test_no_stale_pixel(void **state)
{
	no_stale_pixel(0);
}

/* Something of it, and any. */
static void test_without_memory(void **state)
{
	no_stale_pixel(3);
	no_stale_pixel(1);
}

/* Nor for regions, some or any. */
static void test_without_regions(void **state)
{
	regions_fail = 3;
	no_stale_pixel(0);
	regions_fail = 1;
	no_stale_pixel(0);
	no_stale_pixel(1);
}

static int memory_again(void **state)
{
	fail_calloc = 0;
	regions_fail = 0;
	return 0;
}

/*
 * Frames of a film in @r, which the queue is not told of; `*ret_open`: the viewer lacks the newest.
 */
static void play(struct model *m, const struct display_rect *r, bool *ret_open)
{
	const struct display_command frame = {.type = DISPLAY_RAW, .rect = *r};

	if (rnd(m, 3)) {
		draw(m, r);
		*ret_open = true;
	}
	if (rnd(m, 2) && !display_queue_copies(m->q)) {
		execute(m, &frame, true);
		display_queue_sent_apart(m->q, r, 1000);
		*ret_open = false;
	}
}

/* Films come and go, whatever is copied out of them: at last the viewer has the frame exactly. */
static void test_held(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct model m;

		model_init(&m, seed);
		for (int film = 0; film < 12; film++) {
			const struct display_rect r = random_rect(&m);
			const struct display_command all = {.type = DISPLAY_RAW, .rect = r};
			bool open = true;

			display_queue_hold(m.q, &r, 1);
			for (uint32_t n = rnd(&m, 20); n; n--) {
				play(&m, &r, &open);
				if (rnd(&m, 3) == 0)
					change(&m);
				for (uint32_t k = rnd(&m, 4); k; k--)
					send_one(&m, rnd(&m, 3000), rnd(&m, 2));
			}
			drain(&m, true); /* it is not refreshed while it plays */
			display_queue_hold(m.q, NULL, 0);
			if (open)
				display_queue_add(m.q, &all, 1);
			if (rnd(&m, 2)) {
				drain(&m, true);
				assert_int_equal(differing(&m, ~0u), 0);
			}
		}
		drain(&m, true);
		assert_int_equal(differing(&m, ~0u), 0);
		model_fini(&m);
	}
}

static struct display_command raw(int x, int y, int w, int h)
{
	return (struct display_command){.type = DISPLAY_RAW, .rect = {x, y, w, h}};
}

/* What was begun in the middle is not sent twice from there for want of memory. */
static void test_begun_without_regions(void **state)
{
	const struct display_command all = raw(0, 0, WIDTH, HEIGHT);
	struct display_queue *q = display_queue_new(WIDTH, HEIGHT);
	struct display_command c;
	long sum = 0;

	display_queue_add(q, &all, 1);
	display_queue_next(q, 2000, false, &c);
	assert_true(c.rect.h < HEIGHT / 3);
	display_queue_add(q, &all, 1);
	regions_fail = 1;
	while (display_queue_next(q, 2000, false, &c) != DISPLAY_QUEUE_NONE) {
		sum += display_rect_area(&c.rect);
		assert_true(sum < WIDTH * HEIGHT * 3 / 2);
	}
	assert_true(sum >= WIDTH * HEIGHT);
	display_queue_destroy(q);
}

/* What is between films is refreshed while they play, they are not, and all of it once they end. */
static void test_between_films(void **state)
{
	const struct display_rect films[] = {{0, 0, 80, 50}, {120, 60, 80, 60}};
	const struct display_command all = {
		.type = DISPLAY_RAW, .hint = DISPLAY_SMOOTH, .rect = {0, 0, WIDTH, HEIGHT}};
	struct display_command c;
	struct model m;

	model_init(&m, 4);
	draw(&m, &all.rect);
	execute(&m, &all, true);
	display_queue_sent(m.q, &all, size_of(&all), true);
	regions_fail = 1;
	display_queue_hold(m.q, films, ARRAY_SIZE(films));
	for (int i = 0; i < 10; i++)
		assert_int_equal(display_queue_next(m.q, 5000, true, &c), DISPLAY_QUEUE_NONE);
	regions_fail = 0;
	drain(&m, true);
	assert_int_equal(differing(&m, ~0u), 80 * 50 + 80 * 60);
	display_queue_hold(m.q, NULL, 0);
	drain(&m, true);
	assert_int_equal(differing(&m, ~0u), 0);
	model_fini(&m);
}

/* However many letters are drawn into what was sent lossily. */
static void test_bounded_lossy(void **state)
{
	struct model m;
	const struct display_command all = {
		.type = DISPLAY_RAW, .hint = DISPLAY_SMOOTH, .rect = {0, 0, WIDTH, HEIGHT}};

	model_init(&m, 6);
	draw(&m, &all.rect);
	execute(&m, &all, true);
	display_queue_sent(m.q, &all, size_of(&all), true);
	for (int i = 0; i < WIDTH * HEIGHT / 4; i++) {
		const struct display_rect r = {i % (WIDTH / 2) * 2, i / (WIDTH / 2) * 2, 1, 1};
		const struct display_command c = draw(&m, &r);

		display_queue_add(m.q, &c, 1);
		send_one(&m, 5000, false);
		assert_true(display_queue_state(m.q).lossy_rects <= 512);
	}
	drain(&m, true);
	assert_int_equal(differing(&m, ~0u), 0);
	model_fini(&m);
}

/* However long nobody reads. */
static void test_bounded(void **state)
{
	struct model m;

	model_init(&m, 5);
	for (int i = 0; i < 5000; i++) {
		struct display_queue_state s;

		change(&m);
		s = display_queue_state(m.q);
		assert_true(s.commands <= DISPLAY_QUEUE_COMMANDS);
		assert_true(s.copies <= DISPLAY_QUEUE_COPIES);
	}
	/* A region of very many rectangles, and very many commands. */
	for (int i = 0; i < WIDTH * HEIGHT / 2; i++) {
		struct display_rect r = {i % (WIDTH / 2) * 2, i / (WIDTH / 2) / 2 * 2, 1, 1};
		struct display_command c = draw(&m, &r);

		display_queue_add(m.q, &c, 1);
		assert_true(display_queue_state(m.q).commands <= DISPLAY_QUEUE_COMMANDS);
	}
	drain(&m, true);
	assert_int_equal(differing(&m, ~0u), 0);
	assert_true(m.bytes < 4 * WIDTH * HEIGHT);
	model_fini(&m);
}

/* The smallest first, of equals the oldest; what is cut goes by what is left of it. */
static void test_order(void **state)
{
	const struct display_command all[] = {
		raw(0, 0, 100, 100), raw(100, 0, 8, 8), raw(110, 0, 30, 30), raw(150, 0, 8, 8)};
	struct display_queue *q = display_queue_new(WIDTH, HEIGHT);
	struct display_command c;
	int left = 100;

	display_queue_add(q, all, ARRAY_SIZE(all));
	assert_int_equal(display_queue_next(q, 100000, false, &c), DISPLAY_QUEUE_COMMAND);
	assert_int_equal(c.rect.x, 100);
	display_queue_next(q, 100000, false, &c);
	assert_int_equal(c.rect.x, 150);
	display_queue_next(q, 100000, false, &c);
	assert_int_equal(c.rect.x, 110);
	/* Bands, until less is left of it than one that comes now. */
	while (left > 40) {
		display_queue_next(q, 1000, false, &c);
		assert_int_equal(c.rect.x, 0);
		assert_int_equal(c.rect.y, 100 - left);
		left -= c.rect.h;
		assert_true(c.rect.h >= 5 && c.rect.h <= 16);
	}
	c = raw(100, 0, 90, 90);
	display_queue_add(q, &c, 1);
	while (left > 0) {
		display_queue_next(q, 1000, false, &c);
		assert_int_equal(c.rect.x, 0);
		left -= c.rect.h;
	}
	display_queue_next(q, 1000, false, &c);
	assert_int_equal(c.rect.x, 100);
	display_queue_destroy(q);
}

static void test_watched(void **state)
{
	const struct display_command all[] = {raw(0, 0, 8, 8), raw(100, 50, 60, 60)};
	const struct display_rect near = {150, 60, 20, 20};
	struct display_queue *q = display_queue_new(WIDTH, HEIGHT);
	struct display_command c;

	display_queue_add(q, all, ARRAY_SIZE(all));
	display_queue_watch(q, &near);
	assert_int_equal(display_queue_next(q, 100000, false, &c), DISPLAY_QUEUE_COMMAND);
	assert_int_equal(c.rect.x, 100);
	display_queue_destroy(q);
}

/* A COPY goes first, and what its source lacks does not go by it. */
static void test_copy(void **state)
{
	struct display_command copy = {
		.type = DISPLAY_COPY, .rect = {0, 60, 100, 50}, .sx = 0, .sy = 10};
	const struct display_command under = raw(0, 10, 100, 20);
	struct display_queue *q = display_queue_new(WIDTH, HEIGHT);
	struct display_command c;

	display_queue_add(q, &under, 1);
	display_queue_add(q, &copy, 1);
	display_queue_next(q, 1, false, &c);
	assert_int_equal(c.type, DISPLAY_COPY);
	assert_int_equal(c.rect.y, 80);
	assert_int_equal(c.rect.h, 30);
	assert_int_equal(c.sy, 30);
	assert_int_equal(display_queue_state(q).pixels, 2 * 100 * 20);
	/* One whose source waits wholly is none. */
	copy = (struct display_command){
		.type = DISPLAY_COPY, .rect = {100, 0, 50, 20}, .sx = 0, .sy = 10};
	display_queue_add(q, &copy, 1);
	assert_int_equal(display_queue_state(q).copies, 0);
	assert_int_equal(display_queue_state(q).pixels, 2 * 100 * 20 + 50 * 20);
	display_queue_destroy(q);
}

static struct display_command place(enum display_type type, int x, int y, int w, int h)
{
	return (struct display_command){.type = type, .rect = {x, y, w, h}};
}

/* What was kept is brought back, but for what the viewer did not have then; others are sent it. */
static void test_uncover(void **state)
{
	const struct display_command waits = raw(0, 0, 50, 20),
				     keep = place(DISPLAY_KEEP, 0, 0, 50, 100),
				     back = place(DISPLAY_UNCOVER, 0, 0, 50, 100);

	for (int keeps = 0; keeps < 2; keeps++) {
		struct display_queue *q = display_queue_new(WIDTH, HEIGHT);
		struct display_command c;

		if (keeps)
			display_queue_keeps(q);
		display_queue_add(q, &waits, 1);
		display_queue_add(q, &keep, 1);
		display_queue_add(q, &back, 1);
		assert_int_equal(display_queue_state(q).copies, keeps ? 2 : 0);
		assert_int_equal(display_queue_state(q).pixels, keeps ? 50 * 20 : 50 * 100);
		for (int i = 0; keeps && i < 2; i++) {
			display_queue_next(q, 1, false, &c);
			assert_int_equal(c.type, i ? DISPLAY_UNCOVER : DISPLAY_KEEP);
			assert_int_equal(c.rect.y, i ? 20 : 0);
			assert_int_equal(c.rect.h, i ? 80 : 100);
		}
		display_queue_destroy(q);
	}
}

/* Small ones without end don't keep a large one back for ever. */
static void test_no_starvation(void **state)
{
	struct model m;
	const struct display_command large = raw(0, 20, WIDTH, HEIGHT - 20);
	const uint64_t size = size_of(&large);

	model_init(&m, 3);
	display_queue_add(m.q, &large, 1);
	for (long left = WIDTH * (HEIGHT - 20); left > 0;) {
		const struct display_command small = raw((int)rnd(&m, WIDTH - 20), 0, 20, 20);
		struct display_command c;

		display_queue_add(m.q, &small, 1);
		assert_int_equal(display_queue_next(m.q, 400, false, &c), DISPLAY_QUEUE_COMMAND);
		display_queue_sent(m.q, &c, size_of(&c), false);
		m.bytes += size_of(&c);
		left -= c.rect.y >= 20 ? display_rect_area(&c.rect) : 0;
		assert_true(m.bytes < 8 * size + (128 << 10));
	}
	assert_true(m.bytes > 4 * size);
	model_fini(&m);
}

/* All of a film on a slow line is sent, not its upper part again and again. */
static void test_film(void **state)
{
	const struct display_command frame = raw(0, 0, WIDTH, HEIGHT);
	int last[HEIGHT] = {0};
	struct display_queue *q = display_queue_new(WIDTH, HEIGHT);

	for (int now = 1; now < 200; now++) {
		struct display_command c;

		display_queue_add(q, &frame, 1);
		display_queue_next(q, 6000, false, &c);
		assert_true(c.rect.h < HEIGHT / 2);
		display_queue_sent(q, &c, size_of(&c), false);
		for (int y = c.rect.y; y < c.rect.y + c.rect.h; y++)
			last[y] = now;
		for (int y = 0; y < HEIGHT; y++)
			assert_true(now - last[y] <= 8);
	}
	display_queue_destroy(q);
}

#define JOBS 400

struct job {
	struct display_command command;
	uint64_t arrives, size, left, done; /* bytes */
};

/* Mean time in the queue, in bytes that a line has sent, by the queue or in order of arrival. */
static uint64_t mean_wait(struct job *jobs, bool fifo)
{
	struct display_queue *q = display_queue_new(20 * 64, 20 * 64);
	uint64_t now = 0, sum = 0;
	size_t next = 0, done = 0;

	while (done < JOBS) {
		struct display_command c;
		struct job *j;

		for (; next < JOBS && jobs[next].arrives <= now; next++)
			display_queue_add(q, &jobs[next].command, 1);
		if (done == next) {
			now = jobs[next].arrives;
			continue;
		}
		if (fifo) {
			c = jobs[done].command;
		} else {
			assert_int_equal(
				display_queue_next(q, 2048, false, &c), DISPLAY_QUEUE_COMMAND);
			display_queue_sent(q, &c, size_of(&c), false);
		}
		now += size_of(&c);
		j = &jobs[fifo ? done : (size_t)(c.rect.y / 64 * 20 + c.rect.x / 64)];
		j->left -= (uint64_t)display_rect_area(&c.rect);
		if (j->left == 0) {
			sum += now - j->arrives;
			done++;
		}
	}
	display_queue_destroy(q);
	return sum / JOBS;
}

/* Shortest remaining size first is not worse than first come, first served: on any trace here. */
static void test_mean_wait(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct job jobs[JOBS], again[JOBS];
		struct model m = {.seed = seed};
		uint64_t now = 0;

		for (int i = 0; i < JOBS; i++) {
			int side = rnd(&m, 4) ? 1 + (int)rnd(&m, 12) : 20 + (int)rnd(&m, 44);

			jobs[i] =
				(struct job){.command = raw(i % 20 * 64, i / 20 * 64, side, side)};
			now += rnd(&m, (uint32_t)(400 + seed * 40));
			jobs[i].arrives = now;
			jobs[i].left = (uint64_t)(side * side);
		}
		memcpy(again, jobs, sizeof(jobs));
		assert_true(mean_wait(jobs, false) <= mean_wait(again, true));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_stale_pixel),
		cmocka_unit_test_teardown(test_without_memory, memory_again),
		cmocka_unit_test_teardown(test_without_regions, memory_again),
		cmocka_unit_test_teardown(test_begun_without_regions, memory_again),
		cmocka_unit_test(test_held),
		cmocka_unit_test_teardown(test_between_films, memory_again),
		cmocka_unit_test(test_bounded_lossy),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_uncover),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_film),
		cmocka_unit_test(test_mean_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
