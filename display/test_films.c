// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Films through the server: who is sent them as such and who is not, and that all have exactly the
 * picture when a film rests.
 */
#include <event2/event.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/memory.h"
#include "display/reel.h"
#include "display/server.h"
#include "display/test_regions.h"
#include "display/test_world.h"
#include "proto/display.pb-c.h"

#define WIDTH  320
#define HEIGHT 240
#define BOTH   (1u << DISPLAY_VIDEO_I420 | 1u << DISPLAY_VIDEO_MJPEG)
#define VP8    (1u << DISPLAY_VIDEO_VP8)

struct client {
	int fd;
	struct display_decoder *decoder;
	uint32_t serial, answered;
	unsigned frames[3], other; /* by format; outside of `film` */
	unsigned updated;
	unsigned offered; /* in WELCOME */
	int small;	  /* pixels of the smallest frame */
	struct display_rect film;
};

/* ---- viewers --------------------------------------------------------------------------------- */

static void on_message(void *ctx, const struct display_message *m)
{
	struct client *c = ctx;

	if (m->type == DISPLAY_MARK || m->type == DISPLAY_UPDATED)
		c->serial = m->serial;
	c->updated += m->type == DISPLAY_UPDATED;
	if (m->type == DISPLAY_WELCOME) {
		Pb__DisplayWelcome *w =
			pb__display_welcome__unpack(NULL, m->data.len, m->data.data);

		assert_non_null(w);
		c->offered = w->video;
		pb__display_welcome__free_unpacked(w, NULL);
	}
	if (m->type != DISPLAY_VIDEO)
		return;
	assert_true(m->video.format <= DISPLAY_VIDEO_VP8);
	c->frames[m->video.format]++;
	c->film = m->rect;
	if (!c->small || m->video.fw * m->video.fh < c->small)
		c->small = m->video.fw * m->video.fh;
}

static const struct display_decoder_ops ops = {.message = on_message};

static void connect_client(
	struct world *w, struct client *c, unsigned video, unsigned quality, unsigned max_width)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;

	*c = (struct client){0};
	assert_int_equal(display_decoder_new(&ops, c, &c->decoder), 0);
	h.codecs = DISPLAY_DECODER_CODECS;
	h.video = video;
	h.quality = quality;
	h.max_width = max_width;
	c->fd = world_connect(w, &h);
}

static void client_fini(struct client *c)
{
	display_decoder_free(c->decoder);
	close_fd(c->fd);
}

static bool read_some(struct client *c, size_t max)
{
	static uint8_t bytes[65536];
	ssize_t n = recv(c->fd, bytes, MIN(max, sizeof(bytes)), MSG_DONTWAIT);
	struct err e = {0};

	assert_int_not_equal(n, 0);
	if (n < 0)
		return false;
	if (display_decoder_feed(c->decoder, bytes, (size_t)n, &e) < 0)
		fail_msg("%s", e.msg);
	if (c->serial != c->answered) {
		const struct display_message ack = {.type = DISPLAY_ACK, .serial = c->serial};
		_cleanup_buf_ struct buf b = BUF_INIT;

		display_wire_put(&b, &ack);
		assert_int_equal(io_write_full(c->fd, b.data, b.len), 0);
		c->answered = c->serial;
	}
	return true;
}

/* Until the server has seen what has been drawn. */
static void look(struct world *w)
{
	do
		event_base_loop(w->base, EVLOOP_ONCE | (w->source->told ? 0 : EVLOOP_NONBLOCK));
	while (w->source->told);
}

static void turn(struct world *w, struct client *c, size_t n)
{
	look(w);
	for (size_t i = 0; i < n; i++)
		while (read_some(&c[i], 65536))
			;
}

static bool shows(const struct client *c, const struct world *w)
{
	return display_frame_same(display_decoder_frame(c->decoder), &w->source->picture);
}

/* Until the viewer has exactly the picture, whatever it takes; the film rests. */
static void settle(struct world *w, struct client *c)
{
	while (!shows(c, w)) {
		world_now_ns += 40000000;
		turn(w, c, 1);
	}
}

/* Another picture, of a wave. */
static void draw(struct world *w, const struct display_rect *r)
{
	const uint32_t phase = world_random(w);

	world_now_ns += 40000000;
	for (int y = 0; y < r->h; y++)
		for (int x = 0; x < r->w; x++)
			*display_frame_at(&w->source->picture, r->x + x, r->y + y) =
				((uint32_t)x * 2 + phase) % 256 << 16 |
				((uint32_t)y * 2 + phase / 256) % 256 << 8 |
				((uint32_t)(x + y) + world_random(w) % 4) % 256;
	display_memory_damage(w->source, r);
}

/* The film plays until @cond. */
#define PLAY_UNTIL(w, c, n, r, cond) \
	do {                         \
		draw(w, r);          \
		turn(w, c, n);       \
	} while (!(cond))

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct display_rect place = {40, 30, 200, 160};

/* One of each sort, all at once. */
static void test_formats(void **state)
{
	enum { MJPEG, I420, EXACT, NONE, SMALL, N };
	struct client c[N];
	struct world w;

	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	connect_client(&w, &c[MJPEG], BOTH | 1u << 3, 70, 0);
	connect_client(&w, &c[I420], 1u << DISPLAY_VIDEO_I420, 70, 0);
	connect_client(&w, &c[EXACT], BOTH, 0, 0);
	connect_client(&w, &c[NONE], 0, 70, 0);
	connect_client(&w, &c[SMALL], BOTH, 70, WIDTH / 2);
	PLAY_UNTIL(&w, c, N, &place,
		c[MJPEG].frames[1] > 20 && c[I420].frames[0] > 20 && c[SMALL].frames[1] > 20);
	assert_int_equal(c[MJPEG].offered, BOTH);
	assert_int_equal(c[EXACT].offered, 0);
	assert_int_equal(c[MJPEG].frames[0], 0);
	assert_int_equal(c[I420].frames[1], 0);
	assert_int_equal(c[EXACT].frames[0] + c[EXACT].frames[1], 0);
	assert_int_equal(c[NONE].frames[0] + c[NONE].frames[1], 0);
	assert_memory_equal(&c[MJPEG].film, &place, sizeof(place));
	assert_true(c[SMALL].film.w <= place.w / 2 + 1);
	for (int i = 0; i < SMALL; i++)
		settle(&w, &c[i]);
	/* Once more; what is there is the same, and a viewer that comes later is shown it, too. */
	client_fini(&c[EXACT]);
	PLAY_UNTIL(&w, c, 2, &place, c[MJPEG].frames[1] > 60);
	connect_client(&w, &c[EXACT], BOTH, 50, 0);
	PLAY_UNTIL(&w, c, N, &place, c[EXACT].frames[1] > 5);
	for (int i = 0; i < SMALL; i++)
		settle(&w, &c[i]);
	for (int i = 0; i < N; i++)
		client_fini(&c[i]);
	world_fini(&w);
}

static double off(const struct client *c, const struct world *w, const struct display_rect *r)
{
	const struct display_frame *f = display_decoder_frame(c->decoder);
	double sum = 0;

	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++) {
			const uint32_t a = *display_frame_at(f, x, y),
				       b = *display_frame_at(&w->source->picture, x, y);

			sum += abs((int)(a >> 8 & 255) - (int)(b >> 8 & 255));
		}
	return sum / (double)display_rect_area(r);
}

/*
 * VP8 is for who names it: at once beside I420, on a slow line beside JPEG.  Viewers come, are slow
 * and are resized in between, and each frame that comes can be drawn.
 */
static void test_vp8(void **state)
{
	enum { ONLY, SLOW, LATE, BARE, EXACT, N };
	struct client c[N];
	struct world w;

	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	connect_client(&w, &c[ONLY], VP8 | 1u << DISPLAY_VIDEO_I420, 80, 0);
	connect_client(&w, &c[SLOW], VP8 | BOTH, 80, 0);
	connect_client(&w, &c[LATE], VP8 | 1u << DISPLAY_VIDEO_I420, 80, WIDTH / 2);
	connect_client(&w, &c[BARE], VP8, 80, 0);
	connect_client(&w, &c[EXACT], VP8 | BOTH, 0, 0);
	PLAY_UNTIL(&w, c, N, &place, c[ONLY].frames[2] > 10 && c[LATE].frames[2] > 10);
	assert_int_equal(c[SLOW].offered, BOTH | VP8);
	assert_int_equal(c[BARE].offered, 0);
	assert_int_equal(c[ONLY].frames[0] + c[ONLY].frames[1], 0);
	assert_int_equal(c[SLOW].frames[2], 0);
	assert_int_equal(c[BARE].frames[2] + c[EXACT].frames[2], 0);
	/* Another one comes, when its stream has long begun for others. */
	client_fini(&c[LATE]);
	connect_client(&w, &c[LATE], VP8 | 1u << DISPLAY_VIDEO_I420, 80, 0);
	PLAY_UNTIL(&w, c, N, &place, c[LATE].frames[2] > 10);
	/* One doesn't read all the time: it misses frames, and what it gets is right. */
	for (int i = 0; i < 40; i++) {
		draw(&w, &place);
		look(&w);
		if (i % 3 == 0)
			read_some(&c[ONLY], 3000);
		for (int k = LATE; k < N; k++)
			while (read_some(&c[k], 65536))
				;
	}
	do
		turn(&w, c, N);
	while (off(&c[ONLY], &w, &place) > 30 || off(&c[LATE], &w, &place) > 30);
	for (int i = 0; i < N; i++)
		settle(&w, &c[i]);
	assert_int_equal(display_memory_resize(w.source, WIDTH + 16, HEIGHT), 0);
	PLAY_UNTIL(&w, c, N, &place, c[ONLY].frames[2] > 80);
	for (int i = 0; i < N; i++)
		settle(&w, &c[i]);
	for (int i = 0; i < N; i++)
		client_fini(&c[i]);
	world_fini(&w);
}

/* Other things are drawn, moved and asked for meanwhile, within the film too, and it is resized. */
static void test_exact_in_the_end(void **state)
{
	struct client c[2];
	struct world w;

	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	connect_client(&w, &c[0], BOTH, 60, 0);
	connect_client(&w, &c[1], 0, 0, 0);
	for (int round = 0; round < 3; round++) {
		unsigned frames = c[0].frames[1];

		PLAY_UNTIL(&w, c, 2, &place, c[0].frames[1] > frames + 5);
		for (int i = 0; i < 40; i++) {
			struct display_rect r = {(int)(world_random(&w) % 250),
				(int)(world_random(&w) % 200), (int)(world_random(&w) % 70) + 1,
				(int)(world_random(&w) % 40) + 1};
			struct display_message m = {.type = DISPLAY_REFRESH, .rect = r};
			_cleanup_buf_ struct buf b = BUF_INIT;

			draw(&w, &place);
			if (i % 3 == 0)
				display_frame_move(&w.source->picture, &r,
					(int)(world_random(&w) % 250),
					(int)(world_random(&w) % 200));
			else
				display_frame_fill(
					&w.source->picture, &r, world_random(&w) & DISPLAY_RGB);
			display_memory_damage(w.source, &r);
			display_wire_put(&b, &m);
			if (i % 5 == 0)
				assert_int_equal(io_write_full(c[0].fd, b.data, b.len), 0);
			look(&w);
			read_some(&c[0], 1 + world_random(&w) % 20000);
			read_some(&c[1], 65536);
		}
		settle(&w, &c[0]);
		settle(&w, &c[1]);
		assert_int_equal(display_memory_resize(w.source, WIDTH + round, HEIGHT), 0);
	}
	client_fini(&c[0]);
	client_fini(&c[1]);
	world_fini(&w);
}

/*
 * One that reads little is sent few frames, the newest, then smaller ones; what is typed comes all
 * the same.
 */
static void test_slow(void **state)
{
	const struct display_rect letter = {300, 5, 8, 8};
	struct client c[2];
	struct world w;
	unsigned typed = 0;

	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	connect_client(&w, &c[0], BOTH, 80, 0);
	connect_client(&w, &c[1], BOTH, 80, 0);
	PLAY_UNTIL(&w, c, 2, &place, c[0].frames[1] && c[1].frames[1]);
	for (int i = 0; i < 120; i++) {
		const uint32_t colour = (uint32_t)i * 77;

		draw(&w, &place);
		look(&w);
		while (read_some(&c[0], 65536))
			;
		if (i % 4)
			continue;
		display_frame_fill(&w.source->picture, &letter, colour);
		display_memory_damage(w.source, &letter);
		read_some(&c[1], 1500);
		typed += *display_frame_at(display_decoder_frame(c[1].decoder), 300, 5) != 0;
	}
	assert_true(c[1].frames[1] < c[0].frames[1]);
	assert_true(typed > 0);
	settle(&w, &c[0]);
	settle(&w, &c[1]);
	client_fini(&c[0]);
	client_fini(&c[1]);
	world_fini(&w);
}

/*
 * No memory for regions while a film begins and ends: those who look at it stay, and have the
 * picture exactly in the end.
 */
static void test_without_memory(void **state)
{
	struct client c[2];
	struct world w;

	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	connect_client(&w, &c[0], BOTH, 60, 0);
	connect_client(&w, &c[1], 0, 0, 0);
	PLAY_UNTIL(&w, c, 2, &place, shows(&c[1], &w));
	regions_fail = 1;
	PLAY_UNTIL(&w, c, 2, &place, c[0].frames[1] > 10);
	settle(&w, &c[0]);
	settle(&w, &c[1]);
	regions_fail = 0;
	PLAY_UNTIL(&w, c, 2, &place, c[0].frames[1] > 30);
	settle(&w, &c[0]);
	settle(&w, &c[1]);
	client_fini(&c[0]);
	client_fini(&c[1]);
	world_fini(&w);
}

static int memory_again(void **state)
{
	regions_fail = 0;
	return 0;
}

/* Of so many frames the last one is sent. */
static void frame(struct display_reel *r, struct display_reel_film *f, unsigned frames,
	size_t bytes, uint64_t window)
{
	f->newest += frames;
	display_reel_sent(r, f, bytes, window);
}

/* Levels: down where frames are too large for the line, up again where they are small. */
static void test_levels(void **state)
{
	struct display_video_film films[DISPLAY_VIDEO_FILMS] = {{.id = 7, .frame = 1}};
	struct display_rect rects[DISPLAY_VIDEO_FILMS] = {{0, 0, 800, 600}};
	struct display_reel_film *f;
	struct display_film_kind kind;
	struct display_rect held[DISPLAY_VIDEO_FILMS];
	pixman_region32_t lost;
	struct display_reel r;

	pixman_region32_init(&lost);
	display_reel_init(&r, BOTH, 75);
	assert_int_equal(display_reel_follow(&r, films, rects, held, &lost), 1);
	assert_memory_equal(&held[0], &rects[0], sizeof(held[0]));
	f = display_reel_next(&r);
	assert_non_null(f);
	kind = display_reel_kind(&r, f);
	assert_int_equal(kind.quality, 75);
	assert_int_equal(kind.shrink, 1);
	for (int i = 0; i < 100; i++) /* large, but none is left out */
		frame(&r, f, 1, 50000, 40000);
	assert_int_equal(display_reel_kind(&r, f).shrink, 1);
	for (int i = 0; i < 8; i++)
		frame(&r, f, 2, 50000, 40000);
	assert_int_equal(display_reel_kind(&r, f).shrink, 2);
	for (int i = 0; i < 100; i++) /* they fit, but better ones would not */
		frame(&r, f, 1, 15000, 40000);
	assert_int_equal(display_reel_kind(&r, f).shrink, 2);
	for (int i = 0; i < 100; i++)
		frame(&r, f, 1, 15000, 80000);
	assert_int_equal(display_reel_kind(&r, f).shrink, 1);
	for (int i = 0; i < 100; i++)
		frame(&r, f, 2, 50000, 1);
	assert_true(display_reel_kind(&r, f).shrink >= 4);
	assert_int_equal(r.owed, 50000);
	/* Who wants all there is has it whole where there is room for that. */
	display_reel_init(&r, BOTH, 100);
	display_reel_follow(&r, films, rects, held, &lost);
	f = display_reel_next(&r);
	assert_int_equal(display_reel_kind(&r, f).format, DISPLAY_VIDEO_I420);
	for (int i = 0; i < 8; i++)
		frame(&r, f, 2, 720000, 500000);
	assert_int_equal(display_reel_kind(&r, f).format, DISPLAY_VIDEO_MJPEG);
	assert_int_equal(display_reel_kind(&r, f).shrink, 1);
	for (int i = 0; i < 100; i++)
		frame(&r, f, 1, 50000, 700000);
	assert_int_equal(display_reel_kind(&r, f).format, DISPLAY_VIDEO_MJPEG);
	for (int i = 0; i < 100; i++)
		frame(&r, f, 1, 50000, 800000);
	assert_int_equal(display_reel_kind(&r, f).format, DISPLAY_VIDEO_I420);
	/* A last frame that was not sent is told when the film has ended. */
	films[0].frame = f->newest + 1;
	display_reel_note(&r, films);
	films[0].id = 0;
	assert_int_equal(display_reel_follow(&r, films, rects, held, &lost), 0);
	assert_int_equal(pixman_region32_extents(&lost)->x2, 800);
	assert_null(display_reel_next(&r));
	/* None without a quality, and no more than two megapixels of the largest screen. */
	films[0].id = 8;
	rects[0] = (struct display_rect){0, 0, 8192, 8192};
	display_reel_follow(&r, films, rects, held, &lost);
	kind = display_reel_kind(&r, display_reel_next(&r));
	assert_int_equal(kind.shrink, 8);
	display_reel_init(&r, BOTH, 0);
	assert_false(display_reel_shows(&r));
	pixman_region32_fini(&lost);
}

/* Behind a JPEG that is too large: VP8, with ever fewer bits, then smaller. */
static void test_vp8_levels(void **state)
{
	const struct display_video_film films[DISPLAY_VIDEO_FILMS] = {{.id = 7, .frame = 1}};
	const struct display_rect rects[DISPLAY_VIDEO_FILMS] = {{0, 0, 800, 600}};
	struct display_film_kind kind = {0};
	struct display_reel_film *f;
	struct display_rect held[DISPLAY_VIDEO_FILMS];
	pixman_region32_t lost;
	struct display_reel r;
	int kbit = INT_MAX;

	pixman_region32_init(&lost);
	display_reel_init(&r, BOTH | VP8, 80);
	display_reel_follow(&r, films, rects, held, &lost);
	f = display_reel_next(&r);
	assert_int_equal(display_reel_kind(&r, f).format, DISPLAY_VIDEO_MJPEG);
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 8; k++)
			frame(&r, f, 2, 50000, 1);
		kind = display_reel_kind(&r, f);
		assert_int_equal(kind.format, DISPLAY_VIDEO_VP8);
		assert_int_equal(kind.instead, DISPLAY_VIDEO_MJPEG);
		assert_true(kind.kbit > 0 && kind.kbit < kbit);
		assert_true(i > 1 || kind.shrink == 1);
		kbit = kind.kbit;
	}
	assert_true(kind.shrink > 1);
	for (int i = 0; i < 100; i++)
		frame(&r, f, 1, 500, 80000);
	assert_true(display_reel_kind(&r, f).kbit > kbit);
	/* Beside I420 it is what a viewer has at once; alone it is nothing. */
	display_reel_init(&r, 1u << DISPLAY_VIDEO_I420 | VP8, 80);
	display_reel_follow(&r, films, rects, held, &lost);
	kind = display_reel_kind(&r, display_reel_next(&r));
	assert_int_equal(kind.format, DISPLAY_VIDEO_VP8);
	assert_int_equal(kind.instead, DISPLAY_VIDEO_I420);
	display_reel_init(&r, VP8, 80);
	assert_false(display_reel_shows(&r));
	pixman_region32_fini(&lost);
}

/* After a longer time a better level is tried anyhow; in vain, and then it takes longer still. */
static void test_patience(void **state)
{
	const struct display_video_film films[DISPLAY_VIDEO_FILMS] = {{.id = 7, .frame = 1}};
	const struct display_rect rects[DISPLAY_VIDEO_FILMS] = {{0, 0, 800, 600}};
	struct display_reel_film *f;
	struct display_rect held[DISPLAY_VIDEO_FILMS];
	pixman_region32_t lost;
	struct display_reel r;

	pixman_region32_init(&lost);
	display_reel_init(&r, BOTH, 75);
	display_reel_follow(&r, films, rects, held, &lost);
	f = display_reel_next(&r);
	for (int i = 0; i < 8; i++)
		frame(&r, f, 2, 50000, 40000);
	for (int i = 0; i < 480; i++) {
		assert_int_equal(display_reel_kind(&r, f).shrink, 2);
		frame(&r, f, 1, 15000, 40000);
	}
	assert_int_equal(display_reel_kind(&r, f).shrink, 1);
	for (int i = 0; i < 8; i++)
		frame(&r, f, 2, 50000, 40000);
	for (int i = 0; i < 960; i++) {
		assert_int_equal(display_reel_kind(&r, f).shrink, 2);
		frame(&r, f, 1, 15000, 40000);
	}
	assert_int_equal(display_reel_kind(&r, f).shrink, 1);
	pixman_region32_fini(&lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_vp8),
		cmocka_unit_test(test_exact_in_the_end),
		cmocka_unit_test(test_slow),
		cmocka_unit_test_teardown(test_without_memory, memory_again),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_vp8_levels),
		cmocka_unit_test(test_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
