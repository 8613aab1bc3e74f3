// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench frames - what a page costs: bytes, and CPU time to find and encode it and to decode it
 * again.
 *
 *     frames [OPTIONS] FILE.ppm...         pages, one after the other
 *     frames [OPTIONS] -s STEP             made ones (display/test_scene.h)
 *
 *     -q QUALITY of JPEG (0, the default: lossless)      -c CODECS    -l LEVEL of zstd
 *     -r ROUNDS through the files    -n FRAMES of the step    -g WIDTHxHEIGHT of the step
 *
 * CODECS is the sum of 1 << codec that the viewer takes (default: all).  A STEP is page, terminal,
 * type, scroll, drag, noise, gradient, tiles, fill, blit, specks.  Every frame is compared with
 * what was decoded; lossless, one wrong pixel is an error.  Prints one JSON object; times are
 * milliseconds of CPU: medians, and 95th percentiles.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "display/codec/stream.h"
#include "display/display.h"
#include "display/test_scene.h"
#include "proto/display.pb-c.h"

#define FRAMES_MAX 4096

enum figure {
	BYTES,
	UPDATE, /* find what has changed, moves, classify */
	ENCODE,
	DECODE,
	COMMANDS,
	FIGURES
};

static const char *const figure_names[FIGURES] = {
	"bytes", "update_ms", "encode_ms", "decode_ms", "commands"};

static const char *const steps[SCENE_STEPS] = {"page", "terminal", "type", "scroll", "drag",
	"noise", "gradient", "tiles", "fill", "blit", "specks"};

struct bench {
	struct display_update *update;
	struct display_encoder *encoder;
	struct display_decoder *decoder;
	struct display_codecs codecs;
	int width, height, n;
	double figures[FIGURES][FRAMES_MAX];
	long types[DISPLAY_HELLO]; /* bytes of each */
};

static void die(const char *what)
{
	fprintf(stderr, "frames: %s\n", what);
	exit(1);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void begin(struct bench *b, int width, int height)
{
	Pb__DisplayWelcome welcome = PB__DISPLAY_WELCOME__INIT;
	struct display_message m = {.type = DISPLAY_WELCOME};
	_cleanup_buf_ struct buf out = BUF_INIT;
	uint8_t packed[64];

	b->width = width;
	b->height = height;
	if (display_update_new(width, height, &b->update) < 0 ||
		display_encoder_new(&b->encoder) < 0 || display_stream_new(&b->codecs.stream) < 0 ||
		display_decoder_new(NULL, NULL, &b->decoder) < 0)
		die("no memory");
	welcome.width = (uint32_t)width;
	welcome.height = (uint32_t)height;
	m.data = (struct display_bytes){packed, pb__display_welcome__pack(&welcome, packed)};
	display_wire_put(&out, &m);
	display_decoder_feed(b->decoder, out.data, out.len, NULL);
}

static void encode(struct bench *b, const struct display_commands *l, struct buf *out)
{
	for (size_t i = 0; i < l->n; i++) {
		size_t before = out->len;

		if (display_command_put(b->encoder, out, &l->list[i],
			    display_update_shadow(b->update), &b->codecs) < 0)
			die("no memory");
		b->types[out->data[before] % DISPLAY_HELLO] += (long)(out->len - before);
	}
}

static void frame(struct bench *b, const struct display_frame *f, pixman_region32_t *damage)
{
	static struct buf out;
	struct display_commands l = {0};
	double at[4];
	int n = b->n++;

	if (n >= FRAMES_MAX)
		die("too many frames");
	buf_clear(&out);
	at[0] = cpu_ms();
	if (display_update_run(b->update, f, damage, NULL, 0, &l, NULL) < 0)
		die("no memory");
	at[1] = cpu_ms();
	encode(b, &l, &out);
	at[2] = cpu_ms();
	if (display_decoder_feed(b->decoder, out.data, out.len, NULL) < 0)
		die("it cannot be decoded");
	at[3] = cpu_ms();
	if (!b->codecs.quality && !display_frame_same(display_decoder_frame(b->decoder), f))
		die("wrong pixels");
	b->figures[BYTES][n] = (double)out.len;
	b->figures[COMMANDS][n] = (double)l.n;
	for (int i = 0; i < 3; i++)
		b->figures[UPDATE + i][n] = at[i + 1] - at[i];
	display_commands_fini(&l);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int ppm_number(FILE *f)
{
	int c, v = 0;

	while (isspace(c = getc(f)))
		;
	for (; isdigit(c); c = getc(f))
		v = v * 10 + c - '0';
	return v;
}

static void load(const char *path, struct display_frame *ret_frame)
{
	_cleanup_fclose_ FILE *f = fopen(path, "rb");
	uint8_t rgb[3];
	int w, h;

	if (!f || getc(f) != 'P' || getc(f) != '6')
		die(path);
	w = ppm_number(f);
	h = ppm_number(f);
	if (ppm_number(f) != 255 || display_frame_init(ret_frame, w, h) < 0)
		die(path);
	for (int i = 0; i < w * h; i++) {
		if (fread(rgb, 3, 1, f) != 1)
			die(path);
		ret_frame->pixels[i] = (uint32_t)(rgb[0] << 16 | rgb[1] << 8 | rgb[2]);
	}
}

static void run_files(struct bench *b, char **paths, int n, int rounds)
{
	pixman_region32_t all;
	struct display_frame f;

	for (int i = 0; i < n * rounds; i++) {
		load(paths[i % n], &f);
		if (!b->update)
			begin(b, f.width, f.height);
		if (f.width != b->width || f.height != b->height)
			die("pages of different sizes");
		pixman_region32_init_rect(&all, 0, 0, (unsigned)f.width, (unsigned)f.height);
		frame(b, &f, &all);
		pixman_region32_fini(&all);
		display_frame_fini(&f);
	}
}

static void run_steps(struct bench *b, int width, int height, const char *name, int n)
{
	pixman_region32_t damage;
	struct scene s;
	int step = 0;

	while (step < SCENE_STEPS && strcmp(steps[step], name) != 0)
		step++;
	if (step == SCENE_STEPS || scene_init(&s, width, height, 1) < 0)
		die("no such step");
	begin(b, width, height);
	pixman_region32_init_rect(&damage, 0, 0, (unsigned)width, (unsigned)height);
	scene_do(&s, SCENE_PAGE, &damage);
	if (step == SCENE_DRAG)
		scene_do(&s, SCENE_DRAG, &damage);
	frame(b, &s.screen, &damage);
	b->n = 0;
	memset(b->types, 0, sizeof(b->types));
	for (int i = 0; i < n; i++) {
		pixman_region32_clear(&damage);
		scene_do(&s, (enum scene_step)step, &damage);
		frame(b, &s.screen, &damage);
	}
	pixman_region32_fini(&damage);
	scene_fini(&s);
}

/* ---- results --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

static void print(struct bench *b)
{
	printf("{\"width\": %d, \"height\": %d, \"frames\": %d", b->width, b->height, b->n);
	for (int i = 0; i < FIGURES; i++) {
		double *f = b->figures[i], sum = 0;

		qsort(f, (size_t)b->n, sizeof(*f), compare);
		for (int k = 0; k < b->n; k++)
			sum += f[k];
		printf(", \"%s\": {\"p50\": %.2f, \"p95\": %.2f, \"mean\": %.2f}", figure_names[i],
			f[b->n / 2], f[b->n * 95 / 100], sum / b->n);
	}
	printf(", \"kilobytes\": {\"raw\": %ld, \"copy\": %ld, \"sfill\": %ld, \"bitmap\": %ld, "
	       "\"pfill\": %ld}}\n",
		b->types[DISPLAY_RAW] / 1000, b->types[DISPLAY_COPY] / 1000,
		b->types[DISPLAY_SFILL] / 1000, b->types[DISPLAY_BITMAP] / 1000,
		b->types[DISPLAY_PFILL] / 1000);
}

int main(int argc, char **argv)
{
	static struct bench b = {.codecs = {.mask = DISPLAY_DECODER_CODECS}};
	int width = 1024, height = 768, n = 50, rounds = 1, c;
	const char *step = NULL;

	while ((c = getopt(argc, argv, "q:c:l:r:s:n:g:")) != -1) {
		if (c == 'q')
			b.codecs.quality = atoi(optarg);
		else if (c == 'c')
			b.codecs.mask = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'l')
			b.codecs.level = atoi(optarg);
		else if (c == 'r')
			rounds = atoi(optarg);
		else if (c == 's')
			step = optarg;
		else if (c == 'n')
			n = atoi(optarg);
		else if (c != 'g' || sscanf(optarg, "%dx%d", &width, &height) != 2)
			die("wrong option: see the top of frames.c");
	}
	if (step)
		run_steps(&b, width, height, step, n);
	else
		run_files(&b, argv + optind, argc - optind, rounds);
	if (!b.n)
		die("no frames");
	print(&b);
	return 0;
}
