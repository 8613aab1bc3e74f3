/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory - a source that is a picture in memory, for tests, fuzzers and benchmarks: they draw into
 * its frame, say where, and look at what input came.
 */
#ifndef DISPLAY_MEMORY_H
#define DISPLAY_MEMORY_H

#include "display/source.h"

#define DISPLAY_MEMORY_KEYS 64
#define DISPLAY_MEMORY_SIZE 1024 /* pixels each way, that a viewer may wish for */

struct display_memory {
	struct display_source source; /* destroyed by its op */
	struct display_frame picture; /* drawn into by whoever has it */
	/* What input came: */
	unsigned n_keys, n_pointers, n_let_go, n_take_up;
	uint32_t down[DISPLAY_MEMORY_KEYS]; /* keysyms that are down */
	size_t n_down;
	int x, y, wheel_x, wheel_y; /* the wheel: summed up */
	uint8_t buttons;
	int scale;	 /* 0: none */
	char *clipboard; /* or NULL */
	size_t clipboard_len;
	bool attached;
	/* The server's. */
	const struct display_source_events *events;
	void *arg;
	pixman_region32_t damaged;
	bool told;
	struct display_cover cover; /* if any */
	bool covered;
};

/* A black picture.  -EINVAL for sizes that can't be, or -ENOMEM. */
int display_memory_new(int width, int height, struct display_memory **ret_memory);
/* It has been drawn there. */
void display_memory_damage(struct display_memory *m, const struct display_rect *r);
/* A window covers another place: told with the next damage, the last of several. */
void display_memory_cover(struct display_memory *m, const struct display_cover *cover);
/* A new black picture.  As _new. */
int display_memory_resize(struct display_memory *m, int width, int height);

#endif
