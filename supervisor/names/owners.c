// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * All files of a session really belong to its one user.  chown(2) by root inside records the
 * virtual owner in an extended attribute of the file, user.podrun.owner = "uid:gid", which moves with
 * the session's files; stat(2) shows it.  What has none belongs to whoever looks: to root, files
 * are root's, and a daemon that has dropped its rights finds the directory it has just made its own
 * (postgres insists).  What belongs to other users of the host stays nobody's.
 *
 * Symlinks, sockets and devices can't carry the attribute: their chown succeeds and says nothing.
 *
 * A stat whose answer the kernel would give as well is left to it: all of root's until the first
 * owner is recorded, and every one that fails.  Nothing here grants anything, so a path that is
 * changed under our eyes does no harm.
 */
#include "supervisor/names/owners.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "supervisor/names/adopt.h"
#include "supervisor/names/lookup.h"
#include "supervisor/names/users.h"
#include "supervisor/notify_call.h"

#define ATTRIBUTE "user.podrun.owner"
#define MARKER	  "owners"
#define NOBODY	  65534
#define KEEP	  0xffffffffU

struct owners {
	int files;
	bool any; /* a virtual owner has ever been recorded */
};

int owners_create(struct owners **ret, const char *files_dir, struct err *e)
{
	struct owners *o = calloc(1, sizeof(*o));

	if (!o)
		return err_errno(e, -ENOMEM, "owners");
	o->files = open(files_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->files < 0) {
		free(o);
		return err_errno(e, -errno, "%s", files_dir);
	}
	o->any = faccessat(o->files, MARKER, F_OK, 0) == 0;
	*ret = o;
	return 0;
}

void owners_free(struct owners *o)
{
	if (!o)
		return;
	close_fd(o->files);
	free(o);
}

static void remember(struct owners *o)
{
	if (!o->any)
		io_write_file(o->files, MARKER, "", 0, 0600);
	o->any = true;
}

static bool read_owner(int fd, uint32_t *uid, uint32_t *gid)
{
	char proc[32], text[32];
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = getxattr(proc, ATTRIBUTE, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%u:%u", uid, gid) == 2;
}

/* Turns the owners that the host sees into those the session shall see. */
static void show_owner(const struct users *viewer, int fd, uint32_t *uid, uint32_t *gid)
{
	bool ours = *uid == getuid();

	*gid = *gid == getgid() ? viewer->gid.effective : NOBODY;
	*uid = ours ? viewer->uid.effective : NOBODY;
	if (ours)
		read_owner(fd, uid, gid);
}

/* Opens what a call of the stat family is about; negative: the kernel shall answer. */
static int stat_target(const struct notify_call *c, struct users *viewer)
{
	users_load(c->tid, viewer);
	if (viewer->uid.effective == 0 && viewer->gid.effective == 0 &&
		!notify_owners(c->notify)->any)
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
	show_owner(&viewer, fd, &st.st_uid, &st.st_gid);
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
	show_owner(&viewer, fd, &stx.stx_uid, &stx.stx_gid);
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

static int record_owner(struct owners *o, int fd, uint32_t uid, uint32_t gid)
{
	char proc[32], text[32];
	int n, r;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (uid == 0 && gid == 0) {
		if (o->any)
			removexattr(proc, ATTRIBUTE);
		return 0;
	}
	remember(o);
	n = snprintf(text, sizeof(text), "%u:%u", uid, gid);
	r = setxattr(proc, ATTRIBUTE, text, (size_t)n, 0) < 0 ? -errno : 0;
	/* What can't carry it, and files of the host's: said to be done, like on a system that has
	 * no owners. */
	return r == -EPERM || r == -ENOTSUP || r == -EACCES || r == -EOVERFLOW ? 0 : r;
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
	uint32_t uid, gid, new_uid, new_gid;
	struct users viewer;
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
	uid = viewer.uid.effective;
	gid = viewer.gid.effective;
	read_owner(fd, &uid, &gid);
	if (viewer.uid.effective != 0 && ((new_uid != KEEP && new_uid != uid) ||
						 uid != viewer.uid.effective))
		return notify_fail(c, -EPERM);
	r = record_owner(notify_owners(c->notify), fd, new_uid == KEEP ? uid : new_uid,
		new_gid == KEEP ? gid : new_gid);
	if (r < 0)
		notify_fail(c, r);
	else
		notify_return(c, 0);
}
