// SPDX-License-Identifier: GPL-2.0-or-later
/* XFixes has pixels premultiplied by their alpha, as ARGB words. */
#include "display/x/cursor.h"

#include "base/base.h"
#include "display/source.h"
#include "display/wire.h"

static uint8_t straight(uint32_t premultiplied, uint32_t alpha)
{
	return (uint8_t)(alpha ? MIN((premultiplied * 255 + alpha / 2) / alpha, 255u) : 0);
}

static void put_pixel(struct buf *b, uint32_t argb)
{
	uint32_t alpha = argb >> 24;
	const uint8_t rgba[4] = {straight(argb >> 16 & 0xff, alpha),
		straight(argb >> 8 & 0xff, alpha), straight(argb & 0xff, alpha), (uint8_t)alpha};

	buf_put(b, rgba, sizeof(rgba));
}

void display_x_cursor_take(
	const xcb_xfixes_get_cursor_image_reply_t *reply, struct buf *b, struct display_cursor *ret)
{
	const uint32_t *pixels = xcb_xfixes_get_cursor_image_cursor_image(reply);
	size_t there = reply->length; /* XCB's own length is what the fields say */
	int width = MIN(reply->width, DISPLAY_CURSOR_MAX),
	    height = MIN(reply->height, DISPLAY_CURSOR_MAX);
	bool visible = false;

	b->len = 0;
	*ret = (struct display_cursor){0};
	if ((size_t)reply->width * reply->height > there)
		return;
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			uint32_t pixel = pixels[(size_t)y * reply->width + (size_t)x];

			visible |= pixel >> 24 != 0;
			put_pixel(b, pixel);
		}
	if (!visible || buf_error(b) < 0)
		return;
	*ret = (struct display_cursor){.hot_x = MIN(reply->xhot, width - 1),
		.hot_y = MIN(reply->yhot, height - 1),
		.width = width,
		.height = height,
		.rgba = b->data};
}
