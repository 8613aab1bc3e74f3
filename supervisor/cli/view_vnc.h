/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_vnc - a display for VNC viewers: podrun view --vnc, podrun run --vnc. */
#ifndef SUPERVISOR_CLI_VIEW_VNC_H
#define SUPERVISOR_CLI_VIEW_VNC_H

#include <stdbool.h>

struct err;
struct view_way;
struct vnc_port;

/* The display that @way leads to, until the session is none any more. */
int view_vnc_serve(const struct vnc_port *p, struct view_way *way, bool view_only, unsigned quality,
	struct err *e);

#endif
