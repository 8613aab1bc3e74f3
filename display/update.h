/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * update - from a frame that may have changed to commands: the whole of it.
 *
 *      find changes -> take them (the source may change any time) -> what was covered -> moves ->
 *      classify the rest
 *
 * It owns the *shadow*, the frame that a viewer has once it has carried out all commands so far.
 */
#ifndef DISPLAY_UPDATE_H
#define DISPLAY_UPDATE_H

#include "display/command.h"
#include "display/cover.h"
#include "display/move.h"
#include "display/pixels.h"

struct display_update;

/* With a black shadow.  -EINVAL for sizes that can't be, or -ENOMEM. */
int display_update_new(int width, int height, struct display_update **ret_update);
/* Accepts NULL. */
void display_update_free(struct display_update *u);

/* The shadow, owned by @u. */
const struct display_frame *display_update_shadow(const struct display_update *u);

/*
 * What changes in @area is from now on shown by somebody else (as video): no commands are made of
 * it, though it is in `changed`, and COPYs may read from there.
 */
void display_update_leave(struct display_update *u, pixman_region32_t *area);

/* What windows cover and covered, for the next run; kept by the caller until then. */
void display_update_cover(struct display_update *u, const struct display_cover *covers, size_t n);

/*
 * Looks at @damage of @now, which is as large as the shadow, and appends commands to @out that
 * bring a viewer to it: KEEPs, COPYs and UNCOVERs first, to be carried out in their order and before
 * all others, then the rest in any order. The shadow is then what they lead to.  What changes in
 * @now meanwhile is in the shadow before or after the change: it has to be damaged again. @hints as
 * in display_move_find; may be NULL.  @changed (initialised; may be NULL) becomes what differed.
 * Returns how many commands were appended (KEEPs perhaps while nothing has changed), or -ENOMEM:
 * then the shadow is as @now, and viewers have to be sent the whole of it and have kept nothing.
 */
int display_update_run(struct display_update *u, const struct display_frame *now,
	pixman_region32_t *damage, const struct display_move *hints, size_t n_hints,
	struct display_commands *out, pixman_region32_t *changed);

#endif
