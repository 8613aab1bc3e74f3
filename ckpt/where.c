// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/where.h"

#include <errno.h>
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
	if (w && w->paths && path[0] == '/' && w->paths->host(w->paths->ctx, path, room) == 0)
		return room;
	return path;
}

int ckpt_where_alone(const struct ckpt_world *w, const char *what, const char *path, struct err *e)
{
	char room[PATH_MAX];

	if (!w->copy || !w->names || strcmp(ckpt_where_host(w, path, room), path) != 0)
		return 0;
	return err_set(e, ERR_STATE, -EBUSY,
		"a copy can't share the host's %s %s, which the session writes to", what, path);
}

const char *ckpt_where_socket(
	const struct ckpt_world *w, const char *path, size_t size, char room[PATH_MAX])
{
	const char *host = ckpt_where_host(w, path, room);
	char brief[PATH_MAX];

	if (strlen(host) >= size && w->paths &&
		w->paths->socket(w->paths->ctx, host, brief, size) == 0)
		return strcpy(room, brief);
	return host;
}

int ckpt_where_say_name(const struct ckpt_world *w, uint8_t **name, size_t *len)
{
	char *path;

	if (!w->paths || !*len || (*name)[0] != '/')
		return 0;
	path = ckpt_where_say(w, strndup((char *)*name, *len));
	if (!path)
		return -ENOMEM;
	free(*name);
	*name = (uint8_t *)path;
	*len = strlen(path);
	return 0;
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

int ckpt_where_unread(struct err *e)
{
	if (e->error != -ENAMETOOLONG)
		return e->error;
	err_reclass(e, ERR_UNFREEZABLE);
	return err_hint(e, "a path may have %d bytes: the directories above it are too deep",
		PATH_MAX - 1);
}
