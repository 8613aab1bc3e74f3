// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/tenure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/paths.h"

int tenure_lock(const struct paths *p, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&path, "%s/names.lock", p->state) < 0)
		return err_errno(e, -ENOMEM, "lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(e, -errno, "%s", path);
	return take_fd(&fd);
}

int tenure_open(const char *path, struct err *e)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_errno(e, -errno, "%s", path) : fd;
}

bool tenure_holds(const char *path, int fd)
{
	struct stat there, ours;

	return fd >= 0 && stat(path, &there) == 0 && fstat(fd, &ours) == 0 &&
		there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

char *tenure_set_aside(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *aside = NULL;

	for (unsigned i = 0; slash && i < 1000; i++) {
		if (asprintf(&aside, "%.*s/.gone-%d-%u", (int)(slash - path), path, getpid(), i) <
			0)
			return NULL;
		if (access(aside, F_OK) < 0 && rename(path, aside) == 0)
			return aside;
		free(take_ptr(aside));
		if (access(path, F_OK) < 0)
			return NULL;
	}
	return NULL;
}

void tenure_remove(char *aside)
{
	if (aside)
		io_rm_rf(AT_FDCWD, aside);
	free(aside);
}
