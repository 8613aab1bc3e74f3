/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * native_line - the native viewer's line to a display server: a thread that reads and decodes.
 *
 * The line is a command, `podrun view --stdio NAME`; when it ends it is started again. What comes
 * is decoded here, and the window's thread is woken to look at it.
 */
#ifndef DISPLAY_VIEWER_NATIVE_LINE_H
#define DISPLAY_VIEWER_NATIVE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "display/decode.h"
#include "display/viewer/greet.h"

struct native_line;
struct native_sound;
struct buf;
struct err;

/* What has come since it was taken last. */
struct native_news {
	bool connected;
	bool resized;		     /* the picture has another size, and is all new */
	struct display_rect changed; /* w 0: nothing */
	char *clipboard;	     /* UTF-8, or NULL; the taker frees it */
	char *notice;		     /* of the session, or NULL; the taker frees it */
	char *title;		     /* the session's name, or NULL; the taker frees it */
	bool cursor;		     /* there is another: */
	int hot_x, hot_y, cursor_w, cursor_h;
	uint8_t *cursor_pixels; /* RGBA; the taker frees it */
};

/*
 * @wish is copied; audio follows from @sound, or NULL, which is what the line's thread plays. @wake
 * is called by that thread after news that were taken the last time.
 */
int native_line_start(struct native_line **ret, char *const command[],
	const struct display_viewer_wish *wish, struct native_sound *sound, void (*wake)(void *ctx),
	void *ctx, struct err *e);
/* Takes the news. The picture stays as it is until native_line_unlock. */
const struct display_frame *native_line_lock(struct native_line *l, struct native_news *ret);
void native_line_unlock(struct native_line *l);
/* Sends a message, if the line is there; never waits. */
void native_line_send(struct native_line *l, const struct display_message *m);

#endif
