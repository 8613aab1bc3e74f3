// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * What is wanted is one overlay: the host's / below, the session's own layer on top.  The kernel
 * refuses it, because in a mount namespace made by an ordinary user all mounts are locked to their
 * parents, and a lower layer that would show what lies beneath one is EINVAL.  So the overlay is
 * put together directory by directory: a directory with no mount below it becomes one overlay;
 * one with mounts below is recreated on a small tmpfs (the frame) and its children are looked
 * at in turn.
 *
 *      /            frame           bin -> usr/bin     symlink, recreated
 *      |- usr       bind            the host's, read-only: nothing in it is the user's to change
 *      |- var       overlay         lower /var, upper files/upper/var, work files/work/%var
 *      |- mnt       frame           because of a mount at /mnt/data/disk
 *      |  `- data   frame
 *      |     `- disk   overlay      of the other file system
 *      |- srv       frame           empty on the host: not worth an overlay
 *      `- root      frame           not accessible to the user: stays closed
 *
 * Where the frame itself must be writable (root inside; a home directory with a mount in it) it
 * is not a tmpfs but files/upper itself, and the overlays are mounted on top of their own upper
 * directories.  Either way files/upper mirrors the view, however many overlays it took: an image
 * made on one host is laid over another host's mounts without change.
 *
 *      tree.c      what the host has, and where it is mounted
 *      upper.c     directories in the session's layer before anybody writes
 *      recreate.c  the frame
 *      overlay.c   one overlay
 */
#include "supervisor/world/layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/world/mounts.h"
#include "supervisor/world/overlay.h"
#include "supervisor/world/recreate.h"
#include "supervisor/world/tree.h"
#include "supervisor/world/upper.h"
#include "supervisor/world/world_config.h"

/*
 * Mount points for what is private.  A --root may have anything there, symlinks to elsewhere
 * included.
 */
static int make_private(struct err *e)
{
	char path[sizeof(MOUNTS_BASE) + 8];
	struct stat st;

	for (size_t i = 0; i < TREE_N_PRIVATE; i++) {
		snprintf(path, sizeof(path), "%s/%s", MOUNTS_BASE, tree_private[i]);
		if (lstat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				continue;
			unlink(path);
		}
		if (mkdir(path, 0755) < 0)
			return err_errno(e, -errno, "cannot make /%s", tree_private[i]);
	}
	return 0;
}

/*
 * A directory that can't be a lower layer (some network and FUSE file systems) is shown read-only
 * as it is.  If the upper layer is what is wrong, no overlay works: that is an error.
 */
static int mount_plan(const struct tree *t, const struct plan *p, bool first, struct err *e)
{
	struct err ignored = {0};
	char host[PATH_MAX], target[PATH_MAX];
	int r;

	r = tree_join(host, t->source, p->path, e);
	if (r == 0)
		r = tree_join(target, MOUNTS_BASE, p->path, e);
	if (r == 0 && p->own)
		r = tree_join(host, "upper", p->path, e);
	if (r < 0)
		return r;
	if (p->own)
		return mounts_bind(host, target, false, e);
	if (!p->bind) {
		r = overlay_mount(t, host, p->path, first ? e : &ignored);
		if (r == 0 || first)
			return r;
		log_warn("%s is shown read-only: %s", p->path, ignored.msg);
	}
	return mounts_bind(host, target, true, e);
}

/* --root DIR, or a host / without mounts: one overlay does it. */
static int whole(const struct tree *t, struct err *e)
{
	int r = overlay_mount(t, *t->source ? t->source : "/", "", e);

	return r < 0 ? r : make_private(e);
}

/* Would the user expect to write to a directory that has to be recreated? */
static bool frame_writable(const struct tree *t)
{
	char path[PATH_MAX];
	size_t real = strlen(t->real);

	if (tree_may_write(t, *t->source ? t->source : "/"))
		return true;
	for (size_t i = 0; i < t->n_mounts; i++) {
		const char *m = t->mounts[i].path, *end;

		if (strncmp(m, t->real, real) || tree_top_is_private(m + real))
			continue;
		for (end = strchr(m + real + 1, '/'); end; end = strchr(end + 1, '/')) {
			snprintf(path, sizeof(path), "%s%.*s", t->source, (int)(end - m - real),
				m + real);
			if (tree_may_write(t, path))
				return true;
		}
	}
	return false;
}

/*
 * Has the layer been such a frame already?  One of a host where a single overlay did it, or where
 * the user could not write to the frame, has no links and files of the host's; nor has one that is
 * there before its image (supervisor/arrival.h).
 */
static bool was_frame(const struct tree *t)
{
	char path[16];
	struct stat st;

	if (t->c->early || access(OVERLAY_WORK, F_OK) == 0)
		return false;
	for (size_t i = 0; i < TREE_N_PRIVATE; i++) {
		snprintf(path, sizeof(path), "upper/%s", tree_private[i]);
		if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			return false;
	}
	return true;
}

static int frame(const struct tree *t, struct err *e)
{
	struct recreate x = {.t = t, .writable = frame_writable(t), .first = !was_frame(t)};
	size_t overlays = 0;
	int r;

	if (x.writable && x.first)
		io_rm_rf(AT_FDCWD, OVERLAY_WORK);
	if (x.writable)
		r = mounts_mount("upper", MOUNTS_BASE, NULL, MS_BIND, NULL, e);
	else
		r = mounts_mount(
			"podrun", MOUNTS_BASE, "tmpfs", MS_NODEV | MS_NOSUID, "mode=0755", e);
	if (r == 0)
		r = recreate_tree(&x, e);
	if (r == 0)
		r = make_private(e);
	if (r == 0 && !x.writable && chmod(MOUNTS_BASE, 0555) < 0)
		r = err_errno(e, -errno, "chmod /");
	for (size_t i = 0; r == 0 && i < x.n_plans; i++) {
		r = mount_plan(t, &x.plans[i], !overlays, e);
		overlays += !x.plans[i].bind && !x.plans[i].own;
	}
	recreate_fini(&x);
	return r;
}

int layers_mount(const struct world_config *c, const char *source, struct err *e)
{
	struct tree t;
	bool made;
	int r;

	/* Of a session that has had no layers so far it is empty, if it is there. */
	rmdir("upper");
	made = mkdir("upper", 0755) == 0;
	if ((!made && errno != EEXIST) || (mkdir("work", 0700) < 0 && errno != EEXIST))
		return err_errno(e, -errno, "cannot make the session's layer");
	r = tree_init(&t, c, source, e);
	if (r < 0)
		return r;
	r = upper_prepare(&t, e);
	if (r == 0 && made && !c->early && c->portable)
		r = upper_hold_back(&t, e);
	if (r == 0)
		r = c->root && !tree_mounts_below(&t, "") ? whole(&t, e) : frame(&t, e);
	tree_fini(&t);
	return r;
}
