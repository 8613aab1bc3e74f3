// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A frame that is larger than what may be on its way to the viewer delays everything behind it by
 * more than the line's time.  When that makes frames be left out, after STRIKES of those in a row
 * the next level is taken: behind JPEG, which costs the server and the viewer least, VP8, if the
 * viewer takes it, else smaller JPEGs.  Back it goes when a better frame would fit, for CALM
 * frames; and when none was left out for longer, for what may be on its way does not grow while it
 * isn't made use of.  Each time that was too early it waits twice as long.
 */
#include "display/reel.h"

#include <string.h>

#include "base/base.h"
#include "display/region.h"

#define STRIKES	      8
#define CALM	      96
#define PATIENCE      (5 * CALM)
#define PATIENCE_MOST (32 * CALM)
#define MUCH	      5		/* a level's frames have about a quarter of the one's before */
#define PIXELS	      (2 << 20) /* of a frame that is sent, at most */
#define QUALITY	      80	/* more is not seen in what moves */
#define QUALITY_LOW   50
#define ALONE	      (1u << DISPLAY_VIDEO_I420 | 1u << DISPLAY_VIDEO_MJPEG)
#define BITS	      36 /* of VP8 in a hundred pixels, where there is no JPEG */
#define FRAMES	      24 /* a second, for which that is meant */
#define KBIT_LEAST    64
#define WHOLE	      100 /* a quality that wants no JPEG where the line has room for that */

static const struct level {
	int shrink;
	bool whole, low;
	int vp8_shrink, vp8_bits; /* in a hundred pixels; 0: no VP8 where there may be JPEG */
} levels[] = {{1, true, false, 1, 0}, {1, false, false, 1, 0}, {2, false, false, 1, 36},
	{2, false, true, 1, 16}, {4, false, false, 2, 28}, {4, false, true, 2, 14},
	{8, false, true, 4, 24}};

void display_reel_init(struct display_reel *r, unsigned formats, int quality)
{
	*r = (struct display_reel){0};
	if (quality <= 0)
		return;
	if (formats & ALONE)
		r->formats = formats & DISPLAY_FILM_FORMATS;
	r->quality = MIN(quality, QUALITY);
	r->best = quality == WHOLE ? 0 : 1;
}

bool display_reel_shows(const struct display_reel *r)
{
	return r->formats;
}

bool display_reel_plays(const struct display_reel *r)
{
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		if (r->films[i].id)
			return true;
	return false;
}

bool display_reel_has(const struct display_reel *r, uint16_t id)
{
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++)
		if (id && r->films[i].id == id)
			return true;
	return false;
}

void display_reel_clear(struct display_reel *r)
{
	memset(r->films, 0, sizeof(r->films));
	r->owed = 0;
}

size_t display_reel_follow(struct display_reel *r, const struct display_video_film *films,
	const struct display_rect *rects, struct display_rect held[DISPLAY_VIDEO_FILMS],
	pixman_region32_t *open)
{
	size_t n = 0;

	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		struct display_reel_film *f = &r->films[i];

		if (f->id != films[i].id) {
			if (f->id && f->newest != f->sent)
				display_region_add(open, &f->rect);
			*f = (struct display_reel_film){
				.id = films[i].id, .level = r->best, .patience = PATIENCE};
		}
		if (!f->id)
			continue;
		f->rect = held[n++] = rects[i];
	}
	/* Another one may have taken it over. */
	for (size_t i = 0; i < n; i++)
		display_region_remove(open, &held[i]);
	display_reel_note(r, films);
	return n;
}

void display_reel_note(struct display_reel *r, const struct display_video_film *films)
{
	for (int i = 0; i < DISPLAY_VIDEO_FILMS; i++) {
		if (!r->films[i].id || r->films[i].id != films[i].id)
			continue;
		r->films[i].newest = films[i].frame;
		r->films[i].us = films[i].ns / 1000;
	}
}

struct display_reel_film *display_reel_next(struct display_reel *r)
{
	for (int i = 1; i <= DISPLAY_VIDEO_FILMS; i++) {
		const int k = (r->last + i) % DISPLAY_VIDEO_FILMS;

		if (r->films[k].id && r->films[k].newest != r->films[k].sent)
			return &r->films[k];
	}
	return NULL;
}

/* The least power of two by which the frame of @f has few enough pixels. */
static int shrink_at_least(const struct display_reel_film *f, int shrink)
{
	while (display_rect_area(&f->rect) / shrink / shrink > PIXELS)
		shrink *= 2;
	return shrink;
}

static bool takes(const struct display_reel *r, enum display_video_format format)
{
	return r->formats & 1u << format;
}

static struct display_film_kind kind_at(
	const struct display_reel *r, const struct display_reel_film *f, unsigned level)
{
	const struct level *l = &levels[level];
	struct display_film_kind kind = {DISPLAY_VIDEO_MJPEG, r->quality, l->shrink};
	const bool whole = l->whole && takes(r, DISPLAY_VIDEO_I420);
	int bits = l->vp8_bits, w, h;

	if (!takes(r, DISPLAY_VIDEO_MJPEG) || whole)
		kind.format = DISPLAY_VIDEO_I420;
	if (l->low)
		kind.quality = MIN(kind.quality, QUALITY_LOW);
	kind.shrink = shrink_at_least(f, kind.shrink);
	if (!bits && !takes(r, DISPLAY_VIDEO_MJPEG) && !whole)
		bits = BITS;
	if (!bits || !takes(r, DISPLAY_VIDEO_VP8))
		return kind;
	kind.instead = kind.format;
	kind.instead_shrink = kind.shrink;
	kind.format = DISPLAY_VIDEO_VP8;
	kind.shrink = shrink_at_least(f, l->vp8_shrink);
	display_film_size(&f->rect, &kind, &w, &h);
	kind.kbit = (int)((long)w * h * bits * r->quality / QUALITY * FRAMES / 100 / 1000);
	kind.kbit = MAX(kind.kbit, KBIT_LEAST);
	return kind;
}

struct display_film_kind display_reel_kind(
	const struct display_reel *r, const struct display_reel_film *f)
{
	return kind_at(r, f, f->level);
}

/* About what a frame of the level before this one would come to. */
static uint64_t better(
	const struct display_reel *r, const struct display_reel_film *f, size_t bytes)
{
	struct display_film_kind kind = kind_at(r, f, f->level - 1);
	uint64_t pixels = (uint64_t)display_rect_area(&f->rect);

	if (kind.format == DISPLAY_VIDEO_I420)
		return pixels * 3 / 2 / (uint64_t)(kind.shrink * kind.shrink);
	return (uint64_t)bytes * MUCH;
}

void display_reel_sent(
	struct display_reel *r, struct display_reel_film *f, size_t bytes, uint64_t window)
{
	const bool left_out = f->newest - f->sent > 1;

	f->sent = f->newest;
	r->last = (int)(f - r->films);
	r->owed = bytes;
	if ((bytes > window && left_out) || bytes == 0) {
		f->calm = 0;
		if (++f->strikes < STRIKES && bytes)
			return;
		f->strikes = 0;
		if (f->tried)
			f->patience = MIN(2 * f->patience, PATIENCE_MOST);
		f->level = MIN(f->level + 1, (unsigned)ARRAY_SIZE(levels) - 1);
		return;
	}
	f->strikes = 0;
	if (f->level == r->best || left_out)
		f->calm = 0;
	else if (++f->calm >= (better(r, f, bytes) <= window ? CALM : f->patience)) {
		f->calm = 0;
		f->tried = true;
		f->level--;
	}
}

void display_reel_paid(struct display_reel *r, size_t bytes)
{
	r->owed -= MIN(r->owed, (uint64_t)bytes);
}
