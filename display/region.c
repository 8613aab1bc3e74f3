// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/region.h"

#include "base/base.h"

static bool is_empty(const pixman_box32_t *b)
{
	return b->x1 >= b->x2 || b->y1 >= b->y2;
}

/* The extents of an empty region are a point, which may lie anywhere. */
static pixman_box32_t around(pixman_box32_t a, pixman_box32_t b)
{
	if (is_empty(&a))
		return b;
	if (is_empty(&b))
		return a;
	return (pixman_box32_t){MIN(a.x1, b.x1), MIN(a.y1, b.y1), MAX(a.x2, b.x2), MAX(a.y2, b.y2)};
}

static pixman_box32_t common(pixman_box32_t a, pixman_box32_t b)
{
	return (pixman_box32_t){MAX(a.x1, b.x1), MAX(a.y1, b.y1), MIN(a.x2, b.x2), MIN(a.y2, b.y2)};
}

/* @r is what was asked for, or else (@exact is not) becomes @box. */
static bool settle(pixman_region32_t *r, bool exact, pixman_box32_t box)
{
	if (exact)
		return true;
	if (is_empty(&box))
		pixman_region32_clear(r);
	else
		pixman_region32_reset(r, &box);
	return false;
}

bool display_region_copy(pixman_region32_t *to, pixman_region32_t *from)
{
	const pixman_box32_t all = *pixman_region32_extents(from);

	return settle(to, pixman_region32_copy(to, from), all);
}

bool display_region_union(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b)
{
	const pixman_box32_t all = around(*pixman_region32_extents(a), *pixman_region32_extents(b));

	return settle(to, pixman_region32_union(to, a, b), all);
}

bool display_region_subtract(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b)
{
	const pixman_box32_t all = *pixman_region32_extents(a);

	return settle(to, pixman_region32_subtract(to, a, b), all);
}

bool display_region_intersect(pixman_region32_t *to, pixman_region32_t *a, pixman_region32_t *b)
{
	const pixman_box32_t all = common(*pixman_region32_extents(a), *pixman_region32_extents(b));

	return settle(to, pixman_region32_intersect(to, a, b), all);
}

bool display_region_add(pixman_region32_t *to, const struct display_rect *r)
{
	const pixman_box32_t all = around(*pixman_region32_extents(to), display_rect_box(r));

	if (r->w <= 0 || r->h <= 0)
		return true;
	return settle(to,
		pixman_region32_union_rect(to, to, r->x, r->y, (unsigned)r->w, (unsigned)r->h),
		all);
}

/* What @b leaves of @all, if that is one rectangle, or nothing. */
static bool crop(pixman_box32_t *all, const pixman_box32_t *b)
{
	if (b->x1 >= all->x2 || b->x2 <= all->x1 || b->y1 >= all->y2 || b->y2 <= all->y1)
		return true;
	if (b->x1 <= all->x1 && b->x2 >= all->x2) {
		if (b->y1 <= all->y1)
			all->y1 = MIN(b->y2, all->y2);
		else if (b->y2 >= all->y2)
			all->y2 = b->y1;
		else
			return false;
		return true;
	}
	if (b->y1 > all->y1 || b->y2 < all->y2)
		return false;
	if (b->x1 <= all->x1)
		all->x1 = b->x2;
	else if (b->x2 >= all->x2)
		all->x2 = b->x1;
	else
		return false;
	return true;
}

bool display_region_remove(pixman_region32_t *to, const struct display_rect *r)
{
	const pixman_box32_t box = display_rect_box(r);
	pixman_box32_t all = *pixman_region32_extents(to);
	pixman_region32_t part;
	bool exact;

	if (is_empty(&box) || is_empty(&all))
		return true;
	if (pixman_region32_n_rects(to) == 1 && crop(&all, &box)) {
		settle(to, false, all);
		return true;
	}
	pixman_region32_init_rect(&part, r->x, r->y, (unsigned)r->w, (unsigned)r->h);
	exact = display_region_subtract(to, to, &part);
	pixman_region32_fini(&part);
	return exact;
}

bool display_region_clip(
	pixman_region32_t *to, pixman_region32_t *from, const struct display_rect *r)
{
	const pixman_box32_t all = common(*pixman_region32_extents(from), display_rect_box(r));

	if (is_empty(&all)) {
		pixman_region32_clear(to);
		return true;
	}
	return settle(to,
		pixman_region32_intersect_rect(
			to, from, r->x, r->y, (unsigned)r->w, (unsigned)r->h),
		all);
}

long display_region_area(pixman_region32_t *region)
{
	long area = 0;
	int n;
	const pixman_box32_t *b = pixman_region32_rectangles(region, &n);

	for (int i = 0; i < n; i++)
		area += (long)(b[i].x2 - b[i].x1) * (b[i].y2 - b[i].y1);
	return area;
}
