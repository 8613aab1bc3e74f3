// SPDX-License-Identifier: GPL-2.0-or-later
/* attach: this terminal, or stdio, becomes that of a session's command (stream.c does the rest). */
#include <stddef.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

struct attach_options {
	bool no_stdin;
};

static const struct cli_option options[] = {
	{"no-stdin", 0, NULL, "only watch", CLI_FLAG, offsetof(struct attach_options, no_stdin)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct attach_options *o = opts;
	struct stream_options stream = {.input = !o->no_stdin, .detachable = true, .quiet = true};
	Pb__AttachRequest a = PB__ATTACH_REQUEST__INIT;
	Pb__Control m = PB__CONTROL__INIT;
	struct proto_conn *conn;
	int r = client_connect(&conn, &c->paths, argv[0], e);

	if (r < 0)
		return r;
	a.input = stream.input;
	stream_size(&a.rows, &a.cols);
	m.body_case = PB__CONTROL__BODY_ATTACH;
	m.attach = &a;
	r = client_send(conn, &m, NULL, 0, e);
	if (r >= 0)
		r = stream_run(conn, &stream, e);
	proto_conn_free(conn);
	return r < 0 ? client_lost(&c->paths, argv[0], e) : r;
}

const struct cli_command cli_attach = {
	.name = "attach",
	.usage = "[NAME]",
	.help = "connect to a session's terminal; ctrl-p ctrl-q leaves it",
	.text = "Connects to the terminal of the session's command, or to its output where it has "
		"none. A terminal that is left, as one whose session is suspended, moved or "
		"killed, is put back: what a full-screen program has switched on there, the "
		"alternate screen and the mouse for example, is off, and on again for who attaches "
		"or resumes it.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct attach_options),
	.group = CLI_BEGIN,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.own_codes = true,
	.session = true,
	.run = run,
};
