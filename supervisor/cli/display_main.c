// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun-display: the commands for which screens' libraries are needed.  podrun becomes it for
 * them, with all its words.
 */
#include <string.h>
#include <sys/prctl.h>

#include "supervisor/cli/cli.h"
#include "supervisor/cli/display.h"
#include "supervisor/cli/view.h"
#include "supervisor/programs.h"

extern const struct cli_command cli_view, cli_display;

static const struct {
	const struct cli_command *command;
	int (*run)(struct cli *c, void *o, int argc, char **argv, struct err *e);
} commands[] = {{&cli_view, view_run}, {&cli_display, display_run}};

int main(int argc, char **argv)
{
	struct cli_command cmd;

	cli_hold_stdio();
	log_init(STDERR_FILENO, "podrun");
	/* Executed by its descriptor it would be called a number. */
	prctl(PR_SET_NAME, PROGRAMS_DISPLAY);
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].command->name, argv[1]) == 0) {
			cmd = *commands[i].command;
			cmd.run = commands[i].run;
			return cli_perform(&cmd, argc - 2, argv + 2);
		}
	fprintf(stderr, PROGRAMS_DISPLAY " is started by podrun\n");
	return 2;
}
