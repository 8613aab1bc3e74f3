// SPDX-License-Identifier: GPL-2.0-or-later
/* inspect: all that is known of a session, as JSON. */
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/client.h"

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON, which it is anyway", CLI_FLAG, 0},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	struct client_session s;

	if (client_look(&s, &c->paths, argv[0], e) < 0)
		return e->error;
	json_print(json_of_session(&s, true));
	client_session_fini(&s);
	return 0;
}

const struct cli_command cli_inspect = {
	.name = "inspect",
	.usage = "[NAME]",
	.help = "all that is known of a session, as JSON",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(bool),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.ended = true,
	.run = run,
};
