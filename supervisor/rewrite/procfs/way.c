// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What has been passed is a path without links, what is to come is text; a link's text is put in
 * front of that.  Most components are known to be directories by their place alone, and are not
 * looked at.
 */
#include "supervisor/rewrite/procfs/way.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/base.h"

#define MAX_LINKS 40 /* of the kernel: namei.c */

struct walk {
	struct procfs *p;
	const struct task *asker;
	char *rest; /* what is to come: of the way */
	char passed[PATH_MAX];
	int links;
	bool follow;
};

/* @text and what is to come behind it.  0 or the error. */
static int put_in_front(struct walk *w, const char *text)
{
	char rest[PATH_MAX];

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (snprintf(rest, sizeof(rest), "%s%s%s", text, *w->rest ? "/" : "", w->rest) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(w->rest, rest);
	return 0;
}

static void up(struct walk *w)
{
	char *slash = strrchr(w->passed, '/');

	*(slash ? slash : w->passed) = '\0';
}

/* The way leads to the absolute path @text, and on. */
static int elsewhere(struct walk *w, const char *text, struct procfs_way *ret)
{
	ret->end = PROCFS_ELSEWHERE;
	return put_in_front(w, text);
}

/* A link leads to what is open as @fd, which is taken. */
static int jump(struct walk *w, int *fd, struct procfs_way *ret)
{
	char host[PATH_MAX], name[PATH_MAX];
	struct statfs fs;
	int r = procfs_name_of(*fd, host), program;

	if (r < 0)
		return r;
	program = w->p->ops->program ? w->p->ops->program(w->p->ops->arg, host) : -ENOENT;
	if (program >= 0) {
		close_fd(*fd);
		*fd = program;
	}
	r = procfs_from_host(w->p, host, name, sizeof(name));
	if (r >= 0) {
		w->passed[0] = '\0';
		return put_in_front(w, *name ? name : ".");
	}
	/* Another mount of the host's /proc: whose it is its name does not tell. */
	if (r != -ENOENT || fstatfs(*fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
		return -EACCES;
	ret->end = PROCFS_JUMP;
	ret->fd = take_fd(fd);
	return 0;
}

static int follow_magic(struct walk *w, const struct procfs_node *n, struct procfs_way *ret)
{
	_cleanup_close_ int fd = openat(n->dir, n->host, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	return jump(w, &fd, ret);
}

static int follow_text(struct walk *w, const struct procfs_node *n, struct procfs_way *ret)
{
	char text[PATH_MAX];
	ssize_t len = readlinkat(n->dir, n->host, text, sizeof(text) - 1);

	if (len <= 0)
		return len < 0 && errno != ESRCH ? -errno : -ENOENT;
	text[len] = '\0';
	if (n->row && n->row->sort == PROCFS_ROOT)
		return elsewhere(w, "/", ret);
	if (*text == '/')
		return elsewhere(w, text, ret);
	if (n->row && n->row->sort == PROCFS_SELF)
		procfs_node_self(w->p, w->asker, n->path, text);
	up(w);
	return put_in_front(w, text);
}

/* @n is a link, and the last component if nothing is to come. */
static int follow(struct walk *w, struct procfs_way *ret)
{
	const struct procfs_node *n = &ret->node;

	if (!procfs_node_is_open(n, false))
		return -EACCES;
	return n->row && n->row->sort == PROCFS_MAGIC ? follow_magic(w, n, ret)
						      : follow_text(w, n, ret);
}

static bool leads_to_dir(const struct procfs_way *way)
{
	struct stat st;

	return way->end != PROCFS_JUMP || (fstat(way->fd, &st) == 0 && S_ISDIR(st.st_mode));
}

/* Looks at what has been passed.  The way ends here if nothing is to come. */
static int look(struct walk *w, struct procfs_way *ret)
{
	bool slash = *w->rest == '/', last = !*w->rest;
	size_t n = strspn(w->rest, "/");
	int r;

	memmove(w->rest, w->rest + n, strlen(w->rest + n) + 1);
	procfs_node_fini(&ret->node);
	r = procfs_node_find(w->p, w->asker, w->passed, &ret->node);
	if (r == 0 && S_ISLNK(ret->node.type) && (!last || w->follow)) {
		r = follow(w, ret);
		return r == 0 && slash && !leads_to_dir(ret) ? -ENOTDIR : r;
	}
	return r == 0 && slash && !S_ISDIR(ret->node.type) ? -ENOTDIR : r;
}

/* The component is "..". */
static int step_up(struct walk *w, struct procfs_way *ret)
{
	int r = look(w, ret);

	if (r < 0)
		return r;
	if (!*w->passed)
		return elsewhere(w, "/", ret);
	up(w);
	return look(w, ret);
}

/* Takes the next component off what is to come and behind what has been passed. */
static int step(struct walk *w, struct procfs_way *ret)
{
	size_t n = strcspn(w->rest, "/"), len = strlen(w->passed);
	char name[NAME_MAX + 1], text[PATH_MAX];

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest, n);
	name[n] = '\0';
	memmove(w->rest, w->rest + n, strlen(w->rest + n) + 1);
	if (!n || !strcmp(name, "."))
		return look(w, ret);
	if (!strcmp(name, ".."))
		return step_up(w, ret);
	/* In front of anything else nobody need look at it. */
	if (!len && w->rest[0] == '/' && procfs_node_self(w->p, w->asker, name, text)) {
		memmove(w->rest, w->rest + 1, strlen(w->rest));
		return put_in_front(w, text);
	}
	if (len + n + 2 > sizeof(w->passed))
		return -ENAMETOOLONG;
	snprintf(w->passed + len, sizeof(w->passed) - len, "%s%s", len ? "/" : "", name);
	/* Its place tells: the next component may be looked at at once, if it is not "..". */
	if (w->rest[0] == '/' && w->rest[1] && w->rest[1] != '/' && w->rest[1] != '.' &&
		procfs_node_is_dir(w->passed)) {
		memmove(w->rest, w->rest + 1, strlen(w->rest));
		return 0;
	}
	return look(w, ret);
}

int procfs_walk(struct procfs *p, const struct task *asker, const char *path, bool follow,
	struct procfs_way *ret)
{
	struct walk w = {.p = p, .asker = asker, .rest = ret->rest, .follow = follow};
	int r;

	ret->end = PROCFS_NODE;
	ret->fd = -1;
	ret->node.dir = -1;
	if (strlen(path) >= sizeof(ret->rest))
		return -ENAMETOOLONG;
	strcpy(ret->rest, path);
	do
		r = step(&w, ret);
	while (r == 0 && ret->end == PROCFS_NODE && *ret->rest);
	return r;
}

void procfs_way_fini(struct procfs_way *w)
{
	procfs_node_fini(&w->node);
	w->fd = close_fd(w->fd);
}
