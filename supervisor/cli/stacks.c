// SPDX-License-Identifier: GPL-2.0-or-later
/* podrun stacks: the session stands still for some milliseconds while ckpt looks at it. */
#include <stddef.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"

struct stacks_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct stacks_options, json)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct stacks_options *o = opts;
	struct ckpt_world world = {.proc_fd = -1};
	struct client_session s;
	int r;

	if (client_look(&s, &c->paths, argv[0], e) < 0)
		return e->error;
	if (strcmp(s.state, "running") != 0) {
		r = err_set(e, ERR_STATE, -EBUSY,
			"'%s' is %s: only a running session has stacks to walk", argv[0], s.state);
	} else if (strcmp(s.record->config->names, "rewrite") == 0) {
		/* Who traces it has its stacks; that is not us. */
		r = err_set(e, ERR_HOST, -EOPNOTSUPP, "the stacks of '%s', whose names are rewritten, "
			"can't be walked while it runs", argv[0]);
		err_hint(e, "podrun snapshot %s -o FILE && podrun image stacks FILE", argv[0]);
	} else {
		world.init_pid = s.info->information->init_pid;
		r = ckpt_stacks(&world, stdout, o->json, e);
	}
	client_session_fini(&s);
	return r;
}

const struct cli_command cli_stacks = {
	.name = "stacks",
	.usage = "[--json] [NAME]",
	.help = "where every thread of a session stands",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct stacks_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run,
};
