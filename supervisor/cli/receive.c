// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun receive: the far end of migrate, started by it through ssh.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/transfer.h"
#include "supervisor/client.h"
#include "supervisor/message.h"
#include "vnet/vnet.h"

_Static_assert(sizeof(TRANSFER_HELLO) == sizeof(TRANSFER_HELLO_1), "what follows is at one place");

#define BREAK_MS 1000 /* in which both ends of a broken line are heard of */
#define MAX_NOTE (TRANSFER_MAX_LINE / 2)
/*
 * An image that has stopped coming holds the session's ports here, and memory.  A migrate is silent for
 * half a minute at most, when it waits for what is not to be frozen yet.
 */
#define PATIENCE_MS 120000

struct greeting {
	uint8_t key[PROTO_KEY_LEN];	 /* whose image comes */
	bool waits;			 /* until it may come */
	bool live;			 /* most of it comes while the session runs */
	char gateway[TRANSFER_MAX_LINE]; /* of the session, on another host; or "" */
	uint8_t foretold[PROTO_BASE64_MAX];
	size_t foretold_len;
};

/* What can't be read was not said. */
static void take_foretold(struct greeting *ret, const char *text)
{
	ssize_t n = proto_base64_decode(
		text, strlen(text), ret->foretold, sizeof(ret->foretold));

	ret->foretold_len = n < 0 ? 0 : (size_t)n;
}

static int read_hello(struct greeting *ret, struct err *e)
{
	const size_t len = strlen(TRANSFER_HELLO);
	char line[TRANSFER_MAX_LINE], *word, *rest;

	if (transfer_read_line(STDIN_FILENO, line) < 0 ||
		(strncmp(line, TRANSFER_HELLO, len) != 0 &&
			strncmp(line, TRANSFER_HELLO_1, len) != 0)) {
		err_set(e, ERR_USAGE, -EPROTO, "podrun receive is started by podrun migrate");
		return e->error;
	}
	ret->waits = strncmp(line, TRANSFER_HELLO, len) == 0;
	strtok_r(line + len, " ", &rest);
	while (ret->waits && (word = strtok_r(NULL, " ", &rest))) {
		ret->live |= strcmp(word, TRANSFER_LIVE) == 0;
		if (*word == '@')
			snprintf(ret->gateway, sizeof(ret->gateway), "%s", word + 1);
		if (*word == '=')
			take_foretold(ret, word + 1);
	}
	return proto_key_parse(line + len, ret->key, e);
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

/* Its process lives on, and must not keep what leads to the other side open. */
static int connect_quietly(struct cli *c, const char *gateway, struct vnet_client **ret)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), log = -1;
	int saved[3], r;
	char path[4096];
	struct err ignored = {0};

	snprintf(path, sizeof(path), "%s/.gateway/log", c->paths.runtime);
	log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (null < 0)
		return null;
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		dup2(i == STDERR_FILENO && log >= 0 ? log : null, i);
	}
	r = vnet_client_connect_away(ret, gateway, &ignored);
	for (int i = 0; i < 3; i++)
		if (saved[i] >= 0) {
			dup2(saved[i], i);
			close(saved[i]);
		}
	return r;
}

/*
 * A line to the gateway on another host that the session has: -1 where there is none, or it can't be
 * had now; then its supervisor tries, and says why not.
 */
static int reach(struct cli *c, const char *gateway)
{
	struct vnet_client *client;
	struct vnet_answer a = {0};
	struct err ignored = {0};
	int line = -1;

	if (!gateway[0] || gateway[0] == '-' || connect_quietly(c, gateway, &client) < 0)
		return -1;
	if (vnet_client_list(client, NULL, &ignored) == 0 && vnet_client_wait(client, &a, &ignored) == 0)
		line = fcntl(vnet_client_fd(client), F_DUPFD_CLOEXEC, 3);
	vnet_answer_fini(&a);
	vnet_client_free(client);
	return line;
}

/* It has prepared what it can. */
static int await_begun(struct proto_conn *conn, struct err *e)
{
	Pb__Control *m;
	int r = client_receive(conn, &m, e);

	if (r == 0)
		message_free(m);
	return r;
}

/*
 * The image goes through a pipe to a new supervisor, which is asked to take it before the other side
 * hears that it may come; *ret is its `started`.
 */
static int rebuild(struct cli *c, struct proto_conn *conn, struct greeting *g, Pb__Control **ret,
	struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__ResumeRequest q = PB__RESUME_REQUEST__INIT;
	_cleanup_close_ int line = reach(c, g->gateway);
	int ends[2], fds[2], copied, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	if (!g->live) {
		transfer_widen(STDIN_FILENO);
		transfer_widen(ends[1]);
	}
	q.frozen = true;
	q.tell = g->waits;
	q.trust.data = g->key;
	q.trust.len = PROTO_KEY_LEN;
	q.foretold.data = g->foretold;
	q.foretold.len = g->foretold_len;
	m.body_case = PB__CONTROL__BODY_RESUME;
	m.resume = &q;
	q.line = line < 0 ? q.line : g->gateway;
	fds[0] = ends[0];
	fds[1] = line;
	r = message_send(conn, &m, fds, line < 0 ? 1 : 2, e);
	if (r == -EPIPE || r == -ECONNRESET)
		r = err_set(e, ERR_STATE, r, "the session's supervisor has ended");
	close(ends[0]);
	line = close_fd(line);
	if (r >= 0 && g->waits)
		r = await_begun(conn, e);
	if (r >= 0 && g->waits && transfer_write_line(STDOUT_FILENO, "HERE") < 0)
		r = err_set(e, ERR_PEER, -EPIPE, "the other side has gone");
	copied = r < 0 ? r : transfer_receive_image(STDIN_FILENO, ends[1], PATIENCE_MS);
	close(ends[1]);
	if (r < 0)
		return r;
	r = client_receive(conn, ret, e);
	if (r == 0 && copied < 0) {
		message_free(take_ptr(*ret));
		return err_set(e, ERR_PEER, copied, "the image came only in part%s",
			copied == -ETIMEDOUT ? ": for two minutes there was nothing" : "");
	}
	return r;
}

/* The other side tells its user why; a second line here would only be in the way. */
static int give_up(const struct err *e)
{
	transfer_write_line(STDOUT_FILENO, "FAIL %s", e->msg);
	return err_class_info(e->class)->exit_code;
}

/* What is not as it was there, in one line; the caller frees it, and NULL is fine. */
static char *note_of(const Pb__Started *started)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	cli_lacking(&b, started->lacking, started->root);
	if (started->note[0])
		buf_printf(&b, "%s%s", b.len ? "; " : "", started->note);
	return buf_cstr(&b) ? strndup(buf_cstr(&b), MAX_NOTE) : NULL;
}

/*
 * Nothing came any more.  The line has broken, and nobody knows what was said; or it is there, and
 * the other side has ended before it said GO, so that nobody will.
 */
static bool is_given_up(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, BREAK_MS) == 0;
}

/* Tells that it is there, and hears whether it may run: *ret.  ERR_IN_DOUBT. */
static int hear(const char *name, const char *note, bool *ret, struct err *e)
{
	char line[TRANSFER_MAX_LINE] = "";
	int r;

	*ret = false;
	/* who can't be told that it is there has nothing to give away */
	if (transfer_write_line(STDOUT_FILENO, "READY %s%s%s", name, note && *note ? " " : "",
		    note ? note : "") < 0)
		return 0;
	r = transfer_read_line(STDIN_FILENO, line);
	*ret = r == 0 && strcmp(line, "GO") == 0;
	if (r == 0 || is_given_up())
		return 0;
	err_set(e, ERR_IN_DOUBT, r, "'%s' arrived, frozen, and nobody said that it may run", name);
	return err_hint(e,
		"if it runs where it came from: podrun migrate --abort %s; if it is in doubt "
		"there, --finish it there first, then here",
		name);
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	char name[PATHS_MAX_NAME];
	_cleanup_free_ char *note = NULL;
	struct proto_conn *conn;
	Pb__Control *reply;
	struct greeting g = {0};
	bool go;
	int r = read_hello(&g, e);

	signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		return r;
	/* from here on the other side can be told why not */
	r = paths_init(&c->paths, e);
	if (r == 0)
		r = client_start(&conn, e);
	if (r == 0)
		r = rebuild(c, conn, &g, &reply, e);
	if (r < 0)
		return give_up(e);
	snprintf(name, sizeof(name), "%.63s", reply->started->name);
	note = note_of(reply->started);
	message_free(reply);
	r = hear(name, note, &go, e);
	if (r < 0)
		return r;
	r = decide(conn, go ? PB__DECISION__WHAT__FINISH : PB__DECISION__WHAT__ABORT, &reply, e);
	if (r < 0)
		return give_up(e);
	message_free(reply);
	if (go)
		transfer_write_line(STDOUT_FILENO, "ACK");
	proto_conn_free(conn);
	return 0;
}

const struct cli_command cli_receive = {
	.name = "receive",
	.help = "take a session that podrun migrate sends",
	.text = "Started by *podrun migrate* through ssh; it speaks over stdin and stdout.",
	.group = CLI_MORE,
	.standalone = true,
	.run = run,
};
