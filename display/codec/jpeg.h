/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jpeg - pictures, not exactly; by libjpeg-turbo.
 */
#ifndef DISPLAY_CODEC_JPEG_H
#define DISPLAY_CODEC_JPEG_H

#include <stdbool.h>
#include <stddef.h>

#include "display/pixels.h"

struct buf;

/* The library's memory. */
struct display_jpeg;

/* -ENOMEM or 0. */
int display_jpeg_new(struct display_jpeg **ret_jpeg);
/* Accepts NULL. */
void display_jpeg_free(struct display_jpeg *j);

/*
 * Appends @r of @f at @quality 1..100; below 90 colours have half the resolution.  0, or -ENOMEM,
 * then @out is as it was.
 */
int display_jpeg_pack(struct display_jpeg *j, const struct display_frame *f,
	const struct display_rect *r, int quality, struct buf *out);

/* True if it was a picture as large as @r, which is there then. */
bool display_jpeg_unpack(struct display_jpeg *j, const void *data, size_t len,
	const struct display_frame *f, const struct display_rect *r);

#endif
