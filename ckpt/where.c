// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/where.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

char *ckpt_where_say(const struct ckpt_world *w, char *host)
{
	char path[PATH_MAX], *said;

	if (!host || !w->paths || host[0] != '/' || w->paths->say(w->paths->ctx, host, path) < 0 ||
		strcmp(path, host) == 0)
		return host;
	said = strdup(path);
	free(host);
	return said;
}

const char *ckpt_where_host(const struct ckpt_world *w, const char *path, char room[PATH_MAX])
{
	if (w->paths && path[0] == '/' && w->paths->host(w->paths->ctx, path, room) == 0)
		return room;
	return path;
}

const char *ckpt_where_below(const struct ckpt_world *w, const char *path, char room[PATH_MAX])
{
	path = ckpt_where_host(w, path, room);
	path += strspn(path, "/");
	return *path ? path : ".";
}

int ckpt_where_open(const struct ckpt_world *w, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char room[PATH_MAX];
	int fd = (int)syscall(
		SYS_openat2, w->root_fd, ckpt_where_below(w, path, room), &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}
