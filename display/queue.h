/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queue - what one viewer has yet to be sent, and what of it comes next: shortest remaining size
 * first, as in THINC (Baratto, Kim, Nieh, SOSP 2005, section 5).
 *
 * A queue holds no pixels.  A command that waits is a region of the screen and how it is best
 * drawn; the pixels are read from the server's frame when the command is sent, so a slow viewer is
 * never sent what has been painted over, and a queue is bounded by the screen, not by time.
 *
 *      display_queue_add      after each update of the frame: what has changed
 *      display_queue_next     when there is room: a command, or as many rows of one as fit
 *      display_queue_sent     what that came to
 *      display_queue_hold     places that are shown as video, by somebody else
 *
 * The rule between queue and viewer: once the COPYs that wait have been executed, the viewer's
 * picture is the frame except where something waits (or where it has been sent lossily).
 */
#ifndef DISPLAY_QUEUE_H
#define DISPLAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/command.h"

struct display_queue;

/* Of what is in a queue, for tests and statistics. */
struct display_queue_state {
	size_t commands, copies; /* that wait */
	uint64_t pixels;	 /* that wait */
	uint64_t bytes;		 /* an estimate of what they will come to */
	uint64_t lossy;		 /* pixels that were sent lossily */
	size_t lossy_rects;	 /* in so many rectangles */
};

enum display_queue_result {
	DISPLAY_QUEUE_NONE,
	DISPLAY_QUEUE_COMMAND, /* to be encoded as the viewer likes */
	DISPLAY_QUEUE_REFRESH, /* to be encoded without loss: it has been sent lossily before */
};

/* More commands than this become one, more COPYs (KEEPs, UNCOVERs) are not kept as such. */
#define DISPLAY_QUEUE_COMMANDS 4096
#define DISPLAY_QUEUE_COPIES   192
/* Places that are held. */
#define DISPLAY_QUEUE_HELD 4

/* For a screen of @width x @height, with nothing in it.  NULL when memory ran out. */
struct display_queue *display_queue_new(int width, int height);
/* The viewer understands KEEP and UNCOVER: others are given neither. */
void display_queue_keeps(struct display_queue *q);
/* What it has kept may be anything. */
void display_queue_forget_kept(struct display_queue *q);
void display_queue_destroy(struct display_queue *q);

/* The viewer's screen is another one: nothing waits any more. */
void display_queue_resize(struct display_queue *q, int width, int height);

/*
 * The frame has changed by @n commands, executed one after the other: COPYs, KEEPs and UNCOVERs may
 * only be the first of them.  What they cover is evicted.  Rectangles are clipped to the screen.
 */
void display_queue_add(struct display_queue *q, const struct display_command *c, size_t n);

/* Is the rectangle that a person looks at, for what is small there goes first; NULL: nowhere. */
void display_queue_watch(struct display_queue *q, const struct display_rect *r);

/*
 * What is to be sent now into @room bytes, as estimated: at least a row of something even if there
 * is less room.  It does not wait any more.  With @spare, and when nothing waits, lossless
 * refreshes are given.
 */
enum display_queue_result display_queue_next(
	struct display_queue *q, size_t room, bool spare, struct display_command *ret);

/* A command that _next gave became @bytes, in a lossy codec or not.  Estimates learn from it. */
void display_queue_sent(
	struct display_queue *q, const struct display_command *c, size_t bytes, bool lossy);

/*
 * These places, at most DISPLAY_QUEUE_HELD, are shown as video, and no others: they count as sent
 * lossily, and aren't refreshed as long as they are held.  What waits in one that is new does so no
 * more; commands that are added there later go as usual.
 */
void display_queue_hold(struct display_queue *q, const struct display_rect *rects, size_t n);
/* @r has been sent, lossily, but not by a command of this queue, which are behind @bytes now. */
void display_queue_sent_apart(struct display_queue *q, const struct display_rect *r, size_t bytes);
/* COPYs wait: nothing may be sent in front of them. */
bool display_queue_copies(const struct display_queue *q);

/* Nothing waits (there may be something to refresh). */
bool display_queue_empty(const struct display_queue *q);
struct display_queue_state display_queue_state(const struct display_queue *q);

#endif
