// SPDX-License-Identifier: GPL-2.0-or-later
/* rename: of a live session the supervisor does it, of another the record is moved. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"
#include "supervisor/disk/tenure.h"

/* Of one that isn't running: its directory, its record, and its image in the default place. */
static int rename_record(struct cli *c, const char *from, const char *to, struct err *e)
{
	_cleanup_free_ char *old_dir = paths_session(&c->paths, from, NULL);
	_cleanup_free_ char *new_dir = paths_session(&c->paths, to, NULL);
	_cleanup_free_ char *old_image = paths_image(&c->paths, from, 0);
	_cleanup_free_ char *new_image = paths_image(&c->paths, to, 0);
	_cleanup_close_ int lock = tenure_lock(&c->paths, e);
	Pb__Record *r;

	if (lock < 0)
		return lock;
	if (!old_dir || !new_dir || !old_image || !new_image)
		return err_errno(e, -ENOMEM, "rename");
	if (client_is_live(&c->paths, from))
		return err_set(e, ERR_STATE, -EBUSY, "it has just been resumed");
	if (access(new_dir, F_OK) == 0)
		return err_set(e, ERR_STATE, -EEXIST, "the name '%s' is in use", to);
	if (record_load(&r, &c->paths, from, e) < 0)
		return e->error;
	if (rename(old_dir, new_dir) < 0) {
		err_errno(e, -errno, "%s", new_dir);
	} else {
		free(r->config->name);
		r->config->name = strdup(to);
		if (strcmp(r->image, old_image) == 0 && rename(old_image, new_image) == 0) {
			free(r->image);
			r->image = take_ptr(new_image);
		}
		record_save(r, new_dir, true, e);
	}
	record_free(r);
	return e->error;
}

/*
 * The supervisor does it.  One that is just going, for its session was suspended or has ended,
 * hears no more of it: then the record is moved as ever.
 */
static int rename_live(struct cli *c, const char *from, const char *to, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__RenameRequest q = PB__RENAME_REQUEST__INIT;
	int r;

	q.name = (char *)to;
	m.body_case = PB__CONTROL__BODY_RENAME;
	m.rename = &q;
	r = client_simple(&c->paths, from, &m, e);
	if (r != -ECONNRESET && r != -ESRCH)
		return r;
	for (int i = 0; i < 500 && client_is_live(&c->paths, from); i++)
		usleep(10000);
	*e = (struct err){0};
	return rename_record(c, from, to, e);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	_cleanup_free_ char *only = NULL;
	const char *from = argv[0], *to = argv[argc - 1];
	int r;

	if (argc == 1) {
		if (cli_only_session(c, &only, e) < 0)
			return e->error;
		from = only;
	}
	if (paths_check_name(to, e) < 0)
		return e->error;
	r = client_is_live(&c->paths, from) ? rename_live(c, from, to, e)
					    : rename_record(c, from, to, e);
	return r < 0 ? err_wrap(e, "cannot rename '%s'", from) : 0;
}

const struct cli_command cli_rename = {
	.name = "rename",
	.usage = "[NAME] NEW",
	.help = "give a session another name",
	.text = "Snapshots that were made before keep the old one: *podrun resume* OLD@N, *podrun rm* OLD.",
	.group = CLI_END,
	.operand = CLI_SESSION,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
