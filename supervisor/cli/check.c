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

static const char *const needs[] = {
	[CHECK_MORE] = "",
	[CHECK_NAMES] = " (the kernel's names)",
	[CHECK_FILES] = " (the kernel's names)",
	[CHECK_MOVES] = " (to suspend and resume)",
	[CHECK_ALL] = " (needed)",
};

static void print_row(const struct check *k, bool ok)
{
	if (ok)
		printf("%-18s yes\n", k->name);
	else
		printf("%-18s NO%s: %s\n%18s to get it: %s\n", k->name, needs[k->need], k->lost, "",
			k->get);
}

/* What a session gets here: its names from the kernel, or from us. */
static void print_names(const struct check *lacking)
{
	if (!lacking) {
		printf("\nnames: held by the kernel\n");
		return;
	}
	printf("\nnames: rewritten by podrun, for want of %s. What is weaker then:\n", lacking->name);
	for (size_t i = 0; i < n_checks_weaker; i++)
		printf("%-18s %s\n", checks_weaker[i].what, checks_weaker[i].how);
	printf("%18s to lift it: %s\n", "", lacking->get);
}

static json_t *weaker_of(const struct check *lacking)
{
	json_t *list = json_array();

	for (size_t i = 0; lacking && i < n_checks_weaker; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "what", checks_weaker[i].what, "how",
						    checks_weaker[i].how));
	return list;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct check_options *o = opts;
	const struct check *lacking = NULL;
	json_t *list = json_array();
	bool missing[CHECK_ALL + 1] = {false}, complete;

	for (size_t i = 0; i < n_checks; i++) {
		const struct check *k = &checks[i];
		bool ok = check_works(k);

		missing[k->need] |= !ok;
		if (!ok && k->need == CHECK_NAMES && !lacking)
			lacking = k;
		json_array_append_new(list,
			json_pack("{s:s, s:b, s:b, s:s, s:s}", "name", k->name, "ok", ok, "needed",
				k->need == CHECK_ALL, "lost", k->lost, "get", k->get));
		if (!o->json)
			print_row(k, ok);
	}
	complete = !missing[CHECK_ALL] && (lacking || (!missing[CHECK_FILES] && !missing[CHECK_MOVES]));
	if (o->json) {
		json_print(json_pack("{s:b, s:s, s:o, s:o}", "ok", complete, "names",
			lacking ? "rewrite" : "kernel", "weaker", weaker_of(lacking), "checks", list));
	} else {
		print_names(lacking);
		json_decref(list);
	}
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
