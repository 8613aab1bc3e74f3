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

#include "display/viewer/vnc_client.h"

struct err;

/* VNC viewers at a time that were let in: half of what the display server takes. */
#define DISPLAY_VNC_CLIENTS 8

/*
 * Serves who connects to @listener (vnc_listen.h) until the display is over: 0.  Its children end
 * with it; SIGCHLD is its own.  ERR_FAILED without libvncserver.
 */
int display_vnc(int listener, const struct display_vnc_options *o, struct err *e);

#endif
