// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench load - what is shown in the display's benchmark, drawn into any X server.
 *
 *     load DIR WIDTHxHEIGHT
 *
 * It does what watch.c asks (stage.h).  Drawn is what programs of these sorts ask of X servers: a
 * page is copied from a pixmap, as by toolkits that draw into memory of their own; the terminal
 * scrolls by copying its window and draws letters with a font of the X server's; a window is moved
 * by its coordinates and what comes out from behind it has a background; frames of the clip are
 * put as images, scaled by the program.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xcb/xcb.h>

#include "stage.h"

#define LINE   13 /* pixels, of the font "fixed" */
#define ASCENT 11
#define LETTER 6
#define BOX_W  512
#define BOX_H  400

struct load {
	xcb_connection_t *x;
	xcb_screen_t *screen;
	xcb_window_t window, box;
	xcb_pixmap_t next; /* what the window is to show */
	xcb_gcontext_t gc;
	const char *dir;
	struct stage *stage;
	int ask, said;
	int width, height;
	uint32_t *page; /* the last one */
	uint32_t *clip;
	size_t clip_len;
	enum stage_what prepared;
	enum stage_scroll scroll;
	uint32_t seed, seed_before;
	int number, number_before; /* of seq's next line */
	bool terminal, boxed;	   /* is what the window shows */
	int box_x, box_y, step_x, step_y;
	int typed; /* letters */
};

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void say(struct load *l, char what)
{
	if (write(l->said, &what, 1) != 1)
		die("said");
}

static void drawn(struct load *l)
{
	atomic_store(&l->stage->drawn_ns, now_ns());
}

/* All requests have been done by the X server. */
static void sync_x(struct load *l)
{
	free(xcb_get_input_focus_reply(l->x, xcb_get_input_focus(l->x), NULL));
	if (xcb_connection_has_error(l->x))
		die("the X server");
}

static void put_image(struct load *l, xcb_drawable_t to, const uint32_t *pixels, int y, int rows)
{
	size_t n = (size_t)l->width * (size_t)rows * 4;

	xcb_put_image(l->x, XCB_IMAGE_FORMAT_Z_PIXMAP, to, l->gc, (uint16_t)l->width,
		(uint16_t)rows, 0, (int16_t)y, 0, l->screen->root_depth, (uint32_t)n,
		(const uint8_t *)(pixels + (size_t)y * (size_t)l->width));
}

/* In bands that any X server takes. */
static void put_picture(struct load *l, xcb_drawable_t to, const uint32_t *pixels)
{
	int band = (int)(xcb_get_maximum_request_length(l->x) * 4ULL / (unsigned)l->width / 4) - 1;

	for (int y = 0; y < l->height; y += band)
		put_image(l, to, pixels, y, l->height - y < band ? l->height - y : band);
}

static void colour(struct load *l, uint32_t foreground)
{
	const uint32_t values[] = {foreground, 0xffffff};

	xcb_change_gc(l->x, l->gc, XCB_GC_FOREGROUND | XCB_GC_BACKGROUND, values);
}

static void fill(struct load *l, xcb_drawable_t to, int y, int h)
{
	const xcb_rectangle_t r = {0, (int16_t)y, (uint16_t)l->width, (uint16_t)h};

	colour(l, 0xffffff);
	xcb_poly_fill_rectangle(l->x, to, l->gc, 1, &r);
	colour(l, 0);
}

/* The target is what the pixmap has. */
static void take_target(struct load *l)
{
	xcb_get_image_reply_t *r = xcb_get_image_reply(l->x,
		xcb_get_image(l->x, XCB_IMAGE_FORMAT_Z_PIXMAP, l->next, 0, 0, (uint16_t)l->width,
			(uint16_t)l->height, ~0u),
		NULL);
	const uint32_t *pixels = r ? (const uint32_t *)(const void *)xcb_get_image_data(r) : NULL;

	if (!r || xcb_get_image_data_length(r) < l->width * l->height * 4)
		die("GetImage");
	for (int i = 0; i < l->width * l->height; i++)
		l->stage->target[i] = pixels[i] & 0xffffff;
	free(r);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void read_page(struct load *l, int n)
{
	char path[4096];
	uint8_t rgb[3];
	int w, h;
	FILE *f;

	snprintf(path, sizeof(path), "%s/pages/page-%02d.ppm", l->dir, n);
	f = fopen(path, "rb");
	if (!f || fscanf(f, "P6 %d %d 255", &w, &h) != 2 || getc(f) == EOF || w != l->width ||
		h != l->height)
		die(path);
	for (int i = 0; i < w * h; i++) {
		if (fread(rgb, 3, 1, f) != 1)
			die(path);
		l->page[i] = (uint32_t)(rgb[0] << 16 | rgb[1] << 8 | rgb[2]);
	}
	fclose(f);
}

static void unbox(struct load *l)
{
	if (l->boxed)
		xcb_unmap_window(l->x, l->box);
	l->boxed = false;
}

static void prepare_page(struct load *l, int n)
{
	unbox(l);
	l->terminal = false;
	read_page(l, n);
	memcpy(l->stage->target, l->page, (size_t)l->width * (size_t)l->height * 4);
	put_picture(l, l->next, l->page);
}

static void show_next(struct load *l)
{
	xcb_copy_area(l->x, l->next, l->window, l->gc, 0, 0, 0, 0, (uint16_t)l->width,
		(uint16_t)l->height);
}

/* ---- a terminal ------------------------------------------------------------------------------ */

static const char *const words[] = {"share", "doc", "lib", "python3", "locale", "icons", "hicolor",
	"apps", "man", "LC_MESSAGES", "zoneinfo", "perl5", "include", "fonts", "mime", "themes",
	"scalable", "48x48", "firmware", "x86_64-linux-gnu"};

static uint32_t random_next(struct load *l)
{
	l->seed = l->seed * 1664525u + 1013904223u;
	return l->seed >> 8;
}

/* As find(1) prints; the same in every run. */
static int path_line(struct load *l, char *line, int room)
{
	int n = snprintf(line, (size_t)room, "/usr"), parts = 3 + (int)(random_next(l) % 6);

	for (int i = 0; i < parts; i++)
		n += snprintf(line + n, (size_t)(room - n), "/%s%s",
			words[random_next(l) % (sizeof(words) / sizeof(words[0]))],
			random_next(l) % 5 ? "" : ".gz");
	return n;
}

static void text(struct load *l, xcb_drawable_t to, int x, int y, const char *s, int len)
{
	int most = (l->width - x) / LETTER;

	len = len > most ? most : len;
	xcb_image_text_8(l->x, (uint8_t)(len > 255 ? 255 : len), to, l->gc, (int16_t)x,
		(int16_t)(y + ASCENT), s);
}

/* One moment of it: what xterm does for as many lines as have come. */
static void scroll(struct load *l, xcb_drawable_t to)
{
	int rows = l->height / LINE, n, keep;
	char line[256];

	n = l->scroll == STAGE_SEQ ? 20 : l->scroll == STAGE_FIND ? rows : 1;
	keep = (rows - n) * LINE;
	if (keep > 0)
		xcb_copy_area(l->x, to, to, l->gc, 0, (int16_t)(n * LINE), 0, 0, (uint16_t)l->width,
			(uint16_t)keep);
	fill(l, to, keep, n * LINE);
	for (int i = 0; i < n; i++) {
		int len = l->scroll == STAGE_SEQ ? snprintf(line, sizeof(line), "%d", l->number++)
						 : path_line(l, line, sizeof(line));

		text(l, to, 0, keep + i * LINE, line, len);
	}
}

/* An empty white window, if it is not a terminal yet. */
static void begin_terminal(struct load *l)
{
	if (l->terminal)
		return;
	unbox(l);
	fill(l, l->next, 0, l->height);
	show_next(l);
	l->terminal = true;
	l->typed = 0;
}

static void prepare_scroll(struct load *l, enum stage_scroll kind)
{
	begin_terminal(l);
	l->scroll = kind;
	l->seed_before = l->seed;
	l->number_before = l->number;
	scroll(l, l->next);
	take_target(l);
}

/* Draws the same into the window that was drawn into the pixmap. */
static void scroll_again(struct load *l)
{
	l->seed = l->seed_before;
	l->number = l->number_before;
	scroll(l, l->window);
}

/* ---- the others ------------------------------------------------------------------------------ */

static void letter(struct load *l, xcb_drawable_t to)
{
	const char c = (char)('A' + l->typed % 26);
	int in_row = l->width / LETTER;

	text(l, to, l->typed % in_row * LETTER, l->typed / in_row % (l->height / LINE) * LINE, &c,
		1);
}

static void prepare_letter(struct load *l)
{
	begin_terminal(l);
	letter(l, l->next);
	take_target(l);
}

static void bounce(int *at, int *step, int room)
{
	if (*at + *step < 0 || *at + *step > room)
		*step = -*step;
	*at += *step;
}

/* The page behind the window, and in it the page's corner. */
static void prepare_drag(struct load *l)
{
	const uint32_t at[] = {(uint32_t)l->box_x, (uint32_t)l->box_y};
	uint32_t *target = l->stage->target;

	if (!l->boxed) {
		xcb_change_window_attributes(l->x, l->window, XCB_CW_BACK_PIXMAP, &l->next);
		xcb_change_window_attributes(l->x, l->box, XCB_CW_BACK_PIXMAP, &l->next);
		xcb_configure_window(l->x, l->box, XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y, at);
		xcb_map_window(l->x, l->box);
		sync_x(l);
		l->boxed = true;
	}
	bounce(&l->box_x, &l->step_x, l->width - BOX_W);
	bounce(&l->box_y, &l->step_y, l->height - BOX_H);
	memcpy(target, l->page, (size_t)l->width * (size_t)l->height * 4);
	for (int y = 0; y < BOX_H; y++)
		memcpy(target + (size_t)(l->box_y + y) * (size_t)l->width + l->box_x,
			l->page + (size_t)y * (size_t)l->width, BOX_W * 4);
}

static void drag(struct load *l)
{
	const uint32_t at[] = {(uint32_t)l->box_x, (uint32_t)l->box_y};

	xcb_configure_window(l->x, l->box, XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y, at);
}

static void open_clip(struct load *l)
{
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/clip", l->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	l->clip_len = (size_t)st.st_size / (STAGE_CLIP_W * STAGE_CLIP_H * 4);
	l->clip = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (l->clip == MAP_FAILED || !l->clip_len)
		die(path);
}

static void video(struct load *l, int frames)
{
	uint64_t begin = now_ns() + 100000000ULL;

	if (!l->clip)
		open_clip(l);
	unbox(l);
	atomic_store(&l->stage->frames, 0);
	for (int i = 0; i < frames && i < STAGE_FRAMES; i++) {
		uint64_t due = begin + (uint64_t)i * 1000000000ULL / STAGE_CLIP_FPS;
		const struct timespec t = {
			(time_t)(due / 1000000000ULL), (long)(due % 1000000000ULL)};

		stage_frame(l->clip, i % (int)l->clip_len, l->page, l->width, l->height);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		atomic_store(&l->stage->frame_ns[i], now_ns());
		atomic_store(&l->stage->frames, (uint32_t)i + 1);
		put_picture(l, l->window, l->page);
		sync_x(l);
	}
	l->terminal = false;
	say(l, 'e');
}

/* ---- what is asked --------------------------------------------------------------------------- */

static void prepare(struct load *l, const struct stage_ask *a)
{
	l->prepared = (enum stage_what)a->what;
	if (l->prepared == STAGE_PAGE)
		prepare_page(l, a->n);
	else if (l->prepared == STAGE_SCROLL)
		prepare_scroll(l, (enum stage_scroll)a->n);
	else if (l->prepared == STAGE_DRAG)
		prepare_drag(l);
	else if (l->prepared == STAGE_TYPE)
		prepare_letter(l);
	else if (l->prepared == STAGE_NOTES)
		begin_terminal(l);
	sync_x(l);
	say(l, 'r');
}

static void go(struct load *l)
{
	drawn(l);
	if (l->prepared == STAGE_PAGE)
		show_next(l);
	else if (l->prepared == STAGE_SCROLL)
		scroll_again(l);
	else if (l->prepared == STAGE_DRAG)
		drag(l);
	xcb_flush(l->x);
}

static void obey(struct load *l)
{
	struct stage_ask a;

	if (read(l->ask, &a, sizeof(a)) != sizeof(a))
		die("ask");
	if (a.what == STAGE_GO)
		go(l);
	else if (a.what == STAGE_VIDEO)
		video(l, a.n);
	else
		prepare(l, &a);
}

static void on_event(struct load *l, const xcb_generic_event_t *e)
{
	if ((e->response_type & 0x7f) != XCB_KEY_PRESS ||
		(l->prepared != STAGE_TYPE && l->prepared != STAGE_NOTES))
		return;
	drawn(l);
	letter(l, l->window);
	xcb_flush(l->x);
	l->typed++;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void make_windows(struct load *l)
{
	const uint32_t mask = XCB_CW_BACK_PIXEL | XCB_CW_OVERRIDE_REDIRECT | XCB_CW_EVENT_MASK;
	const uint32_t values[] = {0xffffff, 1, XCB_EVENT_MASK_KEY_PRESS};
	const uint32_t quiet[] = {0};
	xcb_font_t font = xcb_generate_id(l->x);

	l->window = xcb_generate_id(l->x);
	l->box = xcb_generate_id(l->x);
	l->next = xcb_generate_id(l->x);
	l->gc = xcb_generate_id(l->x);
	xcb_create_window(l->x, XCB_COPY_FROM_PARENT, l->window, l->screen->root, 0, 0,
		(uint16_t)l->width, (uint16_t)l->height, 0, XCB_WINDOW_CLASS_INPUT_OUTPUT,
		XCB_COPY_FROM_PARENT, mask, values);
	xcb_create_window(l->x, XCB_COPY_FROM_PARENT, l->box, l->screen->root, 0, 0, BOX_W, BOX_H,
		0, XCB_WINDOW_CLASS_INPUT_OUTPUT, XCB_COPY_FROM_PARENT, mask, values);
	xcb_create_pixmap(l->x, l->screen->root_depth, l->next, l->screen->root, (uint16_t)l->width,
		(uint16_t)l->height);
	xcb_create_gc(l->x, l->gc, l->next, XCB_GC_GRAPHICS_EXPOSURES, quiet);
	xcb_open_font(l->x, font, 5, "fixed");
	xcb_change_gc(l->x, l->gc, XCB_GC_FONT, &font);
	xcb_map_window(l->x, l->window);
	sync_x(l);
	xcb_set_input_focus(l->x, XCB_INPUT_FOCUS_POINTER_ROOT, l->window, XCB_CURRENT_TIME);
	sync_x(l);
}

static int open_in(const struct load *l, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

static void begin(struct load *l)
{
	int fd = open_in(l, "stage");
	size_t size = stage_size(l->width, l->height);

	if (ftruncate(fd, (off_t)size) < 0)
		die("stage");
	l->stage = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	l->page = calloc((size_t)l->width * (size_t)l->height, 4);
	if (l->stage == MAP_FAILED || !l->page)
		die("stage");
	l->stage->width = l->width;
	l->stage->height = l->height;
	l->ask = open_in(l, "ask");
	l->said = open_in(l, "said");
	l->x = xcb_connect(NULL, NULL);
	if (xcb_connection_has_error(l->x))
		die("the X server");
	l->screen = xcb_setup_roots_iterator(xcb_get_setup(l->x)).data;
	make_windows(l);
	say(l, 'b');
}

int main(int argc, char **argv)
{
	static struct load l = {.seed = 1, .step_x = 17, .step_y = 9, .box_x = 40, .box_y = 30};

	if (argc != 3 || sscanf(argv[2], "%dx%d", &l.width, &l.height) != 2) {
		fprintf(stderr, "usage: load DIR WIDTHxHEIGHT\n");
		return 2;
	}
	l.dir = argv[1];
	begin(&l);
	for (;;) {
		struct pollfd polls[] = {{.fd = l.ask, .events = POLLIN},
			{.fd = xcb_get_file_descriptor(l.x), .events = POLLIN}};
		xcb_generic_event_t *e;

		while ((e = xcb_poll_for_event(l.x)) != NULL) {
			on_event(&l, e);
			free(e);
		}
		if (xcb_connection_has_error(l.x))
			return 0;
		if (poll(polls, 2, -1) > 0 && polls[0].revents & POLLIN)
			obey(&l);
	}
}
