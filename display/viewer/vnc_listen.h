/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vnc_listen - where VNC viewers connect, also for who leaves it to another program to serve them. */
#ifndef DISPLAY_VIEWER_VNC_LISTEN_H
#define DISPLAY_VIEWER_VNC_LISTEN_H

#include <stddef.h>

struct err;

/* Characters of a password that count. */
#define DISPLAY_VNC_PASSWORD 8

/*
 * A listening socket, the caller's.  @text: "[ADDR:]PORT", numbers only, an IPv6 address in
 * brackets; without ADDR on the loopback; a PORT of 0 is the first free one from 5900 on.  Where
 * that is, as "ADDR:PORT", goes to @ret_where.  ERR_USAGE; ERR_FAILED without libvncserver.
 */
int display_vnc_listen(const char *text, char *ret_where, size_t size, struct err *e);

#endif
