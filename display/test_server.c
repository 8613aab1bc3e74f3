// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server with a picture in memory and viewers at the other ends of socket pairs: what the
 * reference decoder makes of their bytes is the picture.
 */
#include "display/server.h"

#include <event2/event.h>
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
#include "display/record.h"
#include "proto/display.pb-c.h"

#define WIDTH  320
#define HEIGHT 200

struct client {
	int fd;
	bool ended; /* the server has closed it */
	struct display_decoder *decoder;
	uint32_t marks, updated, answered;
	bool acks;
	struct display_message last[DISPLAY_UNCOVER + 1]; /* of each type; data is gone */
	unsigned n[DISPLAY_UNCOVER + 1];
	char text[64]; /* of the last clipboard or notice */
	size_t text_len;
	int kind;     /* of the last notice, or -1 */
	int role;     /* of WELCOME, or -1 */
	size_t bytes; /* read */
	unsigned jpegs;
};

struct world {
	struct event_base *base;
	struct display_memory *source;
	struct display_server *server;
	uint64_t seed;
};

static uint32_t rnd(struct world *w, uint32_t below)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->seed >> 33) % below;
}

static void world_init(struct world *w, uint64_t seed)
{
	struct err e = {0};

	*w = (struct world){.base = event_base_new(), .seed = seed * 99 + 7};
	assert_non_null(w->base);
	assert_int_equal(display_memory_new(WIDTH, HEIGHT, &w->source), 0);
	assert_int_equal(
		display_server_new(w->base, &w->source->source, "work", NULL, NULL, &w->server, &e),
		0);
}

static void world_fini(struct world *w)
{
	display_server_free(w->server);
	event_base_free(w->base);
}

/* ---- viewers --------------------------------------------------------------------------------- */

static void send_message(struct client *c, const struct display_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	display_wire_put(&b, m);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(io_write_full(c->fd, b.data, b.len), 0);
}

static void on_message(void *ctx, const struct display_message *m)
{
	struct client *c = ctx;

	c->last[m->type] = *m;
	c->n[m->type]++;
	c->jpegs += m->type == DISPLAY_RAW && m->codec == DISPLAY_CODEC_JPEG;
	if (m->type == DISPLAY_MARK)
		c->marks = m->serial;
	if (m->type == DISPLAY_UPDATED)
		c->updated = m->serial;
	if (m->type == DISPLAY_CLIPBOARD) {
		c->text_len = MIN(m->data.len, sizeof(c->text));
		memcpy(c->text, m->data.data, c->text_len);
	}
	if (m->type == DISPLAY_NOTICE) {
		Pb__DisplayNotice *n = pb__display_notice__unpack(NULL, m->data.len, m->data.data);

		assert_non_null(n);
		c->kind = (int)n->kind;
		pb__display_notice__free_unpacked(n, NULL);
	}
	if (m->type == DISPLAY_WELCOME) {
		Pb__DisplayWelcome *n =
			pb__display_welcome__unpack(NULL, m->data.len, m->data.data);

		assert_non_null(n);
		assert_string_equal(n->session, "work");
		c->role = (int)n->role;
		pb__display_welcome__free_unpacked(n, NULL);
	}
}

static const struct display_decoder_ops decoder_ops = {.message = on_message};

static void hello_small(
	struct client *c, uint32_t codecs, uint32_t quality, bool view_only, uint32_t max_width)
{
	Pb__DisplayHello h = PB__DISPLAY_HELLO__INIT;
	struct display_message m = {.type = DISPLAY_HELLO};
	uint8_t bytes[128];

	h.version = 1;
	h.codecs = codecs;
	h.quality = quality;
	h.view_only = view_only;
	h.max_width = max_width;
	m.data = (struct display_bytes){bytes, pb__display_hello__pack(&h, bytes)};
	send_message(c, &m);
}

static void hello(struct client *c, uint32_t codecs, uint32_t quality, bool view_only)
{
	hello_small(c, codecs, quality, view_only, 0);
}

static void connect_client(struct world *w, struct client *c)
{
	int pair[2];

	*c = (struct client){.kind = -1, .role = -1, .acks = true};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->fd = pair[0];
	io_set_nonblock(pair[1], true);
	assert_int_equal(display_decoder_new(&decoder_ops, c, &c->decoder), 0);
	assert_int_equal(display_server_add(w->server, pair[1]), 0);
}

static void client_fini(struct client *c)
{
	display_decoder_free(c->decoder);
	c->fd = close_fd(c->fd);
}

/* Reads at most @max bytes and answers marks; returns how many. */
static size_t read_some(struct client *c, size_t max)
{
	static uint8_t bytes[65536];
	ssize_t n = recv(c->fd, bytes, MIN(max, sizeof(bytes)), MSG_DONTWAIT);
	struct err e = {0};
	uint32_t serial;

	if (n < 0) {
		assert_true(errno == EAGAIN || errno == ECONNRESET);
		c->ended = errno == ECONNRESET;
		return 0;
	}
	if (n == 0) {
		c->ended = true;
		return 0;
	}
	c->bytes += (size_t)n;
	if (display_decoder_feed(c->decoder, bytes, (size_t)n, &e) < 0)
		fail_msg("%s", e.msg);
	serial = MAX(c->marks, c->updated);
	if (c->acks && serial != c->answered && !c->ended) {
		const struct display_message ack = {.type = DISPLAY_ACK, .serial = serial};
		_cleanup_buf_ struct buf b = BUF_INIT;

		c->answered = serial;
		display_wire_put(&b, &ack);
		/* The server may have closed it meanwhile. */
		if (send(c->fd, b.data, b.len, MSG_NOSIGNAL) < 0)
			assert_true(errno == EPIPE || errno == ECONNRESET);
	}
	return (size_t)n;
}

static void turn(struct world *w)
{
	event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static bool shows(const struct client *c, const struct world *w)
{
	const struct display_frame *f = display_decoder_frame(c->decoder);

	return f->pixels && display_frame_same(f, &w->source->picture);
}

/* Until all of @n have the picture, whatever it takes. */
static void settle(struct world *w, struct client *c, size_t n)
{
	bool all = false;

	while (!all) {
		event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		all = true;
		for (size_t i = 0; i < n; i++) {
			while (read_some(&c[i], 65536))
				;
			assert_false(c[i].ended);
			all = all && shows(&c[i], w);
		}
	}
}

#define UNTIL(w, c, cond)            \
	do {                         \
		turn(w);             \
		read_some(c, 65536); \
	} while (!(cond))

/* ---- pictures -------------------------------------------------------------------------------- */

static struct display_rect random_rect(struct world *w)
{
	const struct display_frame *f = &w->source->picture;
	struct display_rect r;

	r.w = 1 + (int)rnd(w, (uint32_t)(rnd(w, 4) ? MIN(f->width, 80) : f->width));
	r.h = 1 + (int)rnd(w, (uint32_t)(rnd(w, 4) ? MIN(f->height, 60) : f->height));
	r.x = (int)rnd(w, (uint32_t)(f->width - r.w + 1));
	r.y = (int)rnd(w, (uint32_t)(f->height - r.h + 1));
	return r;
}

/* A fill, noise, two colours, few colours, a gradient, or something moved. */
static void draw(struct world *w)
{
	const struct display_frame *f = &w->source->picture;
	struct display_rect r = random_rect(w);
	uint32_t kind = rnd(w, 6), colour = rnd(w, 1 << 24);

	if (kind == 0) {
		display_frame_move(f, &r, (int)rnd(w, (uint32_t)(f->width - r.w + 1)),
			(int)rnd(w, (uint32_t)(f->height - r.h + 1)));
		display_memory_damage(w->source, &r);
		return;
	}
	for (int y = 0; y < r.h; y++)
		for (int x = 0; x < r.w; x++) {
			const uint32_t of[] = {0, colour, rnd(w, 1 << 24),
				rnd(w, 2) ? colour : 0xffffff, colour + rnd(w, 7),
				(uint32_t)(x * 3 + y * 2) * 0x010101 & 0xffffff};

			*display_frame_at(f, r.x + x, r.y + y) = of[kind] & DISPLAY_RGB;
		}
	display_memory_damage(w->source, &r);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Three viewers of different codecs, one of them slow, drawing and sizes in any mix. */
static void test_exact(void **state)
{
	static const uint32_t codecs[3] = {0xff, 1 | 2 | 4 | 16 | 32 | 64, 1};

	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct world w;
		struct client c[3];

		world_init(&w, seed);
		for (int i = 0; i < 3; i++) {
			connect_client(&w, &c[i]);
			hello(&c[i], codecs[i], 0, i == 1);
		}
		for (int round = 0; round < 60; round++) {
			for (uint32_t n = rnd(&w, 5); n; n--)
				draw(&w);
			if (rnd(&w, 12) == 0)
				assert_int_equal(
					display_memory_resize(w.source, 1 + (int)rnd(&w, 400),
						1 + (int)rnd(&w, 300)),
					0);
			turn(&w);
			read_some(&c[0], 65536);
			read_some(&c[1], rnd(&w, 2000) + 1);
			if (rnd(&w, 4) == 0)
				read_some(&c[2], 100);
			if (rnd(&w, 10) == 0)
				settle(&w, c, 3);
		}
		settle(&w, c, 3);
		assert_int_equal(display_server_viewers(w.server), 3);
		for (int i = 0; i < 3; i++)
			client_fini(&c[i]);
		world_fini(&w);
	}
}

/* One that agrees to JPEG is sent less at first, and exactly the picture when nothing changes. */
static void test_lossy_becomes_exact(void **state)
{
	struct world w;
	struct client c;

	world_init(&w, 4);
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			*display_frame_at(&w.source->picture, x, y) =
				((uint32_t)(x * 255 / WIDTH) << 16 |
					(uint32_t)(y * 255 / HEIGHT) << 8 |
					(uint32_t)((x + y) & 0xff)) ^
				rnd(&w, 4);
	connect_client(&w, &c);
	hello(&c, 0xff, 60, false);
	UNTIL(&w, &c, c.updated != 0);
	assert_true(c.jpegs > 0);
	settle(&w, &c, 1);
	client_fini(&c);
	world_fini(&w);
}

/* One that reads nothing costs the others nothing, and what is kept for it is bounded. */
static void test_slow_viewer(void **state)
{
	struct world w;
	struct client slow, quick;

	world_init(&w, 5);
	connect_client(&w, &slow);
	hello(&slow, 0xff, 0, false);
	connect_client(&w, &quick);
	hello(&quick, 0xff, 0, false);
	for (int round = 0; round < 150; round++) {
		draw(&w);
		settle(&w, &quick, 1);
	}
	settle(&w, &slow, 1);
	/* What was painted over meanwhile it was never sent. */
	assert_true(slow.bytes < quick.bytes);
	client_fini(&slow);
	client_fini(&quick);
	world_fini(&w);
}

static void key(struct client *c, uint32_t keysym, uint16_t scancode, bool down)
{
	struct display_message m = {.type = DISPLAY_KEY};

	m.key.keysym = keysym;
	m.key.scancode = scancode;
	m.key.down = down;
	send_message(c, &m);
}

static void point(struct client *c, int x, int y, uint8_t buttons, int wheel_y)
{
	struct display_message m = {.type = DISPLAY_POINTER};

	m.pointer.x = x;
	m.pointer.y = y;
	m.pointer.buttons = buttons;
	m.pointer.wheel_y = wheel_y;
	send_message(c, &m);
}

/* What is down comes up when its viewer is gone; another symbol of the same key is that key. */
static void test_input(void **state)
{
	struct world w;
	struct client c, looks;

	world_init(&w, 6);
	connect_client(&w, &c);
	hello(&c, 0xff, 0, false);
	point(&c, 3, 4, 0, 0); /* there is no picture yet */
	connect_client(&w, &looks);
	hello(&looks, 0xff, 0, true);
	settle(&w, &c, 1);
	settle(&w, &looks, 1);
	assert_int_equal(w.source->n_pointers, 1);
	assert_int_equal(w.source->y, 4);
	assert_int_equal(c.role, PB__DISPLAY_WELCOME__ROLE__CONTROL);
	assert_int_equal(looks.role, PB__DISPLAY_WELCOME__ROLE__VIEW);
	key(&looks, 'x', 45, true);
	point(&looks, 1, 1, 1, 0);
	key(&c, 0xffe1, 42, true);
	key(&c, 'A', 30, true);
	UNTIL(&w, &looks, w.source->n_keys == 2);
	assert_int_equal(w.source->n_down, 2);
	key(&c, 0xffe1, 42, false);
	key(&c, 'a', 30, false);
	key(&c, 'q', 16, false); /* that never was down */
	key(&c, 'b', 48, true);
	point(&c, 5000, -3, 4, 2);
	UNTIL(&w, &looks, w.source->n_pointers == 2);
	assert_int_equal(w.source->n_down, 1);
	assert_int_equal(w.source->down[0], 'b');
	assert_int_equal(w.source->x, WIDTH - 1);
	assert_int_equal(w.source->y, 0);
	assert_int_equal(w.source->buttons, 4);
	assert_int_equal(w.source->wheel_y, 2);
	UNTIL(&w, &looks, looks.last[DISPLAY_POINTER_AT].at.x == WIDTH - 1);
	client_fini(&c);
	UNTIL(&w, &looks, display_server_viewers(w.server) == 1);
	assert_int_equal(w.source->n_down, 0);
	assert_int_equal(w.source->buttons, 0);
	client_fini(&looks);
	world_fini(&w);
}

/* The server has heard of it when something is sent again. */
static void scale(struct world *w, struct client *c, uint16_t percent)
{
	const struct display_message m = {.type = DISPLAY_SCALE_IN, .percent = percent},
				     again = {.type = DISPLAY_REFRESH, .rect = {0, 0, 8, 8}};
	const unsigned before = c->n[DISPLAY_UPDATED];

	send_message(c, &m);
	send_message(c, &again);
	UNTIL(w, c, c->n[DISPLAY_UPDATED] > before);
}

/*
 * Before the session is let go nothing is down any more, and then nothing goes there but wishes and
 * what is copied.
 */
static void test_let_go(void **state)
{
	const struct display_message text = {
		.type = DISPLAY_CLIPBOARD_IN, .data = {(const uint8_t *)"text", 4}};
	struct world w;
	struct client c;
	struct err e = {0};

	world_init(&w, 7);
	connect_client(&w, &c);
	hello(&c, 0xff, 0, false);
	settle(&w, &c, 1);
	key(&c, 'a', 30, true);
	UNTIL(&w, &c, w.source->n_down == 1);
	display_server_let_go(w.server);
	assert_int_equal(w.source->n_down, 0);
	assert_int_equal(w.source->n_let_go, 1);
	display_server_tell(w.server, DISPLAY_STATE_SUSPENDED, "");
	key(&c, 'b', 48, true);
	send_message(&c, &text);
	UNTIL(&w, &c, c.kind == PB__DISPLAY_NOTICE__KIND__SUSPENDED);
	UNTIL(&w, &c, w.source->clipboard_len == 4);
	assert_int_equal(w.source->n_keys, 2);
	scale(&w, &c, 150);
	assert_int_equal(w.source->scale, 0);
	assert_int_equal(display_server_take_up(w.server, &e), 0);
	UNTIL(&w, &c, w.source->scale == 150);
	key(&c, 'c', 46, true);
	UNTIL(&w, &c, w.source->n_down == 1);
	assert_int_equal(w.source->down[0], 'c');
	draw(&w);
	settle(&w, &c, 1);
	client_fini(&c);
	world_fini(&w);
}

/* The mean of each @k x @k pixels, to compare a smaller picture with; the largest difference. */
static int difference(const struct client *c, const struct world *w, int k)
{
	const struct display_frame *small = display_decoder_frame(c->decoder);
	int worst = 0;

	for (int y = 0; y < small->height; y++)
		for (int x = 0; x < small->width; x++)
			for (int shift = 0; shift < 24; shift += 8) {
				int sum = 0, is = *display_frame_at(small, x, y) >> shift & 255;

				for (int i = 0; i < k * k; i++)
					sum += *display_frame_at(&w->source->picture, x * k + i % k,
						       y * k + i / k) >>
						       shift &
					       255;
				worst = MAX(worst, abs(sum / (k * k) - is));
			}
	return worst;
}

/* One that asks for a smaller picture has the mean of the pixels, and points into the large one. */
static void test_scaled(void **state)
{
	struct world w;
	struct client c, full;

	world_init(&w, 13);
	connect_client(&w, &c);
	hello_small(&c, 0xff, 0, false, WIDTH / 2);
	connect_client(&w, &full);
	hello(&full, 0xff, 0, false);
	for (int i = 0; i < 40; i++) {
		draw(&w);
		settle(&w, &full, 1);
		read_some(&c, 65536);
	}
	UNTIL(&w, &c, difference(&c, &w, 2) <= 24);
	assert_int_equal(display_decoder_frame(c.decoder)->width, WIDTH / 2);
	assert_int_equal(display_decoder_frame(c.decoder)->height, HEIGHT / 2);
	point(&c, 100, 50, 0, 0);
	UNTIL(&w, &c, w.source->n_pointers == 1);
	assert_int_equal(w.source->x, 200);
	assert_int_equal(w.source->y, 100);
	UNTIL(&w, &full, full.n[DISPLAY_POINTER_AT] == 1);
	assert_int_equal(full.last[DISPLAY_POINTER_AT].at.x, 200);
	/* A screen that fits is shown as it is. */
	assert_int_equal(display_memory_resize(w.source, 100, 80), 0);
	draw(&w);
	settle(&w, &c, 1);
	assert_int_equal(display_memory_resize(w.source, WIDTH, HEIGHT), 0);
	draw(&w);
	UNTIL(&w, &c,
		display_decoder_frame(c.decoder)->width == WIDTH / 2 &&
			difference(&c, &w, 2) <= 24);
	client_fini(&c);
	client_fini(&full);
	world_fini(&w);
}

static void test_clipboard_cursor_notice(void **state)
{
	uint8_t rgba[4 * 4 * 4] = {1, 2, 3, 255};
	const struct display_cursor cursor = {1, 2, 4, 4, rgba};
	const struct display_message text = {.type = DISPLAY_CLIPBOARD_IN,
		.data = {(const uint8_t *)"gr\xc3\xbc\r\n\xc3\x9f", 8}};
	struct world w;
	struct client a, b, looks;

	world_init(&w, 8);
	connect_client(&w, &looks);
	hello(&looks, 0xff, 0, true);
	connect_client(&w, &a);
	hello(&a, 0xff, 0, false);
	w.source->events->cursor(w.source->arg, &cursor);
	UNTIL(&w, &a, a.n[DISPLAY_CURSOR] == 1);
	assert_int_equal(a.last[DISPLAY_CURSOR].cursor.hot_y, 2);
	w.source->events->clipboard(w.source->arg, "one", 3);
	UNTIL(&w, &a, a.n[DISPLAY_CLIPBOARD] == 1);
	assert_memory_equal(a.text, "one", 3);
	/* One who comes later is told what is so. */
	connect_client(&w, &b);
	hello(&b, 0xff, 0, false);
	display_server_tell(w.server, DISPLAY_STATE_PAUSED, "for a while");
	UNTIL(&w, &b, b.n[DISPLAY_CURSOR] && b.n[DISPLAY_CLIPBOARD] && b.n[DISPLAY_NOTICE]);
	assert_int_equal(b.kind, PB__DISPLAY_NOTICE__KIND__PAUSED);
	send_message(&a, &text);
	UNTIL(&w, &b, b.n[DISPLAY_CLIPBOARD] == 2);
	assert_memory_equal(b.text, "gr\xc3\xbc\n\xc3\x9f", 7);
	assert_int_equal(w.source->clipboard_len, 7);
	settle(&w, &a, 1);
	assert_int_equal(a.n[DISPLAY_CLIPBOARD], 1);
	UNTIL(&w, &looks, looks.n[DISPLAY_NOTICE] && looks.n[DISPLAY_CURSOR]);
	assert_int_equal(looks.n[DISPLAY_CLIPBOARD], 0);
	client_fini(&looks);
	client_fini(&a);
	client_fini(&b);
	world_fini(&w);
}

/* Anything may come from a viewer: it is gone then, the others aren't, and nothing of it stays. */
static void test_hostile(void **state)
{
	static const uint8_t bad[][24] = {
		{DISPLAY_KEY, 0, 0, 0, 8, 0, 0, 0},			  /* before HELLO */
		{DISPLAY_HELLO, 0, 0, 0, 255, 255, 255, 255},		  /* too long */
		{DISPLAY_HELLO, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255}, /* no record */
		{DISPLAY_HELLO, 0, 0, 0, 0, 0, 0, 0},			  /* another version */
	};
	struct world w;
	struct client good, c;

	world_init(&w, 9);
	connect_client(&w, &good);
	hello(&good, 0xff, 0, false);
	settle(&w, &good, 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		connect_client(&w, &c);
		assert_int_equal(io_write_full(c.fd, bad[i], sizeof(bad[i])), 0);
		UNTIL(&w, &c, c.ended);
		client_fini(&c);
	}
	for (uint64_t seed = 1; seed < 100; seed++) {
		uint8_t noise[256];

		connect_client(&w, &c);
		hello(&c, rnd(&w, 1000), rnd(&w, 300), false);
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)rnd(&w, 256);
		noise[0] = (uint8_t)(DISPLAY_KEY + rnd(&w, 8));
		memset(noise + 1, 0, 7);
		noise[4] = (uint8_t)(4 + rnd(&w, 12));
		assert_int_equal(io_write_full(c.fd, noise, sizeof(noise)), 0);
		for (int i = 0; i < 5; i++) {
			turn(&w);
			read_some(&c, 65536);
		}
		client_fini(&c);
	}
	UNTIL(&w, &good, display_server_viewers(w.server) == 1);
	draw(&w);
	settle(&w, &good, 1);
	client_fini(&good);
	world_fini(&w);
}

/* Of very many wishes to see places again, those that come together are few. */
static void test_many_wishes(void **state)
{
	struct display_message m = {.type = DISPLAY_REFRESH, .rect = {.w = 1, .h = 1}};
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct client c;
	unsigned before;
	struct world w;

	world_init(&w, 13);
	connect_client(&w, &c);
	hello(&c, 1, 0, false);
	UNTIL(&w, &c, c.n[DISPLAY_UPDATED]);
	before = c.n[DISPLAY_RAW] + c.n[DISPLAY_SFILL];
	for (int i = 0; i < 3600; i++) {
		m.rect.x = i % 60 * 2;
		m.rect.y = i / 60 * 2;
		display_wire_put(&b, &m);
	}
	assert_int_equal(io_write_full(c.fd, b.data, b.len), 0);
	UNTIL(&w, &c, c.n[DISPLAY_UPDATED] > 1);
	assert_in_range(c.n[DISPLAY_RAW] + c.n[DISPLAY_SFILL] - before, 1, 1000);
	client_fini(&c);
	world_fini(&w);
}

static void test_too_many(void **state)
{
	struct world w;
	struct client c[DISPLAY_SERVER_VIEWERS];
	int pair[2];

	world_init(&w, 10);
	for (size_t i = 0; i < DISPLAY_SERVER_VIEWERS; i++) {
		connect_client(&w, &c[i]);
		hello(&c[i], 1, 0, false);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(display_server_add(w.server, pair[1]), -EUSERS);
	{
		uint8_t told[64];

		assert_true(recv(pair[0], told, sizeof(told), 0) > DISPLAY_WIRE_HEAD);
		assert_int_equal(told[0], DISPLAY_NOTICE);
		assert_int_equal(recv(pair[0], told, sizeof(told), 0), 0);
	}
	close(pair[0]);
	draw(&w);
	settle(&w, c, DISPLAY_SERVER_VIEWERS);
	display_server_tell(w.server, DISPLAY_STATE_ENDED, "");
	display_server_finish(w.server);
	for (size_t i = 0; i < DISPLAY_SERVER_VIEWERS; i++) {
		UNTIL(&w, &c[i], c[i].ended);
		assert_int_equal(c[i].kind, PB__DISPLAY_NOTICE__KIND__ENDED);
		client_fini(&c[i]);
	}
	world_fini(&w);
}

/* One that acknowledges, and then no more, is sent no more than a window; others go on. */
static void test_window(void **state)
{
	struct world w;
	struct client c;
	const struct display_rect all = {0, 0, WIDTH, HEIGHT};
	size_t before;

	world_init(&w, 11);
	connect_client(&w, &c);
	hello(&c, 1, 0, false);
	draw(&w);
	UNTIL(&w, &c, c.answered != 0 && shows(&c, &w));
	c.acks = false;
	before = c.bytes;
	for (int i = 0; i < 30; i++) {
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < WIDTH; x++)
				*display_frame_at(&w.source->picture, x, y) = rnd(&w, 1 << 24);
		display_memory_damage(w.source, &all);
		/* For as long as the server's timer may wait. */
		event_base_loopexit(w.base, &(struct timeval){0, 15000});
		event_base_dispatch(w.base);
		while (read_some(&c, 65536))
			turn(&w);
	}
	assert_true(c.bytes - before < (512 << 10));
	/* Acknowledged, it goes on. */
	c.acks = true;
	c.answered = 0;
	{
		const struct display_message ack = {
			.type = DISPLAY_ACK, .serial = MAX(c.marks, c.updated)};

		send_message(&c, &ack);
	}
	settle(&w, &c, 1);
	client_fini(&c);
	world_fini(&w);
}

/* What is recorded shows the same when it is played. */
static void test_record(void **state)
{
	struct world w;
	struct client c;
	struct display_record r;
	struct display_decoder *d;
	FILE *f = tmpfile();
	uint64_t us, last = 0;
	_cleanup_buf_ struct buf piece = BUF_INIT;
	struct err e = {0};
	int k;

	assert_non_null(f);
	world_init(&w, 12);
	connect_client(&w, &c);
	hello(&c, 0xff, 0, false);
	assert_int_equal(display_record_begin(&r, fileno(f), &e), 0);
	for (int i = 0; i < 20 || !shows(&c, &w); i++) {
		static uint8_t bytes[65536];
		ssize_t n;

		if (i < 20)
			draw(&w);
		turn(&w);
		n = recv(c.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n <= 0)
			continue;
		assert_int_equal(display_record_put(&r, io_now_ns(), bytes, (size_t)n, &e), 0);
		assert_int_equal(display_decoder_feed(c.decoder, bytes, (size_t)n, &e), 0);
	}
	rewind(f);
	assert_int_equal(display_record_open(&r, fileno(f), &e), 0);
	assert_int_equal(display_decoder_new(NULL, NULL, &d), 0);
	while ((k = display_record_next(&r, &piece, &us, &e)) == 1) {
		assert_true(us >= last);
		last = us;
		assert_int_equal(display_decoder_feed(d, piece.data, piece.len, &e), 0);
		buf_clear(&piece);
	}
	assert_int_equal(k, 0);
	assert_true(display_frame_same(display_decoder_frame(d), &w.source->picture));
	assert_int_equal(lseek(fileno(f), 24, SEEK_SET), 24);
	assert_int_equal(write(fileno(f), "\377\377\377\377", 4), 4);
	lseek(fileno(f), 0, SEEK_SET);
	assert_int_equal(display_record_open(&r, fileno(f), &e), 0);
	assert_int_equal(display_record_next(&r, &piece, &us, &e), -EBADMSG);
	lseek(fileno(f), 1, SEEK_SET);
	assert_int_equal(display_record_open(&r, fileno(f), &e), -EBADMSG);
	display_decoder_free(d);
	fclose(f);
	client_fini(&c);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_lossy_becomes_exact),
		cmocka_unit_test(test_slow_viewer),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_let_go),
		cmocka_unit_test(test_scaled),
		cmocka_unit_test(test_clipboard_cursor_notice),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_many_wishes),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
