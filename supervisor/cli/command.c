// SPDX-License-Identifier: GPL-2.0-or-later
/* One command, from its words to its exit code; the same in every program that has one. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/cli/cli.h"
#include "supervisor/client.h"

#define OWN_FAILURE 125 /* of run, exec, attach: the command's codes must stay apart from ours */

/* @ended: one that does not run will do, if it is the only one. */
static int only_session(struct cli *c, bool ended, char **ret, struct err *e)
{
	struct client_session *all;
	size_t n, live = 0;
	char *name = NULL;

	if (client_list(&c->paths, &all, &n, e) < 0)
		return e->error;
	for (size_t i = 0; i < n; i++)
		if (all[i].live && live++ == 0)
			name = strdup(all[i].name);
	ended = ended && n == 1;
	if (!live && ended)
		name = strdup(all[0].name);
	client_list_free(all, n);
	if ((live == 1 || (!live && ended)) && name) {
		*ret = name;
		return 0;
	}
	free(name);
	if (!live)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "no session is running");
	err_set(e, ERR_USAGE, -EINVAL, "%zu sessions are running: say which", live);
	return err_hint(e, "podrun ps");
}

int cli_only_session(struct cli *c, char **ret, struct err *e)
{
	return only_session(c, false, ret, e);
}

/* OWNER/NAME is NAME to the owner. */
static char *without_owner(char *name)
{
	char *slash = strchr(name, '/');
	_cleanup_free_ char *owner = slash ? strndup(name, (size_t)(slash - name)) : NULL;
	const struct passwd *pw = owner && *owner ? getpwnam(owner) : NULL;

	return pw && pw->pw_uid == geteuid() ? slash + 1 : name;
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

int cli_perform(const struct cli_command *cmd, int argc, char **argv)
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
		r = only_session(&c, cmd->ended, &with_name[0], &e);
		argv = with_name;
		argc = 1;
	} else if (r == 0 && cmd->operand == CLI_SESSION && argc > 0) {
		argv[0] = without_owner(argv[0]);
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

void cli_hold_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			_exit(OWN_FAILURE);
}

int cli_told(void)
{
	struct err e = {0};

	if (arrived(&e) == 0)
		return 0;
	cli_print_error(&e);
	return err_class_info(e.class)->exit_code;
}
