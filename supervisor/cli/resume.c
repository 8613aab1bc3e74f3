// SPDX-License-Identifier: GPL-2.0-or-later
/* resume: a new supervisor is given an image; then we are a client of it as with run. */
#include "supervisor/cli/resume.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/json.h"
#include "supervisor/cli/stream.h"
#include "supervisor/client.h"
#include "supervisor/disk/images.h"
#include "supervisor/disk/record.h"
#include "supervisor/message.h"

struct resume_options {
	const char *name;
	const char *names, *connections;
	bool detach, interactive, tty, replace, map, json, trust_network;
};

#define AT(member) offsetof(struct resume_options, member)
static const struct cli_option options[] = {
	{"detach", 'd', NULL, "leave it running", CLI_FLAG, AT(detach)},
	{"interactive", 'i', NULL, "our stdin is the command's", CLI_FLAG, AT(interactive)},
	{"tty", 't', NULL, "connect our terminal to the command's", CLI_FLAG, AT(tty)},
	{"name", 0, "NAME", "under another name", CLI_STRING, AT(name)},
	{"replace", 0, NULL, "end and remove who has the name", CLI_FLAG, AT(replace)},
	{"map", 0, NULL, "let it run before all of its memory has been copied", CLI_FLAG, AT(map)},
	{"names", 0, "auto|kernel|rewrite", "who holds names from now on, as in podrun run",
		CLI_CHOICE, AT(names)},
	{"connections", 0, "keep|reset",
		"to the outside, of a session with --net vnat: as they were (if its gateway still has them), or reset",
		CLI_CHOICE, AT(connections)},
	{"trust-network", 0, NULL,
		"the session of an image made elsewhere has what that says of its network",
		CLI_FLAG, AT(trust_network)},
	{"json", 0, NULL, "tell how long it took, as JSON (with -d)", CLI_FLAG, AT(json)},
};

/* A directory is no image: sessions are often called as the one they work in. */
static bool may_be_image(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Its snapshots outlive it, where its host was switched off for instance. */
static void not_suspended(struct cli *c, const char *name, enum record_state state, struct err *e)
{
	bool elsewhere = state == RECORD_MOVED || state == RECORD_IN_DOUBT ||
			 state == RECORD_ARRIVED;
	bool live = client_is_live(&c->paths, name);
	unsigned last = live || elsewhere ? 0 : images_newest_in_sight(&c->paths, name);

	err_set(e, ERR_STATE, -EEXIST, "'%s' %s", name, live ? "is running" : "is not suspended");
	if (last)
		err_hint(e, "podrun resume %s@%u goes on from its last snapshot", name, last);
}

/* The image of a session whose record says that it is suspended.  1: found, 0: no such session. */
static int from_record(struct cli *c, const char *name, char **ret_path, char **ret_name,
	bool *ret_own, struct err *e)
{
	_cleanup_free_ char *own = paths_image(&c->paths, name, 0);
	struct err story = {0};
	Pb__Record *r;

	if (!own || !paths_valid_name(name))
		return 0;
	if (record_load(&r, &c->paths, name, &story) < 0) {
		if (story.class == ERR_NOT_FOUND || may_be_image(name))
			return 0;
		*e = story;
		return e->error;
	}
	if (record_state_of(r->state) == RECORD_SUSPENDED && r->image[0]) {
		*ret_path = strdup(r->image);
		*ret_name = strdup(name);
		*ret_own = strcmp(r->image, own) == 0;
	} else if (!may_be_image(name)) {
		not_suspended(c, name, record_state_of(r->state), e);
	}
	record_free(r);
	return err_is(e) ? e->error : *ret_path != NULL;
}

int resume_open(struct cli *c, const char *what, char **ret_path, char **ret_name, bool *ret_own,
	struct err *e)
{
	_cleanup_free_ char *path = NULL, *name = NULL;
	const char *at = strchr(what, '@');
	int r, fd;

	*ret_own = false;
	if (strcmp(what, "-") == 0) {
		*ret_path = *ret_name = NULL;
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? err_errno(e, -errno, "stdin") : fd;
	}
	r = from_record(c, what, &path, &name, ret_own, e);
	if (r < 0)
		return r;
	/* NAME@N; not what other files are called that stand beside it */
	if (r == 0 && at && strspn(at + 1, "0123456789") == strlen(at + 1) &&
		!strchr(what, '/') && !may_be_image(what)) {
		if (asprintf(&path, "%s/images/%.*s.img%s", c->paths.state, (int)(at - what), what,
			    at) < 0)
			path = NULL;
	} else if (r == 0) {
		path = realpath(what, NULL);
	}
	/* what /dev/stdin and a shell's <(...) lead to has no path */
	fd = path || errno == ENOENT ? open(path ? path : what, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	if (fd < 0 && errno == ENOENT && r > 0)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "its image is gone: %s", path);
	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, -ENOENT, "no suspended session and no image '%s'", what);
		return err_hint(e, at ? "podrun image ls lists snapshots"
				      : "podrun ps -a lists suspended sessions");
	}
	if (fd < 0)
		return err_errno(e, -errno, "cannot open %s", what);
	*ret_path = take_ptr(path);
	*ret_name = take_ptr(name);
	return fd;
}

static int send_request(struct proto_conn *conn, Pb__ResumeRequest *q, int image, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;

	m.body_case = PB__CONTROL__BODY_RESUME;
	m.resume = q;
	return client_send(conn, &m, &image, 1, e);
}

int resume_detached(Pb__ResumeRequest *q, int image, Pb__Control **ret, struct err *e)
{
	struct proto_conn *conn;
	int r = client_start(&conn, e);

	if (r < 0)
		return r;
	r = send_request(conn, q, image, e);
	if (r >= 0)
		r = client_receive(conn, ret, e);
	proto_conn_free(conn);
	return r;
}

/* Then there is no input left for the command. */
static bool is_stdin(int image)
{
	struct stat a, b;

	return fstat(image, &a) == 0 && fstat(STDIN_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int attached(const struct resume_options *o, Pb__ResumeRequest *q, int image, struct err *e)
{
	struct stream_options s = {.input = o->interactive && !is_stdin(image),
		.forward = true,
		.own_tty = o->tty,
		.cancel = true,
		.detachable = true};
	struct proto_conn *conn;
	int r = client_start(&conn, e);

	if (r < 0)
		return r;
	q->attach = true;
	q->tty = o->tty;
	q->input = s.input;
	stream_size(&q->rows, &q->cols);
	r = send_request(conn, q, image, e);
	if (r >= 0)
		r = stream_run(conn, &s, e);
	proto_conn_free(conn);
	return r;
}

/* The suspended session that is meant when none is named: the only one. */
static int only_suspended(struct cli *c, char **ret, struct err *e)
{
	struct client_session *all;
	size_t n, found = 0;

	*ret = NULL;
	if (client_list(&c->paths, &all, &n, e) < 0)
		return e->error;
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].state, "suspended") == 0 && found++ == 0)
			*ret = strdup(all[i].name);
	client_list_free(all, n);
	if (found == 1 && *ret)
		return 0;
	free(take_ptr(*ret));
	return found ? err_set(e, ERR_USAGE, -EINVAL, "%zu sessions are suspended: say which",
			       found)
		     : err_set(e, ERR_NOT_FOUND, -ENOENT, "no session is suspended");
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	const struct resume_options *o = opts;
	Pb__ResumeRequest q = PB__RESUME_REQUEST__INIT;
	_cleanup_free_ char *path = NULL, *name = NULL, *only = NULL;
	_cleanup_close_ int image = -1;
	Pb__Control *reply;
	bool own = false;
	int r;

	if (argc == 0 && only_suspended(c, &only, e) < 0)
		return e->error;
	if (o->name && paths_check_name(o->name, e) < 0)
		return e->error;
	image = resume_open(c, argc ? argv[0] : only, &path, &name, &own, e);
	if (image < 0)
		return err_wrap(e, "cannot resume");
	q.name = (char *)(o->name ? o->name : name ? name : "");
	q.image = path ? path : (char *)"";
	q.replace = o->replace;
	q.discard = own;
	q.map = o->map;
	q.trust_network = o->trust_network;
	q.names = (char *)(o->names ? o->names : "auto");
	q.connections = (char *)(o->connections ? o->connections : "keep");
	if (!o->detach) {
		r = attached(o, &q, image, e);
		/* Codes of the command stay apart from ours only once there is a command. */
		if (r < 0 && e->class != ERR_MOVED) /* that comes later */
			err_wrap(e, "cannot resume '%s'", argc ? argv[0] : only);
		return r;
	}
	r = resume_detached(&q, image, &reply, e);
	if (r < 0)
		return err_wrap(e, "cannot resume '%s'", argc ? argv[0] : only);
	cli_say_lacking(reply->started->lacking, reply->started->root);
	cli_say_note(reply->started->note);
	if (o->json && reply->started->report) {
		json_t *j = json_of_report(reply->started->report);

		json_object_set_new(j, "name", json_text(reply->started->name));
		json_print(j);
	} else {
		r = cli_tell_begun(reply->started->name, e);
	}
	message_free(reply);
	return r;
}

const struct cli_command cli_resume = {
	.name = "resume",
	.alias = "restore",
	.usage = "[-d|-it] [NAME|NAME@N|FILE|-]",
	.help = "let a suspended session go on",
	.text = "Without *-d* podrun stays connected to the session's command and exits with its "
		"code; with *-t* to the command's terminal, if it has one, which ctrl-p ctrl-q leaves. "
		"Otherwise signals go to the command. Before the session is there SIGINT, SIGTERM "
		"and SIGHUP give it up: the image is as it was, and the exit code 128 + N. With "
		"*-d* it goes on in the background. "
		"The image of a suspended session is used up by its first resume, also under "
		"another name (*--name*), which leaves nothing under the old one; that of a "
		"snapshot is not, but needs a name that is free, and where a volume may be "
		"written to (*-v*) that no other session is there which was made of the same one. "
		"With *--map* a session with much memory runs at once: its memory is mapped from "
		"the image, which must be a file that this host wrote or verified, and copied in "
		"the next second or so. Until then /proc/PID/maps shows the image, and some calls "
		"take longer.\n\n"
		"An image that was not made by you on this host says which ports it publishes "
		"here. One whose session would have this host's network (*--net host*), reach its "
		"loopback or link-local addresses, or has a gateway that is not the host's own, "
		"is refused without *--trust-network*. Where names are rewritten every session "
		"has the host's network; that is only said.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.size = sizeof(struct resume_options),
	.group = CLI_MOVE,
	.operand = CLI_SESSION_OR_FILE,
	.max_operands = 1,
	.run = run,
};
