// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/test_scene.h"

#include <string.h>

#include "base/base.h"

#define LETTER_W 7
#define LETTER_H 13

int scene_init(struct scene *s, int width, int height, uint64_t seed)
{
	*s = (struct scene){.random = seed * 2654435761u + 1};
	if (display_frame_init(&s->screen, width, height) < 0)
		return -ENOMEM;
	return display_frame_init(&s->behind, width, height);
}

void scene_fini(struct scene *s)
{
	display_frame_fini(&s->screen);
	display_frame_fini(&s->behind);
}

static uint32_t next(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 32);
}

int scene_random(struct scene *s, int n)
{
	return (int)(next(&s->random) % (uint32_t)n);
}

static uint32_t colour(struct scene *s)
{
	static const uint32_t usual[] = {0xffffff, 0, 0x2e3436, 0xeeeeec, 0x3465a4, 0xcc0000};

	return scene_random(s, 3) ? usual[scene_random(s, 6)] : next(&s->random) & DISPLAY_RGB;
}

struct display_rect scene_rect(struct scene *s)
{
	struct display_rect r;

	r.w = 1 + scene_random(s, s->screen.width);
	r.h = 1 + scene_random(s, s->screen.height);
	r.x = scene_random(s, s->screen.width - r.w + 1);
	r.y = scene_random(s, s->screen.height - r.h + 1);
	return r;
}

static uint32_t blend(uint32_t a, uint32_t b, unsigned part)
{
	uint32_t v = 0;

	for (int i = 0; i < 24; i += 8)
		v |= ((a >> i & 255) * (16 - part) + (b >> i & 255) * part) / 16 << i;
	return v;
}

/* How much ink is in a letter's pixel, 0 to 16: the same strokes for the same letter. */
static unsigned ink(int letter, int x, int y, bool grey)
{
	uint64_t shape = (uint64_t)letter * 0x9e3779b97f4a7c15u;
	unsigned bit;

	if (letter == 0 || x == LETTER_W - 1 || y < 2 || y > 10)
		return 0;
	bit = shape >> (x / 2 * 5 + y / 2 + 20) & 1;
	return !bit ? 0 : grey && (x + y) % 3 ? 2 + (unsigned)(x * 5 + y * 3 + letter) % 14 : 16;
}

static void draw_letter(struct scene *s, const struct display_rect *within, int letter, int x,
	int y, const uint32_t ground_ink[2], bool grey)
{
	const struct display_rect cell = {x, y, LETTER_W, LETTER_H};
	struct display_rect r;

	if (!display_rect_intersect(&cell, within, &r))
		return;
	for (int j = r.y; j < r.y + r.h; j++)
		for (int i = r.x; i < r.x + r.w; i++)
			*display_frame_at(&s->screen, i, j) = blend(
				ground_ink[0], ground_ink[1], ink(letter, i - x, j - y, grey));
}

void scene_text(struct scene *s, const struct display_rect *r, bool grey)
{
	const uint32_t colours[2] = {grey ? 0xffffff : colour(s), grey ? 0x222222 : 0x1010c0};

	for (int y = r->y; y < r->y + r->h; y += LETTER_H) {
		int end = r->x + scene_random(s, r->w) / LETTER_W * LETTER_W;

		for (int x = r->x; x < r->x + r->w; x += LETTER_W)
			draw_letter(s, r, x < end ? scene_random(s, 40) : 0, x, y, colours, grey);
	}
}

void scene_picture(struct scene *s, const struct display_rect *r)
{
	int a = 1 + scene_random(s, 40), b = 1 + scene_random(s, 40);

	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++) {
			uint32_t n = next(&s->random);

			*display_frame_at(&s->screen, x, y) =
				((uint32_t)(x * 256 / (a + x)) + (n & 7)) % 256 |
				((uint32_t)(y * 256 / (b + y)) + (n >> 8 & 7)) % 256 << 8 |
				((uint32_t)(x + y) / 4 + (n >> 16 & 3)) % 256 << 16;
		}
}

static void noise(struct scene *s, const struct display_rect *r)
{
	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			*display_frame_at(&s->screen, x, y) = next(&s->random);
}

static void gradient(struct scene *s, const struct display_rect *r)
{
	int a = scene_random(s, 5), b = scene_random(s, 5);

	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			*display_frame_at(&s->screen, x, y) =
				(uint32_t)(x * a / 2 + y * b / 2) % 256 * 0x10101;
}

static void tiles(struct scene *s, const struct display_rect *r)
{
	static const int periods[] = {1, 2, 3, 4, 8};
	int tw = periods[scene_random(s, 5)], th = periods[scene_random(s, 5)];
	uint32_t tile[64];

	for (int i = 0; i < 64; i++)
		tile[i] = colour(s);
	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			*display_frame_at(&s->screen, x, y) = tile[y % th * 8 + x % tw];
}

static void page(struct scene *s)
{
	const int w = s->screen.width, h = s->screen.height;
	const struct display_rect all = {0, 0, w, h};
	struct display_rect r = {w / 16, h / 8, w / 2, h * 3 / 4};

	display_frame_fill(&s->screen, &all, 0xffffff);
	if (!r.w || !r.h)
		return;
	scene_text(s, &r, true);
	r = (struct display_rect){0, 0, w, h / 10 + 1};
	display_frame_fill(&s->screen, &r, colour(s));
	r = (struct display_rect){w * 5 / 8, h / 8, w / 4 + 1, h / 3 + 1};
	scene_picture(s, &r);
	r.y += r.h;
	r.h = MIN(r.h, h - r.y);
	if (scene_random(s, 2))
		gradient(s, &r);
}

/* An area's contents from @sx, @sy of it. */
static void scroll(struct scene *s, struct display_rect r)
{
	int by = MIN(1 + scene_random(s, 2 * LETTER_H), r.h);
	struct display_rect stays = {r.x, r.y, r.w, r.h - by},
			    comes = {r.x, r.y + r.h - by, r.w, by};

	if (stays.h && scene_random(s, 2))
		display_frame_move(&s->screen, &stays, r.x, r.y + by);
	else if (stays.h) {
		comes.y = r.y;
		stays.y = r.y + by;
		display_frame_move(&s->screen, &stays, r.x, r.y);
	}
	scene_text(s, &comes, scene_random(s, 2));
}

static void copy(const struct display_frame *to, const struct display_frame *from, int sx, int sy,
	const struct display_rect *r)
{
	for (int y = 0; y < r->h; y++)
		memcpy(display_frame_at(to, r->x, r->y + y), display_frame_at(from, sx, sy + y),
			(size_t)r->w * sizeof(*to->pixels));
}

static struct display_rect new_window(struct scene *s)
{
	struct display_rect r = {0, 0, s->screen.width / 2 + 1, s->screen.height / 2 + 1}, bar = r;

	bar.h = r.h / 8 + 1;
	copy(&s->behind, &s->screen, 0, 0,
		&(struct display_rect){0, 0, s->screen.width, s->screen.height});
	scene_text(s, &r, true);
	display_frame_fill(&s->screen, &bar, 0x3465a4);
	return r;
}

static int within(int v, int most)
{
	return v < 0 ? 0 : MIN(v, most);
}

/* Puts back what is behind, and the window elsewhere. */
static struct display_rect drag(struct scene *s)
{
	struct display_rect old = s->window, new = old, all;
	struct display_frame window;

	if (!old.w)
		return s->window = new_window(s);
	new.x = within(old.x + scene_random(s, 41) - 17, s->screen.width - old.w);
	new.y = within(old.y + scene_random(s, 41) - 17, s->screen.height - old.h);
	if (display_frame_init(&window, old.w, old.h) == 0) {
		copy(&window, &s->screen, old.x, old.y, &(struct display_rect){0, 0, old.w, old.h});
		copy(&s->screen, &s->behind, old.x, old.y, &old);
		copy(&s->screen, &window, 0, 0, &new);
		display_frame_fini(&window);
		s->window = new;
	}
	all.x = MIN(old.x, new.x);
	all.y = MIN(old.y, new.y);
	all.w = old.w + abs(old.x - new.x);
	all.h = old.h + abs(old.y - new.y);
	return all;
}

static void specks(struct scene *s, const struct display_rect *r)
{
	for (int i = scene_random(s, 40); i >= 0; i--)
		*display_frame_at(&s->screen, r->x + scene_random(s, r->w),
			r->y + scene_random(s, r->h)) = colour(s);
}

static void type(struct scene *s, const struct display_rect *r)
{
	const uint32_t colours[2] = {0xffffff, 0};

	draw_letter(s, r, 1 + scene_random(s, 39), r->x, r->y, colours, scene_random(s, 2));
}

static void blit(struct scene *s, const struct display_rect *r)
{
	display_frame_move(&s->screen, r, scene_random(s, s->screen.width - r->w + 1),
		scene_random(s, s->screen.height - r->h + 1));
}

/* X leaves anything in the byte that is no colour. */
static void rubbish(struct scene *s, const struct display_rect *r)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		uint32_t byte = next(&s->random) & ~DISPLAY_RGB;

		for (int x = r->x; x < r->x + r->w; x++)
			*display_frame_at(&s->screen, x, y) ^= byte;
	}
}

void scene_do(struct scene *s, enum scene_step step, pixman_region32_t *damage)
{
	struct display_rect all = {0, 0, s->screen.width, s->screen.height}, r = scene_rect(s);

	if (step != SCENE_DRAG)
		s->window.w = 0;
	switch (step) {
	case SCENE_PAGE:
		page(s);
		r = all;
		break;
	case SCENE_TERMINAL:
		scene_text(s, &all, false);
		r = all;
		break;
	case SCENE_TYPE:
		type(s, &r);
		break;
	case SCENE_SCROLL:
		scroll(s, r);
		break;
	case SCENE_DRAG:
		r = drag(s);
		break;
	case SCENE_NOISE:
		noise(s, &r);
		break;
	case SCENE_GRADIENT:
		gradient(s, &r);
		break;
	case SCENE_TILES:
		tiles(s, &r);
		break;
	case SCENE_FILL:
		display_frame_fill(&s->screen, &r, colour(s));
		break;
	case SCENE_BLIT:
		blit(s, &r);
		break;
	default:
		specks(s, &r);
	}
	rubbish(s, &r);
	pixman_region32_union_rect(damage, damage, r.x, r.y, (unsigned)r.w, (unsigned)r.h);
}
