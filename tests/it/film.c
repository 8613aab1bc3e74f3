// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A film for tests: film X Y WIDTH HEIGHT STOP shows a window with moving pictures, 25 a second,
 * until there is a file STOP; the last picture stays.  In plain X requests, as simple players do.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <xcb/xcb.h>

#define BAND 32 /* rows of one request */

struct film {
	xcb_connection_t *x;
	xcb_window_t window;
	xcb_gcontext_t gc;
	uint8_t depth;
	int w, h;
	uint32_t *pixels;
};

static int open_window(struct film *f, int x, int y)
{
	f->x = xcb_connect(NULL, NULL);
	if (xcb_connection_has_error(f->x))
		return -1;
	const xcb_screen_t *s = xcb_setup_roots_iterator(xcb_get_setup(f->x)).data;
	const uint32_t values[] = {s->black_pixel, 1 /* no window manager's business */};

	f->window = xcb_generate_id(f->x);
	f->gc = xcb_generate_id(f->x);
	f->depth = s->root_depth;
	xcb_create_window(f->x, s->root_depth, f->window, s->root, (int16_t)x, (int16_t)y,
		(uint16_t)f->w, (uint16_t)f->h, 0, XCB_WINDOW_CLASS_INPUT_OUTPUT, s->root_visual,
		XCB_CW_BACK_PIXEL | XCB_CW_OVERRIDE_REDIRECT, values);
	xcb_create_gc(f->x, f->gc, f->window, 0, NULL);
	xcb_map_window(f->x, f->window);
	return 0;
}

/* Waves, like nothing that was there before. */
static void draw(struct film *f, unsigned t)
{
	for (int y = 0; y < f->h; y++)
		for (int x = 0; x < f->w; x++) {
			uint32_t r = ((uint32_t)(x * x) / 150 + t * 13) % 256,
				 g = ((uint32_t)(y * y) / 170 + t * 7) % 256,
				 b = ((uint32_t)(x * y) / 190 - t * 9) % 256;

			f->pixels[y * f->w + x] = r << 16 | g << 8 | b;
		}
	for (int y = 0; y < f->h; y += BAND) {
		const int h = f->h - y < BAND ? f->h - y : BAND;

		xcb_put_image(f->x, XCB_IMAGE_FORMAT_Z_PIXMAP, f->window, f->gc, (uint16_t)f->w,
			(uint16_t)h, 0, (int16_t)y, 0, f->depth, (uint32_t)(f->w * h * 4),
			(uint8_t *)(f->pixels + y * f->w));
	}
	/* Behind the picture: it is there when this is answered. */
	free(xcb_get_input_focus_reply(f->x, xcb_get_input_focus(f->x), NULL));
}

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 40000000};
	struct film f = {0};

	if (argc != 6)
		return 2;
	f.w = atoi(argv[3]);
	f.h = atoi(argv[4]);
	if (f.w < 1 || f.h < 1 || f.w > 4096 || f.h > 4096)
		return 2;
	f.pixels = calloc((size_t)f.w * (size_t)f.h, sizeof(*f.pixels));
	if (!f.pixels || open_window(&f, atoi(argv[1]), atoi(argv[2])) < 0) {
		fprintf(stderr, "film: no display\n");
		return 1;
	}
	for (unsigned t = 0; access(argv[5], F_OK) < 0; t++) {
		draw(&f, t);
		nanosleep(&pause, NULL);
	}
	for (;;)
		sleep(1000);
}
