// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a socket's node is, if the kernel tells its inode number and nothing else: by the name it
 * was bound to, or by another in the same directory, or somewhere in the directories that are the
 * session's own.  One that has been moved elsewhere is lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/ckpt.h"
#include "ckpt/kinds/unix.h"
#include "ckpt/where.h"

#define MAX_DEPTH   16
#define MAX_ENTRIES 100000

struct search {
	uint32_t ino;
	unsigned left; /* entries that may still be looked at */
	mode_t mode;   /* of what was found */
};

static bool is_node(struct search *s, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode) ||
		(uint32_t)st.st_ino != s->ino)
		return false;
	s->mode = st.st_mode;
	return true;
}

static char *join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0 ? NULL : path;
}

/* In directory @path, which @fd is, and @depth levels below it.  Takes @fd. */
static char *look_in(struct search *s, int fd, const char *path, int depth)
{
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char *found = NULL;

	if (!dir)
		close_fd(fd);
	for (struct dirent *entry; dir && !found && s->left && (entry = readdir(dir));) {
		const char *name = entry->d_name;

		s->left--;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (is_node(s, fd, name)) {
			found = join(path, name);
		} else if (depth > 0 && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)) {
			_cleanup_free_ char *below = join(path, name);

			if (below)
				found = look_in(s,
					openat(fd, name,
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
					below, depth - 1);
		}
	}
	return found;
}

static char *look_beside(struct search *s, const struct ckpt_world *w, const char *path)
{
	_cleanup_free_ char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!slash)
		return NULL;
	slash[slash == dir] = '\0';
	return look_in(s, ckpt_where_open(w, dir, O_RDONLY | O_DIRECTORY), dir, 0);
}

char *unix_find_node(
	const struct ckpt_world *w, const char *guess, uint32_t ino, mode_t *ret_mode)
{
	static const char *const own[] = {"/tmp", "/run", "/dev/shm"};
	struct search s = {.ino = ino, .left = MAX_ENTRIES};
	char room[PATH_MAX], *found;

	if (is_node(&s, w->root_fd, ckpt_where_below(w, guess, room)))
		found = strdup(guess);
	else
		found = look_beside(&s, w, guess);
	for (size_t i = 0; !found && i < ARRAY_SIZE(own); i++)
		found = look_in(&s, ckpt_where_open(w, own[i], O_RDONLY | O_DIRECTORY), own[i],
			MAX_DEPTH);
	*ret_mode = s.mode;
	return found;
}
