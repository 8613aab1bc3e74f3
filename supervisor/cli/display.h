/* SPDX-License-Identifier: GPL-2.0-or-later */
/* display - what podrun display was told, and who does it (display_run.c, in podrun-display). */
#ifndef SUPERVISOR_CLI_DISPLAY_H
#define SUPERVISOR_CLI_DISPLAY_H

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct err;

/* With --vnc: the listening socket; what viewers have to know is read from stdin. */
#define DISPLAY_VNC_LISTENER 3

struct display_options {
	bool serve, vnc;
	uint64_t number;
	const char *size;
};

/* As cli_command.run; @opts: struct display_options. */
int display_run(struct cli *c, void *opts, int argc, char **argv, struct err *e);

#endif
