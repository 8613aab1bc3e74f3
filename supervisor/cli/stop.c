// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun stop: asks the command to end, waits, and ends the session if it did not.
 */
#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"
#include "supervisor/message.h"

struct stop_options {
	const char *signal, *time;
};

static const struct cli_option options[] = {
	{"time", 't', "SECONDS", "how long to wait before it is killed (10)", CLI_STRING,
		offsetof(struct stop_options, time)},
	{"signal", 's', "SIGNAL", "how to ask (TERM)", CLI_STRING, offsetof(struct stop_options, signal)},
};

/* One that is paused does not hear what it was sent. */
static void let_hear(struct proto_conn *conn)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err ignored = {0};

	m.body_case = PB__CONTROL__BODY_UNPAUSE;
	m.unpause = &empty;
	if (client_call(conn, &m, NULL, 0, &reply, &ignored) == 0)
		message_free(reply);
}

/* Asks for the end; true once the command has ended, within @ms. */
static int ask_and_wait(struct proto_conn *conn, int number, int ms, struct err *e)
{
	Pb__Control wait = PB__CONTROL__INIT, m = PB__CONTROL__INIT, *reply;
	Pb__SignalRequest q = PB__SIGNAL_REQUEST__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct pollfd p = {.fd = proto_conn_fd(conn), .events = POLLIN};
	int r;

	q.signal = number;
	m.body_case = PB__CONTROL__BODY_SIGNAL;
	m.signal = &q;
	r = client_call(conn, &m, NULL, 0, &reply, e);
	if (r < 0)
		return e->class == ERR_STATE ? 0 : r; /* only others are left: they are killed */
	message_free(reply);
	let_hear(conn);
	wait.body_case = PB__CONTROL__BODY_WAIT;
	wait.wait = &empty;
	r = message_send(conn, &wait, NULL, 0, e);
	if (r == -EPIPE || r == -ECONNRESET)
		return 1; /* it has ended already, and its supervisor */
	if (r < 0)
		return r;
	if (poll(&p, 1, ms) != 1)
		return 0;
	if (client_receive(conn, &reply, e) < 0) {
		*e = (struct err){0};
		return 1;
	}
	r = reply->body_case == PB__CONTROL__BODY_MOVED;
	message_free(reply);
	return r ? err_set(e, ERR_MOVED, -ECONNRESET, "it was suspended or moved") : 1;
}

/* It is over, whoever has ended it. */
static bool is_over(struct cli *c, const char *name)
{
	struct err ignored = {0};
	Pb__Record *r;
	bool over;

	if (record_load(&r, &c->paths, name, &ignored) < 0)
		return true;
	over = record_state_of(r->state) == RECORD_ENDED;
	record_free(r);
	return over;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct stop_options *o = opts;
	int number = o->signal ? cli_parse_signal(o->signal, e) : SIGTERM, r;
	Pb__Control kill = PB__CONTROL__INIT;
	Pb__KillRequest q = PB__KILL_REQUEST__INIT;
	struct proto_conn *conn;
	uint64_t seconds = 10;

	if (number < 0)
		return number;
	if (o->time && (cli_parse_number(o->time, &seconds) < 0 || seconds > 1000000))
		return cli_not_valid("--time", o->time, "SECONDS, at most 1000000", e);
	r = client_connect(&conn, &c->paths, argv[0], e);
	if (r < 0)
		return err_wrap(e, "cannot stop '%s'", argv[0]);
	r = ask_and_wait(conn, number, (int)seconds * 1000, e);
	proto_conn_free(conn);
	if (r < 0)
		return err_wrap(e, "cannot stop '%s'", argv[0]);
	/* What the command left behind ends as well; usually there is nothing any more. */
	kill.body_case = PB__CONTROL__BODY_KILL;
	kill.kill = &q;
	if (client_simple(&c->paths, argv[0], &kill, e) < 0 && e->class != ERR_NOT_FOUND &&
		(e->class != ERR_STATE || !is_over(c, argv[0])))
		return err_wrap(e, "cannot stop '%s'", argv[0]);
	return 0;
}

const struct cli_command cli_stop = {
	.name = "stop",
	.usage = "[-t SECONDS] [NAME]",
	.help = "ask a session's command to end, then end it",
	.text = "One that is paused runs on, so that it can hear it.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct stop_options),
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run,
};
