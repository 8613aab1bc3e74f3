// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where relative paths begin.  The host's /proc tells for a descriptor; for a working directory it is
 * asked once, until some task of the session changes directory (tasks may share one, so that it is
 * anybody).
 */
#include "supervisor/rewrite/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/numbers.h"
#include "supervisor/rewrite/tasks.h"

int view_say(const struct view *v, const char *host, char ret[PATH_MAX])
{
	int n;

	if (host[0] != '/')
		return -ENOTDIR;
	if (v->procfs) {
		memcpy(ret, "/proc/", 6);
		n = procfs_from_host(v->procfs, host, ret + 6, PATH_MAX - 6);
		if (n >= 0)
			return 0;
		if (n != -ENOENT)
			return n;
	}
	return view_session_path(v, host, ret);
}

static int ask(struct view *v, const char *link, char ret[PATH_MAX])
{
	char host[PATH_MAX];
	int r;
	ssize_t n = readlink(link, host, sizeof(host) - 1);

	if (n < 0)
		return -errno;
	host[n] = '\0';
	r = view_say(v, host, ret);
	if (r != -ENOENT)
		return r;
	view_refresh(v);
	return view_say(v, host, ret);
}

static int working_directory(struct view *v, const struct task *asker, char ret[PATH_MAX])
{
	struct view_cwd *known = &v->cwds[asker->number];
	char link[32];
	int r;

	if (known->host == asker->host && known->generation == v->generation) {
		strcpy(ret, known->path);
		return 0;
	}
	snprintf(link, sizeof(link), "/proc/%d/cwd", asker->host);
	r = ask(v, link, ret);
	if (r < 0)
		return r;
	free(known->path);
	known->path = strdup(ret);
	known->host = known->path ? asker->host : 0;
	known->generation = v->generation;
	return 0;
}

int view_base(struct view *v, const struct task *asker, pid_t tid, int dirfd, char ret[PATH_MAX])
{
	char link[48];

	if (dirfd == AT_FDCWD)
		return working_directory(v, asker, ret);
	if (dirfd < 0)
		return -EBADF;
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", tid, dirfd);
	return ask(v, link, ret);
}
