/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * patience - an end to waiting for an X server.
 *
 * XCB waits for replies, for the rest of a packet and for room in the socket, as long as it takes.
 * The X server is the session's, and may be stopped, or mean harm.
 */
#ifndef DISPLAY_X_PATIENCE_H
#define DISPLAY_X_PATIENCE_H

#include <stdbool.h>

/*
 * From now on whoever waits for what @fd is connected to waits for @ms at most, in all: then the
 * connection is shut down, which ends any wait.  One at a time in a process.
 */
void display_x_patience_begin(int fd, unsigned ms);
/* True if it has come to that. */
bool display_x_patience_end(void);

#endif
