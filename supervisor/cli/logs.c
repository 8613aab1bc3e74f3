// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun logs: what the session's commands have written, from the log the supervisor keeps.  -f
 * watches the file with inotify, and the session by the supervisor's answer to `wait`.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/inotify.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/message.h"
#include "supervisor/record.h"

struct logs_options {
	bool follow;
};

static const struct cli_option options[] = {
	{"follow", 'f', NULL, "go on until the session ends", CLI_FLAG,
		offsetof(struct logs_options, follow)},
};

static int copy(int fd, struct err *e)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		int r = io_write_full(STDOUT_FILENO, chunk, (size_t)n);

		if (r < 0)
			return err_errno(e, r, "cannot write");
	}
	return n < 0 ? err_errno(e, -errno, "cannot read the log") : 0;
}

/* A connection that gets a message when the session ends; NULL if it has ended. */
static struct proto_conn *watch_end(struct cli *c, const char *name)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct proto_conn *conn;
	struct err e = {0};

	if (client_connect(&conn, &c->paths, name, &e) < 0)
		return NULL;
	m.body_case = PB__CONTROL__BODY_WAIT;
	m.wait = &empty;
	message_send(conn, &m, NULL, 0, &e);
	return conn;
}

static int follow(struct cli *c, const char *name, const char *path, int fd, struct err *e)
{
	_cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct proto_conn *conn = watch_end(c, name);
	char events[4096];
	bool ended = !conn;
	int r = 0;

	if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY) < 0)
		r = err_errno(e, -errno, "cannot watch %s", path);
	while (r == 0) {
		struct pollfd p[] = {{.fd = watch, .events = POLLIN},
			{.fd = ended ? -1 : proto_conn_fd(conn), .events = POLLIN}};

		r = copy(fd, e);
		if (r < 0 || ended)
			break;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			r = err_errno(e, -errno, "poll");
		if (p[0].revents && read(watch, events, sizeof(events)) < 0 && errno != EAGAIN)
			r = err_errno(e, -errno, "cannot watch %s", path);
		ended = p[1].revents != 0;
	}
	proto_conn_free(conn);
	return r;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct logs_options *o = opts;
	_cleanup_free_ char *path = paths_session(&c->paths, argv[0], "log");
	_cleanup_close_ int fd = -1;
	struct Pb__Record *record;

	if (record_load(&record, &c->paths, argv[0], e) < 0)
		return e->error;
	record_free(record);
	fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return err_errno(e, -errno, "no log of '%s'", argv[0]);
	return o->follow ? follow(c, argv[0], path, fd, e) : copy(fd, e);
}

const struct cli_command cli_logs = {
	.name = "logs",
	.usage = "[-f] [NAME]",
	.help = "what a session's command has written",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct logs_options),
	.group = CLI_LOOK,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.ended = true,
	.run = run,
};
