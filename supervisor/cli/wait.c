// SPDX-License-Identifier: GPL-2.0-or-later
/* wait: for the end of a session's command; its exit code. */
#include "proto/config.pb-c.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"
#include "supervisor/message.h"

/* The exit code of a session that has no supervisor any more. */
static int from_record(struct cli *c, const char *name, struct err *e)
{
	Pb__Record *r;
	enum record_state state;
	struct err own = {0};

	if (record_load(&r, &c->paths, name, &own) < 0)
		return -1;
	state = record_state_of(r->state);
	if (state == RECORD_ENDED) {
		printf("%d\n", stream_exit_code(r->status));
		*e = (struct err){0};
	}
	record_free(r);
	return state == RECORD_ENDED ? 0 : -1;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct proto_conn *conn;
	int r = client_connect(&conn, &c->paths, argv[0], e);

	if (r < 0)
		return from_record(c, argv[0], e) == 0 ? 0 : r;
	m.body_case = PB__CONTROL__BODY_WAIT;
	m.wait = &empty;
	r = client_call(conn, &m, NULL, 0, &reply, e);
	proto_conn_free(conn);
	if (r < 0)
		return from_record(c, argv[0], e) == 0 ? 0 : r;
	if (reply->body_case == PB__CONTROL__BODY_EXITED)
		printf("%d\n", stream_exit_code(reply->exited->status));
	else
		r = err_set(e, ERR_MOVED, -ECONNRESET, "'%s' was suspended or moved", argv[0]);
	message_free(reply);
	return r;
}

const struct cli_command cli_wait = {
	.name = "wait",
	.usage = "[NAME]",
	.help = "wait for the end of a session's command, print its exit code",
	.group = CLI_END,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.ended = true,
	.run = run,
};
