/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pixels - rectangles and pictures in memory.
 *
 * A frame is borrowed or owned memory of 32-bit pixels, 0x00RRGGBB.  In a frame that comes from
 * elsewhere (an X server's file) the upper byte is undefined, and the pixels may change while they
 * are read: only display/change.h looks at those.  In all frames of our own - the shadow, what a
 * viewer has decoded - the upper byte is 0, so that pixels can be compared as they are.
 */
#ifndef DISPLAY_PIXELS_H
#define DISPLAY_PIXELS_H

#include <pixman.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISPLAY_SIZE_MAX 8192 /* pixels, of a screen's width and of its height */
#define DISPLAY_RGB	 0x00ffffffu

struct display_rect {
	int x, y, w, h;
};

struct display_frame {
	uint32_t *pixels;
	int width, height;
	int stride; /* from row to row, in pixels */
};

/* A black frame of its own memory; -EINVAL if a side is not 1..DISPLAY_SIZE_MAX, or -ENOMEM. */
int display_frame_init(struct display_frame *f, int width, int height);
/* Frees what display_frame_init took; @f is empty then.  May be called again. */
void display_frame_fini(struct display_frame *f);

static inline uint32_t *display_frame_at(const struct display_frame *f, int x, int y)
{
	return f->pixels + (size_t)y * (size_t)f->stride + x;
}

/*
 * So many pixels of a row will be read soon.  Where the next ones are in another row, they are too
 * far away for the processor to foresee it.
 */
static inline void display_prefetch(const uint32_t *row, int n)
{
	for (int i = 0; i < n; i += 16)
		__builtin_prefetch(row + i);
}

/* How many of @n pixels (> 0) are as the first one, from there on. */
static inline int display_row_run(const uint32_t *p, int n)
{
	int i = 1;

	for (; i + 8 <= n; i += 8) {
		uint32_t d = 0;

		for (int k = 0; k < 8; k++)
			d |= p[i + k] ^ p[0];
		if (d)
			break;
	}
	while (i < n && p[i] == p[0])
		i++;
	return i;
}

/* True if every pixel's colour is the same; frames of different sizes are not. */
bool display_frame_same(const struct display_frame *a, const struct display_frame *b);
/* Copies the colours of @r, which lies in both, with upper bytes of 0.  They may be the same. */
void display_frame_copy(const struct display_frame *to, const struct display_frame *from,
	const struct display_rect *r);
void display_frame_fill(
	const struct display_frame *f, const struct display_rect *r, uint32_t colour);
/* What was at @sx, @sy is then in @r, as by memmove; both lie in the frame. */
void display_frame_move(
	const struct display_frame *f, const struct display_rect *r, int sx, int sy);

/* True if it has at least one pixel and lies wholly in @width x @height. */
bool display_rect_within(const struct display_rect *r, int width, int height);
/* The pixels that both have; false, and @ret is empty, if there are none. */
bool display_rect_intersect(
	const struct display_rect *a, const struct display_rect *b, struct display_rect *ret);

static inline long display_rect_area(const struct display_rect *r)
{
	return (long)r->w * r->h;
}

static inline struct display_rect display_rect_of(const pixman_box32_t *b)
{
	return (struct display_rect){b->x1, b->y1, b->x2 - b->x1, b->y2 - b->y1};
}

static inline pixman_box32_t display_rect_box(const struct display_rect *r)
{
	return (pixman_box32_t){r->x, r->y, r->x + r->w, r->y + r->h};
}

#endif
