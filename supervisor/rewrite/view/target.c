// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in view/target.h. */
#include "supervisor/rewrite/view/target.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

static int open_root(const char *root)
{
	return open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The first @len bytes of @path, with the root's symlinks. */
static int open_in(int root, const char *path, size_t len)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char part[PATH_MAX];
	int fd;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len);
	part[len] = '\0';
	fd = (int)syscall(SYS_openat2, root, len ? part : "/", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* The component of @path from @from to @to: 0 if it is there now. */
static int make_one(int root, const char *path, size_t from, size_t to, bool dir)
{
	_cleanup_close_ int there = open_in(root, path, to), parent = -1;
	char name[NAME_MAX + 1];
	int fd;

	if (there >= 0 || there != -ENOENT)
		return MIN(there, 0);
	parent = open_in(root, path, from);
	if (parent < 0 || to - from > NAME_MAX)
		return parent < 0 ? parent : -ENAMETOOLONG;
	snprintf(name, sizeof(name), "%.*s", (int)(to - from), path + from);
	if (dir)
		return mkdirat(parent, name, 0755) < 0 ? -errno : 0;
	fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

void view_target_make(const char *root, const char *target, bool dir)
{
	_cleanup_close_ int fd = open_root(root);
	size_t len = strlen(target), from, to;
	int r = fd < 0 ? -errno : 0;

	for (from = strspn(target, "/"); r == 0 && from < len;
		from = to + strspn(target + to, "/")) {
		to = from + strcspn(target + from, "/");
		r = make_one(fd, target, from, to, dir || target[to + strspn(target + to, "/")]);
	}
	if (r < 0)
		log_info("%s is not listed: %s", target, strerror(-r));
}

void view_target_settle(const char *root, const char *target, char ret[PATH_MAX])
{
	_cleanup_close_ int top = open_root(root);
	_cleanup_close_ int fd = top < 0 ? -1 : open_in(top, target, strlen(target));
	size_t len = strlen(root);
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(ret, PATH_MAX, "%s", target);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return;
	path[n] = '\0';
	if (strncmp(path, root, len) == 0 && path[len] == '/')
		snprintf(ret, PATH_MAX, "%s", path + len);
}
