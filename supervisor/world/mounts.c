// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A bind is made in two steps, as a detached copy of the mounts (open_tree) that is then attached
 * (move_mount): between them it can be made read-only as a whole, and it holds what it shows even
 * when the path it was taken from is covered by something else.
 */
#include "supervisor/world/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/base.h"

int mounts_mount(const char *source, const char *target, const char *type, unsigned long flags,
	const char *data, struct err *e)
{
	if (mount(source, target, type, flags, data) < 0) {
		err_errno(e, -errno, "cannot mount %s at %s", type ? type : source, target);
		return err_reclass(e, ERR_HOST);
	}
	return 0;
}

int mounts_clone(const char *source, bool read_only, struct err *e)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	int fd = open_tree(AT_FDCWD, source,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0) {
		err_errno(e, -errno, "cannot bind %s", source);
		return err_reclass(e, ERR_HOST);
	}
	/* Recursive: a read-only view has no writable mount below it (5.12). */
	if (read_only && mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
				 sizeof(attr)) < 0) {
		err_errno(e, -errno, "cannot make the view of %s read-only", source);
		close(fd);
		return err_reclass(e, ERR_HOST);
	}
	return fd;
}

int mounts_bind(const char *source, const char *target, bool read_only, struct err *e)
{
	_cleanup_close_ int fd = mounts_clone(source, read_only, e);

	if (fd < 0)
		return fd;
	if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, -errno, "cannot bind %s to %s", source, target);
	return 0;
}
