// SPDX-License-Identifier: GPL-2.0-or-later
/* top: the processes of a session, by the session's own numbers. */
#include <inttypes.h>
#include <stddef.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/client.h"

#define MAX_COMMAND 100 /* characters */

struct top_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct top_options, json)},
};

static void print_table(const Pb__Info *info)
{
	static const char *const titles[] = {"PID", "PARENT", "STATE", "THREADS", "MEMORY", "CPU",
		"COMMAND"};
	struct cli_table t = {.columns = ARRAY_SIZE(titles)};
	char size[32];

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		cli_table_add(&t, "%s", titles[i]);
	for (size_t i = 0; i < info->n_processes; i++) {
		Pb__Process *p = info->processes[i];

		cli_bytes(p->rss_kb * 1024, size, sizeof(size));
		cli_table_add(&t, "%d", p->vpid);
		cli_table_add(&t, "%d", p->vppid);
		cli_table_add(&t, "%s", p->state);
		cli_table_add(&t, "%u", p->threads);
		cli_table_add(&t, "%s", size);
		cli_table_add(&t, "%" PRIu64 ".%02" PRIu64 "s", p->cpu_ms / 1000, p->cpu_ms % 1000 / 10);
		text_tame(p->command, MAX_COMMAND);
		cli_table_add(&t, "%s", p->command);
	}
	cli_table_print(&t, stdout);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct top_options *o = opts;
	struct client_session s;
	json_t *list;

	if (client_look(&s, &c->paths, argv[0], e) < 0)
		return e->error;
	if (!s.live) {
		err_set(e, ERR_STATE, -ESRCH, "'%s' is not running: it is %s", argv[0], s.state);
	} else if (!s.info) {
		err_set(e, ERR_STATE, -EBUSY, "'%s' is busy with other commands", argv[0]);
	} else if (o->json) {
		list = json_array();
		for (size_t i = 0; i < s.info->information->n_processes; i++)
			json_array_append_new(list,
				json_of_process(s.info->information->processes[i]));
		json_print(list);
	} else {
		print_table(s.info->information);
	}
	client_session_fini(&s);
	return e->error;
}

const struct cli_command cli_top = {
	.name = "top",
	.usage = "[--json] [NAME]",
	.help = "the processes of a session",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct top_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run,
};
