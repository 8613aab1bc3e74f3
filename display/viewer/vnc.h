/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnc - a display for any VNC viewer (RFC 6143), by libvncserver.
 *
 * Each VNC viewer has a process of its own here, which is a viewer of the display server like any
 * other, once the password was right: what VNC viewers send is taken apart neither in the display
 * server nor where it could harm or delay another VNC viewer.
 */
#ifndef DISPLAY_VIEWER_VNC_H
#define DISPLAY_VIEWER_VNC_H

#include <stddef.h>

#include "display/viewer/vnc_client.h"

struct err;

/* Characters of a password that count. */
#define DISPLAY_VNC_PASSWORD 8
/* VNC viewers at a time that were let in: half of what the display server takes. */
#define DISPLAY_VNC_CLIENTS 8

/*
 * A listening socket, the caller's.  @text: "[ADDR:]PORT", numbers only, an IPv6 address in
 * brackets; without ADDR on the loopback; a PORT of 0 is the first free one from 5900 on.  Where
 * that is, as "ADDR:PORT", goes to @ret_where.  ERR_USAGE; ERR_FAILED without libvncserver.
 */
int display_vnc_listen(const char *text, char *ret_where, size_t size, struct err *e);
/*
 * Serves who connects to @listener until the display is over: 0.  Its children end with it; SIGCHLD
 * is its own.
 */
int display_vnc(int listener, const struct display_vnc_options *o, struct err *e);

#endif
