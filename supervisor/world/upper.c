// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The top directory of an upper layer gives the merged directory its owner and mode.  It belongs to
 * the user, so where the user could not write on the host it is made without write permission.
 *
 * A file can be copied up only if its owner has a number inside, and so must all directories above
 * it.  /var/tmp, and home or working directories which lie deep in other users' directories, would
 * be EOVERFLOW for the first file made in them; those (world_config.places) are made in the upper
 * layer beforehand, where they belong to the user.
 */
#include "supervisor/world/upper.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "supervisor/portable.h"
#include "supervisor/world/tree.h"
#include "supervisor/world/world_config.h"

#define MAX_COPY (64 << 10) /* of a file that may be the host's */

int upper_make(const struct tree *t, const char *path, struct err *e)
{
	char upper[PATH_MAX], host[PATH_MAX], part[PATH_MAX];
	const char *p = path;
	struct stat st;
	int r;

	/* From the top down, so that none is reached through a link. */
	do {
		p = strchrnul(p + (*p == '/'), '/');
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		r = tree_join(upper, "upper", part, e);
		if (r == 0)
			r = tree_join(host, t->source, *part ? part : "/", e);
		if (r < 0)
			return r;
		if (lstat(upper, &st) == 0) {
			if (!S_ISDIR(st.st_mode))
				return 1;
			continue;
		}
		if (stat(host, &st) < 0)
			st.st_mode = 0755;
		if (mkdir(upper, tree_shown_mode(t, host, st.st_mode)) < 0 && errno != EEXIST)
			return err_errno(e, -errno, "cannot make %s", upper);
	} while (*p);
	return 0;
}

/* Directories of others on the way to @path, and @path if it is another's, become the user's. */
static int make_place(const struct tree *t, const char *path, struct err *e)
{
	char host[PATH_MAX];
	struct stat st;
	int r = tree_join(host, t->source, path, e);

	if (r < 0)
		return r;
	if (path[0] != '/' || tree_top_is_private(path) || stat(host, &st) < 0 ||
		!S_ISDIR(st.st_mode))
		return 0;
	if (st.st_uid == getuid()) {
		/* It can be copied up by itself; what is above it, may be. */
		snprintf(host, sizeof(host), "%.*s", (int)(strrchr(path, '/') - path), path);
		return *host ? make_place(t, host, e) : 0;
	}
	r = upper_make(t, path, e);
	return MIN(r, 0);
}

/*
 * Where a -v is to be mounted at a path that the host does not have, the mount point is made in the
 * session; where that would need a directory of somebody else's, the directory becomes the user's.
 */
static int make_mount_point(const struct tree *t, const char *target, struct err *e)
{
	char path[PATH_MAX], host[PATH_MAX];
	char *slash;

	if (target[0] != '/' || tree_top_is_private(target) || strlen(target) >= sizeof(path))
		return 0;
	snprintf(host, sizeof(host), "%s%.*s", t->source, PATH_MAX / 2, target);
	if (access(host, F_OK) == 0)
		return 0;
	strcpy(path, target);
	while ((slash = strrchr(path, '/')) && slash != path) {
		*slash = '\0';
		if (tree_join(host, t->source, path, e) < 0)
			return e->error;
		if (access(host, F_OK) == 0)
			return access(host, W_OK) == 0 ? 0 : MIN(upper_make(t, path, e), 0);
	}
	return 0;
}

/* A directory of the upper layer that nothing shines through. */
static int hide(const struct tree *t, const char *path, struct err *e)
{
	char upper[PATH_MAX], host[PATH_MAX];
	int r = tree_join(upper, "upper", path, e);

	if (r == 0)
		r = tree_join(host, t->source, path, e);
	if (r < 0 || path[0] != '/' || tree_top_is_private(path) || access(host, F_OK) < 0)
		return r;
	r = upper_make(t, path, e);
	if (r > 0)
		return 0; /* what the session has there hides it */
	if (r == 0 && setxattr(upper, "user.overlay.opaque", "y", 1, 0) < 0)
		r = err_errno(e, -errno, "cannot hide %s", path);
	return r;
}

int upper_prepare(const struct tree *t, struct err *e)
{
	int r = make_place(t, "/var/tmp", e);

	for (size_t i = 0; r == 0 && i < t->c->n_places; i++)
		r = make_place(t, t->c->places[i], e);
	for (size_t i = 0; r == 0 && i < t->c->n_binds; i++)
		r = make_mount_point(t, t->c->binds[i].target, e);
	for (size_t i = 0; r == 0 && i < t->c->n_hidden; i++)
		r = hide(t, t->c->hidden[i], e);
	return r;
}

/* What the host denies itself stays denied. */
int upper_hold_back(const struct tree *t, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char upper[PATH_MAX], host[PATH_MAX];
	int r = upper_make(t, PORTABLE_GCRYPT_DIR, e);

	if (r == 0)
		r = tree_join(upper, "upper", PORTABLE_GCRYPT, e);
	if (r == 0)
		r = tree_join(host, t->source, PORTABLE_GCRYPT, e);
	if (r < 0)
		return r;
	if (access(host, F_OK) == 0 && io_read_file(AT_FDCWD, host, MAX_COPY, &text) < 0)
		buf_clear(&text);
	buf_printf(&text, "%s", portable_gcrypt);
	r = buf_error(&text);
	if (r == 0)
		r = io_write_file(AT_FDCWD, upper, text.data, text.len, 0644);
	return r < 0 ? err_errno(e, r, "cannot write %s", upper) : 0;
}

/* The first @max bytes of a file or the text of a symlink. */
static ssize_t read_some(int dir, const char *name, mode_t type, char *ret, size_t max)
{
	_cleanup_close_ int fd = -1;

	if (S_ISLNK(type))
		return readlinkat(dir, name, ret, max);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -1 : io_read_full(fd, ret, max);
}

/*
 * A root inside gets copies of what lies in / beside the directories: as long as they are the
 * host's, nothing has been changed by them.
 */
static bool is_the_hosts(int dir, const char *name, const char *root, const char *below)
{
	_cleanup_free_ char *path = NULL;
	char ours[MAX_COPY], hosts[MAX_COPY];
	struct stat st, host;
	ssize_t n;

	if (asprintf(&path, "%s%s", root, below) < 0)
		return false;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || lstat(path, &host) < 0 ||
		(st.st_mode & S_IFMT) != (host.st_mode & S_IFMT) || st.st_size != host.st_size ||
		st.st_size >= MAX_COPY || (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return false;
	n = read_some(dir, name, st.st_mode, ours, sizeof(ours));
	return n >= 0 && n == read_some(AT_FDCWD, path, st.st_mode, hosts, sizeof(hosts)) &&
	       memcmp(ours, hosts, (size_t)n) == 0;
}

/* A file of the layer whose name is @path so far; NULL if there is none in it. */
static char *find_file(int dir, const char *root, const char *path)
{
	DIR *d = fdopendir(dir);
	char *found = NULL;
	struct dirent *entry;

	while (d && !found && (entry = readdir(d))) {
		_cleanup_free_ char *below = NULL;
		int fd;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			asprintf(&below, "%s/%s", path, entry->d_name) < 0)
			continue;
		fd = openat(
			dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			found = find_file(fd, root, below);
		else if (strcmp(below, PORTABLE_GCRYPT) != 0 &&
			 !is_the_hosts(dirfd(d), entry->d_name, root, below))
			found = take_ptr(below);
	}
	if (d)
		closedir(d);
	else
		close(dir);
	return found;
}

int upper_changed(int dir_fd, const char *files, const char *root, char **ret)
{
	char upper[NAME_MAX + 8];
	int fd;

	snprintf(upper, sizeof(upper), "%s/upper", files);
	fd = openat(dir_fd, upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*ret = fd < 0 ? NULL : find_file(fd, root, "");
	return *ret != NULL;
}
