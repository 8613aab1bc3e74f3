// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * All files of a session really belong to its one user.  chown(2) by root inside records the
 * virtual owner in an extended attribute of the file, user.podrun.owner = "uid:gid", which moves
 * with the session's files; stat(2) shows it.  What has none belongs to whoever looks: to root,
 * files are root's, and a daemon that has dropped its rights finds the directory it has just made
 * its own (postgres insists).  What belongs to other users of the host stays nobody's.
 *
 * Symlinks, sockets and devices can't carry the attribute: their chown succeeds and says nothing.
 * That of a file which its user may not read (mode 0200) is there, but can't be shown for so long.
 *
 * Nothing here grants anything, so a path that is changed under our eyes does no harm.
 */
#include "supervisor/names/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/names/users.h"

#define ATTRIBUTE "user.podrun.owner"
#define MARKER	  "owners"
#define KEEP	  0xffffffffU

struct owners {
	int files;
	bool any; /* a virtual owner has ever been recorded */
};

static bool owners_recorded(int files)
{
	return faccessat(files, MARKER, F_OK, 0) == 0;
}

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
	o->any = owners_recorded(o->files);
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

bool owners_any(const struct owners *o)
{
	return o->any;
}

static bool read_owner(const char *path, uint32_t *uid, uint32_t *gid)
{
	char text[32];
	ssize_t n = getxattr(path, ATTRIBUTE, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%u:%u", uid, gid) == 2;
}

void owners_show(const struct owners *o, const struct users *viewer, const char *path,
	uint32_t *uid, uint32_t *gid)
{
	bool ours = *uid == getuid();

	*gid = *gid == getgid() ? viewer->gid.effective : OWNERS_NOBODY;
	*uid = ours ? viewer->uid.effective : OWNERS_NOBODY;
	if (ours && path && o && o->any)
		read_owner(path, uid, gid);
}

/* NULL: to take it away. */
static int set_attribute(const char *path, const char *text)
{
	int r = text ? setxattr(path, ATTRIBUTE, text, strlen(text), 0)
		     : removexattr(path, ATTRIBUTE);

	return r < 0 ? -errno : 0;
}

/* What is read-only may be written to for that long: chown(2) wants no such right. */
static int set_owner(const char *path, const char *text)
{
	int r = set_attribute(path, text);
	struct stat st;

	if (r != -EACCES || stat(path, &st) < 0 || st.st_uid != getuid() ||
		chmod(path, (st.st_mode & 07777) | 0200) < 0)
		return r;
	r = set_attribute(path, text);
	chmod(path, st.st_mode & 07777);
	return r;
}

static int record_owner(struct owners *o, const char *path, uint32_t uid, uint32_t gid)
{
	char text[32];
	int r;

	if (uid == 0 && gid == 0) {
		if (o->any)
			set_owner(path, NULL);
		return 0;
	}
	remember(o);
	snprintf(text, sizeof(text), "%u:%u", uid, gid);
	r = set_owner(path, text);
	/* What can't carry it, and files of the host's: said to be done, like on a system that has
	 * no owners. */
	return r == -EPERM || r == -ENOTSUP || r == -EACCES || r == -EOVERFLOW ? 0 : r;
}

int owners_give(struct owners *o, const struct users *giver, const char *path, uint32_t new_uid,
	uint32_t new_gid)
{
	uint32_t uid = giver->uid.effective, gid = giver->gid.effective;

	read_owner(path, &uid, &gid);
	if (giver->uid.effective != 0 &&
		((new_uid != KEEP && new_uid != uid) || uid != giver->uid.effective))
		return -EPERM;
	return record_owner(
		o, path, new_uid == KEEP ? uid : new_uid, new_gid == KEEP ? gid : new_gid);
}
