// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * An overlay of a user namespace (Linux 5.11) keeps its marks in user.overlay.* and must not lie on
 * another overlay.  Each has a work directory of its own, beside the upper layer.  See
 * Documentation/filesystems/overlayfs.rst of the kernel.
 */
#include "supervisor/world/overlay.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/base.h"
#include "supervisor/world/mounts.h"
#include "supervisor/world/skeleton.h"
#include "supervisor/world/tree.h"
#include "supervisor/world/upper.h"
#include "supervisor/world/world_config.h"

/* Overlay options separate with ',' and ':'; both and the backslash are escaped by one. */
static void put_escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (strchr("\\,:", *s))
			buf_put_u8(b, '\\');
		buf_put_u8(b, (uint8_t)*s);
	}
}

/* work/%usr%local for /usr/local: flat, since one overlay's work must not lie in another's. */
static int make_work(const char *path, struct buf *ret, struct err *e)
{
	struct stat st;

	buf_put_str(ret, OVERLAY_WORK);
	for (const char *p = path + (*path == '/'); *p; p++)
		buf_put_u8(ret, *p == '/' ? '%' : (uint8_t)*p);
	if (!buf_cstr(ret))
		return err_errno(e, -ENOMEM, "overlay");
	if (mkdir(buf_cstr(ret), 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", buf_cstr(ret));
	if (lstat(buf_cstr(ret), &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_IMAGE, -ENOTDIR, "%s is no directory", buf_cstr(ret));
	return 0;
}

/* Says why an overlay was refused, if it is because of where files_dir is. */
static int overlay_refused(int error, const char *path, struct err *e)
{
	struct statfs fs;

	err_errno(e, error, "cannot lay the session's own layer over %s", *path ? path : "/");
	err_reclass(e, ERR_HOST);
	if (error == -ENODEV || error == -EPERM)
		return err_hint(e, "this kernel has no overlayfs for ordinary users (Linux 5.11)");
	if (statfs("upper", &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return err_hint(e, "the session's files lie on an overlay themselves; point "
				   "XDG_STATE_HOME to another file system (a volume, /dev/shm)");
	return err_hint(e, "point XDG_STATE_HOME to a local file system such as ext4, xfs, btrfs "
			   "or tmpfs");
}

int overlay_mount(const struct tree *t, const char *lower, const char *path, struct err *e)
{
	_cleanup_buf_ struct buf options = BUF_INIT, work = BUF_INIT;
	char target[PATH_MAX], between[PATH_MAX];
	int r;

	r = tree_join(target, MOUNTS_BASE, path, e);
	if (r == 0)
		r = upper_make(t, path, e);
	if (r > 0)
		r = err_set(e, ERR_HOST, -ENOTDIR,
			"%s is mounted on this host, and the session has no directory there", path);
	if (r == 0)
		r = make_work(path, &work, e);
	if (r < 0)
		return r;
	buf_put_str(&options, "lowerdir=");
	if (t->c->skeleton && skeleton_find(t->c->skeleton, path, between) == 0) {
		put_escaped(&options, between);
		buf_put_str(&options, ":");
	}
	put_escaped(&options, lower);
	buf_put_str(&options, ",upperdir=upper");
	put_escaped(&options, path);
	buf_put_str(&options, ",workdir=");
	put_escaped(&options, buf_cstr(&work));
	/* user.overlay.* instead of trusted.*; an index would refuse layers that lie in others. */
	buf_put_str(&options, ",userxattr,index=off");
	if (!buf_cstr(&options))
		return err_errno(e, -ENOMEM, "overlay");
	if (mount("overlay", target, "overlay", MS_NODEV | MS_NOSUID, buf_cstr(&options)) < 0)
		return overlay_refused(-errno, path, e);
	return 0;
}
