// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Pid 1 has a copy of the host's mounts, all of them private to it.  The new root is put together
 * at MOUNTS_BASE (supervisor/world/layers.c), gets its private /dev, /proc, /sys, /tmp and /run,
 * and becomes / by pivot_root(2); the old root is detached.
 *
 * What is taken from host paths that MOUNTS_BASE covers (files_dir, --root and -v may lie in /tmp)
 * is opened before: files_dir becomes the working directory, --root and the skeleton layer are
 * descriptors, each -v a detached mount (open_tree).  The latter are attached after the pivot, so
 * that symlinks in the session's tree resolve within it and can't lead a mount out of it.
 */
#include "supervisor/world/view.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/world/devices.h"
#include "supervisor/world/layers.h"
#include "supervisor/world/mounts.h"
#include "supervisor/world/resolver.h"
#include "supervisor/world/skeleton.h"
#include "supervisor/world/world_config.h"

static int make_dev(struct err *e)
{
	int r = mounts_mount("tmpfs", MOUNTS_BASE "/dev", "tmpfs", MS_NOSUID, "mode=0755", e);

	return r < 0 ? r : devices_make(MOUNTS_BASE "/dev", e);
}

static int make_proc(struct err *e)
{
	int r = mounts_mount("proc", MOUNTS_BASE "/proc", "proc",
		MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, e);

	if (r < 0)
		err_hint(e, "the kernel gives a fresh /proc only where the host's own is whole: "
			    "containers that cover parts of it are refused");
	return r;
}

/* One of its own with a network namespace of its own; else the host's, read-only; else none. */
static void make_sys(void)
{
	struct err ignored = {0};

	if (mounts_mount("sysfs", MOUNTS_BASE "/sys", "sysfs",
		    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, &ignored) == 0)
		return;
	if (mounts_bind("/sys", MOUNTS_BASE "/sys", true, &ignored) < 0)
		log_info("/sys is empty: %s", ignored.msg);
}

/* /tmp and /run are directories of the session's own files. */
static int make_own(const char *name, mode_t mode, struct err *e)
{
	char target[sizeof(MOUNTS_BASE) + 32];

	if (mkdir(name, mode) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make the session's /%s", name);
	snprintf(target, sizeof(target), "%s/%s", MOUNTS_BASE, name);
	if (mount(name, target, NULL, MS_BIND, NULL) < 0)
		return err_errno(e, -errno, "cannot bind the session's /%s", name);
	return 0;
}

/*
 * What programs expect to find in a /run that nobody has booted into.  In the session's root, as
 * what follows: it may have made links of these, which are to lead to where they do in there.
 */
static void fill_run(uid_t uid)
{
	char user[32];
	const struct {
		const char *path;
		mode_t mode;
	} dirs[] = {{"/run/lock", 01777}, {"/run/user", 0755}, {user, 0700}};

	snprintf(user, sizeof(user), "/run/user/%u", uid);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i].path, dirs[i].mode) < 0 && errno != EEXIST)
			log_info("there is no %s: %s", dirs[i].path, strerror(errno));
}

/* With the host's network goes the host's resolver, whose file often lies in the host's /run. */
struct resolver {
	char *path; /* NULL: there is none to be copied */
	struct buf text;
};

static void resolver_read(struct resolver *r)
{
	r->path = realpath("/etc/resolv.conf", NULL);
	if (r->path && (strncmp(r->path, "/run/", 5) != 0 ||
			       io_read_file(AT_FDCWD, r->path, 64 * 1024, &r->text) < 0))
		free(take_ptr(r->path));
}

static void resolver_put(struct resolver *r)
{
	char *slash = strrchr(r->path, '/');

	*slash = '\0';
	io_mkdir_p(AT_FDCWD, r->path, 0755);
	*slash = '/';
	if (io_write_file(AT_FDCWD, r->path, r->text.data, r->text.len, 0644) < 0)
		log_info("the host's %s is not there", r->path);
}

static int make_private(const struct world_config *c, struct err *e)
{
	int r = make_dev(e);

	if (r == 0)
		r = make_proc(e);
	if (r == 0)
		r = make_own("tmp", 01777, e);
	if (r == 0)
		r = make_own("run", 0755, e);
	if (r == 0)
		make_sys();
	return r;
}

/* In the session's root: a mount point for @fd, of its type. */
static int make_target(int fd, const char *target, struct err *e)
{
	_cleanup_free_ char *parent = strdup(target);
	struct stat st;
	char *slash;
	int r = 0;

	if (access(target, F_OK) == 0)
		return 0;
	if (!parent || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s", target);
	slash = strrchr(parent, '/');
	if (!S_ISDIR(st.st_mode) && slash && slash != parent)
		*slash = '\0';
	if (S_ISDIR(st.st_mode) || (slash && slash != parent))
		r = io_mkdir_p(AT_FDCWD, parent, 0755);
	if (r == 0 && !S_ISDIR(st.st_mode))
		r = io_write_file(AT_FDCWD, target, "", 0, 0644);
	if (r < 0)
		err_errno(e, r, "cannot make %s in the session", target);
	return r;
}

static int attach(int fd, const struct world_bind *b, struct err *e)
{
	int r = make_target(fd, b->target, e);

	/* a symlink there leads on as one above it does */
	if (r == 0 && move_mount(fd, "", AT_FDCWD, b->target,
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0)
		r = err_errno(e, -errno, "cannot bind %s to %s", b->source, b->target);
	return r < 0 ? err_reclass(e, ERR_HOST) : 0;
}

static int pivot(struct err *e)
{
	/* put_old on top of the new root, then under it: no directory needed (pivot_root(2)). */
	if (chdir(MOUNTS_BASE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_errno(e, -errno, "cannot enter the session's root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_errno(e, -errno, "cannot leave the host's root");
	return 0;
}

static int open_trees(const struct world_config *c, int *trees, struct err *e)
{
	for (size_t i = 0; i < c->n_binds; i++) {
		trees[i] = mounts_clone(c->binds[i].source, c->binds[i].read_only, e);
		if (trees[i] < 0)
			return trees[i];
	}
	return 0;
}

/* With the -v trees in hand: everything up to the pivot. */
static int put_together(const struct world_config *config, struct err *e)
{
	struct skeleton skeleton = {.lock = {-1, -1}};
	struct world_config held = *config, *c = &held;
	_cleanup_close_ int root = -1;
	char source[32] = "";
	int r;

	if (c->root) {
		root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0) {
			err_errno(e, -errno, "cannot open root directory %s", c->root);
			return err_reclass(e, ERR_HOST);
		}
		snprintf(source, sizeof(source), "/proc/self/fd/%d", root);
	}
	if (chdir(c->files_dir) < 0)
		return err_errno(e, -errno, "cannot enter %s", c->files_dir);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(e, -errno, "cannot make the mounts private");
	if (c->skeleton) {
		if (skeleton_hold(c->skeleton, &skeleton, e) < 0)
			return e->error;
		c->skeleton = &skeleton;
	}
	r = layers_mount(c, source, e);
	if (r == 0)
		r = make_private(c, e);
	skeleton_fini(&skeleton);
	return r == 0 ? pivot(e) : r;
}

int view_setup(const struct world_config *c, struct err *e)
{
	_cleanup_free_ int *trees = calloc(c->n_binds + 1, sizeof(int));
	struct resolver resolver = {.text = BUF_INIT};
	mode_t mask = umask(0);
	int r;

	if (!trees)
		return err_errno(e, -ENOMEM, "binds");
	memset(trees, 0xff, c->n_binds * sizeof(int));
	r = open_trees(c, trees, e);
	if (c->net == WORLD_NET_HOST || c->net == WORLD_NET_PASSTHROUGH)
		resolver_read(&resolver);
	if (r == 0)
		r = put_together(c, e);
	if (r == 0)
		fill_run(getuid());
	if (r == 0 && resolver.path)
		resolver_put(&resolver);
	free(resolver.path);
	buf_fini(&resolver.text);
	if (r == 0 && c->net == WORLD_NET_VNAT)
		resolver_make(c);
	for (size_t i = 0; i < c->n_binds; i++) {
		if (r == 0)
			r = attach(trees[i], &c->binds[i], e);
		close_fd(trees[i]);
	}
	umask(mask);
	return r;
}
