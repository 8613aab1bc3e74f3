// SPDX-License-Identifier: GPL-2.0-or-later
/* ps: the sessions of this user, live ones and records of others. */
#include <stddef.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/cli/net_text.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"

#define MAX_COMMAND 60 /* characters */

struct ps_options {
	bool all, json, quiet;
};

static const struct cli_option options[] = {
	{"all", 'a', NULL, "suspended and ended ones as well", CLI_FLAG,
		offsetof(struct ps_options, all)},
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct ps_options, json)},
	{"quiet", 'q', NULL, "names only", CLI_FLAG, offsetof(struct ps_options, quiet)},
};

/* The command line of the session, in one cell. */
static void add_command(struct cli_table *t, const Pb__Config *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char *line;

	for (size_t i = 0; i < c->n_argv; i++)
		buf_printf(&b, "%s%s", i ? " " : "", c->argv[i]);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] < ' ')
			b.data[i] = ' ';
	line = buf_cstr(&b);
	if (line)
		text_tame(line, MAX_COMMAND);
	cli_table_add(t, "%s", line ? line : "");
}

static void add_network(struct cli_table *t, const struct client_session *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	net_text_put_cell(&b, s);
	cli_table_add(t, "%s", buf_cstr(&b) ? buf_cstr(&b) : "");
}

/* A line for each session that needs more than the host on which it is. */
static void print_dependencies(const struct client_session *all, size_t n, bool everything)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		if (all[i].live || everything)
			net_text_put_dependency(&b, &all[i]);
		if (b.len && buf_cstr(&b))
			printf("%s depends on %s\n", all[i].name, buf_cstr(&b));
	}
}

static void print_table(const struct client_session *all, size_t n, bool everything)
{
	struct cli_table t = {.columns = 6};
	char ago[64];

	cli_table_add(&t, "NAME");
	cli_table_add(&t, "STATE");
	cli_table_add(&t, "TASKS");
	cli_table_add(&t, "STARTED");
	cli_table_add(&t, "NETWORK");
	cli_table_add(&t, "COMMAND");
	for (size_t i = 0; i < n; i++) {
		const struct client_session *s = &all[i];

		if (!s->live && !everything)
			continue;
		cli_ago(s->record->started, ago, sizeof(ago));
		cli_table_add(&t, "%s", s->name);
		cli_table_add(&t, "%s", s->state);
		if (s->info)
			cli_table_add(&t, "%zu", s->info->information->n_processes);
		else
			cli_table_add(&t, "-");
		cli_table_add(&t, "%s", ago);
		add_network(&t, s);
		add_command(&t, s->record->config);
	}
	cli_table_print(&t, stdout);
	print_dependencies(all, n, everything);
}

/* Of those whose records can't be read no more is known than that they are there. */
static void tell_damaged(const struct paths *p)
{
	struct err e = {0};
	char **names;
	size_t n;

	if (paths_list(p, &names, &n, &e) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct err story = {0};
		Pb__Record *r = NULL;

		if (record_load(&r, p, names[i], &story) == -EBADMSG && !client_is_live(p, names[i]))
			cli_print_error(&story);
		record_free(r);
		free(names[i]);
	}
	free(names);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct ps_options *o = opts;
	struct client_session *all;
	json_t *list;
	size_t n;

	if (client_list(&c->paths, &all, &n, e) < 0)
		return e->error;
	list = o->json ? json_array() : NULL;
	for (size_t i = 0; i < n; i++) {
		if (!all[i].live && !o->all)
			continue;
		if (list)
			json_array_append_new(list, json_of_session(&all[i], false));
		else if (o->quiet)
			printf("%s\n", all[i].name);
	}
	if (list)
		json_print(list);
	else if (!o->quiet)
		print_table(all, n, o->all);
	client_list_free(all, n);
	if (o->all)
		tell_damaged(&c->paths);
	return 0;
}

const struct cli_command cli_ps = {
	.name = "ps",
	.usage = "[-a] [--json]",
	.help = "list sessions",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct ps_options),
	.group = CLI_LOOK,
	.run = run,
};
