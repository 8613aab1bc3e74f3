// SPDX-License-Identifier: GPL-2.0-or-later
#include "stage.h"

#include <pixman.h>

static void put_number(uint32_t *to, int width, int height, unsigned number)
{
	int x0, y0;

	for (int place = 0; place < STAGE_PLACES; place++) {
		stage_place(place, width, height, &x0, &y0);
		for (int y = 0; y < STAGE_SQUARE; y++)
			for (int x = 0; x < STAGE_BITS * STAGE_SQUARE; x++)
				to[(y0 + y) * width + x0 + x] =
					number >> (x / STAGE_SQUARE) & 1 ? 0xffffff : 0;
	}
}

void stage_frame(const uint32_t *clip, int i, uint32_t *to, int width, int height)
{
	const uint32_t *pixels = clip + (size_t)i * STAGE_CLIP_W * STAGE_CLIP_H;
	pixman_image_t *from = pixman_image_create_bits(PIXMAN_x8r8g8b8, STAGE_CLIP_W, STAGE_CLIP_H,
		(uint32_t *)(uintptr_t)pixels, STAGE_CLIP_W * 4);
	pixman_image_t *image =
		pixman_image_create_bits(PIXMAN_x8r8g8b8, width, height, to, width * 4);
	pixman_transform_t t;

	pixman_transform_init_scale(&t, pixman_double_to_fixed((double)(STAGE_CLIP_W - 1) / width),
		pixman_double_to_fixed((double)(STAGE_CLIP_H - 1) / height));
	pixman_image_set_transform(from, &t);
	pixman_image_set_filter(from, PIXMAN_FILTER_BILINEAR, NULL, 0);
	pixman_image_set_repeat(from, PIXMAN_REPEAT_PAD);
	pixman_image_composite32(PIXMAN_OP_SRC, from, NULL, image, 0, 0, 0, 0, 0, 0, width, height);
	pixman_image_unref(from);
	pixman_image_unref(image);
	put_number(to, width, height, (unsigned)i + 1);
}
