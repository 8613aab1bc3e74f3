// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Paths are resolved below the session's root by openat2(2), never beyond it.  What that refuses
 * (magic links of /proc) is an error: such calls are left to the kernel.
 */
#include "supervisor/names/lookup.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/filter/notify_call.h"

static int open_below(int dir, const char *path, bool follow, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW),
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int lookup_link(const struct notify_call *c, const char *link)
{
	struct err ignored = {0};

	return proc_open_file(notify_proc(c->notify), c->tid, link, O_PATH, &ignored);
}

/* A relative path that left its directory: once more, from the root, by name. */
static int open_by_name(
	const struct notify_call *c, const char *link, const char *path, bool follow)
{
	char proc[64], whole[2 * PATH_MAX];
	ssize_t n;

	snprintf(proc, sizeof(proc), "%d/%s", c->tid, link);
	n = readlinkat(notify_proc(c->notify), proc, whole, PATH_MAX);
	if (n <= 0 || whole[0] != '/')
		return -ENOENT;
	snprintf(whole + n, sizeof(whole) - (size_t)n, "/%s", path);
	return open_below(notify_root(c->notify), whole, follow, RESOLVE_IN_ROOT);
}

int lookup_path(const struct notify_call *c, int dirfd, uint64_t addr, bool follow, bool empty)
{
	char path[PATH_MAX], link[32];
	_cleanup_close_ int base = -1;
	int r = notify_read_path(c, addr, path, sizeof(path));

	if (r < 0)
		return r;
	if (path[0] == '/') {
		base = lookup_link(c, "root");
		return base < 0 ? base : open_below(base, path, follow, RESOLVE_IN_ROOT);
	}
	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "cwd");
	else
		snprintf(link, sizeof(link), "fd/%d", dirfd);
	base = lookup_link(c, link);
	if (base < 0)
		return base;
	if (!path[0])
		return empty ? take_fd(&base) : -ENOENT;
	r = open_below(base, path, follow, RESOLVE_BENEATH);
	return r == -EXDEV ? open_by_name(c, link, path, follow) : r;
}

int lookup_name(const struct notify_call *c, int fd, char ret_name[NAME_MAX + 1])
{
	char proc[32], path[PATH_MAX], *slash;
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, path, sizeof(path) - 1);
	if (n <= 0 || path[0] != '/')
		return -ENOENT;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (strlen(slash + 1) > NAME_MAX || !slash[1])
		return -ENOENT;
	strcpy(ret_name, slash + 1);
	slash[slash == path] = '\0';
	return open_below(notify_root(c->notify), path, true, RESOLVE_IN_ROOT);
}
