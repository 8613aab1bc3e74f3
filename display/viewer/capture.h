/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture - a viewer without a window: looks once. */
#ifndef DISPLAY_VIEWER_CAPTURE_H
#define DISPLAY_VIEWER_CAPTURE_H

struct err;

/*
 * Greets the display server at the other end of stream socket @fd, waits for the whole picture and
 * writes it to @path (picture.h).  What is shown is exact.  ERR_STATE if the stream ends before, if
 * nothing comes for @ms, or with the reason for which the display server refuses us.
 */
int display_capture(int fd, const char *path, int ms, struct err *e);

#endif
