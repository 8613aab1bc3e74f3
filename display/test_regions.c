// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/test_regions.h"

#include <limits.h>
#include <pixman.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

int regions_fail;
unsigned regions_seed;

pixman_bool_t __wrap_pixman_region32_init_rects(
	pixman_region32_t *r, const pixman_box32_t *boxes, int n);
pixman_bool_t __real_pixman_region32_init_rects(
	pixman_region32_t *r, const pixman_box32_t *boxes, int n);
pixman_bool_t __wrap_pixman_region32_copy(pixman_region32_t *to, const pixman_region32_t *from);
pixman_bool_t __real_pixman_region32_copy(pixman_region32_t *to, const pixman_region32_t *from);
/* As pixman leaves a region for which it had no memory: empty, whatever is added to it. */
static bool fails(pixman_region32_t *r)
{
	static const pixman_box32_t box = {0, 0, 1, 1};

	regions_seed = regions_seed * 1664525 + 1013904223;
	if (!regions_fail || (regions_seed >> 8) % (unsigned)regions_fail)
		return false;
	pixman_region32_fini(r);
	assert_false(__real_pixman_region32_init_rects(r, &box, INT_MAX));
	return true;
}

pixman_bool_t __wrap_pixman_region32_init_rects(
	pixman_region32_t *r, const pixman_box32_t *boxes, int n)
{
	pixman_region32_init(r);
	return !fails(r) && __real_pixman_region32_init_rects(r, boxes, n);
}

pixman_bool_t __wrap_pixman_region32_copy(pixman_region32_t *to, const pixman_region32_t *from)
{
	return !fails(to) && __real_pixman_region32_copy(to, from);
}

#define TWO(name)                                                                               \
	pixman_bool_t __real_pixman_region32_##name(                                            \
		pixman_region32_t *to, const pixman_region32_t *a, const pixman_region32_t *b); \
	pixman_bool_t __wrap_pixman_region32_##name(                                            \
		pixman_region32_t *to, const pixman_region32_t *a, const pixman_region32_t *b); \
	pixman_bool_t __wrap_pixman_region32_##name(                                            \
		pixman_region32_t *to, const pixman_region32_t *a, const pixman_region32_t *b)  \
	{                                                                                       \
		return !fails(to) && __real_pixman_region32_##name(to, a, b);                   \
	}
TWO(union)
TWO(subtract)
TWO(intersect)

#define RECT(name)                                                                     \
	pixman_bool_t __real_pixman_region32_##name(pixman_region32_t *to,             \
		const pixman_region32_t *a, int x, int y, unsigned w, unsigned h);     \
	pixman_bool_t __wrap_pixman_region32_##name(pixman_region32_t *to,             \
		const pixman_region32_t *a, int x, int y, unsigned w, unsigned h);     \
	pixman_bool_t __wrap_pixman_region32_##name(pixman_region32_t *to,             \
		const pixman_region32_t *a, int x, int y, unsigned w, unsigned h)      \
	{                                                                              \
		return !fails(to) && __real_pixman_region32_##name(to, a, x, y, w, h); \
	}
RECT(union_rect)
RECT(intersect_rect)
