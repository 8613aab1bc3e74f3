// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs/place.h. */
#include "supervisor/rewrite/procfs/place.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/locked_dir.h"

#define SHM "/dev/shm"

static void put_prefix(char *buf, size_t size)
{
	snprintf(buf, size, "podrun-proc-%u-", getuid());
}

static bool serves(void)
{
	_cleanup_close_ int dir = open(SHM, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	return dir >= 0 && fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

void procfs_place_sweep(void)
{
	char prefix[64];

	put_prefix(prefix, sizeof(prefix));
	if (serves())
		locked_dir_sweep(SHM, prefix);
}

int procfs_place_make(const char *instead, char ret[PATH_MAX], struct err *e)
{
	char prefix[64];
	int fd;

	put_prefix(prefix, sizeof(prefix));
	fd = serves() ? locked_dir_make(SHM, prefix, ret) : -ENOTSUP;
	if (fd >= 0)
		return fd;
	if (snprintf(ret, PATH_MAX, "%s", instead) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "a place for /proc");
	if ((mkdir(instead, 0700) < 0 && errno != EEXIST) ||
		(fd = open(instead, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return err_errno(e, -errno, "cannot make %s", instead);
	return fd;
}
