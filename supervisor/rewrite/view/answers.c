// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in view.h and view/question.h.
 *
 * A file is opened by its O_PATH descriptor, which the walk has found, through /proc/self/fd: no
 * name is looked up twice.  O_NONBLOCK keeps an open from waiting for whoever holds a lease, and is
 * taken off again; FIFOs, other file systems than the session's own and whatever is on the host's
 * side are left to view/later.c.
 */
#include "supervisor/rewrite/view/question.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/procfs/procfs.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/users.h"
#include "supervisor/rewrite/view/later.h"

static uint64_t arg(const struct path_question *p, int i)
{
	return p->q.data->args[i];
}

static struct procfs *procfs_of(const struct path_question *p)
{
	return p->q.rw->view->procfs;
}

static const struct procfs_node *node_of(const struct path_question *p)
{
	return view_in_proc(p->at) && p->at->fd < 0 ? &p->at->way.node : NULL;
}

static long put(const struct path_question *p, uint64_t addr, const void *data, size_t len)
{
	if (p->mem < 0)
		return question_write(&p->q, addr, data, len);
	if (!question_waits(&p->q))
		return -EFAULT;
	return pwrite(p->mem, data, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

/* ---- open ----------------------------------------------------------------------------------- */

static int open_flags(const struct seccomp_data *d)
{
	return (int)d->args[d->nr == SYS_open ? 1 : 2];
}

static unsigned how_open(const struct seccomp_data *d)
{
	return open_flags(d) & O_NOFOLLOW ? VIEW_NOFOLLOW : 0;
}

/*
 * The task gets @fd, which is closed.  Both in one step, so that no signal comes between; but of a
 * FIFO we may be a reader or a writer no longer when the task goes on, or it would meet us there.
 */
static long give(struct path_question *p, int fd)
{
	struct seccomp_notif_addfd add = {.id = p->q.id,
		.flags = S_ISFIFO(p->at->mode) ? 0 : SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = (uint32_t)(open_flags(p->q.data) & O_CLOEXEC)};
	int r = ioctl(p->q.rw->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	if (r < 0 && errno == EINVAL && add.flags) { /* before 5.14 */
		add.flags = 0;
		r = ioctl(p->q.rw->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
		r = r < 0 ? -errno : r;
	} else {
		r = r < 0 ? -errno : r;
		p->q.sent = r >= 0 && add.flags;
	}
	close(fd);
	return r;
}

/* What the asker wants and what keeps us from waiting. */
static int quick_flags(int flags)
{
	return (flags & ~O_NOFOLLOW) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
}

static long open_again(struct path_question *p, int flags)
{
	bool patient = p->mem >= 0;
	int fd;

	if (S_ISLNK(p->at->mode))
		return -ELOOP;
	if (S_ISFIFO(p->at->mode) && !(flags & O_NONBLOCK) && !patient)
		return PATH_LATER;
	fd = view_open_again(p->q.rw->view, p->at->fd,
		patient ? (flags & ~O_NOFOLLOW) | O_NOCTTY | O_CLOEXEC : quick_flags(flags));
	if (fd < 0)
		return fd == -EWOULDBLOCK && !(flags & O_NONBLOCK) ? PATH_LATER : fd;
	if (!patient && !(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags);
	return give(p, fd);
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

static bool is_read_only(const struct path_question *p)
{
	const struct view_entry *in =
		view_in_proc(p->at) ? view_jumped_to(p->q.rw->view, p->at) : p->at->in;

	return in && in->read_only;
}

static long open_inside(struct path_question *p)
{
	int flags = open_flags(p->q.data), fd;

	if (node_of(p)) {
		fd = procfs_open(procfs_of(p), p->q.asker, node_of(p), flags);
		return fd < 0 ? fd : give(p, fd);
	}
	if (is_read_only(p) && writes(flags) && !S_ISFIFO(p->at->mode))
		return -EROFS;
	return open_again(p, flags);
}

static long open_outside(struct path_question *p)
{
	int fd = open(p->at->path, open_flags(p->q.data) | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : give(p, fd);
}

/* ---- stat ----------------------------------------------------------------------------------- */

static unsigned how_lstat(const struct seccomp_data *d)
{
	return VIEW_NOFOLLOW;
}

static unsigned how_newfstatat(const struct seccomp_data *d)
{
	return d->args[3] & AT_SYMLINK_NOFOLLOW ? VIEW_NOFOLLOW : 0;
}

static unsigned how_fchownat(const struct seccomp_data *d)
{
	return d->args[4] & AT_SYMLINK_NOFOLLOW ? VIEW_NOFOLLOW : 0;
}

static unsigned how_statx(const struct seccomp_data *d)
{
	return d->args[2] & AT_SYMLINK_NOFOLLOW ? VIEW_NOFOLLOW : 0;
}

static long put_stat(const struct path_question *p, uint64_t addr, const struct stat *st)
{
	union compat_any_stat narrow;
	int len;

	if (p->q.nr32 < 0)
		return put(p, addr, st, sizeof(*st));
	len = compat_fill_stat(p->q.nr32, st, &narrow);
	return len < 0 ? len : put(p, addr, &narrow, (size_t)len);
}

/*
 * Owners as the session sees them, of what @fd (or else @path) leads to; a process's is who that
 * is.
 */
static void show(
	const struct path_question *p, int fd, const char *path, uint32_t *uid, uint32_t *gid)
{
	const struct rewrite_users *us = p->q.rw->tasks.users;
	const struct procfs_node *node = node_of(p);
	char link[32];

	if (!us)
		return;
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		path = link;
	}
	rewrite_users_show(us, node && node->task ? node->task->host : p->q.tid, path, uid, gid);
}

static long stat_inside(struct path_question *p)
{
	uint64_t addr = arg(p, p->row->path + 1);
	struct stat st = p->at->st;
	int r = 0;

	if (node_of(p))
		r = procfs_stat(procfs_of(p), node_of(p), &st);
	else if (!p->at->looked)
		r = fstatat(p->at->fd, "", &st, AT_EMPTY_PATH) < 0 ? -errno : 0;
	if (r < 0)
		return r;
	show(p, p->at->fd, NULL, &st.st_uid, &st.st_gid);
	return put_stat(p, addr, &st);
}

static long stat_outside(struct path_question *p)
{
	bool nofollow = p->row->how && p->row->how(p->q.data) & VIEW_NOFOLLOW;
	struct stat st;

	if (fstatat(AT_FDCWD, p->at->path, &st, nofollow ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return -errno;
	show(p, -1, S_ISLNK(st.st_mode) ? NULL : p->at->path, &st.st_uid, &st.st_gid);
	return put_stat(p, arg(p, p->row->path + 1), &st);
}

static struct statx_timestamp time_of(struct timespec t)
{
	return (struct statx_timestamp){.tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec};
}

static struct statx extended(const struct stat *st)
{
	return (struct statx){.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (uint32_t)st->st_blksize,
		.stx_nlink = (uint32_t)st->st_nlink,
		.stx_uid = st->st_uid,
		.stx_gid = st->st_gid,
		.stx_mode = (uint16_t)st->st_mode,
		.stx_ino = st->st_ino,
		.stx_size = (uint64_t)st->st_size,
		.stx_blocks = (uint64_t)st->st_blocks,
		.stx_atime = time_of(st->st_atim),
		.stx_ctime = time_of(st->st_ctim),
		.stx_mtime = time_of(st->st_mtim),
		.stx_dev_major = major(st->st_dev),
		.stx_dev_minor = minor(st->st_dev)};
}

static long statx_at(struct path_question *p, int fd, const char *path, int more)
{
	int flags = (int)arg(p, 2) & (AT_STATX_SYNC_TYPE | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW);
	struct statx sx;

	if (statx(fd, path, flags | more, (unsigned)arg(p, 3), &sx) < 0)
		return -errno;
	show(p, fd, *path && !S_ISLNK(sx.stx_mode) ? path : NULL, &sx.stx_uid, &sx.stx_gid);
	return put(p, arg(p, 4), &sx, sizeof(sx));
}

static long statx_inside(struct path_question *p)
{
	struct statx sx;
	struct stat st;
	int r;

	if (!node_of(p))
		return statx_at(p, p->at->fd, "", AT_EMPTY_PATH);
	r = procfs_stat(procfs_of(p), node_of(p), &st);
	if (r < 0)
		return r;
	show(p, -1, NULL, &st.st_uid, &st.st_gid);
	sx = extended(&st);
	return put(p, arg(p, 4), &sx, sizeof(sx));
}

static long statx_outside(struct path_question *p)
{
	return statx_at(p, AT_FDCWD, p->at->path, 0);
}

/* ---- owners --------------------------------------------------------------------------------- */

static const struct path_row *row_of(int nr);
static long go_on(struct question *q);

static long chown_inside(struct path_question *p)
{
	return is_read_only(p) ? -EROFS : rewrite_users_chown_inside(p);
}

/* Of a path that is the host's the kernel says all, but for owners. */
static long leave(struct question *q, const struct path_row *row, int dirfd, const char *said,
	const char *whole)
{
	return rewrite_users_asked(q) ? rewrite_users_host(q, row, dirfd, said, whole) : go_on(q);
}

/* fstat, fchown, and what is said of a descriptor otherwise. */
static long on_descriptor(struct question *q)
{
	const struct path_row *row = row_of(q->data->nr);
	int fd = question_arg(q, MAX(row->dirfd, 0));

	return q->rw->tasks.users ? rewrite_users_host(q, row, fd, "", NULL) : go_on(q);
}

static bool says_descriptor(const struct question *q)
{
	switch (q->data->nr) {
	case SYS_newfstatat:
		return q->data->args[3] & AT_EMPTY_PATH;
	case SYS_statx:
		return q->data->args[2] & AT_EMPTY_PATH;
	case SYS_fchownat:
		return q->data->args[4] & AT_EMPTY_PATH;
	default:
		return false;
	}
}

/* ---- access --------------------------------------------------------------------------------- */

static unsigned how_faccessat2(const struct seccomp_data *d)
{
	return d->args[3] & AT_SYMLINK_NOFOLLOW ? VIEW_NOFOLLOW : 0;
}

static int access_flags(const struct path_question *p)
{
	return p->q.data->nr == SYS_faccessat2 ? (int)arg(p, 3) & (AT_EACCESS | AT_SYMLINK_NOFOLLOW)
					       : 0;
}

static long access_inside(struct path_question *p)
{
	int mode = (int)arg(p, p->row->path + 1), r;

	if (node_of(p))
		return procfs_access(procfs_of(p), node_of(p), mode);
	if (mode & W_OK && is_read_only(p))
		return -EROFS;
	r = (int)syscall(SYS_faccessat2, p->at->fd, "", mode, access_flags(p) | AT_EMPTY_PATH);
	return r < 0 ? -errno : 0;
}

static long access_outside(struct path_question *p)
{
	int mode = (int)arg(p, p->row->path + 1);

	return faccessat(AT_FDCWD, p->at->path, mode, access_flags(p)) < 0 ? -errno : 0;
}

/* ---- readlink ------------------------------------------------------------------------------- */

static long put_link(struct path_question *p, const char *text, ssize_t n)
{
	int size = (int)arg(p, p->row->path + 2);
	long r;

	if (size <= 0)
		return -EINVAL;
	if (n < 0)
		return n;
	n = MIN(n, (ssize_t)size);
	r = put(p, arg(p, p->row->path + 1), text, (size_t)n);
	return r < 0 ? r : n;
}

static long readlink_inside(struct path_question *p)
{
	char text[PATH_MAX];
	ssize_t n;

	if (node_of(p)) {
		n = procfs_readlink(procfs_of(p), p->q.asker, node_of(p), text, sizeof(text));
		return put_link(p, text, n);
	}
	if (!S_ISLNK(p->at->mode))
		return -EINVAL;
	n = readlinkat(p->at->fd, "", text, sizeof(text));
	return put_link(p, text, n < 0 ? -errno : n);
}

static long readlink_outside(struct path_question *p)
{
	char text[PATH_MAX];
	ssize_t n = readlink(p->at->path, text, sizeof(text));

	return put_link(p, text, n < 0 ? -errno : n);
}

/* ---- any of them ---------------------------------------------------------------------------- */

static const struct path_row rows[] = {
	{SYS_open, -1, 0, how_open, open_inside, open_outside},
	{SYS_openat, 0, 1, how_open, open_inside, open_outside},
	{SYS_stat, -1, 0, NULL, stat_inside, stat_outside},
	{SYS_lstat, -1, 0, how_lstat, stat_inside, stat_outside},
	{SYS_newfstatat, 0, 1, how_newfstatat, stat_inside, stat_outside},
	{SYS_statx, 0, 1, how_statx, statx_inside, statx_outside},
	{SYS_fstat, -1, 0, NULL, stat_inside, NULL},
	{SYS_chown, -1, 0, NULL, chown_inside, rewrite_users_chown_outside},
	{SYS_lchown, -1, 0, how_lstat, chown_inside, rewrite_users_chown_outside},
	{SYS_fchown, -1, 0, NULL, chown_inside, NULL},
	{SYS_fchownat, 0, 1, how_fchownat, chown_inside, rewrite_users_chown_outside},
	{SYS_access, -1, 0, NULL, access_inside, access_outside},
	{SYS_faccessat, 0, 1, NULL, access_inside, access_outside},
	{SYS_faccessat2, 0, 1, how_faccessat2, access_inside, access_outside},
	{SYS_readlink, -1, 0, how_lstat, readlink_inside, readlink_outside},
	{SYS_readlinkat, 0, 1, how_lstat, readlink_inside, readlink_outside},
};

static const struct path_row *row_of(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].nr == nr)
			return &rows[i];
	return NULL;
}

/*
 * The kernel's own: an open may wait there, and be interrupted, which a signal's stop has to know.
 */
static long go_on(struct question *q)
{
	q->go_on = true;
	q->asker->passed = *q->data;
	return 0;
}

static long later(struct path_question *p, const char *path)
{
	int r = view_later(p, path);

	p->q.sent = r == 0;
	/* It may be told that it was interrupted. */
	p->q.asker->passed = *p->q.data;
	return r;
}

/* / and /dev: of what Landlock shows, their content is only a part. */
static bool is_split(const struct view *v, const struct view_place *at)
{
	const char *path = strcmp(at->path, "/") == 0 ? "" : at->path;
	const struct view_entry *one = at->in ? NULL : view_find(v, path, strlen(path));

	return one && (one->sort == VIEW_SPLIT || one->sort == VIEW_HOST);
}

static long perform(struct path_question *p)
{
	struct view_place *at = p->at;
	const struct view *v = p->q.rw->view;
	char path[PATH_MAX];
	long r;

	if (at->in && (at->in->sort == VIEW_MOUNT || view_in_proc(at))) {
		r = p->row->inside(p);
		return r == PATH_LATER ? later(p, at->path) : r;
	}
	if (p->row->inside == open_inside && is_split(v, at))
		return open_outside(p);
	if (!at->walked && !rewrite_users_asked(&p->q))
		return go_on(&p->q);
	r = view_place_host(v, at, path);
	if (r < 0)
		return r;
	return at->walked ? later(p, path) : leave(&p->q, p->row, AT_FDCWD, path, path);
}

/* What the view has to say of @path, absolute. */
static long resolve(struct question *q, const struct path_row *row, const char *path, unsigned from)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	struct path_question p = {.q = *q, .row = row, .at = &at, .mem = -1};
	long r = view_walk(
		q->rw->view, q->asker, path, (row->how ? row->how(q->data) : 0) | from, &at);

	if (r == -EAGAIN)
		r = later(&p, path);
	else if (r == 0)
		r = perform(&p);
	q->sent = p.q.sent;
	q->go_on = p.q.go_on;
	return r;
}

/* The asker's text, up to PATH_MAX with its end.  Its length or a negative errno. */
static ssize_t read_path(const struct question *q, uint64_t addr, char ret[PATH_MAX])
{
	size_t have = 0;

	while (have < PATH_MAX) {
		/* The end of a page may be the end of all. */
		size_t n =
			MIN(have ? PATH_MAX : (size_t)256, PAGE_SIZE - (addr + have) % PAGE_SIZE);
		const char *end;

		n = MIN(n, PATH_MAX - have);
		if (question_read(q, addr + have, ret + have, n) < 0)
			return -EFAULT;
		end = memchr(ret + have, '\0', n);
		if (end)
			return end - ret;
		have += n;
	}
	return -ENAMETOOLONG;
}

/* Is @dir, as the host says it, one that has been removed? */
static bool is_gone(const char *dir)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(dir), tail = strlen(mark);

	return n > tail && strcmp(dir + n - tail, mark) == 0;
}

/* @path, of @n bytes, has room for 2 * PATH_MAX. */
static long on_relative(
	struct question *q, const struct path_row *row, int dirfd, char *path, size_t n)
{
	struct view *v = q->rw->view;
	char base[PATH_MAX];
	const char *said;
	unsigned from;
	size_t len;
	long r = view_base(v, q->asker, q->tid, dirfd, base);

	if (r < 0)
		return view_is_outside(v, (int)r) ? -EACCES : go_on(q);
	/* There is nothing else in it. */
	if (is_gone(base) && strcmp(path, ".") == 0)
		return leave(q, row, dirfd, path, NULL);
	len = strlen(base);
	memmove(path + len + 1, path, n + 1);
	memcpy(path, base, len);
	path[len] = '/';
	said = path + len + 1;
	if (!view_leads_in_from(v, len, path, &from))
		return leave(q, row, dirfd, said, path);
	r = resolve(q, row, path, from);
	return r == -ENAMETOOLONG && view_too_deep(v, base, said)
		       ? leave(q, row, dirfd, said, NULL)
		       : r;
}

static long on_path(struct question *q)
{
	const struct path_row *row = row_of(q->data->nr);
	int dirfd = row->dirfd < 0 ? AT_FDCWD : question_arg(q, row->dirfd);
	struct view *v = q->rw->view;
	char path[2 * PATH_MAX];
	ssize_t n;

	n = q->data->args[row->path] || !says_descriptor(q)
		    ? read_path(q, q->data->args[row->path], path)
		    : 0;
	if (n == 0 && says_descriptor(q))
		return on_descriptor(q);
	/* What is wrong with it the kernel says. */
	if (n <= 0)
		return go_on(q);
	if (!v)
		return leave(q, row, dirfd, path, NULL);
	if (path[0] != '/')
		return on_relative(q, row, dirfd, path, (size_t)n);
	return view_leads_in(v, path) ? resolve(q, row, path, 0) : leave(q, row, dirfd, path, path);
}

static long get_cwd(struct question *q)
{
	char path[PATH_MAX];
	size_t n;

	if (view_base(q->rw->view, q->asker, q->tid, AT_FDCWD, path) < 0 ||
		!view_mount_of(q->rw->view, path))
		return go_on(q);
	n = strlen(path) + 1;
	if (is_gone(path))
		return go_on(q);
	if (n > q->data->args[1])
		return -ERANGE;
	return question_write(q, q->data->args[0], path, n) < 0 ? -EFAULT : (long)n;
}

/*
 * What to unshare is in a register: the kernel does it.  One with a single thread has nobody to
 * part from.
 */
static long on_unshare(struct question *q)
{
	struct task *process = tasks_find(&q->rw->tasks, q->asker->tgid);

	if (process && process->threaded)
		process->parted = true;
	q->go_on = true;
	return 0;
}

const struct answer_row view_answers[] = {
	{SYS_open, on_path},
	{SYS_openat, on_path},
	{SYS_stat, on_path},
	{SYS_lstat, on_path},
	{SYS_newfstatat, on_path},
	{SYS_statx, on_path},
	{SYS_access, on_path},
	{SYS_faccessat, on_path},
	{SYS_faccessat2, on_path},
	{SYS_chown, on_path},
	{SYS_lchown, on_path},
	{SYS_fchownat, on_path},
	{SYS_fstat, on_descriptor},
	{SYS_fchown, on_descriptor},
	{SYS_readlink, on_path},
	{SYS_readlinkat, on_path},
	{SYS_getcwd, get_cwd},
	{SYS_unshare, on_unshare},
};
const size_t view_n_answers = ARRAY_SIZE(view_answers);
