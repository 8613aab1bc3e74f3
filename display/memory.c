// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/memory.h"

#include <string.h>

#include "base/base.h"
#include "display/region.h"

static struct display_memory *of(struct display_source *s)
{
	return (struct display_memory *)s; /* its first member */
}

static int attach(struct display_source *s, struct event_base *base,
	const struct display_source_events *events, void *arg, struct err *e)
{
	of(s)->events = events;
	of(s)->arg = arg;
	of(s)->attached = true;
	return 0;
}

static struct display_frame frame(struct display_source *s)
{
	return of(s)->picture;
}

static void damage(struct display_source *s, pixman_region32_t *region)
{
	display_region_union(region, region, &of(s)->damaged);
	pixman_region32_clear(&of(s)->damaged);
	of(s)->told = false;
}

static size_t covers(struct display_source *s, struct display_cover *ret, size_t max)
{
	const bool any = of(s)->covered && max > 0;

	if (any)
		ret[0] = of(s)->cover;
	of(s)->covered = false;
	return any;
}

static void key(struct display_source *s, uint32_t keysym, uint16_t scancode, bool down)
{
	struct display_memory *m = of(s);
	size_t i;

	m->n_keys++;
	for (i = 0; i < m->n_down && m->down[i] != keysym; i++)
		;
	if (!down && i < m->n_down)
		m->down[i] = m->down[--m->n_down];
	else if (down && i == m->n_down && i < DISPLAY_MEMORY_KEYS)
		m->down[m->n_down++] = keysym;
}

static void pointer(
	struct display_source *s, int x, int y, uint8_t buttons, int wheel_x, int wheel_y)
{
	struct display_memory *m = of(s);

	m->n_pointers++;
	m->x = x;
	m->y = y;
	m->buttons = buttons;
	m->wheel_x += wheel_x;
	m->wheel_y += wheel_y;
}

static void clipboard(struct display_source *s, const char *text, size_t len)
{
	struct display_memory *m = of(s);

	free(m->clipboard);
	m->clipboard = malloc(len + 1);
	m->clipboard_len = len;
	if (m->clipboard)
		memcpy(m->clipboard, text, len);
}

static void told(struct display_memory *m, bool resized)
{
	if (!m->events || (m->told && !resized))
		return;
	m->told = true;
	if (resized)
		m->events->resized(m->arg);
	else
		m->events->damaged(m->arg);
}

static void resize(struct display_source *s, int width, int height)
{
	if (width <= DISPLAY_MEMORY_SIZE && height <= DISPLAY_MEMORY_SIZE)
		display_memory_resize(of(s), width, height);
}

static void scale(struct display_source *s, int percent)
{
	of(s)->scale = percent;
}

static void let_go(struct display_source *s)
{
	of(s)->n_let_go++;
	of(s)->attached = false;
}

static int take_up(struct display_source *s, struct err *e)
{
	of(s)->n_take_up++;
	of(s)->attached = true;
	return 0;
}

static void destroy(struct display_source *s)
{
	struct display_memory *m = of(s);

	display_frame_fini(&m->picture);
	pixman_region32_fini(&m->damaged);
	free(m->clipboard);
	free(m);
}

static const struct display_source_ops ops = {
	.attach = attach,
	.frame = frame,
	.damage = damage,
	.covers = covers,
	.key = key,
	.pointer = pointer,
	.clipboard = clipboard,
	.resize = resize,
	.scale = scale,
	.let_go = let_go,
	.take_up = take_up,
	.destroy = destroy,
};

int display_memory_new(int width, int height, struct display_memory **ret_memory)
{
	struct display_memory *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	r = display_frame_init(&m->picture, width, height);
	if (r < 0) {
		free(m);
		return r;
	}
	m->source.ops = &ops;
	pixman_region32_init_rect(&m->damaged, 0, 0, (unsigned)width, (unsigned)height);
	*ret_memory = m;
	return 0;
}

void display_memory_damage(struct display_memory *m, const struct display_rect *r)
{
	display_region_add(&m->damaged, r);
	told(m, false);
}

void display_memory_cover(struct display_memory *m, const struct display_cover *cover)
{
	m->cover = *cover;
	m->covered = true;
}

int display_memory_resize(struct display_memory *m, int width, int height)
{
	struct display_frame f;
	int r = display_frame_init(&f, width, height);

	if (r < 0)
		return r;
	display_frame_fini(&m->picture);
	m->picture = f;
	pixman_region32_fini(&m->damaged);
	pixman_region32_init_rect(&m->damaged, 0, 0, (unsigned)width, (unsigned)height);
	told(m, true);
	return 0;
}
