/* SPDX-License-Identifier: GPL-2.0-or-later */
/* picture - a frame as a file that everybody can look at. */
#ifndef DISPLAY_VIEWER_PICTURE_H
#define DISPLAY_VIEWER_PICTURE_H

struct display_frame;
struct err;

/*
 * Writes @path anew: as PNG (RFC 2083) if it ends in .png, as PPM if in .ppm; otherwise ERR_USAGE,
 * which display_picture_check tells before there is a frame.
 */
int display_picture_check(const char *path, struct err *e);
int display_picture_write(const char *path, const struct display_frame *f, struct err *e);

#endif
