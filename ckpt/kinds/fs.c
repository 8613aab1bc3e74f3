// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Working directory, root and umask.
 *
 * A directory is remembered by its name.  One that was deleted while somebody worked in it is
 * made anew for the moment of entering it, and is then deleted again.
 *
 * Sandboxes of browsers have as their root a directory of /proc whose process has ended
 * (credentials.cc of Chromium): nothing can be found there.  What takes its place is the same
 * directory of a process that ends with the build (ckpt/nested/help.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/help.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/tasks.pb-c.h"

static const char deleted[] = " (deleted)";

static char *read_link(struct ckpt_dump *d, pid_t pid, const char *name, struct err *e)
{
	char path[32], *s;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	s = io_readlink(d->host_proc, path);
	if (!s) {
		err_errno(e, -errno, "%s", strcmp(name, "cwd") ? "root" : "working directory");
		ckpt_where_unread(e);
	}
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

/* "/fdinfo" of "/proc/12/fdinfo"; NULL if @path is no directory of a process. */
static const char *below_process(const char *path)
{
	static const char *const known[] = {"", "/fd", "/fdinfo", "/task"};
	int len = 0;

	if (sscanf(path, "/proc/%*1[1-9]%n", &len) < 0 || !len)
		return NULL;
	len += (int)strspn(path + len, "0123456789");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(path + len, known[i]))
			return path + len;
	return NULL;
}

/*
 * @name, "cwd" or "root" of a process, leads to @path: is that a directory of one that has ended?
 */
static bool has_ended(struct ckpt_dump *d, pid_t pid, const char *name, const char *path)
{
	char link[32];
	struct stat left, now;

	if (!below_process(path))
		return false;
	snprintf(link, sizeof(link), "%d/%s", pid, name);
	if (fstatat(d->host_proc, link, &left, 0) < 0)
		return true;
	return fstatat(d->world->proc_fd, path + strlen("/proc/"), &now, 0) < 0 ||
	       now.st_ino != left.st_ino;
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
	m.cwd_ended = has_ended(d, s.proc->look, "cwd", cwd);
	m.root_ended = has_ended(d, s.proc->look, "root", root);
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
	int fd;

	if (m->cwd_deleted) {
		fd = ckpt_common_gone_dir(b, cwd);
		return fd < 0 ? err_errno(e, fd, "working directory %s (deleted)", m->cwd) : fd;
	}
	fd = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		err_errno(e, -errno, "working directory %s", m->cwd);
	return fd < 0 ? ckpt_common_blame_host(e) : fd;
}

/* Such a directory, of a process that will have ended. */
static int open_ended(
	struct ckpt_build *b, const struct ckpt_build_proc *p, const char *path, struct err *e)
{
	const char *below = below_process(path);
	char now[48];
	pid_t number;
	int fd;

	if (!below)
		return err_set(e, ERR_IMAGE, -EBADMSG, "%s is no directory of a process", path);
	if (ckpt_helper_number(b, p->ns.ns[CKPT_NS_USER], &number, e) < 0)
		return e->error;
	snprintf(now, sizeof(now), "/proc/%d%s", number, below);
	fd = open(now, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "%s", now) : fd;
}

/* Adds the calls that make it the task's root and working directory. */
static int enter_ended_root(struct ckpt_build *b, const struct ckpt_build_proc *p,
	struct remote *remote, const char *root, struct err *e)
{
	_cleanup_close_ int fd = open_ended(b, p, root, e);
	struct remote_arg dir[6] = {{0}};
	int at = fd < 0 ? fd : ckpt_build_lend(b, remote, fd, e);

	if (at < 0)
		return at;
	dir[0] = REMOTE_RESULT(at);
	remote_add_args(remote, SYS_fchdir, dir);
	remote_add_args(remote, SYS_close, dir);
	remote_add(remote, SYS_chroot, remote_put_str(remote, "."), 0, 0, 0, 0, 0);
	return ckpt_run_all(remote, "root directory", e);
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
	if (r == 0 && m->root_ended)
		r = enter_ended_root(b, ckpt_record_thread(b, rec)->proc, remote, m->root, e);
	if (r == 0)
		r = fd = m->cwd_ended ? open_ended(b, ckpt_record_thread(b, rec)->proc, m->cwd, e)
				      : open_cwd(b, m, e);
	if (r >= 0)
		r = at = ckpt_build_lend(b, remote, fd, e);
	if (r >= 0) {
		const struct remote_arg cwd[6] = {REMOTE_RESULT(at)};

		remote_add_args(remote, SYS_fchdir, cwd);
		remote_add_args(remote, SYS_close, cwd);
		if (strcmp(m->root, "/") && !m->root_ended)
			remote_add(
				remote, SYS_chroot, remote_put_str(remote, m->root), 0, 0, 0, 0, 0);
		remote_add(remote, SYS_umask, m->umask, 0, 0, 0, 0, 0);
		r = ckpt_run_all(remote, "working directory", e);
		if (r < 0 && strcmp(m->root, "/")) {
			err_wrap(e, "root directory %s", m->root);
			r = ckpt_common_blame_host(e);
		}
	}
	pb__fs__free_unpacked(m, NULL);
	return MIN(r, 0);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
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
	.apart = true,
	.link = link_fs,
	.show = show,
};
