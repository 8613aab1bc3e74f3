// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun receive: the far end of migrate, started by it through ssh.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/transfer.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

_Static_assert(sizeof(TRANSFER_HELLO) == sizeof(TRANSFER_HELLO_1), "what follows is at one place");

/* The greeting: whose image comes, and whether the other side waits until it may. */
static int read_hello(uint8_t key[PROTO_KEY_LEN], bool *ret_waits, struct err *e)
{
	const size_t len = strlen(TRANSFER_HELLO);
	char line[TRANSFER_MAX_LINE];

	if (transfer_read_line(STDIN_FILENO, line) < 0 ||
		(strncmp(line, TRANSFER_HELLO, len) != 0 &&
			strncmp(line, TRANSFER_HELLO_1, len) != 0)) {
		err_set(e, ERR_USAGE, -EPROTO, "podrun receive is started by podrun migrate");
		return e->error;
	}
	*ret_waits = strncmp(line, TRANSFER_HELLO, len) == 0;
	return proto_key_parse(line + len, key, e);
}

static int decide(struct proto_conn *conn, Pb__Decision__What what, Pb__Control **ret, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Decision d = PB__DECISION__INIT;

	d.what = what;
	m.body_case = PB__CONTROL__BODY_DECISION;
	m.decision = &d;
	return client_call(conn, &m, NULL, 0, ret, e);
}

/*
 * The image goes through a pipe to a new supervisor, which is asked to take it before the other side
 * hears that it may come; *ret is its `started`.
 */
static int rebuild(struct proto_conn *conn, uint8_t key[PROTO_KEY_LEN], bool waits,
	Pb__Control **ret, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__ResumeRequest q = PB__RESUME_REQUEST__INIT;
	int ends[2], copied, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	q.frozen = true;
	q.trust.data = key;
	q.trust.len = PROTO_KEY_LEN;
	m.body_case = PB__CONTROL__BODY_RESUME;
	m.resume = &q;
	r = message_send(conn, &m, &ends[0], 1, e);
	close(ends[0]);
	if (r >= 0 && waits && transfer_write_line(STDOUT_FILENO, "HERE") < 0)
		r = err_set(e, ERR_PEER, -EPIPE, "the other side has gone");
	copied = r < 0 ? r : transfer_receive_image(STDIN_FILENO, ends[1]);
	close(ends[1]);
	if (r < 0)
		return r;
	r = client_receive(conn, ret, e);
	if (r == 0 && copied < 0) {
		message_free(take_ptr(*ret));
		return err_set(e, ERR_PEER, copied, "the image came only in part");
	}
	return r;
}

/* The other side tells its user why; a second line here would only be in the way. */
static int give_up(const struct err *e)
{
	transfer_write_line(STDOUT_FILENO, "FAIL %s", e->msg);
	return err_class_info(e->class)->exit_code;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	uint8_t key[PROTO_KEY_LEN];
	char line[TRANSFER_MAX_LINE], name[PATHS_MAX_NAME], note[256];
	struct proto_conn *conn;
	Pb__Control *reply;
	bool waits = false;
	int r = read_hello(key, &waits, e);

	signal(SIGPIPE, SIG_IGN);
	if (r == 0)
		r = client_start(&conn, e);
	if (r < 0)
		return r;
	r = rebuild(conn, key, waits, &reply, e);
	if (r < 0)
		return give_up(e);
	snprintf(name, sizeof(name), "%.63s", reply->started->name);
	snprintf(note, sizeof(note), "%s%s", reply->started->note[0] ? " " : "", reply->started->note);
	message_free(reply);
	r = transfer_write_line(STDOUT_FILENO, "READY %s%s", name, note);
	if (r == 0)
		r = transfer_read_line(STDIN_FILENO, line);
	if (r < 0) {
		err_set(e, ERR_IN_DOUBT, r, "'%s' arrived, frozen, and nobody said that it may run", name);
		return err_hint(e, "podrun migrate --finish %s lets it run, --abort removes it", name);
	}
	if (strcmp(line, "GO") != 0)
		r = decide(conn, PB__DECISION__WHAT__ABORT, &reply, e);
	else
		r = decide(conn, PB__DECISION__WHAT__FINISH, &reply, e);
	if (r < 0)
		return give_up(e);
	message_free(reply);
	if (strcmp(line, "GO") == 0)
		transfer_write_line(STDOUT_FILENO, "ACK");
	proto_conn_free(conn);
	return 0;
}

const struct cli_command cli_receive = {
	.name = "receive",
	.help = "take a session that podrun migrate sends",
	.text = "Started by *podrun migrate* through ssh; it speaks over stdin and stdout.",
	.group = CLI_MORE,
	.run = run,
};
