// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun check: what this host offers.
 */
#include <stddef.h>
#include <stdio.h>

#include "supervisor/check.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"

struct check_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct check_options, json)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct check_options *o = opts;
	json_t *list = json_array();
	bool complete = true;

	for (size_t i = 0; i < n_checks; i++) {
		const struct check *k = &checks[i];
		bool ok = check_works(k);

		complete &= ok || !k->needed;
		json_array_append_new(list,
			json_pack("{s:s, s:b, s:b, s:s, s:s}", "name", k->name, "ok", ok, "needed",
				k->needed, "lost", k->lost, "get", k->get));
		if (!o->json && ok)
			printf("%-18s yes\n", k->name);
		else if (!o->json)
			printf("%-18s NO%s: %s\n%18s to get it: %s\n", k->name, k->needed ? " (needed)" : "",
				k->lost, "", k->get);
	}
	if (o->json)
		json_print(json_pack("{s:b, s:o}", "ok", complete, "checks", list));
	else
		json_decref(list);
	return complete ? 0 : err_class_info(ERR_HOST)->exit_code;
}

const struct cli_command cli_check = {
	.name = "check",
	.usage = "[--json]",
	.help = "what this host offers, and what is lost without the rest",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct check_options),
	.group = CLI_MORE,
	.standalone = true,
	.run = run,
};
