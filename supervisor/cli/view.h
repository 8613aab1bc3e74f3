/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view - what podrun view was told, and who does it (view_run.c, in podrun-display). */
#ifndef SUPERVISOR_CLI_VIEW_H
#define SUPERVISOR_CLI_VIEW_H

#include <stdbool.h>

struct cli;
struct err;

struct view_options {
	bool no_open, view_only, stdio, native, lossless;
	const char *listen, *screenshot, *podrun, *vnc, *record, *replay, *quality;
};

/* As cli_command.run; @opts: struct view_options. */
int view_run(struct cli *c, void *opts, int argc, char **argv, struct err *e);

#endif
