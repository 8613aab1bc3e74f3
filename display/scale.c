// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Each smaller pixel is the mean of what it covers (pixman's separable convolution with a box), so
 * that thin lines and small text fade instead of vanishing.  A changed pixel reaches those within
 * a box around its own place, so changed areas grow by MARGIN.
 */
#include "display/scale.h"

#include "base/base.h"
#include "display/region.h"

#define MARGIN 2  /* smaller pixels */
#define PHASES 4  /* 2^4 of the filter, between two pixels */
#define AREAS  64 /* more are taken as one: what they are in common with others is little */

struct display_scale {
	int from_width, from_height;
	struct display_frame frame;
	pixman_transform_t transform;
	pixman_fixed_t *filter;
	int n_filter;
};

bool display_scale_fit(
	int width, int height, int max_width, int max_height, int *ret_width, int *ret_height)
{
	long w = width, h = height;

	if (max_width > 0 && w > max_width) {
		h = h * max_width / w;
		w = max_width;
	}
	if (max_height > 0 && h > max_height) {
		w = w * max_height / h;
		h = max_height;
	}
	*ret_width = (int)MAX(w, 1);
	*ret_height = (int)MAX(h, 1);
	return *ret_width != width || *ret_height != height;
}

int display_scale_new(
	int from_width, int from_height, int width, int height, struct display_scale **ret_scale)
{
	struct display_scale *s = calloc(1, sizeof(*s));
	pixman_fixed_t x = pixman_double_to_fixed((double)from_width / width);
	pixman_fixed_t y = pixman_double_to_fixed((double)from_height / height);

	if (!s)
		return -ENOMEM;
	s->from_width = from_width;
	s->from_height = from_height;
	pixman_transform_init_scale(&s->transform, x, y);
	s->filter = pixman_filter_create_separable_convolution(&s->n_filter, x, y,
		PIXMAN_KERNEL_IMPULSE, PIXMAN_KERNEL_IMPULSE, PIXMAN_KERNEL_BOX, PIXMAN_KERNEL_BOX,
		PHASES, PHASES);
	if (!s->filter || display_frame_init(&s->frame, width, height) < 0) {
		display_scale_free(s);
		return -ENOMEM;
	}
	*ret_scale = s;
	return 0;
}

void display_scale_free(struct display_scale *s)
{
	if (!s)
		return;
	free(s->filter);
	display_frame_fini(&s->frame);
	free(s);
}

const struct display_frame *display_scale_frame(const struct display_scale *s)
{
	return &s->frame;
}

/* Where a changed area is in the smaller frame. */
static void add_area(const struct display_scale *s, const pixman_box32_t *b, pixman_region32_t *to)
{
	long w = s->frame.width, h = s->frame.height, fw = s->from_width, fh = s->from_height;
	long x1 = b->x1 * w / fw - MARGIN, y1 = b->y1 * h / fh - MARGIN;
	long x2 = (b->x2 * w + fw - 1) / fw + MARGIN, y2 = (b->y2 * h + fh - 1) / fh + MARGIN;
	struct display_rect area;

	x1 = MAX(x1, 0);
	y1 = MAX(y1, 0);
	x2 = MIN(x2, w);
	y2 = MIN(y2, h);
	area = (struct display_rect){(int)x1, (int)y1, (int)(x2 - x1), (int)(y2 - y1)};
	display_region_add(to, &area);
}

static pixman_image_t *image_of(const struct display_frame *f)
{
	return pixman_image_create_bits(
		PIXMAN_x8r8g8b8, f->width, f->height, f->pixels, f->stride * 4);
}

int display_scale_run(struct display_scale *s, const struct display_frame *from,
	pixman_region32_t *changed, pixman_region32_t *ret_changed)
{
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(changed, &n);
	pixman_image_t *large = image_of(from), *small = image_of(&s->frame);

	if (!large || !small) {
		if (large)
			pixman_image_unref(large);
		if (small)
			pixman_image_unref(small);
		return -ENOMEM;
	}
	pixman_region32_clear(ret_changed);
	if (n > AREAS) {
		b = pixman_region32_extents(changed);
		n = 1;
	}
	for (int i = 0; i < n; i++)
		add_area(s, &b[i], ret_changed);
	pixman_image_set_transform(large, &s->transform);
	pixman_image_set_filter(large, PIXMAN_FILTER_SEPARABLE_CONVOLUTION, s->filter, s->n_filter);
	pixman_image_set_repeat(large, PIXMAN_REPEAT_PAD);
	b = pixman_region32_rectangles(ret_changed, &n);
	for (int i = 0; i < n; i++) {
		struct display_rect r = display_rect_of(&b[i]);

		pixman_image_composite32(
			PIXMAN_OP_SRC, large, NULL, small, r.x, r.y, 0, 0, r.x, r.y, r.w, r.h);
		for (int y = 0; y < r.h; y++)
			for (int x = 0; x < r.w; x++)
				*display_frame_at(&s->frame, r.x + x, r.y + y) &= DISPLAY_RGB;
	}
	pixman_image_unref(large);
	pixman_image_unref(small);
	return 0;
}
