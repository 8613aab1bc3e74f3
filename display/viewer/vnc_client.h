/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vnc_client - the process that one VNC viewer has. */
#ifndef DISPLAY_VIEWER_VNC_CLIENT_H
#define DISPLAY_VIEWER_VNC_CLIENT_H

#include <stdbool.h>

struct err;

struct display_vnc_options {
	const char *password; /* that viewers have to know */
	bool view_only;
	unsigned quality; /* of JPEG between here and the display server; 0: exact */
	/* A connected stream socket to the display server, the caller's; called for each viewer. */
	int (*connect)(void *ctx, struct err *e);
	/* There is no display any more, nor will there be one.  May be NULL. */
	bool (*over)(void *ctx);
	void *ctx;
};

/* What it tells the one who listens. */
enum display_vnc_word {
	DISPLAY_VNC_ADMITTED = 'a', /* the password was right */
	DISPLAY_VNC_OVER = 'o',	    /* there is no display any more */
};

/* Never returns; libvncserver is loaded.  @conn is the viewer's; words go to @line. */
_Noreturn void display_vnc_client(int conn, int line, const struct display_vnc_options *o);

#endif
