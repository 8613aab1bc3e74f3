// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/cover.h"

#include "base/base.h"
#include "display/change.h"
#include "display/region.h"

#define WORTH	     8	/* what is brought back to what is spoilt between it, at least */
#define LEAST_PIXELS 32 /* to be drawn otherwise: fewer are as short by themselves */

void display_kept_fini(struct display_kept *k)
{
	display_frame_fini(&k->frame);
}

/* What of @a is within @f, and not in @b. */
static void difference(pixman_region32_t *to, const struct display_frame *f,
	const struct display_rect *a, const struct display_rect *b)
{
	const struct display_rect screen = {0, 0, f->width, f->height};
	struct display_rect seen;

	pixman_region32_clear(to);
	if (a->w <= 0 || a->h <= 0 || !display_rect_intersect(a, &screen, &seen))
		return;
	display_region_add(to, &seen);
	display_region_remove(to, b);
}

static int add(struct display_commands *out, enum display_type type, const struct display_rect *r)
{
	const struct display_command c = {.type = type, .rect = *r};

	return display_commands_add(out, &c);
}

int display_kept_keep(struct display_kept *k, const struct display_frame *shadow,
	const struct display_cover *covers, size_t n, struct display_commands *out)
{
	pixman_region32_t covered, done;
	int r = 0, boxes;

	pixman_region32_init(&covered);
	pixman_region32_init(&done);
	for (size_t i = 0; i < n && r == 0; i++) {
		const pixman_box32_t *b;

		difference(&covered, shadow, &covers[i].now, &covers[i].before);
		/* Of several windows in one place the first has covered what there is to keep. */
		display_region_subtract(&covered, &covered, &done);
		display_region_union(&done, &done, &covered);
		b = pixman_region32_rectangles(&covered, &boxes);
		if (boxes && !k->frame.pixels)
			r = display_frame_init(&k->frame, shadow->width, shadow->height);
		for (int box = 0; box < boxes && r == 0; box++) {
			const struct display_rect part = display_rect_of(&b[box]);

			r = add(out, DISPLAY_KEEP, &part);
			if (r == 0)
				display_frame_copy(&k->frame, shadow, &part);
		}
	}
	pixman_region32_fini(&covered);
	pixman_region32_fini(&done);
	return r;
}

/* One rectangle that is no longer covered. */
static int uncover(const struct display_kept *k, const struct display_frame *now,
	struct display_rect r, pixman_region32_t *rest, pixman_region32_t *wrong,
	struct display_commands *out)
{
	pixman_region32_t part, other, same;
	int ret = 0;

	pixman_region32_init(&part);
	pixman_region32_init(&other);
	pixman_region32_init(&same);
	display_region_clip(&part, rest, &r);
	display_change_find(&k->frame, now, &part, &other);
	display_region_subtract(&same, &part, &other);
	if (display_region_area(&same) >= LEAST_PIXELS) {
		/* Also what lies between is brought back: that need not be as it was, either. */
		r = display_rect_of(pixman_region32_extents(&same));
		pixman_region32_fini(&part);
		pixman_region32_init_rect(&part, r.x, r.y, (unsigned)r.w, (unsigned)r.h);
		display_change_find(&k->frame, now, &part, &other);
		if (WORTH * display_region_area(&other) <= display_region_area(&same)) {
			ret = add(out, DISPLAY_UNCOVER, &r);
			display_region_remove(rest, &r);
			display_region_union(wrong, wrong, &other);
		}
	}
	pixman_region32_fini(&part);
	pixman_region32_fini(&other);
	pixman_region32_fini(&same);
	return ret;
}

int display_kept_uncover(const struct display_kept *k, const struct display_frame *now,
	const struct display_cover *covers, size_t n, pixman_region32_t *left,
	pixman_region32_t *rest, pixman_region32_t *wrong, struct display_commands *out)
{
	pixman_region32_t seen;
	int r = 0, boxes;

	if (!k->frame.pixels)
		return 0;
	pixman_region32_init(&seen);
	for (size_t i = 0; i < n && r == 0; i++) {
		const pixman_box32_t *b;

		difference(&seen, now, &covers[i].before, &covers[i].now);
		b = pixman_region32_rectangles(&seen, &boxes);
		for (int box = 0; box < boxes && r == 0; box++) {
			pixman_box32_t within = b[box];

			if (pixman_region32_contains_rectangle(left, &within) == PIXMAN_REGION_OUT)
				r = uncover(k, now, display_rect_of(&within), rest, wrong, out);
		}
	}
	pixman_region32_fini(&seen);
	return r;
}
