// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * procfile - open files of /proc, /sys and the cgroup tree: kind PROCFILE.
 *
 * They have no contents of their own and are opened again by their path: the numbers in it are
 * the session's, and all processes exist when files are made.  A file of a process that has ended
 * answers ESRCH or nothing; one is made of a child of the builder's which ends as well.
 *
 * fdinfo of a descriptor can be opened only while there is one, and looks for it anew when it is read.
 * Nobody has any yet when files are made; so its process gets one for a moment.
 *
 * What has been written to a file of /proc/pressure, to be told of it, nobody can read again: one
 * that is open to be written to is refused.
 *
 * Where no pid namespace holds the numbers, what the session has open may be a stand-in of another
 * file system, which its path tells (struct ckpt_paths).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/where.h"
#include "proto/files.pb-c.h"

#define DELETED	 " (deleted)"
#define PRESSURE "/proc/pressure/"

static bool claim(const struct ckpt_file *f)
{
	struct statfs fs;

	if (f->link[0] != '/' || fstatfs(f->fd, &fs) < 0)
		return false;
	if (!strncmp(f->link, "/proc", 5) && (!f->link[5] || f->link[5] == '/'))
		return true;
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
		fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC;
}

/* Its path; *ret_gone if the process it belongs to has ended. */
static char *path_of(const struct ckpt_dump *d, const struct ckpt_file *f, bool *ret_gone)
{
	size_t len = strlen(f->link), tail = strlen(DELETED);
	char *path = strdup(f->link), room[PATH_MAX];

	if (path && len > tail && !strcmp(path + len - tail, DELETED))
		path[len - tail] = '\0';
	*ret_gone = path && faccessat(d->world->root_fd, ckpt_where_below(d->world, path, room), F_OK,
				AT_SYMLINK_NOFOLLOW) < 0;
	return path;
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	bool gone;
	_cleanup_free_ char *path = path_of(d, s.file, &gone);

	/* A stand-in of the host's /proc must not be a way to go on from. */
	if (gone && (S_ISDIR(s.file->st.st_mode) || (s.file->flags & O_PATH)))
		return err_set(e, ERR_UNFREEZABLE, -ESRCH, "%s of a process that has ended is open",
			path);
	/* What nobody has asked to be told of shows as an error, all the time. */
	if (path && !strncmp(path, PRESSURE, strlen(PRESSURE)) &&
		(s.file->flags & O_ACCMODE) != O_RDONLY && !(s.file->flags & O_PATH))
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"what is to be told of %s is not supported", path);
	return 0;
}

/* A file of /proc that is on another file system. */
static bool is_copy(const struct ckpt_file *f)
{
	struct statfs fs;

	return S_ISREG(f->st.st_mode) && fstatfs(f->fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__ProcFile m = PB__PROC_FILE__INIT;
	bool gone;
	_cleanup_free_ char *path = path_of(d, s.file, &gone);
	int r = ckpt_common_dump(d, s.file, &common, e);

	if (r < 0)
		return r;
	if (!path)
		return err_errno(e, -ENOMEM, "%s", s.file->link);
	m.common = common;
	m.path.data = (uint8_t *)path;
	m.path.len = strlen(path);
	m.gone = gone;
	m.copied = is_copy(s.file);
	return ckpt_pack(&m.base, body, e);
}

/* The descriptor that @path (".../fdinfo/3") tells of, or -1. */
static int fdinfo_of(const char *path)
{
	const char *name = strstr(path, "/fdinfo/");
	unsigned fd;
	char end;

	return name && sscanf(name, "/fdinfo/%6u%c", &fd, &end) == 1 ? (int)fd : -1;
}

/* The process that @path tells of, or NULL. */
static struct remote *process_of(struct ckpt_build *b, const char *path)
{
	struct ckpt_build_proc *p;
	int vpid;

	if (sscanf(path, "/proc/%d/", &vpid) != 1)
		return NULL;
	p = ckpt_build_proc(b, vpid);
	return p && p->n_threads ? p->threads[0].remote : NULL;
}

/* Gives the task a descriptor @fd, and another at *ret_other, if not -1. */
static int lend_descriptor(struct remote *r, int fd, long *ret_other, struct err *e)
{
	int x = remote_must(r, ret_other, e, SYS_eventfd2, 0, 0, 0, 0, 0, 0);

	if (x < 0 || *ret_other == fd) {
		*ret_other = -1;
		return x;
	}
	return remote_must(r, NULL, e, SYS_dup2, (uint64_t)*ret_other, (uint64_t)fd, 0, 0, 0, 0);
}

static int return_descriptor(struct remote *r, int fd, long other, struct err *e)
{
	int x = remote_must(r, NULL, e, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);

	if (x < 0 || other < 0)
		return x;
	return remote_must(r, NULL, e, SYS_close, (uint64_t)other, 0, 0, 0, 0, 0);
}

/* @path (/proc/N/rest) of a process that has ended, or of a descriptor that has been closed. */
static int open_gone(struct ckpt_build *b, const char *path, int flags, struct err *e)
{
	const char *rest = strncmp(path, "/proc/", 6) ? NULL : strchr(path + 6, '/');
	int gate[2], told = fdinfo_of(path), fd, r = 0;
	char own[PATH_MAX];
	struct stat st;
	pid_t child;

	if (!rest || strstr(rest, "..") || (flags & O_PATH) || pipe2(gate, O_CLOEXEC) < 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "%s cannot be opened again", path);
	told = told >= 0 && fcntl(told, F_GETFD) < 0 ? dup2(gate[0], told) : -1;
	child = fork();
	if (child == 0) {
		char c;

		close(gate[1]);
		_exit(read(gate[0], &c, 1) < 0);
	}
	close_fd(told);
	snprintf(own, sizeof(own), "%d%s", child, rest);
	fd = child < 0 ? -1 : openat(b->host_proc, own, flags | O_NOFOLLOW);
	if (fd < 0)
		r = err_errno(e, -errno, "cannot open %s", path);
	else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		r = err_set(e, ERR_IMAGE, -EBADMSG, "%s is not a file", path);
	close(gate[0]);
	close(gate[1]);
	if (child > 0)
		waitpid(child, NULL, __WALL);
	if (r < 0)
		close_fd(fd);
	return r < 0 ? r : fd;
}

static int open_path(
	const struct ckpt_world *w, const char *path, int flags, bool copied, struct err *e)
{
	int fd = w->paths ? w->paths->open(w->paths->ctx, path, flags, copied) : -ENOTSUP;

	if (fd == -ENOTSUP)
		return ckpt_common_open(path, flags, e);
	return fd < 0 ? err_errno(e, fd, "cannot open %s", path) : fd;
}

/* Does an epoll wait for it?  Copies are nothing to wait for. */
static bool is_waited_for(struct ckpt_build *b, uint64_t id)
{
	bool found = false;

	for (size_t i = 0; i < b->n_records && !found; i++) {
		const struct ckpt_record *r = &b->records[i];
		Pb__Epoll *m = r->kind->number == PROTO_KIND_EPOLL
				       ? pb__epoll__unpack(NULL, r->len, r->body)
				       : NULL;

		for (size_t k = 0; m && k < m->n_targets; k++)
			found = found || m->targets[k]->file == id;
		pb__epoll__free_unpacked(m, NULL);
	}
	return found;
}

/* What is to be a copy here need not have been one there. */
static int open_there(struct ckpt_build *b, const Pb__ProcFile *m, const char *path, uint64_t id,
	struct err *e)
{
	bool copied = m->copied || (b->world->paths && !is_waited_for(b, id));
	int flags = ckpt_common_open_flags(m->common), told = fdinfo_of(path), fd, r;
	struct remote *process = told >= 0 ? process_of(b, path) : NULL;
	long other;

	if (!process)
		return open_path(b->world, path, flags, copied, e);
	r = lend_descriptor(process, told, &other, e);
	if (r < 0)
		return r;
	fd = open_path(b->world, path, flags, copied, e);
	r = return_descriptor(process, told, other, fd < 0 ? NULL : e);
	if (fd >= 0 && r < 0)
		close_fd(fd);
	return fd < 0 || r >= 0 ? fd : r;
}

static int open_again(struct ckpt_build *b, Pb__ProcFile *m, uint64_t id, struct err *e)
{
	int flags = ckpt_common_open_flags(m->common), r;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if (!ckpt_common_check_path(m->path.data, m->path.len, path))
		return err_set(e, ERR_IMAGE, -EBADMSG, "an open file's record makes no sense");
	fd = m->gone ? open_gone(b, path, flags, e) : open_there(b, m, path, id, e);
	if (fd < 0)
		return fd;
	m->common->pos = 0;
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__ProcFile *m = pb__proc_file__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? open_again(b, m, r->subject, e) : ckpt_common_bad(r, e);

	if (m)
		pb__proc_file__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/*
 * The kernel makes the contents when it is told the position: as late as can be.  They may be
 * shorter than they were; then it is at its end.
 */
static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__ProcFile *m = pb__proc_file__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	char path[PATH_MAX];
	int error = 0;

	if (m && f && f->fd >= 0 && !m->gone && b->world->paths &&
		ckpt_common_check_path(m->path.data, m->path.len, path))
		error = b->world->paths->settle(b->world->paths->ctx, path, f->fd);
	if (m && m->common && m->common->pos > 0 && f && f->fd >= 0)
		lseek(f->fd, m->common->pos, SEEK_SET);
	if (m)
		pb__proc_file__free_unpacked(m, NULL);
	return error < 0 ? err_errno(e, error, "cannot read %s", path) : 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__ProcFile *m = pb__proc_file__unpack(NULL, len, body);

	if (!m)
		fputs("unreadable", out);
	else
		fprintf(out, "%.*s%s", (int)m->path.len, (const char *)m->path.data,
			m->gone ? " (ended)" : "");
	if (m)
		pb__proc_file__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_procfile = {
	.number = PROTO_KIND_PROCFILE,
	.name = "file of /proc",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.create = create,
	.finish = finish,
	.last = true,
	.show = show,
};
