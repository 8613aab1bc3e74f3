// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in find.h. */
#include "ckpt/kinds/find.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ckpt/survey.h"
#include "ckpt/where.h"

#define MAX_ENTRIES 400000 /* looked at by the walk: about a second */

struct search {
	const struct ckpt_dump *d;
	struct find_inode *want;
	size_t n, left; /* left: not found yet */
	size_t budget;
	/* Directories yet to be walked, a queue. */
	char **queue;
	size_t head, tail, cap;
};

static int open_inside(const struct ckpt_dump *d, const char *path, int flags)
{
	return ckpt_where_open(d->world, path, flags);
}

/*
 * @st is what @path is, in a directory of device @fs.  On an overlay a file tells the device of its
 * layer, while its directory (and the kernel, to whom asked) tells the overlay's.
 */
static void consider(struct search *s, const char *path, const struct stat *st, dev_t fs)
{
	for (size_t i = 0; i < s->n; i++) {
		struct find_inode *w = &s->want[i];

		if (w->found || w->ino != st->st_ino || (w->dev != st->st_dev && w->dev != fs))
			continue;
		w->path = strdup(path);
		w->found = w->path != NULL;
		s->left -= w->found;
	}
}

static bool is_wanted(const struct search *s, ino_t ino)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->want[i].found && s->want[i].ino == ino)
			return true;
	return false;
}

/* @path and every directory on the way to it. */
static void consider_path(struct search *s, const char *path)
{
	char part[PATH_MAX];
	struct stat st, dir;
	char *slash;

	if (*path != '/' || snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return;
	while (s->left) {
		_cleanup_close_ int fd = open_inside(s->d, part, O_PATH | O_NOFOLLOW);
		_cleanup_close_ int up = -1;

		slash = strrchr(part, '/');
		if (fd >= 0 && fstat(fd, &st) == 0 && is_wanted(s, st.st_ino)) {
			char keep = slash[1];

			slash[1] = '\0';
			up = open_inside(s->d, part, O_PATH | O_DIRECTORY);
			slash[1] = keep;
			consider(s, part, &st,
				up >= 0 && fstat(up, &dir) == 0 ? dir.st_dev : st.st_dev);
		}
		if (part[1] == '\0')
			return;
		slash[slash == part] = '\0';
	}
}

static void consider_known(struct search *s)
{
	static const char *const links[] = {"cwd", "root", "exe"};

	for (size_t i = 0; s->left && i < s->d->n_procs; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(links); k++) {
			char name[64];
			_cleanup_free_ char *path = NULL;

			snprintf(name, sizeof(name), "%d/%s", s->d->procs[i]->look, links[k]);
			path = ckpt_where_say(s->d->world, io_readlink(s->d->host_proc, name));
			if (path)
				consider_path(s, path);
		}
	}
	for (size_t i = 0; s->left && i < s->d->n_files; i++)
		consider_path(s, s->d->files[i]->link);
}

static void enqueue(struct search *s, const char *path)
{
	if (s->tail == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		char **more = reallocarray(s->queue, cap, sizeof(*more));

		if (!more)
			return;
		s->queue = more;
		s->cap = cap;
	}
	s->queue[s->tail] = strdup(path);
	s->tail += s->queue[s->tail] != NULL;
}

static void walk_dir(struct search *s, const char *path)
{
	int fd = open_inside(s->d, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct stat st, own;

	if (!dir || fstat(fd, &own) < 0) {
		if (!dir)
			close_fd(fd);
		return;
	}
	/* The root of a mount has another number than the entry which led to it. */
	consider(s, path, &own, own.st_dev);
	for (struct dirent *e; s->left && s->budget && (e = readdir(dir)); s->budget--) {
		char name[PATH_MAX];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			snprintf(name, sizeof(name), "%s/%s", path[1] ? path : "", e->d_name) >=
				(int)sizeof(name))
			continue;
		if (e->d_type == DT_DIR)
			enqueue(s, name);
		else if (is_wanted(s, e->d_ino) &&
			fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			consider(s, name, &st, own.st_dev);
	}
}

static bool is_kernels(const char *path)
{
	return !strcmp(path, "/proc") || !strcmp(path, "/sys");
}

/* Breadth first from what is in the queue. */
static void walk(struct search *s)
{
	while (s->left && s->budget && s->head < s->tail) {
		char *path = s->queue[s->head++];

		if (!is_kernels(path))
			walk_dir(s, path);
		free(path);
	}
	while (s->head < s->tail)
		free(s->queue[s->head++]);
	s->head = s->tail = 0;
}

/* The places where a file system is mounted on which something is wanted. */
static void walk_mounts(struct search *s, const char *text, const char *how)
{
	char point[PATH_MAX], options[8];
	unsigned maj, min;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s %2s", &maj, &min, point, options) != 4 ||
			strcmp(options, how) != 0)
			continue;
		for (size_t i = 0; i < s->n; i++) {
			if (s->want[i].found || s->want[i].dev != makedev(maj, min))
				continue;
			enqueue(s, point);
			break;
		}
	}
	walk(s);
}

/* What is watched can most often be written. */
static void walk_all(struct search *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char name[64];

	snprintf(name, sizeof(name), "%d/mountinfo", s->d->world->init_pid);
	if (io_read_file(s->d->host_proc, name, 1 << 20, &text) == 0 && buf_cstr(&text)) {
		walk_mounts(s, buf_cstr(&text), "rw");
		walk_mounts(s, buf_cstr(&text), "ro");
	}
	enqueue(s, "/");
	walk(s);
	free(s->queue);
}

size_t ckpt_find_inodes(const struct ckpt_dump *d, struct find_inode *want, size_t n)
{
	struct search s = {.d = d, .want = want, .n = n, .budget = MAX_ENTRIES};

	for (size_t i = 0; i < n; i++)
		s.left += !want[i].found;
	consider_known(&s);
	if (s.left)
		walk_all(&s);
	return s.left;
}
