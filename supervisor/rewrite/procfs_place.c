// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs_place.h. */
#include "supervisor/rewrite/procfs_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"

#define SHM	 "/dev/shm"
#define ATTEMPTS 16

static size_t put_prefix(char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "podrun-proc-%u-", getuid());
}

/* Locked, and still what @name names: whoever sweeps may have come in between. */
static int open_locked(int dir, const char *name)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat is, was;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &is) < 0 ||
		fstatat(dir, name, &was, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (is.st_ino != was.st_ino || is.st_dev != was.st_dev || is.st_uid != getuid())
		return -ESTALE;
	return take_fd(&fd);
}

static int open_shm(void)
{
	_cleanup_close_ int dir = open(SHM, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	if (dir < 0)
		return -errno;
	return fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC ? take_fd(&dir) : -ENOTSUP;
}

void procfs_place_sweep(void)
{
	_cleanup_close_ int dir = open_shm();
	_cleanup_closedir_ DIR *list = dir < 0 ? NULL : opendir(SHM);
	char prefix[64];
	size_t n = put_prefix(prefix, sizeof(prefix));

	for (const struct dirent *d; list && (d = readdir(list));) {
		_cleanup_close_ int fd = -1;

		if (strncmp(d->d_name, prefix, n) != 0)
			continue;
		fd = open_locked(dir, d->d_name);
		if (fd >= 0)
			io_rm_rf(dir, d->d_name);
	}
}

static int make_in_shm(char ret[PATH_MAX])
{
	_cleanup_close_ int dir = open_shm();
	char prefix[64];
	int fd = dir;

	put_prefix(prefix, sizeof(prefix));
	for (int i = 0; dir >= 0 && i < ATTEMPTS; i++) {
		snprintf(ret, PATH_MAX, SHM "/%sXXXXXX", prefix);
		if (!mkdtemp(ret))
			return -errno;
		fd = open_locked(dir, ret + strlen(SHM "/"));
		if (fd >= 0)
			break;
	}
	return fd;
}

int procfs_place_make(const char *instead, char ret[PATH_MAX], struct err *e)
{
	int fd = make_in_shm(ret);

	if (fd >= 0)
		return fd;
	if (snprintf(ret, PATH_MAX, "%s", instead) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "a place for /proc");
	if ((mkdir(instead, 0700) < 0 && errno != EEXIST) ||
		(fd = open(instead, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_errno(e, -errno, "cannot make %s", instead);
	return fd;
}
