/* SPDX-License-Identifier: GPL-2.0-or-later */
/* notice - NOTICE: what a viewer is told of the session, or of itself. */
#ifndef DISPLAY_NOTICE_H
#define DISPLAY_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "display/wire.h"

/* The values are the wire's. */
enum display_state {
	DISPLAY_STATE_RUNNING = 0,
	DISPLAY_STATE_PAUSED,
	DISPLAY_STATE_SUSPENDED,
	DISPLAY_STATE_MOVED,
	DISPLAY_STATE_ENDED,
	DISPLAY_STATE_REFUSED, /* this viewer is */
};

/* Appends the message to @out; @text and the session's @name may be NULL. */
void display_notice_put(
	struct buf *out, enum display_state state, const char *text, const char *name);
/* What @m, any message, says of the session; @before if that is nothing. */
enum display_state display_notice_state(
	const struct display_message *m, enum display_state before);
/* True if @m, any message, tells this viewer that it is not wanted; @ret is why. */
bool display_notice_refuses(const struct display_message *m, char *ret, size_t size);

#endif
