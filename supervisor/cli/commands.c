// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All subcommands, in the order in which help shows them within their groups.
 */
#include <string.h>

#include "supervisor/cli/cli.h"

#define COMMANDS(X)                                                                                \
	X(run) X(exec) X(attach) X(view) X(ps) X(inspect) X(logs) X(top) X(stacks) X(pause)       \
	X(unpause) X(kill) X(stop) X(wait) X(rm) X(rename) X(suspend) X(snapshot) X(resume)        \
	X(clone) X(migrate) X(net) X(gateway) X(display) X(key) X(image) X(check) X(receive) X(help)

#define DECLARE(name) extern const struct cli_command cli_##name;
COMMANDS(DECLARE)

#define POINT(name) &cli_##name,
const struct cli_command *const cli_commands[] = {COMMANDS(POINT)};
const size_t cli_n_commands = ARRAY_SIZE(cli_commands);

const struct cli_command *cli_find(const char *name)
{
	for (size_t i = 0; i < cli_n_commands; i++)
		if (strcmp(cli_commands[i]->name, name) == 0 ||
			(cli_commands[i]->alias && strcmp(cli_commands[i]->alias, name) == 0))
			return cli_commands[i];
	return NULL;
}
