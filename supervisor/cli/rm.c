// SPDX-License-Identifier: GPL-2.0-or-later
/* rm: what is left of sessions that are not running: record, log, image. */
#include <fcntl.h>
#include <stddef.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/record.h"
#include "supervisor/tenure.h"

struct rm_options {
	bool force, all;
};

static const struct cli_option options[] = {
	{"force", 'f', NULL, "end it first if it is running", CLI_FLAG,
		offsetof(struct rm_options, force)},
	{"all", 'a', NULL, "all that have ended", CLI_FLAG, offsetof(struct rm_options, all)},
};

static int remove_one(struct cli *c, const char *name, bool force, struct err *e)
{
	_cleanup_free_ char *runtime = paths_runtime(&c->paths, name, NULL);
	struct client_session s;

	tenure_sweep(&c->paths);
	if (client_look(&s, &c->paths, name, e) < 0)
		return e->error;
	if (s.live && force) {
		Pb__Control m = PB__CONTROL__INIT;
		Pb__Empty empty = PB__EMPTY__INIT;

		m.body_case = PB__CONTROL__BODY_KILL;
		m.kill = &empty;
		client_simple(&c->paths, name, &m, e);
		*e = (struct err){0};
	} else if (s.live) {
		err_set(e, ERR_STATE, -EBUSY, "cannot remove '%s': it is %s", name, s.state);
		err_hint(e, "podrun stop %s, or podrun rm -f %s", name, name);
	}
	client_session_fini(&s);
	if (err_is(e))
		return e->error;
	/* The supervisor removes what was started with --rm itself. */
	for (int i = 0; i < 500 && client_is_live(&c->paths, name); i++)
		usleep(10000);
	if (runtime)
		io_rm_rf(AT_FDCWD, runtime);
	return record_remove(&c->paths, name, e);
}

static int remove_all(struct cli *c, struct err *e)
{
	struct client_session *all;
	size_t n;
	int r = client_list(&c->paths, &all, &n, e);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (!all[i].live && record_state_of(all[i].record->state) == RECORD_ENDED)
			r = record_remove(&c->paths, all[i].name, e);
	if (r == 0)
		client_list_free(all, n);
	return r;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct rm_options *o = opts;
	int r = 0;

	if (o->all)
		return remove_all(c, e);
	if (!argc)
		return err_set(e, ERR_USAGE, -EINVAL, "usage: podrun rm [-f] NAME...");
	for (int i = 0; r == 0 && i < argc; i++)
		r = paths_valid_name(argv[i]) ? remove_one(c, argv[i], o->force, e) :
						err_set(e, ERR_NOT_FOUND, -ENOENT, "no session '%.64s'", argv[i]);
	return r;
}

const struct cli_command cli_rm = {
	.name = "rm",
	.usage = "[-f] NAME... | -a",
	.help = "forget sessions that ended or are suspended, with their images",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct rm_options),
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = -1,
	.run = run,
};
