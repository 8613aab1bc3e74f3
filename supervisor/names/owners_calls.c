// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls about owners that the supervisor answers under kernel names.  The theory of operation is in
 * owners.c.
 *
 * A stat whose answer the kernel would give as well is left to it: all of root's until the first
 * owner is recorded, and every one that fails.
 */
#include "supervisor/names/owners.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/names/adopt.h"
#include "supervisor/names/lookup.h"
#include "supervisor/names/users.h"

#define KEEP 0xffffffffU

static void show_owner(const struct notify_call *c, const struct users *viewer, int fd,
	uint32_t *uid, uint32_t *gid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	owners_show(notify_owners(c->notify), viewer, path, uid, gid);
}

/* Opens what a call of the stat family is about; negative: the kernel shall answer. */
static int stat_target(const struct notify_call *c, struct users *viewer)
{
	users_load(c->tid, viewer);
	if (viewer->uid.effective == 0 && viewer->gid.effective == 0 &&
		!owners_any(notify_owners(c->notify)))
		return -ENOENT;
	switch (c->request->data.nr) {
	case SYS_stat:
		return lookup_path(c, AT_FDCWD, notify_arg(c, 0), true, false);
	case SYS_lstat:
		return lookup_path(c, AT_FDCWD, notify_arg(c, 0), false, false);
	case SYS_fstat: {
		char link[32];

		snprintf(link, sizeof(link), "fd/%d", (int)notify_arg(c, 0));
		return lookup_link(c, link);
	}
	default: { /* newfstatat and statx have their flags in different places */
		int flags = (int)notify_arg(c, c->request->data.nr == SYS_statx ? 2 : 3);

		return lookup_path(c, (int)notify_arg(c, 0), notify_arg(c, 1),
			!(flags & AT_SYMLINK_NOFOLLOW), flags & AT_EMPTY_PATH);
	}
	}
}

/* stat, lstat, fstat, newfstatat */
void owners_stat(struct notify_call *c)
{
	_cleanup_close_ int fd = -1;
	struct users viewer;
	struct stat st;
	int where = c->request->data.nr == SYS_newfstatat ? 2 : 1;

	fd = stat_target(c, &viewer);
	if (fd < 0 || fstat(fd, &st) < 0)
		return notify_continue(c);
	show_owner(c, &viewer, fd, &st.st_uid, &st.st_gid);
	if (notify_write(c, notify_arg(c, where), &st, sizeof(st)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, 0);
}

void owners_statx(struct notify_call *c)
{
	_cleanup_close_ int fd = -1;
	struct users viewer;
	struct statx stx;

	fd = stat_target(c, &viewer);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | ((int)notify_arg(c, 2) & AT_STATX_SYNC_TYPE),
			      (unsigned)notify_arg(c, 3), &stx) < 0)
		return notify_continue(c);
	show_owner(c, &viewer, fd, &stx.stx_uid, &stx.stx_gid);
	if (notify_write(c, notify_arg(c, 4), &stx, sizeof(stx)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, 0);
}

/* Which file, and where the new owner stands among the arguments. */
static int chown_target(const struct notify_call *c, int *ret_first)
{
	char link[32];
	int flags;

	*ret_first = 1;
	switch (c->request->data.nr) {
	case SYS_chown:
		return lookup_path(c, AT_FDCWD, notify_arg(c, 0), true, false);
	case SYS_lchown:
		return lookup_path(c, AT_FDCWD, notify_arg(c, 0), false, false);
	case SYS_fchown:
		snprintf(link, sizeof(link), "fd/%d", (int)notify_arg(c, 0));
		return lookup_link(c, link);
	default: /* fchownat */
		*ret_first = 2;
		flags = (int)notify_arg(c, 4);
		return lookup_path(c, (int)notify_arg(c, 0), notify_arg(c, 1),
			!(flags & AT_SYMLINK_NOFOLLOW), flags & AT_EMPTY_PATH);
	}
}

/* Not root, whose the host's files may well be. */
static bool somebody(uint32_t uid, uint32_t gid)
{
	return (uid != KEEP && uid) || (gid != KEEP && gid);
}

/* chown(2): root may give anything, others may keep what they have. */
void owners_chown(struct notify_call *c)
{
	_cleanup_close_ int fd = -1;
	uint32_t new_uid, new_gid;
	struct users viewer;
	char path[32];
	struct stat st;
	int first, r;

	fd = chown_target(c, &first);
	new_uid = (uint32_t)notify_arg(c, first);
	new_gid = (uint32_t)notify_arg(c, first + 1);
	if (fd >= 0 && somebody(new_uid, new_gid) && adopt_file(c, fd)) {
		close(fd);
		fd = chown_target(c, &first);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return notify_fail(c, fd < 0 ? fd : -EIO);
	users_load(c->tid, &viewer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = owners_give(notify_owners(c->notify), &viewer, path, new_uid, new_gid);
	/* Set-user-ID bits go by a change of owner, where it is the kernel's to take them. */
	if (r == 0 && fchownat(fd, "", -1, -1, AT_EMPTY_PATH) < 0)
		log_debug("chown: %s", strerror(errno));
	if (r < 0)
		notify_fail(c, r);
	else
		notify_return(c, 0);
}
