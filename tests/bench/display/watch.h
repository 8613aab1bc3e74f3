/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch - the viewers of the display's benchmark: who decodes (watch_podrun.c, watch_vnc.c), and
 * how what they have is compared (watch_same.c).
 */
#ifndef BENCH_DISPLAY_WATCH_H
#define BENCH_DISPLAY_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_end {
	const struct watch_end_ops *ops;
	void *data; /* of the end's own */
	int fd;
	uint32_t *pixels; /* what is seen; NULL before the first picture */
	int width, height, stride;
	/* Pixels have changed: called from within read. */
	void (*progress)(void *ctx);
	void *ctx;
};

/* Whatever goes wrong ends the program with a message. */
struct watch_end_ops {
	/* Over the connected e->fd; @quality is 0 (lossless) to 100. */
	void (*begin)(struct watch_end *e, int quality);
	/* What has arrived, decoded; e->fd is readable. */
	void (*read)(struct watch_end *e);
	void (*key)(struct watch_end *e, uint32_t keysym, bool down);
	/* Bytes that were read and not decoded yet. */
	size_t (*waiting)(const struct watch_end *e);
};

extern const struct watch_end_ops watch_podrun, watch_podrun_vp8, watch_vnc;

void watch_die(const char *what) __attribute__((noreturn));

/*
 * Which parts of a picture are new, and whether a viewer has them.  A part is a block of 16x16
 * pixels that differs from what was there before; it has come when it is much nearer to the new
 * picture than to the old one, which also holds for what is not sent exactly.
 */
struct watch_same {
	int width, height;
	struct watch_block {
		short x, y, w, h;
		unsigned most; /* the sum of differences with which it counts as there */
	} * blocks;
	size_t n, first; /* all before `first` had come when last looked at */
};

void watch_same_init(struct watch_same *s, int width, int height);
/* What is new in @now; false if nothing is. */
bool watch_same_begin(struct watch_same *s, const uint32_t *before, const uint32_t *now);
/* All of it has come. */
bool watch_same_check(struct watch_same *s, const struct watch_end *e, const uint32_t *now);

/* Of the luma of 8x8 blocks, their mean: 1 is the same picture (Wang et al., 2004). */
double watch_ssim(const uint32_t *a, const uint32_t *b, int width, int height);

#endif
