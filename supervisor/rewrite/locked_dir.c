// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in locked_dir.h. */
#include "supervisor/rewrite/locked_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define ATTEMPTS 16

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

void locked_dir_sweep(const char *top, const char *prefix)
{
	_cleanup_closedir_ DIR *list = opendir(top);

	for (const struct dirent *d; list && (d = readdir(list));) {
		_cleanup_close_ int fd = -1;

		if (strncmp(d->d_name, prefix, strlen(prefix)) != 0)
			continue;
		fd = open_locked(dirfd(list), d->d_name);
		if (fd >= 0)
			io_rm_rf(dirfd(list), d->d_name);
	}
}

int locked_dir_make(const char *top, const char *prefix, char ret[PATH_MAX])
{
	int fd = -EAGAIN;

	for (int i = 0; fd < 0 && i < ATTEMPTS; i++) {
		if (snprintf(ret, PATH_MAX, "%s/%sXXXXXX", top, prefix) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (!mkdtemp(ret))
			return -errno;
		fd = open_locked(AT_FDCWD, ret);
	}
	return fd;
}
