/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stage - what the two ends of the display's benchmark have in common: load.c, which draws inside
 * the system that is measured, and watch.c, which looks at it from the other side of the line.
 *
 * Both map one file, DIR/stage, and talk by two fifos beside it, DIR/ask (a struct stage_ask each)
 * and DIR/said (a byte each); their clock is CLOCK_MONOTONIC.  The load says what the picture will
 * be before it draws it, so that the viewer's can be compared with it as it comes.
 */
#ifndef BENCH_DISPLAY_STAGE_H
#define BENCH_DISPLAY_STAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define STAGE_FRAMES 4096

/*
 * The number of a video's frame, in black and white squares, least bit first, at many places: who
 * has it at all of them has the frame, and not parts of several.
 */
#define STAGE_BITS   12
#define STAGE_SQUARE 8 /* pixels */
#define STAGE_ACROSS 5
#define STAGE_PLACES (STAGE_ACROSS * STAGE_ACROSS)

/* The clip, as DIR/clip: frames of 32-bit pixels. */
#define STAGE_CLIP_W   352
#define STAGE_CLIP_H   240
#define STAGE_CLIP_FPS 24

struct stage_ask {
	char what; /* of enum stage_what */
	int32_t n;
};

enum stage_what {
	/* makes the target, is answered by 'r', and then draws it at 'g' */
	STAGE_PAGE = 'p',   /* DIR/pages/page-NN.ppm */
	STAGE_SCROLL = 's', /* a terminal's: n is of enum stage_scroll */
	STAGE_DRAG = 'd',   /* a window is moved */
	/* the same, but draws it at the next key */
	STAGE_TYPE = 't',
	STAGE_NOTES = 'n', /* no target; a letter for each key from now on */
	STAGE_GO = 'g',
	/* n frames of the clip, in their time; 'e' at the end */
	STAGE_VIDEO = 'v',
};

enum stage_scroll {
	STAGE_SEQ,    /* twenty short lines */
	STAGE_FIND,   /* a screen of long ones */
	STAGE_SMOOTH, /* one long line */
	STAGE_SCROLLS
};

struct stage {
	int32_t width, height;
	_Atomic uint64_t
		drawn_ns; /* when the step's drawing was begun, after STAGE_GO or the key */
	_Atomic uint32_t
		frames; /* of the video, that were drawn; [i] of what follows is frame i + 1 */
	_Atomic uint64_t frame_ns[STAGE_FRAMES];
	uint32_t target[]; /* width * height, 0x00RRGGBB */
};

static inline size_t stage_size(int width, int height)
{
	return sizeof(struct stage) + (size_t)width * (size_t)height * 4;
}

/* Where square 0 of a place is. */
static inline void stage_place(int place, int width, int height, int *x, int *y)
{
	*x = place % STAGE_ACROSS * (width - STAGE_BITS * STAGE_SQUARE) / (STAGE_ACROSS - 1);
	*y = place / STAGE_ACROSS * (height - STAGE_SQUARE) / (STAGE_ACROSS - 1);
}

/* The clip's frame @i (from 0) as it is shown; @clip is the file. */
void stage_frame(const uint32_t *clip, int i, uint32_t *to, int width, int height);

#endif
