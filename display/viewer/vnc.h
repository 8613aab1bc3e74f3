/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnc - a display for any VNC viewer (RFC 6143), by libvncserver.
 *
 * It is a viewer of the display server like any other, and a process of its own: what VNC viewers
 * send is taken apart here and not in the display server, and one that is slow delays other VNC
 * viewers at most.
 */
#ifndef DISPLAY_VIEWER_VNC_H
#define DISPLAY_VIEWER_VNC_H

#include <stdbool.h>

struct err;

/* Characters of a password that count. */
#define DISPLAY_VNC_PASSWORD 8

struct display_vnc_options {
	const char *address;  /* IPv4, to listen at */
	unsigned port;	      /* 0: the first that is free from 5900 on */
	const char *password; /* that viewers have to know */
	bool view_only;
	unsigned quality; /* of JPEG between here and the server; 0: exact */
	/* It can be connected to. */
	void (*ready)(void *ctx, unsigned port);
	void *ctx;
};

/* Greets the display server at @fd, a stream socket, and serves until that ends: 0. */
int display_vnc(int fd, const struct display_vnc_options *o, struct err *e);

#endif
