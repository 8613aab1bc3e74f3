// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of sockets have 108 bytes, on the host, too, and the session's directories may be deep
 * there.  Where a path does not fit it is said by a short one:
 *
 *      /tmp/x.sock                             what the session says
 *      HOME/.local/.../files/tmp/x.sock        where it is
 *      /tmp/podrun.XXXXXX/0/x.sock             what bind(2) and connect(2) are told: 0 is a
 *                                              symlink to the host's directory of the first entry
 *                                              of the view
 *      /tmp/podrun.XXXXXX/d0/x.sock            where even that is too long: d0 is one to
 *                                              0/deep/directory
 *
 * The kernel keeps the name that a socket was bound to, and tells it (getsockname(2)).  The number
 * in it says which entry that was, so the way back needs no file: it stays right if the session is
 * called otherwise since, when the links are made anew.
 *
 * The directory is made when it is needed first, in the host's /tmp, where it is short
 * whatever the environment says.  Nobody else can put a link there (mode 0700), nor can the
 * session: to it the host's /tmp is behind Landlock.  What Landlock looks at is the file at
 * the end of the way, not links on it.
 */
#include "supervisor/rewrite/view/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/locked_dir.h"

#define TOP    "/tmp"
#define PREFIX "podrun."
#define DEEP	 "d"
#define MAX_DEEP 4096

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

/* @text in the table of directories; the number that it would get, if it is not there. */
static size_t find_deep(const struct view *v, const char *text)
{
	size_t i = 0;

	while (i < v->n_short && strcmp(v->short_deep[i], text) != 0)
		i++;
	return i;
}

static int add_deep(struct view *v, const char *text)
{
	size_t i = v->n_short;
	char name[32];
	char **grown;

	if (i == MAX_DEEP)
		return -ENOSPC;
	grown = realloc(v->short_deep, (i + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->short_deep = grown;
	grown[i] = strdup(text);
	if (!grown[i])
		return -ENOMEM;
	snprintf(name, sizeof(name), DEEP "%zu", i);
	if (symlinkat(text, v->short_fd, name) < 0) {
		int error = errno;

		free(grown[i]);
		return -error;
	}
	v->n_short++;
	return 0;
}

/* By the directory that it is in; @rest is behind link @mount. */
static int by_directory(struct view *v, size_t mount, const char *rest, char *ret, size_t size)
{
	const char *last = strrchr(rest, '/');
	char text[PATH_MAX + 16];
	size_t i;

	if (!last)
		return -ENAMETOOLONG;
	snprintf(text, sizeof(text), "%zu%.*s", mount, (int)(last - rest), rest);
	i = find_deep(v, text);
	if (snprintf(ret, size, "%s/" DEEP "%zu%s", v->short_dir, i, last) >= (int)size)
		return -ENAMETOOLONG;
	return i < v->n_short ? 0 : add_deep(v, text);
}

static int make_short(
	struct view *v, const struct view_entry *in, const char *host, char *ret, size_t size)
{
	size_t mount = (size_t)(in - v->entries);
	const char *rest = host + strlen(in->host);
	char name[32];
	int r = make_dir(v);

	snprintf(name, sizeof(name), "%zu", mount);
	if (r == 0)
		r = lead(v->short_fd, name, in->host);
	if (r < 0)
		return r;
	if (snprintf(ret, size, "%s/%s%s", v->short_dir, name, rest) < (int)size)
		return 0;
	return by_directory(v, mount, rest, ret, size);
}

int view_short(struct view *v, const char *host, char *ret, size_t size)
{
	const struct view_entry *in = view_mount_of_host(v, host);
	int r = in ? make_short(v, in, host, ret, size) : -ENAMETOOLONG;

	if (r < 0 && r != -ENAMETOOLONG)
		log_info("no short name for %s: %s", host, strerror(-r));
	return r < 0 ? -ENAMETOOLONG : 0;
}

/* A number of less than @n, and what is behind it. */
static bool take_number(const char *text, size_t n, size_t *ret, const char **ret_rest)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	*ret = strtoul(text, &end, 10);
	*ret_rest = end;
	return *ret < n && (!*end || *end == '/');
}

bool view_short_said(const struct view *v, const char *name, char ret[PATH_MAX])
{
	size_t dir = v->short_dir ? strlen(v->short_dir) : 0, i;
	const char *rest = "", *mount;

	if (!dir || strncmp(name, v->short_dir, dir) != 0 || name[dir] != '/')
		return false;
	mount = name + dir + 1;
	if (mount[0] == DEEP[0]) {
		if (!take_number(mount + 1, v->n_short, &i, &rest))
			return false;
		mount = v->short_deep[i];
	}
	if (!take_number(mount, v->n, &i, &mount) || v->entries[i].sort != VIEW_MOUNT)
		return false;
	return snprintf(ret, PATH_MAX, "%s%s%s", v->entries[i].path, mount, rest) < PATH_MAX;
}

void view_short_fini(struct view *v)
{
	if (v->short_dir)
		io_rm_rf(AT_FDCWD, v->short_dir);
	for (size_t i = 0; i < v->n_short; i++)
		free(v->short_deep[i]);
	free(v->short_deep);
	v->short_deep = NULL;
	v->n_short = 0;
	free(v->short_dir);
	v->short_dir = NULL;
	v->short_fd = close_fd(v->short_fd);
}
