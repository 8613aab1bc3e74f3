// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun suspend and podrun snapshot: the same request, except for who goes on afterwards.
 */
#include <stddef.h>
#include <string.h>

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

static void tell(const struct suspend_options *o, const Pb__Report *report)
{
	bool to_stdout = o->output && strcmp(o->output, "-") == 0;

	if (o->json) {
		json_t *j = json_of_report(report);

		if (to_stdout) {
			json_dumpf(j, stderr, JSON_INDENT(2));
			fputc('\n', stderr);
			json_decref(j);
		} else {
			json_print(j);
		}
	} else if (!to_stdout) {
		printf("%s\n", report->image);
	}
}

static int ask(struct cli *c, const struct suspend_options *o, const char *name, bool snapshot,
	struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__SuspendRequest q = PB__SUSPEND_REQUEST__INIT;
	_cleanup_free_ char *path = NULL;
	int out = STDOUT_FILENO, r;
	struct proto_conn *conn;

	q.snapshot = snapshot;
	q.zstd_level = o->compress ? 3 : 0;
	q.with_files = o->with_files;
	q.outside = (char *)(o->outside ? o->outside : "");
	q.deadline_ms = (uint32_t)MIN(o->deadline, (uint64_t)UINT32_MAX);
	q.stream = o->output && strcmp(o->output, "-") == 0;
	if (q.stream && isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, -EINVAL, "an image is nothing for a terminal");
	if (o->output && !q.stream) {
		if (absolute(o->output, &path, e) < 0)
			return e->error;
		q.path = path;
	}
	m.body_case = PB__CONTROL__BODY_SUSPEND;
	m.suspend = &q;
	r = client_connect(&conn, &c->paths, name, e);
	if (r < 0)
		return r;
	r = client_call(conn, &m, &out, q.stream, &reply, e);
	proto_conn_free(conn);
	if (r < 0)
		return client_lost(&c->paths, name, e);
	if (reply->body_case == PB__CONTROL__BODY_REPORT)
		tell(o, reply->report);
	message_free(reply);
	return 0;
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
		"session end. If anything fails it runs on as before. Without *-o* the image is kept in "
		"podrun's own place, and *podrun resume NAME* finds it.\n\n"
		"Into a pipe (*-o -*) the session stays frozen until the whole image has been read, and "
		"runs on if its reader goes away before that. *podrun resume -* reads the last byte when "
		"the session has been rebuilt; other programs read it at once, and what becomes of the "
		"image then is up to them.\n\n"
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
	.text = "The image is a copy: it can be resumed any number of times, under names that are free. "
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
