// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a path of the session to what it names, one component after the other.
 *
 * What has been passed is kept as text without links and "..", what is to come as text as it is; a
 * link's text is put in front of the latter.  In a mount there is a descriptor for the directory
 * that has been reached, too, from which the next component is opened without following it: whoever
 * renames things meanwhile changes which file is found, never in which tree.  ".." is a matter of
 * the text, and the directory above is opened anew from the mount's own.
 *
 * Where a way begins all of it is tried at once: if there is no symlink on it, and no other mount,
 * the kernel gives the same file for a fraction of the calls.
 *
 * Outside the mounts nothing is looked at.  There the rest is text for the kernel, unless it leads
 * in again.
 */
#include "supervisor/rewrite/view/view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "supervisor/rewrite/procfs/procfs.h"

#define MAX_LINKS 40 /* of the kernel: namei.c */
#define TEXT	  1  /* what is to come is for the kernel to walk */

struct walk {
	const struct view *v;
	const struct task *asker;
	unsigned how;
	struct view_place *at;
	size_t len;	     /* of at->path */
	char rest[PATH_MAX]; /* what is to come */
	int links;
};

/* Is the component that is there to be followed, if it is a link? */
static bool follows(const struct walk *w, bool last)
{
	if (!last)
		return true;
	return !(w->how & VIEW_PARENT) && (!(w->how & VIEW_NOFOLLOW) || w->at->slash);
}

static bool in_mount(const struct walk *w)
{
	return w->at->in && w->at->in->sort == VIEW_MOUNT;
}

static void set_fd(struct walk *w, int fd)
{
	close_fd(w->at->fd);
	w->at->fd = fd;
	w->at->looked = false;
}

/* What is at @w->at->fd, without asking a slow file system. */
static int look(struct walk *w)
{
	struct statx st;
	dev_t dev;

	if (statx(w->at->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
		return -errno;
	dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	w->at->mode = st.stx_mode & S_IFMT;
	if (dev == w->at->in->dev)
		return 0;
	w->at->foreign = true;
	if (w->how & VIEW_TEXT)
		return TEXT;
	return w->how & VIEW_WAIT ? 0 : -EAGAIN;
}

static int open_in(const struct view_entry *mount, const char *rel)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd;

	rel += strspn(rel, "/");
	fd = *rel ? (int)syscall(SYS_openat2, mount->fd, rel, &how, sizeof(how))
		  : fcntl(mount->fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* The text stands at @w->len: finds what that is in. */
static int settle(struct walk *w)
{
	struct view_place *at = w->at;
	int fd;

	at->path[w->len] = '\0';
	at->in = view_mount_of(w->v, at->path);
	if (!in_mount(w)) {
		set_fd(w, -1);
		return 0;
	}
	fd = open_in(at->in, at->path + at->in->len);
	if (fd < 0)
		return fd;
	set_fd(w, fd);
	return at->in->terminal && view_is_gone(at->in) ? -ENOENT : look(w);
}

/* Puts @text in front of what is to come. */
static int put_in_front(struct walk *w, const char *text)
{
	size_t n = strlen(text), rest = strlen(w->rest) + 1;

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (n + 1 + rest > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n + 1, w->rest, rest);
	memcpy(w->rest, text, n);
	w->rest[n] = '/';
	/* No slash behind the last component but its own. */
	if (rest == 1)
		w->rest[n] = '\0';
	w->at->walked = true;
	return 0;
}

static void up(struct walk *w)
{
	while (w->len > 0 && w->at->path[--w->len] != '/')
		;
	w->at->path[w->len] = '\0';
}

#define NOT_AT_ONCE 2

/*
 * Is there nothing on the way but names that the mount alone has to do with?  They are put behind
 * the text.
 */
static bool is_plain(const struct walk *w, char whole[PATH_MAX], size_t *ret_len)
{
	size_t len = w->len;

	memcpy(whole, w->at->path, len);
	for (const char *p = w->rest + strspn(w->rest, "/"); *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");

		/* "." and "..", and a slash behind all, have a meaning of their own. */
		if (n > NAME_MAX || len + 1 + n >= PATH_MAX ||
			(p[n] && !p[n + strspn(p + n, "/")]) ||
			(p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		whole[len] = '/';
		memcpy(whole + len + 1, p, n);
		len += 1 + n;
		if (view_find(w->v, whole, len))
			return false;
		p += n;
	}
	whole[len] = '\0';
	*ret_len = len;
	return len > w->len;
}

/* The rest of the way in one step: 0, NOT_AT_ONCE, or what the call is to return. */
static int leap(struct walk *w)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV};
	struct view_place *at = w->at;
	char whole[PATH_MAX];
	struct stat st;
	size_t len;
	int fd, error;

	if (!is_plain(w, whole, &len))
		return NOT_AT_ONCE;
	fd = (int)syscall(SYS_openat2, at->in->fd, whole + at->in->len + 1, &how, sizeof(how));
	error = errno;
	if (fd < 0 && !(w->how & VIEW_CREATE) &&
		(error == ENOENT || error == EACCES || error == ENOTDIR))
		return -error;
	if (fd < 0 || fstat(fd, &st) < 0 || (S_ISLNK(st.st_mode) && follows(w, true))) {
		close_fd(fd);
		return NOT_AT_ONCE;
	}
	set_fd(w, fd);
	at->mode = st.st_mode & S_IFMT;
	at->looked = true;
	at->st = st;
	memcpy(at->path, whole, len + 1);
	w->len = len;
	w->rest[0] = '\0';
	return 0;
}

/* The text stands at the beginning of a way: finds what that is in, and perhaps its end. */
static int begin(struct walk *w)
{
	int r = NOT_AT_ONCE;

	w->at->path[w->len] = '\0';
	w->at->in = view_mount_of(w->v, w->at->path);
	if (in_mount(w) && !w->at->in->terminal)
		r = leap(w);
	return r == NOT_AT_ONCE ? settle(w) : r;
}

/* A link stands at the end of the text. */
static int follow(struct walk *w, const char *text)
{
	int r = put_in_front(w, text);

	if (r < 0)
		return r;
	if (text[0] == '/')
		w->len = 0;
	else
		up(w);
	return begin(w);
}

/* To the next component in a mount.  -ENOENT is an end for one that is the last. */
static int step_in_mount(struct walk *w, const char *name, bool last)
{
	char text[PATH_MAX];
	int fd = w->at->fd < 0 ? -1 : openat(w->at->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;
	int r;

	if (fd < 0) {
		r = w->at->fd < 0 ? -ENOENT : -errno;
		set_fd(w, -1);
		return r == -ENOENT && last && w->how & VIEW_CREATE ? 0 : r;
	}
	set_fd(w, fd);
	r = look(w);
	if (r != 0)
		return r;
	if (!S_ISLNK(w->at->mode) || !follows(w, last))
		return !last && !S_ISLNK(w->at->mode) && !S_ISDIR(w->at->mode) ? -ENOTDIR : 0;
	n = readlinkat(fd, "", text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	text[n] = '\0';
	return follow(w, text);
}

/*
 * What a link of /proc leads to is there as a descriptor: its path is only needed to go on below
 * it.
 */
static int jump(struct walk *w, struct procfs_way *way)
{
	char link[32], host[PATH_MAX], text[PATH_MAX];
	ssize_t n;
	int r;

	if (!*way->rest) {
		struct stat st;

		if (fstat(way->fd, &st) < 0)
			return -errno;
		w->at->mode = st.st_mode & S_IFMT;
		set_fd(w, take_fd(&way->fd));
		w->rest[0] = '\0';
		return 0;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", way->fd);
	n = readlink(link, host, sizeof(host) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	host[n] = '\0';
	r = view_session_path(w->v, host, text);
	if (r < 0)
		return r;
	r = snprintf(w->rest, sizeof(w->rest), "%s", way->rest);
	return r >= (int)sizeof(w->rest) ? -ENAMETOOLONG : follow(w, text);
}

/* All that is to come is below /proc. */
static int enter_proc(struct walk *w)
{
	const char *below = w->rest + strspn(w->rest, "/");
	struct procfs_way *way = &w->at->way;
	char text[PATH_MAX];
	int r;

	if (w->at->has_way)
		procfs_way_fini(way);
	w->at->has_way = true;
	w->at->walked = true;
	r = procfs_walk(w->v->procfs, w->asker, below, !(w->how & VIEW_NOFOLLOW), way);
	if (r < 0)
		return r;
	switch (way->end) {
	case PROCFS_JUMP:
		return jump(w, way);
	case PROCFS_ELSEWHERE:
		snprintf(text, sizeof(text), "%s", way->rest);
		w->rest[0] = '\0';
		return follow(w, text);
	case PROCFS_NODE:
		break;
	}
	w->rest[0] = '\0';
	w->at->mode = way->node.type;
	return 0;
}

static int step(struct walk *w, const char *name, size_t n, bool last)
{
	struct view_place *at = w->at;
	const struct view_entry *here;
	char one[NAME_MAX + 1];
	int r;

	if (w->len + 1 + n >= sizeof(at->path) || (n > NAME_MAX && at->in))
		return -ENAMETOOLONG;
	at->path[w->len] = '/';
	memcpy(at->path + w->len + 1, name, n);
	w->len += 1 + n;
	at->path[w->len] = '\0';
	here = view_find(w->v, at->path, w->len);
	if (here && here->sort == VIEW_ALIAS)
		return follows(w, last) ? follow(w, here->host) : 0;
	if (here && here->sort != VIEW_SPLIT) {
		r = begin(w);
		if (r == 0 && here->sort == VIEW_PROC && w->v->procfs)
			return enter_proc(w);
		return r == 0 && *w->rest && in_mount(w) && !S_ISDIR(at->mode) ? -ENOTDIR : r;
	}
	if (!in_mount(w))
		return 0;
	memcpy(one, name, n);
	one[n] = '\0';
	return step_in_mount(w, one, last);
}

/* Takes the next component off what is to come; its length, 0 if there is none. */
static size_t next(struct walk *w, char name[PATH_MAX], bool *ret_last)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/"), slashes = strspn(p + n, "/");

	memcpy(name, p, n);
	name[n] = '\0';
	*ret_last = !p[n + slashes];
	if (*ret_last && n > 0)
		w->at->slash |= slashes > 0;
	memmove(w->rest, p + n, strlen(p + n) + 1);
	return n;
}

static int walk_all(struct walk *w)
{
	char name[PATH_MAX];
	bool last;
	size_t n;
	int r = 0;

	while (r == 0 && (n = next(w, name, &last)) > 0) {
		bool dot = n == 1 && name[0] == '.',
		     two = n == 2 && name[0] == '.' && name[1] == '.';

		w->at->dot = dot || two;
		if (dot)
			continue;
		if (two) {
			up(w);
			w->at->walked = true;
			r = settle(w);
		} else {
			r = step(w, name, n, last);
		}
	}
	return r;
}

int view_walk(const struct view *v, const struct task *asker, const char *path, unsigned how,
	struct view_place *ret)
{
	struct walk w = {.v = v, .asker = asker, .how = how, .at = ret};
	size_t n = strlen(path);
	int r;

	if (n >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, n + 1);
	ret->path[0] = '\0';
	ret->in = NULL;
	ret->walked = how & VIEW_FROM_MOUNT;
	ret->slash = false;
	r = v->rooted ? begin(&w) : 0;
	if (r == 0)
		r = walk_all(&w);
	if (r == TEXT) {
		n = strlen(w.rest);
		if (w.len + 1 + n >= sizeof(ret->path))
			return -ENAMETOOLONG;
		memcpy(ret->path + w.len, w.rest, n + 1);
		return 0;
	}
	if (r == 0 && ret->slash && !(how & VIEW_CREATE) && in_mount(&w) && !S_ISDIR(ret->mode))
		r = -ENOTDIR;
	if (r == 0 && w.len == 0)
		memcpy(ret->path, "/", 2);
	return r;
}

void view_place_fini(struct view_place *p)
{
	p->fd = close_fd(p->fd);
	if (p->has_way)
		procfs_way_fini(&p->way);
	p->has_way = false;
}

const struct view_entry *view_jumped_to(const struct view *v, const struct view_place *p)
{
	char host[PATH_MAX], path[PATH_MAX];

	if (!view_in_proc(p) || p->fd < 0 || procfs_name_of(p->fd, host) < 0 || host[0] != '/' ||
		view_session_path(v, host, path) < 0)
		return NULL;
	return view_mount_of(v, path);
}

int view_place_host(const struct view *v, const struct view_place *p, char ret[PATH_MAX])
{
	bool top = strcmp(p->path, "/") == 0;
	const char *end = p->dot ? "/." : p->slash ? "/" : "";
	int n;

	/* What a magic link leads to may have no name: by the link, then. */
	if (view_in_proc(p))
		return procfs_host(v->procfs, &p->way.node, ret);
	if (p->in && p->in->sort == VIEW_MOUNT)
		n = snprintf(ret, PATH_MAX, "%s%s%s", p->in->host, top ? "" : p->path + p->in->len,
			top ? "/." : end);
	else
		n = snprintf(ret, PATH_MAX, "%s%s", p->path, top ? "" : end);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}
