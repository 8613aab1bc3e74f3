// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun exec: another command in a session; a child of its pid 1.
 */
#include <stddef.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/run.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

struct exec_options {
	bool detach, interactive, tty;
	struct cli_list env, env_files;
	const char *workdir;
};

#define AT(member) offsetof(struct exec_options, member)
static const struct cli_option options[] = {
	{"detach", 'd', NULL, "do not wait for it", CLI_FLAG, AT(detach)},
	{"interactive", 'i', NULL, "our stdin is the command's", CLI_FLAG, AT(interactive)},
	{"tty", 't', NULL, "give the command a terminal", CLI_FLAG, AT(tty)},
	{"env", 'e', "NAME[=VALUE]", "set a variable on top of the session's", CLI_LIST, AT(env)},
	{"env-file", 0, "FILE", "read variables from a file", CLI_LIST, AT(env_files)},
	{"workdir", 'w', "DIR", "working directory inside", CLI_STRING, AT(workdir)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct exec_options *o = opts;
	struct stream_options stream = {.input = o->interactive,
		.forward = !o->tty,
		.detachable = o->tty,
		.quiet = true};
	Pb__ExecRequest x = PB__EXEC_REQUEST__INIT;
	Pb__Control m = PB__CONTROL__INIT, *reply;
	struct proto_conn *conn;
	int r;

	if (o->tty && !o->detach && o->interactive && !isatty(STDIN_FILENO))
		return err_set(e, ERR_USAGE, -ENOTTY, "-t needs a terminal as stdin");
	r = run_make_env(&o->env, &o->env_files, &x.env, &x.n_env, e);
	if (r == 0)
		r = client_connect(&conn, &c->paths, argv[0], e);
	if (r < 0)
		return r;
	x.argv = argv + 1;
	x.n_argv = (size_t)argc - 1;
	x.cwd = (char *)(o->workdir ? o->workdir : "");
	x.tty = o->tty;
	x.detach = o->detach;
	x.input = o->interactive;
	stream_size(&x.rows, &x.cols);
	m.body_case = PB__CONTROL__BODY_EXEC;
	m.exec = &x;
	r = client_send(conn, &m, NULL, 0, e);
	if (r >= 0 && o->detach) {
		r = client_receive(conn, &reply, e);
		if (r == 0)
			message_free(reply);
	} else if (r >= 0) {
		r = stream_run(conn, &stream, e);
	}
	proto_conn_free(conn);
	if (r < 0)
		r = client_lost(&c->paths, argv[0], e);
	/* What ran, and was suspended with the session, was no failure to begin it. */
	return r < 0 && e->class != ERR_MOVED ? err_wrap(e, "cannot exec in '%s'", argv[0]) : r;
}

const struct cli_command cli_exec = {
	.name = "exec",
	.usage = "[-it] NAME CMD...",
	.help = "run another command in a session",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct exec_options),
	.group = CLI_BEGIN,
	.operand = CLI_SESSION,
	.stop_at_operand = true,
	.min_operands = 2,
	.max_operands = -1,
	.own_codes = true,
	.run = run,
};
