// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      FIFO --> samples --> packets of 20 ms, unless they are silent
 *
 * The FIFO is the session's, and so is who writes into it: that may be anybody, with anything, as
 * quickly as it likes.  So it is opened without following links, never waited for, read at most
 * once in TICK_US, and no more packets are made than time has passed, with BURST to spare.  What is
 * more than BURST is thrown away, the oldest first: sound that is late is of no use.
 *
 * It is opened for writing, too.  Then there is no end of it when the sound server ends, and the
 * next one is heard without anybody's help.
 *
 * A sound server that has nothing to play writes nothing, and costs nothing here.  Silence that is
 * written is told for TAIL packets, in which a decoder fades out, and no longer.
 */
#include "display/sound.h"

#include <event2/event.h>
#include <fcntl.h>
#include <opus.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "display/x/reach.h"

#define TICK_US	 20000u
#define BURST	 10 /* packets */
#define TAIL	 5
#define STALE_US 200000u /* the beginning of a packet that nothing has followed for so long */
#define SLACK_US 100000u /* of a packet's time */
#define READ	 (64u << 10)
#define BITRATE	 96000
#define EFFORT	 5 /* of 10 */
#define FRAME	 ((size_t)DISPLAY_SOUND_CHANNELS * 2)
#define BYTES	 (DISPLAY_SOUND_SAMPLES * FRAME) /* of a packet */

struct display_sound {
	struct event_base *base;
	int shm;
	display_sound_packet *packet;
	void *arg;
	int fd; /* -1: closed */
	struct event *readable, *tick;
	bool wanted, reachable;
	OpusEncoder *encoder;
	struct buf in;
	uint64_t last_us, credit_us, read_us;
	uint64_t next_us; /* when the packet behind the last one is played */
	unsigned silent;  /* packets, of late */
};

static uint64_t now_us(void)
{
	return io_now_ns() / 1000;
}

static bool is_silent(const uint8_t *samples)
{
	for (size_t i = 0; i < BYTES; i++)
		if (samples[i])
			return false;
	return true;
}

/* Packets follow each other without a gap as long as that is near the truth. */
static uint64_t when(struct display_sound *s, uint64_t us)
{
	if (us > s->next_us + SLACK_US)
		s->next_us = us;
	us = s->next_us;
	s->next_us += TICK_US;
	return us;
}

static void pack(struct display_sound *s, const uint8_t *samples, uint64_t us)
{
	opus_int16 pcm[DISPLAY_SOUND_SAMPLES * DISPLAY_SOUND_CHANNELS];
	uint8_t packet[DISPLAY_SOUND_PACKET];
	opus_int32 n;

	s->silent = is_silent(samples) ? s->silent + 1 : 0;
	if (s->silent > TAIL) {
		s->silent = TAIL + 1;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(pcm); i++)
		pcm[i] = (opus_int16)(samples[2 * i] | samples[2 * i + 1] << 8);
	n = opus_encode(s->encoder, pcm, DISPLAY_SOUND_SAMPLES, packet, sizeof(packet));
	if (n > 0)
		s->packet(s->arg, when(s, us), packet, (size_t)n);
}

/* What has been read, as far as there is time for it. */
static void pack_all(struct display_sound *s, uint64_t now)
{
	size_t done = 0;

	s->credit_us = MIN(s->credit_us + (now - s->last_us), (uint64_t)BURST * TICK_US);
	s->last_us = now;
	if (s->in.len > BURST * BYTES)
		buf_consume(&s->in, (s->in.len - BURST * BYTES) / FRAME * FRAME);
	while (s->in.len - done >= BYTES && s->credit_us >= TICK_US) {
		uint64_t left = (s->in.len - done) / FRAME * 1000000 / DISPLAY_SOUND_RATE;

		s->credit_us -= TICK_US;
		pack(s, s->in.data + done, now - left);
		done += BYTES;
	}
	buf_consume(&s->in, done);
}

static void wait_a_tick(struct display_sound *s)
{
	const struct timeval t = {0, TICK_US};

	event_add(s->tick, &t);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct display_sound *s = arg;
	uint8_t *to = buf_reserve(&s->in, READ);
	ssize_t n = to ? read(s->fd, to, READ) : -1;
	uint64_t now = now_us();

	wait_a_tick(s);
	if (n <= 0)
		return;
	if (now - s->read_us > STALE_US && s->in.len) {
		memmove(s->in.data, to, (size_t)n);
		s->in.len = 0;
	}
	s->in.len += (size_t)n;
	s->read_us = now;
	pack_all(s, now);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct display_sound *s = arg;

	if (s->readable)
		event_add(s->readable, NULL);
}

static int open_fifo(int shm)
{
	_cleanup_close_ int fd = display_x_open(shm, DISPLAY_SOUND_FIFO, O_RDWR | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return -1;
	return take_fd(&fd);
}

/* What was played while nobody listened is of no interest.  At most what a pipe can have. */
static void empty(int fd)
{
	char waste[4096];

	for (size_t i = 0; i < (1u << 20) / sizeof(waste); i++)
		if (read(fd, waste, sizeof(waste)) <= 0)
			break;
}

static void stop(struct display_sound *s)
{
	if (s->readable)
		event_free(take_ptr(s->readable));
	event_del(s->tick);
	close_fd(s->fd);
	s->fd = -1;
	buf_clear(&s->in);
}

static void start(struct display_sound *s)
{
	if (s->fd >= 0 || !s->wanted || !s->reachable)
		return;
	s->fd = open_fifo(s->shm);
	if (s->fd < 0)
		return;
	empty(s->fd);
	s->readable = event_new(s->base, s->fd, EV_READ, on_readable, s);
	if (!s->readable || event_add(s->readable, NULL) < 0) {
		stop(s);
		return;
	}
	s->last_us = now_us();
	s->credit_us = 0;
}

int display_sound_new(struct event_base *base, int shm, display_sound_packet *packet, void *arg,
	struct display_sound **ret_sound)
{
	struct display_sound *s = calloc(1, sizeof(*s));
	int error = 0;

	if (!s)
		return -ENOMEM;
	*s = (struct display_sound){
		.base = base, .shm = shm, .packet = packet, .arg = arg, .fd = -1, .silent = TAIL};
	s->tick = event_new(base, -1, 0, on_tick, s);
	s->encoder = opus_encoder_create(
		DISPLAY_SOUND_RATE, DISPLAY_SOUND_CHANNELS, OPUS_APPLICATION_AUDIO, &error);
	if (!s->tick || !s->encoder) {
		display_sound_free(s);
		return -ENOMEM;
	}
	opus_encoder_ctl(s->encoder, OPUS_SET_BITRATE(BITRATE));
	opus_encoder_ctl(s->encoder, OPUS_SET_COMPLEXITY(EFFORT));
	*ret_sound = s;
	return 0;
}

void display_sound_free(struct display_sound *s)
{
	if (!s)
		return;
	if (s->tick) {
		stop(s);
		event_free(s->tick);
	}
	if (s->encoder)
		opus_encoder_destroy(s->encoder);
	buf_fini(&s->in);
	free(s);
}

void display_sound_listen(struct display_sound *s, bool on)
{
	s->wanted = on;
	if (on)
		start(s);
	else
		stop(s);
}

void display_sound_take_up(struct display_sound *s)
{
	s->reachable = true;
	start(s);
}

void display_sound_let_go(struct display_sound *s)
{
	s->reachable = false;
	stop(s);
}
