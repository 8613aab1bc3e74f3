// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun clone: a snapshot into a file without a name, resumed as often as wanted.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/resume.h"
#include "supervisor/client.h"
#include "supervisor/message.h"

#define MAX_CLONES 256
#define MAX_TRIES  (2 * MAX_CLONES) /* for a name */

static int snapshot(struct cli *c, const char *name, int image, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT, *reply;
	Pb__SuspendRequest q = PB__SUSPEND_REQUEST__INIT;
	struct proto_conn *conn;
	int r = client_connect(&conn, &c->paths, name, e);

	if (r < 0)
		return r;
	q.snapshot = true;
	q.stream = true;
	m.body_case = PB__CONTROL__BODY_SUSPEND;
	m.suspend = &q;
	r = client_call(conn, &m, &image, 1, &reply, e);
	if (r == 0)
		message_free(reply);
	proto_conn_free(conn);
	return r;
}

/* An image that nobody can write to any more need be hashed only once (lease.h). */
static int open_again(int *image, struct err *e)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *image);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "image");
	close_fd(*image);
	*image = fd;
	return 0;
}

/* NAME-N for the next N that is free. */
static int free_name(struct cli *c, const char *name, unsigned *n, char **ret, struct err *e)
{
	for (;; (*n)++) {
		_cleanup_free_ char *dir = NULL;

		if (asprintf(ret, "%.*s-%u", PATHS_MAX_NAME - 12, name, *n) < 0)
			return err_errno(e, -ENOMEM, "clone");
		dir = paths_session(&c->paths, *ret, NULL);
		if (!dir)
			return err_errno(e, -ENOMEM, "clone");
		if (access(dir, F_OK) < 0)
			return 0;
		free(take_ptr(*ret));
	}
}

/* One more, under the next name that is free. */
static int begin_copy(struct cli *c, const char *name, int image, unsigned *n, struct err *e)
{
	Pb__ResumeRequest q = PB__RESUME_REQUEST__INIT;
	Pb__Control *reply;
	int r = -EEXIST;

	/* another clone may take the same at the same time */
	for (unsigned i = 0; r == -EEXIST && i < MAX_TRIES; i++) {
		_cleanup_free_ char *copy = NULL;

		*e = (struct err){0};
		r = free_name(c, name, n, &copy, e);
		if (r < 0)
			return r;
		(*n)++;
		q.name = copy;
		q.copy = true;
		if (lseek(image, 0, SEEK_SET) < 0)
			return err_errno(e, -errno, "image");
		r = resume_detached(&q, image, &reply, e);
	}
	if (r < 0)
		return r;
	r = cli_tell_begun(reply->started->name, e);
	message_free(reply);
	return r;
}

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	_cleanup_free_ char *only = NULL, *place = NULL;
	_cleanup_close_ int image = -1;
	const char *name = argv[0];
	uint64_t copies = 1;
	unsigned next = 1;
	int r = 0;

	if (argc == 0 || (argc == 1 && cli_parse_number(argv[0], &copies) == 0)) {
		if (cli_only_session(c, &only, e) < 0)
			return e->error;
		name = only;
	} else if (argc == 2 && cli_parse_number(argv[1], &copies) < 0) {
		copies = 0;
	}
	if (copies < 1 || copies > MAX_CLONES)
		return err_set(e, ERR_USAGE, -EINVAL, "number of copies: 1 to %d", MAX_CLONES);
	if (asprintf(&place, "%s/images", c->paths.state) < 0)
		return err_errno(e, -ENOMEM, "clone");
	image = open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (image < 0)
		return err_errno(e, -errno, "cannot write below %s", place);
	r = snapshot(c, name, image, e);
	if (r == 0)
		r = open_again(&image, e);
	for (uint64_t i = 0; r == 0 && i < copies; i++)
		r = begin_copy(c, name, image, &next, e);
	return r < 0 ? err_wrap(e, "cannot clone '%s'", name) : 0;
}

const struct cli_command cli_clone = {
	.name = "clone",
	.usage = "[NAME] [N]",
	.help = "make N running copies of a session",
	.text = "Copies are new sessions named NAME-1, NAME-2 and so on, with processes, memory and files "
		"of their own. A session with a writable volume can't be copied, nor one on the host's network that has a port or "
		"an abstract socket there. With *--net vnat* "
		"connections to the outside and published ports stay the original's; those of a copy are reset.",
	.group = CLI_MOVE,
	.operand = CLI_SESSION,
	.max_operands = 2,
	.run = run,
};
