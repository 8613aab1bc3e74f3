// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file is written by the command's own shell and not from here: who writes into a session's
 * files from outside may be led astray, or kept waiting, by what the session has put there.
 */
#include "supervisor/network/whereabouts.h"

#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/job.h"
#include "supervisor/session.h"

#define SCRIPT                                                                               \
	"f=/run/podrun/outside; printf '%s\\n' $PODRUN_OUTSIDE >$f.new && mv -f $f.new $f; " \
	"exec sh -c \"$PODRUN_ON_MOVE\""

/* The session's own, and what is said to the command. */
static char **make_env(const Pb__Config *c, char *outside, char *command)
{
	char **env = calloc(c->n_env + 3, sizeof(*env));

	if (!env)
		return NULL;
	if (c->n_env)
		memcpy(env, c->env, c->n_env * sizeof(*env));
	env[c->n_env] = outside;
	env[c->n_env + 1] = command;
	return env;
}

void whereabouts_tell(struct session *s, const char *addresses)
{
	const Pb__Config *c = s->record->config;
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)SCRIPT, NULL};
	_cleanup_buf_ struct buf outside = BUF_INIT, command = BUF_INIT;
	_cleanup_free_ char **env = NULL;
	struct job_spec spec = {.argv = argv, .cwd = c->cwd};
	struct err e = {0};
	struct job *j;

	if (!c->network || !c->network->on_move[0])
		return;
	buf_printf(&outside, "PODRUN_OUTSIDE=%s", addresses);
	buf_printf(&command, "PODRUN_ON_MOVE=%s", c->network->on_move);
	if (buf_cstr(&outside) && buf_cstr(&command))
		env = make_env(c, buf_cstr(&outside), buf_cstr(&command));
	if (!env)
		return;
	spec.envp = env;
	if (job_start(&j, s, &spec, &e) < 0)
		log_warn("--on-move: %s", e.msg);
	else
		j->aside = true;
}
