/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run - what exec shares with run.
 */
#ifndef SUPERVISOR_CLI_RUN_H
#define SUPERVISOR_CLI_RUN_H

#include <stddef.h>

#include "supervisor/cli/cli.h"

/* The variables that -e and --env-file name; lives until the process ends. */
int run_make_env(const struct cli_list *variables, const struct cli_list *files, char ***ret,
	size_t *ret_n, struct err *e);

#endif
