/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reach - a connection to the X server of a session, through the session's own files.
 */
#ifndef DISPLAY_X_REACH_H
#define DISPLAY_X_REACH_H

#include <xcb/xcb.h>

struct err;

/*
 * Opens @path below @dir, O_CLOEXEC; no symbolic link is followed, so that nothing in there leads
 * out (openat2(2)).  A descriptor or a negative errno.
 */
int display_x_open(int dir, const char *path, int flags);

/*
 * Connects to display @number with the cookie of the session's clients.  @files: the session's own
 * files.  -EAGAIN and the like while the X server is not there yet; waits for one that is for @ms
 * at most, and returns -ETIMEDOUT then.
 */
int display_x_reach(int files, unsigned number, unsigned ms, xcb_connection_t **ret, struct err *e);

#endif
