// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A file of the host below the session's layer belongs to nobody inside, so that the kernel neither
 * lets root change it nor copies it up (EPERM, EACCES, EOVERFLOW) - though its directory is the
 * session's, and the file could be removed and written anew.  That is what happens here, just
 * before a call that changes the file or gives it another name: a copy with the same name,
 * contents, mode and times takes its place and is the session's.  Then the kernel goes on with the
 * call.  So dpkg can make its backup links, and `chmod`, `mv` and editors work in /usr.
 *
 * Only overlays are touched: what -v shows are the host's real files.  What can't be read can't be
 * adopted.  A descriptor opened before keeps the old file; a hard link of it stays behind.
 */
#include "supervisor/names/adopt.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/names/lookup.h"

#define TEMPORARY ".podrun-adopted"
#define CHUNK	  (1 << 20)
#define NONE	  (-1)

static int copy_data(int from, int to, off_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)MIN(size, (off_t)CHUNK));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		size -= n;
	}
	return 0;
}

static int make_copy(int dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	_cleanup_close_ int from = -1, to = -1;
	int r;

	from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	to = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = copy_data(from, to, st->st_size);
	if (r == 0 && (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0))
		r = -errno;
	return r;
}

static int make_link(int dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, dir, TEMPORARY) < 0 ? -errno : 0;
}

static bool of_the_host(int fd, struct stat *st)
{
	struct statfs fs;

	return fstat(fd, st) == 0 && (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)) &&
	       st->st_uid != getuid() && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

bool adopt_file(const struct notify_call *c, int fd)
{
	_cleanup_close_ int dir = -1;
	char name[NAME_MAX + 1];
	struct stat st, now;
	int r;

	if (!of_the_host(fd, &st))
		return false;
	dir = lookup_name(c, fd, name);
	if (dir < 0 || fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
		now.st_ino != st.st_ino || now.st_dev != st.st_dev)
		return false;
	r = S_ISLNK(st.st_mode) ? make_link(dir, name) : make_copy(dir, name, &st);
	if (r == 0 && renameat(dir, TEMPORARY, dir, name) < 0)
		r = -errno;
	if (r < 0 && r != -EEXIST)
		unlinkat(dir, TEMPORARY, 0);
	return r == 0;
}

/* Where the calls have what; a last symlink is followed if (flags & mask) == value. */
static const struct target {
	int nr, dir, path, flags;
	uint32_t mask, value;
} targets[] = {
	{SYS_open, NONE, 0, 1, O_NOFOLLOW, 0},
	{SYS_openat, 0, 1, 2, O_NOFOLLOW, 0},
	{SYS_creat, NONE, 0, NONE, 0, 0},
	{SYS_truncate, NONE, 0, NONE, 0, 0},
	{SYS_link, NONE, 0, NONE, 0, 1},
	{SYS_linkat, 0, 1, 4, AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW},
	{SYS_rename, NONE, 0, NONE, 0, 1},
	{SYS_renameat, 0, 1, NONE, 0, 1},
	{SYS_renameat2, 0, 1, NONE, 0, 1},
	{SYS_chmod, NONE, 0, NONE, 0, 0},
	{SYS_fchmodat, 0, 1, NONE, 0, 0},
	{SYS_fchmodat2, 0, 1, 3, AT_SYMLINK_NOFOLLOW, 0},
	{SYS_utime, NONE, 0, NONE, 0, 0},
	{SYS_utimes, NONE, 0, NONE, 0, 0},
	{SYS_futimesat, 0, 1, NONE, 0, 0},
	{SYS_utimensat, 0, 1, 3, AT_SYMLINK_NOFOLLOW, 0},
	{SYS_setxattr, NONE, 0, NONE, 0, 0},
	{SYS_lsetxattr, NONE, 0, NONE, 0, 1},
};

static const struct target *find_target(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		if (targets[i].nr == nr)
			return &targets[i];
	return NULL;
}

/* The calls of the table above: whatever comes of it here, the kernel does them. */
void adopt_before(struct notify_call *c)
{
	const struct target *t = find_target(c->request->data.nr);
	_cleanup_close_ int fd = -1;
	uint32_t flags;
	int dir;

	notify_continue(c);
	if (!t)
		return;
	flags = t->flags == NONE ? 0 : (uint32_t)notify_arg(c, t->flags);
	dir = t->dir == NONE ? AT_FDCWD : (int)notify_arg(c, t->dir);
	fd = lookup_path(c, dir, notify_arg(c, t->path), (flags & t->mask) == t->value, false);
	if (fd >= 0)
		adopt_file(c, fd);
}
