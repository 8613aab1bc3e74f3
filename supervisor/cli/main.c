// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun: finds the subcommand, parses its options, runs it, and turns its failure into one line
 * and an exit code.  `podrun CMD` is `podrun run CMD`, when CMD is not a subcommand.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/supervise.h"

#define OWN_FAILURE 125 /* of run, exec, attach: the command's codes must stay apart from ours */

int cli_only_session(struct cli *c, char **ret, struct err *e)
{
	struct client_session *all;
	size_t n, live = 0;
	char *name = NULL;

	if (client_list(&c->paths, &all, &n, e) < 0)
		return e->error;
	for (size_t i = 0; i < n; i++)
		if (all[i].live && live++ == 0)
			name = strdup(all[i].name);
	client_list_free(all, n);
	if (live == 1 && name) {
		*ret = name;
		return 0;
	}
	free(name);
	if (!live)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "no session is running");
	err_set(e, ERR_USAGE, -EINVAL, "%zu sessions are running: say which", live);
	return err_hint(e, "podrun ps");
}

static int exit_code(const struct cli_command *cmd, const struct err *e)
{
	if (cmd->own_codes && e->class != ERR_USAGE && e->class != ERR_HOST && e->class != ERR_MOVED)
		return OWN_FAILURE;
	return err_class_info(e->class)->exit_code;
}

/* Of what stdio has kept back only this tells.  That its reader went away is no failure. */
static int arrived(struct err *e)
{
	int error = fflush(stdout) != 0 ? -errno : ferror(stdout) ? -EIO : 0;

	return error && error != -EPIPE ? err_errno(e, error, "cannot write the output") : 0;
}

static int run(const struct cli_command *cmd, int argc, char **argv)
{
	_cleanup_free_ void *options = calloc(1, cmd->size + 1);
	char *with_name[3] = {NULL};
	struct cli c = {0};
	struct err e = {0};
	int r;

	if (!options)
		return 1;
	r = cli_parse(cmd, options, argc, argv, &argc, &e);
	if (r == 0 && !cmd->standalone)
		r = paths_init(&c.paths, &e);
	if (r == 0 && cmd->session && argc == 0) {
		r = cli_only_session(&c, &with_name[0], &e);
		argv = with_name;
		argc = 1;
	}
	if (r == 0)
		r = cmd->run(&c, options, argc, argv, &e);
	if (r == 0)
		r = arrived(&e);
	if (r < 0) {
		cli_print_error(&e);
		r = exit_code(cmd, &e);
	}
	cli_free_options(cmd, options);
	free(with_name[0]);
	paths_fini(&c.paths);
	return r;
}

static bool wants_help(int argc, char **argv)
{
	return argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
}

/*
 * Who is started without one of them would get an image or a connection as its number, and take
 * that for its output.  Reading ends at once, and writing fails as it would have: a session that is
 * suspended to such a stdout runs on.
 */
static void hold_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			_exit(OWN_FAILURE);
}

/* The exit code of who has told what he was asked for. */
static int told(void)
{
	struct err e = {0};

	if (arrived(&e) == 0)
		return 0;
	cli_print_error(&e);
	return err_class_info(e.class)->exit_code;
}

int main(int argc, char **argv)
{
	const struct cli_command *cmd;

	hold_stdio();
	log_init(STDERR_FILENO, "podrun");
	if (argc == 2 && strcmp(argv[1], "supervise") == 0)
		return supervise_main();
	if (argc < 2 || wants_help(argc - 1, argv + 1)) {
		cli_help_screen(argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : told();
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("podrun %s\n", PODRUN_VERSION);
		return told();
	}
	cmd = cli_find(argv[1]);
	if (!cmd)
		return run(cli_find("run"), argc - 1, argv + 1);
	if (wants_help(argc - 2, argv + 2)) {
		cli_help_command(cmd, stdout);
		return told();
	}
	return run(cmd, argc - 2, argv + 2);
}
