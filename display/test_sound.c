// SPDX-License-Identifier: GPL-2.0-or-later
/* What a session writes into its FIFO, and what is made of it. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <opus.h>

#include "base/base.h"
#include "display/sound.h"

#define PATIENCE_NS 30000000000ull
#define FRAME	    (DISPLAY_SOUND_CHANNELS * 2)
#define PACKET	    (DISPLAY_SOUND_SAMPLES * FRAME) /* bytes of samples */
#define HZ	    440

struct room {
	char path[64];
	int dir, fifo;
	struct event_base *loop;
	struct display_sound *sound;
	OpusDecoder *decoder;
	size_t packets;
	uint64_t us;
	double best; /* of a packet's energy, what is at HZ; of the packet that has most of it */
	double phase;
};

/* Goertzel's algorithm. */
static double share_of(const opus_int16 *pcm, size_t n)
{
	double c = 2 * cos(2 * M_PI * HZ / DISPLAY_SOUND_RATE), a = 0, b = 0, energy = 0;

	for (size_t i = 0; i < n; i++) {
		double x = pcm[i * DISPLAY_SOUND_CHANNELS] / 32768.0, next = x + c * a - b;

		b = a;
		a = next;
		energy += x * x;
	}
	return energy > 1e-6 ? 2 * (a * a + b * b - c * a * b) / ((double)n * energy) : 0;
}

static void on_packet(void *arg, uint64_t us, const void *packet, size_t len)
{
	struct room *r = arg;
	opus_int16 pcm[DISPLAY_SOUND_SAMPLES * DISPLAY_SOUND_CHANNELS];

	assert_int_equal(
		opus_decode(r->decoder, packet, (opus_int32)len, pcm, DISPLAY_SOUND_SAMPLES, 0),
		DISPLAY_SOUND_SAMPLES);
	assert_true(us > r->us);
	r->us = us;
	r->packets++;
	r->best = fmax(r->best, share_of(pcm, DISPLAY_SOUND_SAMPLES));
}

static void room_begin(struct room *r)
{
	int error;

	*r = (struct room){.loop = event_base_new(), .fifo = -1};
	snprintf(r->path, sizeof(r->path), "/tmp/podrun-sound-XXXXXX");
	assert_non_null(mkdtemp(r->path));
	r->dir = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r->decoder = opus_decoder_create(DISPLAY_SOUND_RATE, DISPLAY_SOUND_CHANNELS, &error);
	assert_non_null(r->loop);
	assert_non_null(r->decoder);
	assert_int_equal(display_sound_new(r->loop, r->dir, on_packet, r, &r->sound), 0);
}

static void room_fifo(struct room *r)
{
	assert_int_equal(mkfifoat(r->dir, DISPLAY_SOUND_FIFO, 0600), 0);
	r->fifo = openat(r->dir, DISPLAY_SOUND_FIFO, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(r->fifo >= 0);
}

static void room_end(struct room *r)
{
	display_sound_free(r->sound);
	opus_decoder_destroy(r->decoder);
	event_base_free(r->loop);
	close_fd(r->fifo);
	close(r->dir);
	assert_int_equal(io_rm_rf(AT_FDCWD, r->path), 0);
}

/* As much as there is room for.  False if there is none. */
static bool play(struct room *r, double loud)
{
	uint8_t bytes[PACKET];

	for (size_t i = 0; i < DISPLAY_SOUND_SAMPLES; i++) {
		int16_t x = (int16_t)(loud * 32767 * sin(r->phase));

		r->phase += 2 * M_PI * HZ / DISPLAY_SOUND_RATE;
		for (size_t j = 0; j < DISPLAY_SOUND_CHANNELS; j++) {
			bytes[i * FRAME + j * 2] = (uint8_t)x;
			bytes[i * FRAME + j * 2 + 1] = (uint8_t)(x >> 8);
		}
	}
	return write(r->fifo, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);
}

static void turn(struct room *r)
{
	const struct timeval soon = {.tv_usec = 5000};

	event_base_loopexit(r->loop, &soon);
	event_base_dispatch(r->loop);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_tone_is_heard(void **state)
{
	uint64_t end = io_now_ns() + PATIENCE_NS;
	struct room r;

	room_begin(&r);
	room_fifo(&r);
	display_sound_take_up(r.sound);
	for (int i = 0; i < 20; i++) {
		play(&r, 0.5);
		turn(&r);
	}
	assert_int_equal(r.packets, 0); /* nobody listens */
	display_sound_listen(r.sound, true);
	while ((r.packets < 20 || r.best < 0.9) && io_now_ns() < end) {
		play(&r, 0.5);
		turn(&r);
	}
	assert_true(r.packets >= 20);
	assert_true(r.best > 0.9);
	room_end(&r);
}

/* A session that writes as fast as it can is as loud as any other, and takes as long. */
static void no_more_than_time_has_passed(void **state)
{
	uint64_t began = io_now_ns();
	struct room r;

	room_begin(&r);
	room_fifo(&r);
	display_sound_listen(r.sound, true);
	display_sound_take_up(r.sound);
	while (r.packets < 30) {
		while (play(&r, 0.5))
			;
		turn(&r);
		assert_true(r.packets <= (io_now_ns() - began) / 20000000 + 10);
		assert_true(io_now_ns() - began < PATIENCE_NS);
	}
	room_end(&r);
}

static void silence_is_not_told(void **state)
{
	uint64_t end = io_now_ns() + PATIENCE_NS;
	uint8_t nothing[PACKET] = {0};
	size_t written = 0;
	struct room r;

	room_begin(&r);
	room_fifo(&r);
	display_sound_listen(r.sound, true);
	display_sound_take_up(r.sound);
	while (written < 40 && io_now_ns() < end) {
		written += write(r.fifo, nothing, sizeof(nothing)) > 0;
		turn(&r);
	}
	assert_int_equal(r.packets, 0);
	while (r.packets < 3 && io_now_ns() < end) {
		play(&r, 0.5);
		turn(&r);
	}
	assert_true(r.packets >= 3);
	room_end(&r);
}

static void nothing_is_open_while_let_go(void **state)
{
	uint64_t end = io_now_ns() + PATIENCE_NS;
	struct room r;
	size_t before;

	room_begin(&r);
	room_fifo(&r);
	display_sound_listen(r.sound, true);
	display_sound_take_up(r.sound);
	while (!r.packets && io_now_ns() < end) {
		play(&r, 0.5);
		turn(&r);
	}
	assert_true(r.packets > 0);
	display_sound_let_go(r.sound);
	/* Else it could still be written to. */
	close_fd(r.fifo);
	r.fifo = openat(r.dir, DISPLAY_SOUND_FIFO, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(r.fifo < 0 && errno == ENXIO);
	before = r.packets;
	r.fifo = openat(r.dir, DISPLAY_SOUND_FIFO, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	display_sound_take_up(r.sound);
	while (r.packets == before && io_now_ns() < end) {
		play(&r, 0.5);
		turn(&r);
	}
	assert_true(r.packets > before);
	room_end(&r);
}

/* It is the session's, which may put anything there. */
static void what_is_no_fifo_is_left_alone(void **state)
{
	struct room r;
	int fd;

	room_begin(&r);
	display_sound_listen(r.sound, true);
	display_sound_take_up(r.sound);
	assert_int_equal(mkdirat(r.dir, "other", 0700), 0);
	assert_int_equal(mkfifoat(r.dir, "other/fifo", 0600), 0);
	assert_int_equal(symlinkat("other/fifo", r.dir, DISPLAY_SOUND_FIFO), 0);
	display_sound_take_up(r.sound);
	fd = openat(r.dir, "other/fifo", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd < 0 && errno == ENXIO);
	assert_int_equal(unlinkat(r.dir, DISPLAY_SOUND_FIFO, 0), 0);
	fd = openat(r.dir, DISPLAY_SOUND_FIFO, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, r.path, sizeof(r.path)), sizeof(r.path));
	display_sound_take_up(r.sound);
	turn(&r);
	assert_int_equal(r.packets, 0);
	close(fd);
	room_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tone_is_heard),
		cmocka_unit_test(no_more_than_time_has_passed),
		cmocka_unit_test(silence_is_not_told),
		cmocka_unit_test(nothing_is_open_while_let_go),
		cmocka_unit_test(what_is_no_fifo_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
