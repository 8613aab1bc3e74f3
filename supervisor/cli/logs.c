// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun logs: what the session's commands have written, from the log the supervisor keeps.  -f
 * watches the file with inotify, and the session by the supervisor's answer to `wait`; if that is
 * that it was suspended or moved, more is to come elsewhere.
 *
 * A log that has become long gets the name log.1, and another begins (session.c).  The two are one
 * here; that it has happened is told by the directory, in which a file has been made.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/client.h"
#include "supervisor/disk/record.h"
#include "supervisor/message.h"

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

static bool is_same(int one, int other)
{
	struct stat a, b;

	return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_ino == b.st_ino;
}

/* The session's directory may have another name by now. */
static int open_log(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_CLOEXEC);
}

/* All that there is of the log *@fd; 1 if another has begun meanwhile, which that is then. */
static int copy_log(int dir, int *fd, struct err *e)
{
	_cleanup_close_ int next = -1;
	int r = copy(*fd, e);

	if (r < 0)
		return r;
	next = open_log(dir, "log");
	if (next < 0 || is_same(next, *fd))
		return 0;
	r = copy(*fd, e); /* nothing more is written there */
	close_fd(*fd);
	*fd = take_fd(&next);
	return r < 0 ? r : 1;
}

static int copy_all(int dir, int *fd, struct err *e)
{
	int r;

	do
		r = copy_log(dir, fd, e);
	while (r > 0);
	return r;
}

static int watch_log(int watch, int dir, int fd, struct err *e)
{
	char of_dir[32], of_log[32];

	snprintf(of_dir, sizeof(of_dir), "/proc/self/fd/%d", dir);
	snprintf(of_log, sizeof(of_log), "/proc/self/fd/%d", fd);
	if (inotify_add_watch(watch, of_dir, IN_CREATE) < 0 ||
		inotify_add_watch(watch, of_log, IN_MODIFY) < 0)
		return err_errno(e, -errno, "cannot watch the log");
	return 0;
}

/* @m, or without one the record, says how it has ended here. */
static int why_ended(struct cli *c, const char *name, struct proto_conn *conn, struct err *e)
{
	Pb__Control *m = NULL;
	Pb__Record *r = NULL;
	enum record_state state = RECORD_ENDED;
	struct err ignored = {0};

	if (conn && client_receive(conn, &m, &ignored) == 0) {
		if (m->body_case == PB__CONTROL__BODY_MOVED)
			state = m->moved->peer[0] ? RECORD_MOVED : RECORD_SUSPENDED;
		message_free(m);
	} else if (record_load(&r, &c->paths, name, &ignored) == 0) {
		state = record_state_of(r->state);
		record_free(r);
	}
	if (state == RECORD_SUSPENDED || state == RECORD_MOVED)
		err_set(e, ERR_MOVED, -ECONNRESET, "'%s' was %s", name,
			state == RECORD_MOVED ? "moved" : "suspended");
	else if (state != RECORD_ENDED)
		err_set(e, ERR_STATE, -ECONNRESET, "the supervisor of '%s' has ended", name);
	return e->error;
}

static int follow(struct cli *c, const char *name, int dir, int *fd, struct err *e)
{
	_cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct proto_conn *conn = watch_end(c, name);
	char events[4096];
	bool ended = !conn;
	int r = 1;

	while (r >= 0) {
		struct pollfd p[] = {{.fd = watch, .events = POLLIN},
			{.fd = ended ? -1 : proto_conn_fd(conn), .events = POLLIN}};

		if (r > 0 && watch_log(watch, dir, *fd, e) < 0)
			break;
		r = copy_log(dir, fd, e);
		if (r > 0)
			continue;
		if (r < 0 || ended)
			break;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			r = err_errno(e, -errno, "poll");
		if (p[0].revents && read(watch, events, sizeof(events)) < 0 && errno != EAGAIN)
			r = err_errno(e, -errno, "cannot watch the log");
		ended = p[1].revents != 0;
	}
	if (!err_is(e))
		why_ended(c, name, conn, e);
	proto_conn_free(conn);
	return e->error;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct logs_options *o = opts;
	_cleanup_free_ char *path = paths_session(&c->paths, argv[0], NULL);
	_cleanup_close_ int dir = -1, fd = -1, before = -1;
	struct Pb__Record *record;
	int r = 0;

	if (record_load(&record, &c->paths, argv[0], e) < 0)
		return e->error;
	record_free(record);
	dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	fd = dir < 0 ? -1 : open_log(dir, "log");
	if (fd < 0)
		return err_errno(e, -errno, "no log of '%s'", argv[0]);
	before = open_log(dir, "log.1");
	if (before >= 0 && !is_same(before, fd))
		r = copy(before, e);
	if (r < 0)
		return r;
	return o->follow ? follow(c, argv[0], dir, &fd, e) : copy_all(dir, &fd, e);
}

const struct cli_command cli_logs = {
	.name = "logs",
	.usage = "[-f] [NAME]",
	.help = "what a session's command has written",
	.text = "Of much the last 64 MiB at least are kept. *-f* ends with the session: with the code 10 if it was "
		"suspended or moved.",
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
