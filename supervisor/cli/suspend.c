// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun suspend and podrun snapshot: the same request, except for who goes on afterwards.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

struct suspend_options {
	const char *output, *outside;
	bool json, compress, with_files;
	uint64_t deadline;
};

#define AT(member) offsetof(struct suspend_options, member)
static const struct cli_option options[] = {
	{"output", 'o', "FILE|-", "where the image goes; - is stdout", CLI_STRING, AT(output)},
	{"json", 0, NULL, "tell how long it took, as JSON", CLI_FLAG, AT(json)},
	{"compress", 'z', NULL, "compress with zstd", CLI_FLAG, AT(compress)},
	{"deadline", 0, "MS", "how long to wait for tasks that can't be stopped at once (5000)",
		CLI_NUMBER, AT(deadline)},
	{"with-files", 0, NULL, "take along what it has in use of the host's files", CLI_FLAG,
		AT(with_files)},
	{"outside", 0, "refuse|close|reset", "what becomes of connections that lead out of the session",
		CLI_CHOICE, AT(outside)},
};

/* The image's path from the root: the supervisor stands elsewhere. */
static int absolute(const char *path, char **ret, struct err *e)
{
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	int n;

	if (path[0] == '/')
		n = asprintf(ret, "%s", path);
	else if (cwd)
		n = asprintf(ret, "%s/%s", cwd, path);
	else
		return err_errno(e, -errno, "current directory");
	return n < 0 ? err_errno(e, -ENOMEM, "path") : 0;
}

/* The descriptor of ours that @path stands for; -1 if it stands for none. */
static int own_descriptor(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/proc/self/fd/"};
	unsigned long n;
	char *end;

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		size_t len = strlen(dirs[i]);

		if (strncmp(path, dirs[i], len) != 0 || path[len] < '0' || path[len] > '9')
			continue;
		n = strtoul(path + len, &end, 10);
		return *end || n > INT_MAX ? -1 : (int)n;
	}
	return -1;
}

/* What is there and is no file: a pipe mostly.  Who is to read it is never waited for. */
static int open_other(const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return err_errno(e, -errno, "cannot write %s", path);
	io_set_nonblock(fd, false);
	return fd;
}

/* A device keeps no image: what goes there is a copy, or lost. */
static int check_device(int fd, const char *output, bool snapshot, struct err *e)
{
	struct stat st;

	if (isatty(fd))
		return err_set(e, ERR_USAGE, -EINVAL, "an image is nothing for a terminal");
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot write %s", output);
	if (!snapshot && S_ISCHR(st.st_mode))
		return err_set(e, ERR_FAILED, -EINVAL,
			"%s keeps no image: the session would be lost",
			strcmp(output, "-") == 0 ? "stdout" : output);
	return 0;
}

/*
 * Where the image goes that is not to be a file of its own: a descriptor, which is not the
 * supervisor's to find: its stdout is another.  *@ret_fd is -1 where a file is to be made.
 */
static int open_stream(const char *output, bool snapshot, int *ret_fd, struct err *e)
{
	_cleanup_close_ int fd = -1;
	int own = output ? own_descriptor(output) : -1;
	struct stat st;

	*ret_fd = -1;
	if (own >= 0)
		fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
	else if (output && stat(output, &st) == 0 && !S_ISREG(st.st_mode))
		fd = open_other(output, e);
	else
		return 0;
	if (fd < 0)
		return own >= 0 ? err_errno(e, -errno, "cannot write %s", output) : fd;
	if (check_device(fd, output, snapshot, e) < 0)
		return e->error;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Is our stdout where the image is? */
static bool is_stdout(int fd)
{
	struct stat a, b;

	return fd >= 0 && fstat(fd, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* @out: the stream that the image went to, or -1. */
static void tell(const struct suspend_options *o, const Pb__Report *report, int out)
{
	bool to_stdout = is_stdout(out);

	cli_say_note(report->note);
	if (o->json) {
		json_t *j = json_of_report(report);

		json_print_to(j, to_stdout ? stderr : stdout);
	} else if (!to_stdout) {
		printf("%s\n", out < 0 ? report->image : o->output);
	}
}

static int ask_at(struct proto_conn *conn, const struct suspend_options *o, bool snapshot,
	struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__SuspendRequest q = PB__SUSPEND_REQUEST__INIT;
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int out = -1;

	q.snapshot = snapshot;
	q.zstd_level = o->compress ? 3 : 0;
	q.with_files = o->with_files;
	q.outside = (char *)(o->outside ? o->outside : "");
	q.deadline_ms = (uint32_t)MIN(o->deadline, (uint64_t)UINT32_MAX);
	if (open_stream(o->output, snapshot, &out, e) < 0)
		return e->error;
	q.stream = out >= 0;
	if (o->output && !q.stream) {
		if (absolute(o->output, &path, e) < 0)
			return e->error;
		q.path = path;
	}
	m.body_case = PB__CONTROL__BODY_SUSPEND;
	m.suspend = &q;
	if (client_call(conn, &m, &out, q.stream, &reply, e) < 0)
		return e->error;
	if (reply->body_case == PB__CONTROL__BODY_REPORT)
		tell(o, reply->report, out);
	message_free(reply);
	return 0;
}

static int ask(struct cli *c, const struct suspend_options *o, const char *name, bool snapshot,
	struct err *e)
{
	struct proto_conn *conn;
	int r = client_connect(&conn, &c->paths, name, e);

	if (r < 0)
		return r;
	r = ask_at(conn, o, snapshot, e);
	proto_conn_free(conn);
	return r < 0 ? client_lost(&c->paths, name, e) : 0;
}

static int run_suspend(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	return ask(c, opts, argv[0], false, e) < 0 ? err_wrap(e, "cannot suspend '%s'", argv[0]) : 0;
}

static int run_snapshot(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	return ask(c, opts, argv[0], true, e) < 0 ? err_wrap(e, "cannot snapshot '%s'", argv[0]) : 0;
}

const struct cli_command cli_suspend = {
	.name = "suspend",
	.alias = "checkpoint",
	.usage = "[-o FILE|-] [NAME]",
	.help = "freeze a session, write it to an image, end it",
	.text = "The image is written under a temporary name, synced and renamed; only then does the "
		"session end. If anything fails it runs on as before. Who ends *podrun* itself meanwhile, "
		"as by ^C, does not call it off: it is finished. Without *-o* the image is kept in "
		"podrun's own place, and *podrun resume NAME* finds it.\n\n"
		"Into a pipe (*-o -*) the session stays frozen until the whole image has been read, and "
		"runs on if its reader goes away before that. *podrun resume -* reads the last byte when "
		"the session has been rebuilt; other programs read it at once, and what becomes of the "
		"image then is up to them. The same goes for *-o* with the name of a FIFO, "
		"/dev/stdout, or what a shell makes of >(CMD). A device such as /dev/null, which "
		"keeps nothing, is refused.\n\n"
		"With *--net vnat* the gateway keeps connections to the outside until the session is "
		"resumed.\n\n"
		"Any other connection whose other end is outside the session can't come along. It is refused by "
		"name, exit code 3, unless *--outside* says what the session shall find after the resume: "
		"what had arrived, and then with *close* the end of the file (writing gives EPIPE), with "
		"*reset* ECONNRESET where that can be. UDP sockets are connected again to the same address.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct suspend_options),
	.group = CLI_MOVE,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run_suspend,
};

const struct cli_command cli_snapshot = {
	.name = "snapshot",
	.usage = "[-o FILE|-] [NAME]",
	.help = "write an image of a session that runs on",
	.text = "The image is a copy: it can be resumed any number of times, under names that are "
		"free, but where a volume may be written to (*-v*) only while no other that was "
		"made of the same session is there. "
		"Of *--outside* see *podrun-suspend*(1); the session that runs on keeps its connections.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct suspend_options),
	.group = CLI_MOVE,
	.operand = CLI_SESSION,
	.max_operands = 1,
	.session = true,
	.run = run_snapshot,
};
