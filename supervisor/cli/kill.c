// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun kill ends a session; with -s it sends a signal to its command, or with a VPID to that
 * process (KILL by default).
 */
#include <signal.h>
#include <stddef.h>

#include "proto/control.pb-c.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"

struct kill_options {
	const char *signal;
};

static const struct cli_option options[] = {
	{"signal", 's', "SIGNAL", "send this one: a name or a number", CLI_STRING,
		offsetof(struct kill_options, signal)},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct kill_options *o = opts;
	Pb__Control m = PB__CONTROL__INIT;
	Pb__SignalRequest q = PB__SIGNAL_REQUEST__INIT;
	Pb__KillRequest kill = PB__KILL_REQUEST__INIT;
	uint64_t vpid = 0;

	q.signal = o->signal ? cli_parse_signal(o->signal, e) : SIGKILL;
	if (q.signal < 0)
		return q.signal;
	if (argc > 1 && (cli_parse_number(argv[1], &vpid) < 0 || vpid < 1 || vpid > INT32_MAX))
		return err_set(e, ERR_USAGE, -EINVAL, "'%s' is not the number of a process", argv[1]);
	q.vpid = (int32_t)vpid;
	if (vpid || (o->signal && q.signal != SIGKILL)) {
		m.body_case = PB__CONTROL__BODY_SIGNAL;
		m.signal = &q;
	} else {
		m.body_case = PB__CONTROL__BODY_KILL;
		m.kill = &kill;
	}
	if (client_simple(&c->paths, argv[0], &m, e) < 0)
		return err_wrap(e, "cannot kill '%s'", argv[0]);
	return 0;
}

const struct cli_command cli_kill = {
	.name = "kill",
	.usage = "[-s SIGNAL] [NAME [VPID]]",
	.help = "end a session, or signal a process of it",
	.text = "Without VPID and signal the whole session is ended at once. With *-s* its command gets "
		"the signal; with VPID (as *podrun top* shows it) that process, KILL by default.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct kill_options),
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = 2,
	.session = true,
	.run = run,
};
