/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run_vnc - podrun run --vnc: a process in the background that serves VNC viewers. */
#ifndef SUPERVISOR_CLI_RUN_VNC_H
#define SUPERVISOR_CLI_RUN_VNC_H

#include "supervisor/cli/vnc_port.h"

struct run_vnc {
	struct vnc_port port;
	int program; /* who serves it; -1: nothing was asked for */
};

/* Before there is a session: listens at @listen, "" for any port; NULL: nothing is asked for. */
int run_vnc_open(struct run_vnc *v, const char *listen, struct err *e);
/* The session is there, and called @name: @ctx is a run_vnc.  Where it is goes to stderr. */
void run_vnc_started(void *ctx, const char *name);

#endif
