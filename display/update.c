// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two frames: the shadow, and the picture as it was taken.  An update takes what has changed into
 * the second (from then on nobody can change it any more) and finds moves between the two; each is
 * carried out in the shadow, for a viewer does the same.  Then they change places.  What the other
 * one lacks then (`stale`) is brought to it by the next update, if that doesn't replace it anyway.
 */
#include "display/update.h"

#include "base/base.h"
#include "display/change.h"
#include "display/classify.h"
#include "display/region.h"

struct display_update {
	struct display_frame shadow, taken;
	struct display_mover *mover;
	struct display_kept kept;
	const struct display_cover *covers; /* borrowed, of the next update */
	size_t n_covers;
	pixman_region32_t left;	 /* to others */
	pixman_region32_t stale; /* where `taken` is older than the shadow */
};

int display_update_new(int width, int height, struct display_update **ret_update)
{
	struct display_update *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	pixman_region32_init(&u->left);
	pixman_region32_init(&u->stale);
	r = display_frame_init(&u->shadow, width, height);
	if (r == 0)
		r = display_frame_init(&u->taken, width, height);
	if (r == 0)
		r = display_mover_new(&u->mover);
	if (r < 0) {
		display_update_free(u);
		return r;
	}
	*ret_update = u;
	return 0;
}

void display_update_free(struct display_update *u)
{
	if (!u)
		return;
	display_frame_fini(&u->shadow);
	display_frame_fini(&u->taken);
	display_mover_free(u->mover);
	display_kept_fini(&u->kept);
	pixman_region32_fini(&u->left);
	pixman_region32_fini(&u->stale);
	free(u);
}

void display_update_leave(struct display_update *u, pixman_region32_t *area)
{
	/* Without memory for it, nothing is: it is shown twice then. */
	if (!pixman_region32_copy(&u->left, area))
		pixman_region32_clear(&u->left);
}

const struct display_frame *display_update_shadow(const struct display_update *u)
{
	return &u->shadow;
}

void display_update_cover(struct display_update *u, const struct display_cover *covers, size_t n)
{
	u->covers = covers;
	u->n_covers = n;
}

static void copy_region(
	const struct display_frame *to, const struct display_frame *from, pixman_region32_t *region)
{
	const pixman_box32_t *b;
	int n;

	b = pixman_region32_rectangles(region, &n);
	for (int i = 0; i < n; i++) {
		const struct display_rect r = display_rect_of(&b[i]);

		display_frame_copy(to, from, &r);
	}
}

/* Takes one move out of @rest.  1 if there was one. */
static int move(struct display_update *u, pixman_region32_t *rest, const struct display_move *hints,
	size_t n_hints, struct display_commands *out)
{
	struct display_command c = {.type = DISPLAY_COPY};
	struct display_move m;

	if (!display_move_find(u->mover, &u->shadow, &u->taken, rest, hints, n_hints, &m))
		return 0;
	c.rect = m.rect;
	c.sx = m.sx;
	c.sy = m.sy;
	if (display_commands_add(out, &c) < 0)
		return -ENOMEM;
	display_frame_move(&u->shadow, &m.rect, m.sx, m.sy);
	display_region_remove(rest, &m.rect);
	return 1;
}

/* Takes all of @now that has changed: @all. */
static void take(struct display_update *u, const struct display_frame *now, pixman_region32_t *all)
{
	display_region_subtract(&u->stale, &u->stale, all);
	copy_region(&u->taken, &u->shadow, &u->stale);
	copy_region(&u->taken, now, all);
}

/* What was taken is the shadow from now on. */
static void swap(struct display_update *u, pixman_region32_t *all)
{
	const struct display_frame old = u->shadow;

	u->shadow = u->taken;
	u->taken = old;
	display_region_copy(&u->stale, all);
}

/*
 * Appends what draws @rest.  UNCOVERs are looked for before moves, which they spare, but come behind
 * them: a COPY may read what they draw over.
 */
static int draw(struct display_update *u, pixman_region32_t *rest, const struct display_move *hints,
	size_t n_hints, struct display_commands *out)
{
	struct display_commands uncovers = {0};
	pixman_region32_t wrong, edges;
	int r = display_kept_keep(&u->kept, &u->shadow, u->covers, u->n_covers, out);

	pixman_region32_init(&wrong);
	pixman_region32_init(&edges);
	if (r == 0)
		r = display_kept_uncover(&u->kept, &u->taken, u->covers, u->n_covers, &u->left,
			rest, &wrong, &uncovers);
	for (int i = 0; i < DISPLAY_MOVES && r >= 0 && (i == 0 || r > 0); i++)
		r = move(u, rest, hints, n_hints, out);
	for (size_t i = 0; i < uncovers.n && r >= 0; i++)
		r = display_commands_add(out, &uncovers.list[i]);
	if (uncovers.n) {
		/* What is left are edges of blocks that were compared: mostly nothing differs there. */
		display_region_copy(&edges, rest);
		display_change_find(&u->shadow, &u->taken, &edges, rest);
	}
	display_region_union(rest, rest, &wrong);
	if (r >= 0)
		r = display_classify(&u->taken, rest, out);
	pixman_region32_fini(&wrong);
	pixman_region32_fini(&edges);
	display_commands_fini(&uncovers);
	return r;
}

int display_update_run(struct display_update *u, const struct display_frame *now,
	pixman_region32_t *damage, const struct display_move *hints, size_t n_hints,
	struct display_commands *out, pixman_region32_t *changed)
{
	const size_t before = out->n;
	pixman_region32_t all, rest;
	int r;

	if (now->width != u->shadow.width || now->height != u->shadow.height)
		return -EINVAL;
	pixman_region32_init(&all);
	pixman_region32_init(&rest);
	display_change_find(&u->shadow, now, damage, &all);
	take(u, now, &all);
	display_region_subtract(&rest, &all, &u->left);
	r = draw(u, &rest, hints, n_hints, out);
	display_update_cover(u, NULL, 0);
	swap(u, &all);
	if (r < 0)
		out->n = before;
	if (changed)
		display_region_copy(changed, &all);
	pixman_region32_fini(&all);
	pixman_region32_fini(&rest);
	return r < 0 ? r : (int)(out->n - before);
}
