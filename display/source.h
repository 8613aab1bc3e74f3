/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source - what the display server shows: a picture that changes, and somebody who takes input.
 *
 * The server (server.h) knows nothing of X.  It asks a source for its picture and for what of it
 * may have changed, hands it what viewers type and click, and is told by it of the rest.  display/x
 * is the source that sessions have; memory.h one for tests, fuzzers and benchmarks.
 *
 *      server --ops--> source        frame, damage, key, pointer, clipboard, resize
 *      server <-events-- source      damaged, resized, cursor, pointer_at, clipboard, silent, lost
 *
 * Both live in one thread and one libevent loop.  A source may call its events from its own
 * callbacks of the loop and from within let_go and take_up, but never from within another op.
 */
#ifndef DISPLAY_SOURCE_H
#define DISPLAY_SOURCE_H

#include <pixman.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "display/cover.h"
#include "display/move.h"
#include "display/pixels.h"

struct err;
struct event_base;
struct display_source;

/*
 * The pointer's look; hidden with a width of 0.  At most DISPLAY_CURSOR_MAX (wire.h) each way.
 * @rgba: 4 bytes a pixel, not premultiplied.
 */
struct display_cursor {
	int hot_x, hot_y, width, height;
	const uint8_t *rgba;
};

#define DISPLAY_CLIPBOARD_MAX ((size_t)1 << 20) /* bytes */

/* What a source tells the server; @arg is what attach was given.  Data is borrowed for the call. */
struct display_source_events {
	/* damage() has something.  Told once, and again only after damage() has been called. */
	void (*damaged)(void *arg);
	/* frame() has another size from now on, and all of it counts as damaged. */
	void (*resized)(void *arg);
	void (*cursor)(void *arg, const struct display_cursor *c);
	/* The session moved the pointer itself (a warp). */
	void (*pointer_at)(void *arg, int x, int y);
	/* UTF-8, without a NUL, at most DISPLAY_CLIPBOARD_MAX; NULL: it was longer than that. */
	void (*clipboard)(void *arg, const char *text, size_t len);
	/* Nothing is heard of the session's display for a while; or (false) it is again. */
	void (*silent)(void *arg, bool silent);
	/* It can't follow the session any more (Xvfb ended); frame() is what it was last. */
	void (*lost)(void *arg);
};

struct display_source_ops {
	/* Called once, before everything else; nothing is told before it has returned. */
	int (*attach)(struct display_source *s, struct event_base *base,
		const struct display_source_events *events, void *arg, struct err *e);
	/*
	 * The picture of this moment, borrowed and valid until the next resized event; its pixels
	 * change under the reader's hands.  0x0 when there is none yet.
	 */
	struct display_frame (*frame)(struct display_source *s);
	/* Adds to @region what may have changed since the last call, within the frame. */
	void (*damage)(struct display_source *s, pixman_region32_t *region);
	/* What may have moved since then (windows), at most @max: how many.  May be NULL. */
	size_t (*moves)(struct display_source *s, struct display_move *ret, size_t max);
	/* What has come, moved or gone since then and covers what is below it; at most @max. */
	size_t (*covers)(struct display_source *s, struct display_cover *ret, size_t max);
	/* @keysym of X, @scancode of evdev or 0.  The server sees to it that each key comes up. */
	void (*key)(struct display_source *s, uint32_t keysym, uint16_t scancode, bool down);
	/* @x, @y within the frame; @buttons as on the wire; wheel in notches, right and down. */
	void (*pointer)(
		struct display_source *s, int x, int y, uint8_t buttons, int wheel_x, int wheel_y);
	void (*clipboard)(struct display_source *s, const char *text, size_t len);
	/* A viewer wants another size; resized follows if it is done, at once or later. */
	void (*resize)(struct display_source *s, int width, int height);
	/* A viewer's screen wants things drawn at so many per cent of the usual size. May be NULL. */
	void (*scale)(struct display_source *s, int percent);
	/*
	 * Before a freeze that ends in an image: closes what leads into the session and keeps its
	 * picture.  take_up is the other way, and is called also when the X server was another one.
	 */
	void (*let_go)(struct display_source *s);
	int (*take_up)(struct display_source *s, struct err *e);
	void (*destroy)(struct display_source *s);
};

/* What every source begins with. */
struct display_source {
	const struct display_source_ops *ops;
};

#endif
