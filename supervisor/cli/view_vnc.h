/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_vnc - a display for VNC viewers: podrun view --vnc, podrun run --vnc. */
#ifndef SUPERVISOR_CLI_VIEW_VNC_H
#define SUPERVISOR_CLI_VIEW_VNC_H

#include <stdbool.h>

#include "display/display.h"

struct err;
struct view_way;

struct view_vnc {
	int listener;
	char where[64]; /* "ADDR:PORT" */
	char password[DISPLAY_VNC_PASSWORD + 1];
};

/* Listens at "[ADDR:]PORT", numbers only; a port of 0 is the first free one.  ERR_USAGE. */
int view_vnc_open(struct view_vnc *v, const char *listen, struct err *e);
void view_vnc_close(struct view_vnc *v);
/* The display that @way leads to, until the session is none any more. */
int view_vnc_serve(const struct view_vnc *v, struct view_way *way, bool view_only, unsigned quality,
	struct err *e);

#endif
