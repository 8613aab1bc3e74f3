/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text - what is copied, between those who write it differently.
 *
 * In a session, and in this protocol, text is UTF-8 and lines end in LF.  VNC's extended clipboard
 * and Windows end them in CR LF; VNC's plain one and old programs of X know Latin-1 only.
 */
#ifndef DISPLAY_TEXT_H
#define DISPLAY_TEXT_H

#include <stddef.h>

#include "base/base.h"

/* Each appends @len bytes of @text to @out; memory that runs out is @out's error. */

/* Each CR LF as LF. */
void display_text_put_lf(struct buf *out, const void *text, size_t len);
/* Each LF as CR LF, unless it is one. */
void display_text_put_crlf(struct buf *out, const void *text, size_t len);
/* UTF-8 as Latin-1; what isn't in that is a question mark. */
void display_text_put_latin1(struct buf *out, const void *text, size_t len);
/* Latin-1 as UTF-8. */
void display_text_put_utf8(struct buf *out, const void *text, size_t len);

#endif
