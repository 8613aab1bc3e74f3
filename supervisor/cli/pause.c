// SPDX-License-Identifier: GPL-2.0-or-later
/* pause and unpause: a session is frozen in memory, or goes on. */
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"

static int ask(struct cli *c, const char *name, Pb__Control__BodyCase what, const char *verb,
	struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;

	m.body_case = what;
	m.pause = &empty;
	return client_simple(&c->paths, name, &m, e) < 0 ? err_wrap(e, "cannot %s '%s'", verb, name) :
							   0;
}

static int run_pause(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	return ask(c, argv[0], PB__CONTROL__BODY_PAUSE, "pause", e);
}

static int run_unpause(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	return ask(c, argv[0], PB__CONTROL__BODY_UNPAUSE, "unpause", e);
}

const struct cli_command cli_pause = {
	.name = "pause",
	.usage = "[NAME]",
	.help = "freeze a session where it is",
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run_pause,
};

const struct cli_command cli_unpause = {
	.name = "unpause",
	.usage = "[NAME]",
	.help = "let a paused session run on",
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run_unpause,
};
