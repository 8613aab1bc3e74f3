// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Entry by entry: symlinks and small files are copied, a directory with mounts below is recreated
 * in turn, and one without becomes a plan.  What the user can't look into stays closed, automounts
 * are not triggered, devices and sockets (which would lead to the host) are left out.
 *
 * An overlay makes stat(2) 1.4 and open(2) 2 times as expensive, so what holds programs and is
 * not writable for the user anyway is bound as it is, unless root inside or a layer from elsewhere
 * wants to change it.
 */
#include "supervisor/world/recreate.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/world/mounts.h"
#include "supervisor/world/tree.h"
#include "supervisor/world/world_config.h"

#define MAX_COPY  (256 * 1024) /* larger files of a recreated directory are bound instead */
#define MAX_PLANS 4096

static int plan(struct recreate *x, const char *path, bool bind, struct err *e)
{
	struct plan *more;

	if (x->n_plans == MAX_PLANS)
		return err_set(e, ERR_HOST, -E2BIG,
			"the host's mounts lie too deep: more than %d mounts would be needed",
			MAX_PLANS);
	more = reallocarray(x->plans, x->n_plans + 1, sizeof(*more));
	if (!more)
		return err_errno(e, -ENOMEM, "mount plan");
	x->plans = more;
	more[x->n_plans] = (struct plan){.path = strdup(path), .bind = bind};
	if (!more[x->n_plans].path)
		return err_errno(e, -ENOMEM, "mount plan");
	x->n_plans++;
	return 0;
}

static int is_empty(const char *host_path)
{
	_cleanup_closedir_ DIR *dir = opendir(host_path);
	struct dirent *d;

	if (!dir)
		return 0;
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			return 0;
	return 1;
}

static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int r = io_read_file(AT_FDCWD, from, MAX_COPY, &data);

	/* Gone or closed meanwhile: then the session doesn't see it. */
	if (r < 0)
		return 0;
	r = io_write_file(AT_FDCWD, to, data.data, data.len, mode);
	return r < 0 ? err_errno(e, r, "cannot copy %s", from) : 0;
}

/* True if @below is a path strictly below @path. */
static bool is_below(const char *below, const char *path)
{
	size_t n = strlen(path);

	return !strncmp(below, path, n) && below[n] == '/';
}

static bool wanted_below(const struct tree *t, const char *path)
{
	for (size_t i = 0; i < t->c->n_places; i++)
		if (is_below(t->c->places[i], path))
			return true;
	for (size_t i = 0; i < t->c->n_hidden; i++)
		if (is_below(t->c->hidden[i], path))
			return true;
	for (size_t i = 0; i < t->c->n_binds; i++)
		if (is_below(t->c->binds[i].target, path))
			return true;
	return false;
}

/* Has @host a directory that the user may write to, one level down (and in usr/local, where it is
 * likely, one more)? */
static bool has_writable(const char *host)
{
	_cleanup_closedir_ DIR *dir = opendir(host);
	char local[PATH_MAX + 8];
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (faccessat(dirfd(dir), d->d_name, W_OK, 0) == 0)
			return true;
		if (!strcmp(d->d_name, "local") &&
			snprintf(local, sizeof(local), "%s/local", host) < sizeof(local) &&
			has_writable(local))
			return true;
	}
	return !dir;
}

/*
 * Directories of programs and their settings, as hier(7) has them.  Not those where daemons may
 * have sockets (/opt, /nix): through a bind they could be connected to, through an overlay not.
 */
static bool shown_as_is(const struct tree *t, const char *path, const char *host)
{
	static const char *const names[] = {
		"/usr", "/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
	char upper[PATH_MAX];
	bool listed = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		listed |= !strcmp(path, names[i]);
	if (!listed || snprintf(upper, sizeof(upper), "upper%s", path) >= sizeof(upper))
		return false;
	return !tree_may_write(t, host) && !wanted_below(t, path) && !has_writable(host) &&
	       access(upper, F_OK) < 0;
}

static int children(struct recreate *x, const char *path, struct err *e);

static int directory(struct recreate *x, const char *path, const char *host, const char *target,
	const struct stat *st, struct err *e)
{
	mode_t mode = tree_shown_mode(x->t, host, st->st_mode);
	struct stat own;
	bool closed = access(host, X_OK) < 0;

	/* Root inside may look into its own, empty /root. */
	if (mkdir(target, closed && !x->t->c->as_root ? 0 : mode | 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", target);
	/* Where the frame is the upper layer the session may have made a link of it, to anywhere. */
	if (x->writable && (lstat(target, &own) < 0 || !S_ISDIR(own.st_mode)))
		return 0;
	if (closed || tree_is_autofs(x->t, path))
		return 0;
	if (shown_as_is(x->t, path, host))
		return plan(x, path, true, e);
	if (tree_mounts_below(x->t, path)) {
		int r = children(x, path, e);

		if (r == 0 && chmod(target, mode) < 0)
			r = err_errno(e, -errno, "chmod %s", target);
		return r;
	}
	if (!tree_may_write(x->t, host) && is_empty(host))
		return chmod(target, mode) < 0 ? err_errno(e, -errno, "chmod %s", target) : 0;
	return plan(x, path, false, e);
}

/* One entry of a directory that is recreated. */
static int entry(struct recreate *x, const char *path, struct err *e)
{
	char host[PATH_MAX], target[PATH_MAX];
	_cleanup_free_ char *link = NULL;
	struct stat st, own;
	int r;

	r = tree_join(host, x->t->source, path, e);
	if (r == 0)
		r = tree_join(target, MOUNTS_BASE, path, e);
	if (r < 0)
		return r;
	if (tree_is_autofs(x->t, path)) {
		r = mkdir(target, 0555) < 0 ? -errno : 0;
		return r < 0 && r != -EEXIST ? err_errno(e, r, "cannot make %s", target) : 0;
	}
	if (lstat(host, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return directory(x, path, host, target, &st, e);
	/* Not again at a resume: the session may have removed or changed it. */
	if (x->writable && (!x->first || lstat(target, &own) == 0))
		return 0;
	switch (st.st_mode & S_IFMT) {
	case S_IFLNK:
		link = io_readlink(AT_FDCWD, host);
		if (link && symlink(link, target) < 0)
			return err_errno(e, -errno, "cannot make symlink %s", target);
		return 0;
	case S_IFREG:
		if (access(host, R_OK) < 0)
			return 0;
		if (st.st_size <= MAX_COPY)
			return copy_file(
				host, target, tree_shown_mode(x->t, host, st.st_mode) & 0777, e);
		r = io_write_file(AT_FDCWD, target, "", 0, 0444);
		return r < 0 ? err_errno(e, r, "%s", target) : plan(x, path, true, e);
	default:
		return 0; /* a device or a socket leads to the host */
	}
}

/* A directory that only the upper layer has: an image of another host brought it. */
static int own_entry(struct recreate *x, const char *path, const char *upper, struct err *e)
{
	char host[PATH_MAX], target[PATH_MAX];
	struct stat st;
	int r;

	r = tree_join(host, x->t->source, path, e);
	if (r == 0)
		r = tree_join(target, MOUNTS_BASE, path, e);
	if (r < 0)
		return r;
	if (lstat(host, &st) == 0 || errno != ENOENT || lstat(upper, &st) < 0 ||
		!S_ISDIR(st.st_mode))
		return 0;
	if (mkdir(target, 0755) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", target);
	r = plan(x, path, false, e);
	if (r == 0)
		x->plans[x->n_plans - 1].own = true;
	return r;
}

/* NULL also where there is a link on the way to it: what is behind that is not the session's. */
static DIR *open_own(const char *upper)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, upper, &how, sizeof(how));

	return fd < 0 ? NULL : fdopendir(fd);
}

static int own_children(struct recreate *x, const char *path, struct err *e)
{
	char upper[PATH_MAX], child[PATH_MAX];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *d;
	int r = tree_join(upper, "upper", path, e);

	if (r < 0)
		return r;
	dir = open_own(upper);
	while (r == 0 && dir && (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			(!*path && tree_is_private(d->d_name)) ||
			snprintf(child, sizeof(child), "%s/%s", path, d->d_name) >= PATH_MAX ||
			snprintf(upper, sizeof(upper), "upper%s", child) >= PATH_MAX)
			continue;
		r = own_entry(x, child, upper, e);
	}
	return r;
}

/* @path is "" for the top. */
static int children(struct recreate *x, const char *path, struct err *e)
{
	char host[PATH_MAX], child[PATH_MAX];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *d;
	int r = tree_join(host, x->t->source, *path ? path : "/", e);

	if (r < 0)
		return r;
	dir = opendir(host);
	if (!dir)
		return 0; /* traversable but not listable: what is below stays unseen */
	while ((d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			(!*path && tree_is_private(d->d_name)))
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", path, d->d_name) >= PATH_MAX)
			continue;
		r = entry(x, child, e);
		if (r < 0)
			return r;
	}
	/* Where the frame is the upper layer itself, it is there already. */
	return x->writable ? 0 : own_children(x, path, e);
}

int recreate_tree(struct recreate *x, struct err *e)
{
	return children(x, "", e);
}

void recreate_fini(struct recreate *x)
{
	for (size_t i = 0; i < x->n_plans; i++)
		free(x->plans[i].path);
	free(x->plans);
}
