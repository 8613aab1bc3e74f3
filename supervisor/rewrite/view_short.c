// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of sockets have 108 bytes, on the host, too, and the session's directories may be deep there.  Where a path
 * does not fit it is said by a short one:
 *
 *      /tmp/x.sock                             what the session says
 *      HOME/.local/.../files/tmp/x.sock        where it is
 *      /tmp/podrun.XXXXXX/0/x.sock             what bind(2) and connect(2) are told: 0 is a symlink to the
 *                                              host's directory of the first entry of the view
 *
 * The kernel keeps the name that a socket was bound to, and tells it (getsockname(2)).  The number in it says which entry that
 * was, so the way back needs no file: it stays right if the session is called otherwise since, when the links are made anew.
 *
 * The directory is made when it is needed first, in the host's /tmp, where it is short whatever the environment says.
 * Nobody else can put a link there (mode 0700), nor can the session: to it the host's /tmp is behind Landlock.  What
 * Landlock looks at is the file at the end of the way, not links on it.
 */
#include "supervisor/rewrite/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/locked_dir.h"

#define TOP    "/tmp"
#define PREFIX "podrun."

void view_short_sweep(void)
{
	locked_dir_sweep(TOP, PREFIX);
}

static int make_dir(struct view *v)
{
	char path[PATH_MAX];
	int fd;

	if (v->short_dir)
		return 0;
	fd = locked_dir_make(TOP, PREFIX, path);
	if (fd < 0)
		return fd;
	v->short_dir = strdup(path);
	if (!v->short_dir) {
		rmdir(path);
		close(fd);
		return -ENOMEM;
	}
	v->short_fd = fd; /* and with it the lock */
	return 0;
}

/* The link @name leads to @host, whatever it was before. */
static int lead(int dir, const char *name, const char *host)
{
	_cleanup_free_ char *is = io_readlink(dir, name);
	static const char new[] = "new";

	if (is && strcmp(is, host) == 0)
		return 0;
	/* Somebody may be on his way through the old one. */
	if (symlinkat(host, dir, new) < 0 || renameat(dir, new, dir, name) < 0)
		return -errno;
	return 0;
}

int view_short(struct view *v, const char *host, char *ret, size_t size)
{
	const struct view_entry *in = view_mount_of_host(v, host);
	char name[16];
	int n, r;

	if (!in)
		return -ENAMETOOLONG;
	r = make_dir(v);
	if (r == 0) {
		snprintf(name, sizeof(name), "%zu", (size_t)(in - v->entries));
		r = lead(v->short_fd, name, in->host);
	}
	if (r < 0) {
		log_info("no short name for %s: %s", host, strerror(-r));
		return -ENAMETOOLONG;
	}
	n = snprintf(ret, size, "%s/%s%s", v->short_dir, name, host + strlen(in->host));
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

bool view_short_said(const struct view *v, const char *name, char ret[PATH_MAX])
{
	size_t dir = v->short_dir ? strlen(v->short_dir) : 0, i;
	char *end;

	if (!dir || strncmp(name, v->short_dir, dir) != 0 || name[dir] != '/')
		return false;
	i = strtoul(name + dir + 1, &end, 10);
	if (end == name + dir + 1 || (*end && *end != '/') || i >= v->n || v->entries[i].sort != VIEW_MOUNT)
		return false;
	return snprintf(ret, PATH_MAX, "%s%s", v->entries[i].path, end) < PATH_MAX;
}

void view_short_fini(struct view *v)
{
	if (v->short_dir)
		io_rm_rf(AT_FDCWD, v->short_dir);
	free(v->short_dir);
	v->short_dir = NULL;
	v->short_fd = close_fd(v->short_fd);
}
