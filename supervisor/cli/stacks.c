// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun stacks: the session stands still for some milliseconds while ckpt looks at it.  That is
 * done here, for whoever started a session may trace it; where names are rewritten it is traced
 * already, and who does so looks.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

struct stacks_options {
	bool json;
};

static const struct cli_option options[] = {
	{"json", 0, NULL, "as JSON", CLI_FLAG, offsetof(struct stacks_options, json)},
};

/* Takes @sock: waits until the rewriter has done. */
static int await_rewriter(int sock, struct err *e)
{
	struct proto_conn *conn;
	int fds[MESSAGE_MAX_FDS], r;
	Pb__Worker *m;
	size_t n;

	if (proto_conn_new(&conn, sock, e) < 0) {
		close(sock);
		return e->error;
	}
	r = message_recv_worker(conn, &m, fds, MESSAGE_MAX_FDS, &n, e);
	proto_conn_free(conn);
	if (r <= 0)
		return err_set(e, ERR_STATE, -ESRCH, "the session has ended");
	while (n)
		close_fd(fds[--n]);
	if (m->body_case == PB__WORKER__BODY_FAILURE)
		message_to_err(m->failure, e);
	message_free_worker(m);
	return e->error;
}

static int print_file(int fd, struct err *e)
{
	char text[1 << 16];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, text, sizeof(text), at)) > 0) {
		if (fwrite(text, 1, (size_t)n, stdout) != (size_t)n)
			return err_errno(e, -errno, "cannot write");
		at += n;
	}
	return 0;
}

static int ask_rewriter(const struct cli *c, const char *name, bool json, struct err *e)
{
	_cleanup_close_ int file = memfd_create("podrun-stacks", MFD_CLOEXEC);
	Pb__StacksRequest body = PB__STACKS_REQUEST__INIT;
	Pb__Control m = PB__CONTROL__INIT, *reply;
	struct proto_conn *conn;
	int pair[2], fds[2], r;

	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "stacks");
	body.json = json;
	m.body_case = PB__CONTROL__BODY_STACKS;
	m.stacks = &body;
	fds[0] = file;
	fds[1] = pair[1];
	r = client_connect(&conn, &c->paths, name, e);
	if (r == 0) {
		r = client_call(conn, &m, fds, 2, &reply, e);
		proto_conn_free(conn);
	}
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	message_free(reply);
	r = await_rewriter(pair[0], e);
	return r < 0 ? r : print_file(file, e);
}

/* One of the snapshots from time to time is in nobody's way: it is waited for. */
static bool await_run(const struct cli *c, const struct client_session *s)
{
	Pb__StacksRequest body = PB__STACKS_REQUEST__INIT;
	Pb__Control m = PB__CONTROL__INIT;
	struct err ignored = {0};

	m.body_case = PB__CONTROL__BODY_STACKS;
	m.stacks = &body;
	return s->live && client_simple(&c->paths, s->name, &m, &ignored) == 0;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct stacks_options *o = opts;
	struct ckpt_world world = {.proc_fd = -1};
	struct client_session s;
	int r;

	if (client_look(&s, &c->paths, argv[0], e) < 0)
		return e->error;
	if (strcmp(s.state, "running") != 0 && !await_run(c, &s)) {
		r = err_set(e, ERR_STATE, -EBUSY,
			"'%s' is %s: only a running session has stacks to walk", argv[0], s.state);
	} else if (strcmp(s.record->config->names, "rewrite") == 0) {
		r = ask_rewriter(c, argv[0], o->json, e);
	} else {
		world.init_pid = s.info->information->init_pid;
		world.io_uring = s.record->config->io_uring;
		r = ckpt_stacks(&world, NULL, stdout, o->json, e);
	}
	client_session_fini(&s);
	return r;
}

const struct cli_command cli_stacks = {
	.name = "stacks",
	.usage = "[--json] [NAME]",
	.help = "where every thread of a session stands",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct stacks_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run,
};
