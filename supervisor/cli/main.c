// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun: finds the subcommand, parses its options, runs it, and turns its failure into one line
 * and an exit code.  `podrun CMD` is `podrun run CMD`, when CMD is not a subcommand.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/cli/cli.h"
#include "supervisor/programs.h"
#include "supervisor/supervise.h"

static bool wants_help(int argc, char **argv)
{
	return argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
}

/* Becomes the program that does @cmd. */
static int become(const struct cli_command *cmd, char **argv, struct err *e)
{
	_cleanup_free_ char *path = programs_find(cmd->program, e);

	if (!path)
		return e->error;
	execv(path, argv);
	return err_errno(e, -errno, "%s", path);
}

/* @argv: all words, of which @cmd's begin at @first. */
static int perform(const struct cli_command *cmd, int first, int argc, char **argv)
{
	struct err e = {0};

	if (!cmd->program)
		return cli_perform(cmd, argc - first, argv + first);
	become(cmd, argv, &e);
	cli_print_error(&e);
	return err_class_info(e.class)->exit_code;
}

int main(int argc, char **argv)
{
	const struct cli_command *cmd;

	cli_hold_stdio();
	/* Whose children are not to be waited for (trap '' CHLD) could start none. */
	signal(SIGCHLD, SIG_DFL);
	log_init(STDERR_FILENO, "podrun");
	if (argc == 2 && strcmp(argv[1], "supervise") == 0)
		return supervise_main();
	if (argc < 2 || wants_help(argc - 1, argv + 1)) {
		cli_help_screen(argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : cli_told();
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("podrun %s\n", PODRUN_VERSION);
		return cli_told();
	}
	cmd = cli_find(argv[1]);
	if (!cmd)
		return perform(cli_find("run"), 1, argc, argv);
	if (wants_help(argc - 2, argv + 2)) {
		cli_help_command(cmd, stdout);
		return cli_told();
	}
	return perform(cmd, 2, argc, argv);
}
