// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Working directory, root and umask.
 *
 * A directory is remembered by its name.  One that was deleted while somebody worked in it is
 * made anew for the moment of entering it, and is then deleted again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey.h"
#include "ckpt/where.h"
#include "proto/tasks.pb-c.h"

static const char deleted[] = " (deleted)";

static char *read_link(struct ckpt_dump *d, pid_t pid, const char *name, struct err *e)
{
	char path[32], *s;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	s = io_readlink(d->host_proc, path);
	if (!s)
		err_errno(e, -errno, "/proc/%s", path);
	return s;
}

/* Cuts " (deleted)" off the name of a directory that is gone.  File systems in layers don't always
 * count its links down to 0; then it is gone if the name with those letters does not exist. */
static bool cut_deleted(struct ckpt_dump *d, pid_t pid, char *cwd)
{
	size_t len = strlen(cwd), tail = strlen(deleted);
	char path[PATH_MAX + 32];
	struct stat st;

	if (len <= tail || strcmp(cwd + len - tail, deleted))
		return false;
	snprintf(path, sizeof(path), "%d/cwd", pid);
	if (fstatat(d->host_proc, path, &st, 0) < 0 || st.st_nlink) {
		snprintf(path, sizeof(path), "%d/root%s", pid, cwd);
		if (fstatat(d->host_proc, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return false;
	}
	cwd[len - tail] = '\0';
	return true;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Fs m = PB__FS__INIT;
	_cleanup_free_ char *cwd = NULL, *root = NULL;

	if (s.proc->state == CKPT_ZOMBIE || s.proc->fs != s.proc->vpid)
		return 1;
	cwd = read_link(d, s.proc->look, "cwd", e);
	root = cwd ? read_link(d, s.proc->look, "root", e) : NULL;
	if (!root)
		return e->error;
	m.cwd_deleted = cut_deleted(d, s.proc->look, cwd);
	cwd = ckpt_where_say(d->world, cwd);
	if (!cwd)
		return err_errno(e, -ENOMEM, "working directory");
	m.cwd = cwd;
	m.root = root;
	m.umask = s.proc->status.umask;
	return ckpt_pack(&m.base, body, e);
}

/* Opens the working directory in the builder, whose root is pid 1's. */
static int open_cwd(const struct ckpt_build *b, const Pb__Fs *m, struct err *e)
{
	char room[PATH_MAX];
	const char *cwd = ckpt_where_host(b->world, m->cwd, room);
	bool made = false;
	int fd;

	if (m->cwd_deleted)
		made = mkdir(cwd, 0700) == 0;
	fd = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fd = err_errno(e, -errno, "working directory %s", m->cwd);
		err_hint(e, "the directory has to be there when the session is resumed");
	}
	if (made)
		rmdir(cwd);
	return fd;
}

static int link_fs(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Fs *m = pb__fs__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	_cleanup_close_ int fd = -1;
	int r = 0, at;

	if (!m || !remote || m->cwd[0] != '/' || m->root[0] != '/' || strlen(m->cwd) >= PATH_MAX ||
		strlen(m->root) >= PATH_MAX)
		r = ckpt_record_bad(rec, e);
	if (r == 0)
		r = fd = open_cwd(b, m, e);
	if (r >= 0)
		r = at = ckpt_build_lend(b, remote, fd, e);
	if (r >= 0) {
		const struct remote_arg cwd[6] = {REMOTE_RESULT(at)};

		remote_add_args(remote, SYS_fchdir, cwd);
		remote_add_args(remote, SYS_close, cwd);
		if (strcmp(m->root, "/"))
			remote_add(remote, SYS_chroot, remote_put_str(remote, m->root), 0, 0, 0, 0,
				0);
		remote_add(remote, SYS_umask, m->umask, 0, 0, 0, 0, 0);
		r = ckpt_run_all(remote, "working directory", e);
	}
	pb__fs__free_unpacked(m, NULL);
	return MIN(r, 0);
}

static void show(const void *body, size_t len, FILE *out)
{
	Pb__Fs *m = pb__fs__unpack(NULL, len, body);

	if (m)
		fprintf(out, "cwd %s%s umask %03o", m->cwd, m->cwd_deleted ? deleted : "",
			m->umask);
	pb__fs__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_fs = {
	.number = PROTO_KIND_FS,
	.name = "fs",
	.scope = CKPT_PROC,
	.dump = dump,
	.link = link_fs,
	.show = show,
};
