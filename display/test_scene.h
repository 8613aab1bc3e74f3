/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scene - a screen on which things happen, for tests and benchmarks: pages of text (of two colours
 * or anti-aliased) and pictures, letters typed, areas scrolled, a window dragged about, noise,
 * gradients, patterns. The same seed gives the same scene everywhere.
 */
#ifndef DISPLAY_TEST_SCENE_H
#define DISPLAY_TEST_SCENE_H

#include "display/pixels.h"

enum scene_step {
	SCENE_PAGE,	/* everything is new: text, boxes, a picture */
	SCENE_TERMINAL, /* everything is new: letters of two colours */
	SCENE_TYPE,	/* one letter */
	SCENE_SCROLL,	/* an area, by a line or two, with text in what comes in */
	SCENE_DRAG,	/* a window, by some pixels */
	SCENE_NOISE,
	SCENE_GRADIENT,
	SCENE_TILES,
	SCENE_FILL,
	SCENE_BLIT,   /* an area, from elsewhere */
	SCENE_SPECKS, /* single pixels here and there */
	SCENE_STEPS
};

struct scene {
	struct display_frame screen; /* what is to be seen; upper bytes are rubbish */
	struct display_frame behind; /* the window */
	struct display_rect window;  /* w 0: there is none yet */
	uint64_t random;
};

/* -ENOMEM or 0. */
int scene_init(struct scene *s, int width, int height, uint64_t seed);
void scene_fini(struct scene *s);

/* A number below @n (> 0). */
int scene_random(struct scene *s, int n);
/* A rectangle on the screen. */
struct display_rect scene_rect(struct scene *s);

/* Does it; what may have changed is added to @damage. */
void scene_do(struct scene *s, enum scene_step step, pixman_region32_t *damage);

/* A page's text, in @r: letters of two colours, or of many greys. */
void scene_text(struct scene *s, const struct display_rect *r, bool grey);
/* Something like a photograph, in @r. */
void scene_picture(struct scene *s, const struct display_rect *r);

#endif
