// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much memory a viewer takes at most: one who is sent lossless pictures in a stream of zstd
 * and a film over the whole screen as VP8.  Viewers are processes of their own, so that what
 * decoders take is not counted.
 */
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "display/decode.h"
#include "display/memory.h"
#include "display/server.h"
#include "display/test_world.h"
#include "proto/display.pb-c.h"

#define WIDTH	1024
#define HEIGHT	768
#define MOST_KB (32 << 10)
#define PAGES	20
#define FRAMES	60

struct viewer {
	pid_t pid;
	int told; /* a byte for each thing that it has seen */
	unsigned updated, frames;
};

/*
 * What this process has in memory that is its own: counted page by page, for the kernel's running
 * totals (RssAnon) are off by some pages for each processor.
 */
static long anonymous_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kb = -1;

	assert_non_null(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Anonymous: %ld kB", &kb) != 1)
			kb = -1;
	fclose(f);
	assert_true(kb > 0);
	return kb;
}

/* ---- a viewer, in its process ---------------------------------------------------------------- */

struct seen {
	int to;
	uint32_t serial;
};

static void on_message(void *ctx, const struct display_message *m)
{
	struct seen *s = ctx;
	char what = 0;

	if (m->type == DISPLAY_MARK || m->type == DISPLAY_UPDATED)
		s->serial = m->serial;
	if (m->type == DISPLAY_UPDATED)
		what = 'u';
	else if (m->type == DISPLAY_VIDEO && m->video.format == DISPLAY_VIDEO_VP8)
		what = 'v';
	if (what && io_write_full(s->to, &what, 1) < 0)
		_exit(1);
}

static const struct display_decoder_ops ops = {.message = on_message};

static void view(int fd, int to)
{
	static uint8_t bytes[65536];
	struct seen s = {.to = to};
	struct display_decoder *d;
	struct err e = {0};
	uint32_t answered = 0;
	ssize_t n;

	if (display_decoder_new(&ops, &s, &d) < 0)
		_exit(1);
	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		struct display_message ack = {.type = DISPLAY_ACK};

		if (display_decoder_feed(d, bytes, (size_t)n, &e) < 0)
			_exit(1);
		if (s.serial == answered)
			continue;
		ack.serial = answered = s.serial;
		display_wire_put(&b, &ack);
		if (io_write_full(fd, b.data, b.len) < 0)
			_exit(1);
	}
	_exit(0);
}

static void connect_viewer(struct world *w, struct viewer *v, unsigned video, unsigned codecs)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;
	int fd, told[2];

	*v = (struct viewer){0};
	assert_int_equal(pipe(told), 0);
	h.codecs = codecs;
	h.video = video;
	h.quality = video ? 80 : 0;
	fd = world_connect(w, &h);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (v->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		view(fd, told[1]);
	}
	close_fd(fd);
	close_fd(told[1]);
	v->told = told[0];
	io_set_nonblock(v->told, true);
}

static void viewer_fini(struct viewer *v)
{
	int status;

	kill(v->pid, SIGKILL);
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	assert_true(WIFSIGNALED(status)); /* it had found nothing wrong */
	close_fd(v->told);
}

static void listen_to(struct viewer *v)
{
	char what[64];
	ssize_t n = read(v->told, what, sizeof(what));

	assert_true(n != 0);
	for (ssize_t i = 0; i < n; i++) {
		v->updated += what[i] == 'u';
		v->frames += what[i] == 'v';
	}
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void fill(struct world *w, uint32_t (*pixel)(struct world *w, int x, int y))
{
	const struct display_frame *f = &w->source->picture;
	const struct display_rect all = {0, 0, f->width, f->height};

	world_now_ns += 40000000;
	for (int y = 0; y < f->height; y++)
		for (int x = 0; x < f->width; x++)
			*display_frame_at(f, x, y) = pixel(w, x, y);
	display_memory_damage(w->source, &all);
}

/* As pages with few colours, many and those of noise. */
static uint32_t few(struct world *w, int x, int y)
{
	return world_random(w) % 16 ? 0xffffff : world_random(w) % 200 * 0x010203;
}

static uint32_t noise(struct world *w, int x, int y)
{
	return world_random(w) & DISPLAY_RGB;
}

/* A picture in motion, with more detail than films mostly have. */
static uint32_t wave(struct world *w, int x, int y)
{
	const uint32_t phase = (uint32_t)(world_now_ns / 4000000);

	return ((uint32_t)x * 2 + phase) % 256 << 16 | ((uint32_t)y * 2 + phase) % 256 << 8 |
	       ((uint32_t)(x + y) + world_random(w) % 64) % 256;
}

static void run(struct world *w, struct viewer *v, size_t n)
{
	event_base_loop(w->base, EVLOOP_ONCE | (w->source->told ? 0 : EVLOOP_NONBLOCK));
	for (size_t i = 0; i < n; i++)
		listen_to(&v[i]);
}

/* So many pages, each of which all viewers see. */
static void show_pages(struct world *w, struct viewer *v, size_t n)
{
	for (int i = 0; i < PAGES; i++) {
		world_now_ns += 2000000000;
		for (size_t k = 0; k < n; k++)
			v[k].updated = 0;
		fill(w, i % 3 == 2 ? noise : few);
		for (size_t k = 0; k < n; k++)
			while (!v[k].updated)
				run(w, v, n);
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_memory_of_a_viewer(void **state)
{
	struct world w;
	struct viewer v[2];
	long before, pages, film;

	/* What is counted is not to depend on how large the machine's pages are. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	world_init(&w, WIDTH, HEIGHT);
	world_own_clock(&w);
	/* The screen itself is there for the first one. */
	connect_viewer(&w, &v[0], 0, 1u << DISPLAY_CODEC_NONE);
	show_pages(&w, v, 1);
	before = anonymous_kb();
	connect_viewer(&w, &v[1], 1u << DISPLAY_VIDEO_I420 | 1u << DISPLAY_VIDEO_VP8,
		DISPLAY_DECODER_CODECS & ~(1u << DISPLAY_CODEC_JPEG));
	show_pages(&w, v, 2);
	pages = anonymous_kb() - before;
	while (v[1].frames < FRAMES) {
		fill(&w, wave);
		do
			run(&w, v, 2);
		while (w.source->told);
	}
	film = anonymous_kb() - before;
	print_message("a viewer has %ld KiB, with a film %ld\n", pages, film);
	assert_true(film < MOST_KB);
	viewer_fini(&v[0]);
	viewer_fini(&v[1]);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_of_a_viewer)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
