// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in placing.h. */
#include "supervisor/placing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "supervisor/disk/ledger.h"
#include "supervisor/session.h"

int placing_parent(const char *path, int flags)
{
	_cleanup_free_ char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	int fd;

	if (!slash)
		return -ENOMEM;
	slash[slash == dir ? 1 : 0] = '\0';
	fd = open(dir, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static void sync_parent(const char *path)
{
	_cleanup_close_ int fd = placing_parent(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || fsync(fd) < 0)
		log_warn("cannot sync the directory of %s", path);
}

/* A file that is gone with whoever has it open, as long as it has no name.  Some file systems have
 * none of these. */
static int open_nameless(const char *path)
{
	return placing_parent(path, O_RDWR | O_TMPFILE);
}

/* A name beside the image's, for a moment. */
static int name_beside(struct session_operation *op, struct err *e)
{
	if (op->tmp)
		return 0;
	if (asprintf(&op->tmp, "%s.%d.part", op->path, getpid()) < 0) {
		op->tmp = NULL;
		return err_errno(e, -ENOMEM, "image");
	}
	return 0;
}

static int link_to(struct session_operation *op, const char *path)
{
	char own[32];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", op->image);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/*
 * The image, which may have no name yet, gets its own.  Of one that has the name already nothing is
 * lost before the operation is over: it becomes op->tmp.
 */
static int give_name(struct session_operation *op, struct err *e)
{
	bool nameless = !op->tmp;
	int r = nameless ? link_to(op, op->path) : -EEXIST;

	if (r == -EEXIST && name_beside(op, e) < 0)
		return e->error;
	if (r == -EEXIST && nameless) {
		unlink(op->tmp);
		r = link_to(op, op->tmp);
	} else if (r == -EEXIST) {
		r = 0;
	}
	if (r == 0 && op->tmp) {
		op->swapped =
			renameat2(AT_FDCWD, op->tmp, AT_FDCWD, op->path, RENAME_EXCHANGE) == 0;
		if (!op->swapped && rename(op->tmp, op->path) < 0)
			r = -errno;
		else if (!op->swapped)
			free(take_ptr(op->tmp));
	}
	return r < 0 ? err_errno(e, r, "cannot write %s", op->path) : 0;
}

int placing_commit(struct session *s, struct err *e)
{
	struct session_operation *op = &s->op;
	int r;

	if (op->stream)
		return 0;
	r = give_name(op, e);
	if (r < 0)
		return r;
	op->placed = true;
	sync_parent(op->path);
	ledger_know_file(s->paths.state, op->image);
	return 0;
}

void placing_undo(struct session *s)
{
	struct session_operation *op = &s->op;

	if (op->placed && (!op->swapped || rename(op->tmp, op->path) < 0))
		unlink(op->path);
	op->placed = op->swapped = false;
	session_set_string(&s->record->image, "");
}

/* The first place for a snapshot of this name that is free. */
static char *snapshot_place(struct session *s)
{
	for (unsigned i = 1;; i++) {
		char *path = paths_image(&s->paths, s->record->config->name, i);
		_cleanup_free_ char *base = NULL;

		/* others may refer to one that is kept for them under this name */
		if (path && asprintf(&base, "%s%s", path, CKPT_BASE_SUFFIX) < 0)
			free(take_ptr(path));
		if (!path || (access(path, F_OK) < 0 && access(base, F_OK) < 0))
			return path;
		free(path);
	}
}

int placing_open(struct session *s, const Pb__SuspendRequest *req, int stream, struct err *e)
{
	struct session_operation *op = &s->op;
	const char *name = s->record->config->name;
	struct stat st;

	op->stream = stream >= 0;
	op->image = stream;
	if (op->stream)
		return 0;
	if (req->path[0])
		op->path = strdup(req->path);
	else
		op->path = req->snapshot ? snapshot_place(s) : paths_image(&s->paths, name, 0);
	if (!op->path)
		return err_errno(e, -ENOMEM, "image");
	/* What is something else is the client's to open: he may name it by his descriptors. */
	if (stat(op->path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_FAILED, -EINVAL, "cannot write %s: it is no file", op->path);
	op->image = open_nameless(op->path);
	if (op->image < 0 && name_beside(op, e) < 0)
		return e->error;
	if (op->image < 0)
		op->image = open(
			op->tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (op->image < 0)
		return err_errno(e, -errno, "cannot write %s", op->path);
	return 0;
}
