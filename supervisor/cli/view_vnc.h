/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_vnc - podrun view --vnc: a display for VNC viewers. */
#ifndef SUPERVISOR_CLI_VIEW_VNC_H
#define SUPERVISOR_CLI_VIEW_VNC_H

#include <stdbool.h>

struct err;

/* "[ADDR:]PORT", numbers only; a port of 0 is the first free one.  ERR_USAGE. */
int view_vnc_check(const char *listen, struct err *e);
/* Of the display at @sock, until that ends; where, and with which password, goes to stdout. */
int view_vnc(int sock, const char *listen, bool view_only, unsigned quality, struct err *e);

#endif
