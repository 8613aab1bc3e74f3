// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names: what bind(2) was given then must be what getsockname(2) shows again, letter by letter,
 * while the node may lie elsewhere by now, or nowhere.
 *
 * The plain case - an absolute path whose node is still there - is bound where it is.  All others
 * are staged: in a directory of ours a child changes its root (or for a relative name its working
 * directory) to a place where the very name can be bound, and the node is then renamed.  The kernel
 * finds a socket by its node, so renaming changes nothing for those who connect.
 *
 *      /tmp/.podrun-XXXXXX/root/run/x.sock     bind("/run/x.sock") after chroot
 *      /tmp/.podrun-XXXXXX/7                   what it is called until the build ends: short
 *                                              enough for connect(2), whatever the name was
 *
 * The place stays for the next name: some file systems take longer for making and removing
 * directories than all else here does.
 *
 * Where paths are rewritten, a name is the host's path for it, which can be bound: whatever is
 * there now makes room for the moment.  A node that belongs nowhere is called something else beside
 * it until the build ends.  A path that is too long on the host is said by a shorter one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ckpt/build.h"
#include "ckpt/kinds/unix.h"
#include "ckpt/where.h"

#define TEMPLATE "/.podrun-XXXXXX"

/* A node that nothing else needs, where paths are rewritten. */
struct aside {
	struct aside *next;
	int dir;
	char name[32];
	char *path;  /* what it is bound to */
	size_t made; /* directories above that which are longer than this are ours; 0: none */
};

struct names {
	char staging[32]; /* directory for nodes that nothing else needs */
	unsigned count;
	struct aside *asides;
};

static struct names *names_of(struct ckpt_build *b)
{
	void **slot = &b->kind_state[PROTO_KIND_UNIX];

	if (!*slot)
		*slot = calloc(1, sizeof(struct names));
	return *slot;
}

static struct unix_address address_of(const void *name, size_t len)
{
	struct unix_address a = {.un.sun_family = AF_UNIX};

	if (len == 0 || len > sizeof(a.un.sun_path))
		return a;
	memcpy(a.un.sun_path, name, len);
	a.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	/* A path of full length has no room for its NUL, and needs none. */
	if (a.un.sun_path[0] && len < sizeof(a.un.sun_path))
		a.len++;
	return a;
}

static int bind_plain(int fd, const struct unix_address *a)
{
	return bind(fd, (const void *)&a->un, a->len) < 0 ? -errno : 0;
}

/* The directories above the last component of @path, below the current root or directory. */
static int make_parents(const char *path)
{
	char copy[UNIX_NAME_MAX + 1];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

/* Deep enough below the current directory that no ".." of @path leads above it. */
static int go_down(const char *path)
{
	for (const char *p = strstr(path, ".."); p; p = strstr(p + 2, ".."))
		if ((mkdir("d", 0700) < 0 && errno != EEXIST) || chdir("d") < 0)
			return -errno;
	return 0;
}

/* In a child: binds @fd to @path inside @dir, moves the node to @dir/../@to. */
static int bind_staged(int fd, const char *path, const struct unix_address *a, const char *dir,
	int parent, const char *to)
{
	_cleanup_close_ int here = -1;
	int r;

	if ((mkdir(dir, 0700) < 0 && errno != EEXIST) || chdir(dir) < 0)
		return -errno;
	if (path[0] == '/' && chroot(".") < 0)
		return -errno;
	r = go_down(path);
	if (r == 0)
		r = make_parents(path);
	here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r < 0 || here < 0)
		return r < 0 ? r : -errno;
	r = bind_plain(fd, a);
	if (r < 0)
		return r;
	/* renameat from inside the new root to a descriptor outside it. */
	return renameat(here, path, parent, to) < 0 ? -errno : 0;
}

/* With a root of its own, in this memory: this thread sleeps until it has ended. */
static int bind_by_child(int fd, const char *path, const struct unix_address *a, const char *dir,
	int parent, const char *to)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(-bind_staged(fd, path, a, dir, parent, to));
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* Binds @fd to @a with its node as @base/@to; @base exists, and @base/root may, and stays. */
static int stage(
	int fd, const struct unix_address *a, const char *base, const char *to, struct err *e)
{
	_cleanup_close_ int parent = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char dir[256], path[UNIX_NAME_MAX + 1] = {0};
	int error = 0;

	if (parent < 0)
		return err_errno(e, -errno, "%s", base);
	memcpy(path, a->un.sun_path, sizeof(a->un.sun_path));
	snprintf(dir, sizeof(dir), "%s/root", base);
	for (int i = 0; i < 2; i++) {
		error = bind_by_child(fd, path, a, dir, parent, to);
		/* an earlier name may have left a directory where this one is to be */
		if (error != -EADDRINUSE)
			break;
		io_rm_rf(AT_FDCWD, dir);
	}
	return error < 0 ? err_errno(e, error, "cannot bind a unix socket to %s", path) : 0;
}

/* A node of its own in the staging directory. */
static int bind_nowhere(struct ckpt_build *b, int fd, const struct unix_address *a,
	struct unix_address *ret, struct err *e)
{
	struct names *n = names_of(b);
	char to[16], path[64];
	int r;

	if (!n)
		return err_errno(e, -ENOMEM, "names of sockets");
	if (!n->staging[0]) {
		char template[sizeof(n->staging)] = "/tmp" TEMPLATE;

		if (!mkdtemp(template))
			return err_errno(e, -errno, "%s", template);
		memcpy(n->staging, template, sizeof(template));
	}
	snprintf(to, sizeof(to), "%u", n->count++);
	r = stage(fd, a, n->staging, to, e);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", n->staging, to);
	*ret = address_of(path, strlen(path));
	return 0;
}

/* The node at @node, though the name does not lead there. */
static int bind_elsewhere(int fd, const struct unix_address *a, const char *node, struct err *e)
{
	_cleanup_free_ char *base = NULL, *made = NULL;
	int r;

	if (asprintf(&base, "%.*s" TEMPLATE, (int)(strrchr(node, '/') - node), node) < 0)
		return err_errno(e, -ENOMEM, "names of sockets");
	if (!mkdtemp(base))
		return err_errno(e, -errno, "%s", base);
	r = stage(fd, a, base, "node", e);
	if (r >= 0 && asprintf(&made, "%s/node", base) < 0)
		r = err_errno(e, -ENOMEM, "names of sockets");
	if (r >= 0 && rename(made, node) < 0)
		r = err_errno(e, -errno, "%s", node);
	io_rm_rf(AT_FDCWD, base);
	return r;
}

/* ---- where paths are rewritten -------------------------------------------------------------- */

/* Makes what is missing above @path; the length of the longest directory that was there. */
static int make_missing(const char *path, size_t *ret_made)
{
	char copy[UNIX_NAME_MAX + 1];

	*ret_made = 0;
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1, *before = copy; (p = strchr(p, '/')); before = p++) {
		*p = '\0';
		if (mkdir(copy, 0700) == 0)
			*ret_made = *ret_made ? *ret_made : (size_t)(before - copy) + 1;
		else if (errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static void remove_made(const struct aside *s)
{
	char *end;

	while (s->made && (end = strrchr(s->path, '/')) && (size_t)(end - s->path) > s->made) {
		*end = '\0';
		rmdir(s->path);
	}
}

static void free_aside(struct aside *s)
{
	if (!s)
		return;
	if (s->dir >= 0 && s->name[0])
		unlinkat(s->dir, s->name, 0);
	close_fd(s->dir);
	if (s->path)
		remove_made(s);
	free(s->path);
	free(s);
}

DEFINE_CLEANUP(aside, struct aside *, free_aside);

/* Binds @fd to @a, and calls the node @to in @dir then.  What is there keeps its name. */
static int bind_and_move(int fd, const struct unix_address *a, int dir, const char *to)
{
	char kept[sizeof(a->un.sun_path) + 16];
	bool there;
	int r;

	snprintf(kept, sizeof(kept), "%s.podrun", a->un.sun_path);
	there = rename(a->un.sun_path, kept) == 0;
	r = bind_plain(fd, a);
	if (r == 0 && renameat(AT_FDCWD, a->un.sun_path, dir, to) < 0)
		r = -errno;
	if (there && rename(kept, a->un.sun_path) < 0 && r == 0)
		r = -errno;
	return r;
}

/* A node beside the name @a, for as long as the build lasts. */
static int bind_aside(struct ckpt_build *b, int fd, const struct unix_address *a,
	struct unix_address *ret, struct err *e)
{
	_cleanup_(cleanup_aside) struct aside *s = calloc(1, sizeof(*s));
	struct names *n = names_of(b);
	char path[64];
	int r;

	if (!s || !n)
		return err_errno(e, -ENOMEM, "names of sockets");
	s->dir = -1;
	s->path = strdup(a->un.sun_path);
	r = s->path ? make_missing(s->path, &s->made) : -ENOMEM;
	if (r == 0) {
		char *end = strrchr(s->path, '/');

		*end = '\0';
		s->dir = open(s->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		*end = '/';
		r = s->dir < 0 ? -errno : 0;
	}
	snprintf(s->name, sizeof(s->name), ".podrun-%d-%u", getpid(), n->count++);
	if (r == 0)
		r = bind_and_move(fd, a, s->dir, s->name);
	if (r < 0)
		return err_errno(e, r, "cannot bind a unix socket to %s", a->un.sun_path);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", s->dir, s->name);
	*ret = address_of(path, strlen(path));
	s->next = n->asides;
	n->asides = take_ptr(s);
	return 0;
}

/* @a: the name as the host has it, or a relative one. */
static int bind_host(struct ckpt_build *b, int fd, const struct unix_address *a, const char *node,
	mode_t mode, struct unix_address *ret, struct err *e)
{
	struct stat st;
	int r;

	if (!node[0])
		return a->un.sun_path[0] == '/' ? bind_aside(b, fd, a, ret, e)
						: bind_nowhere(b, fd, a, ret, e);
	if (!lstat(node, &st) && S_ISSOCK(st.st_mode) && unlink(node) < 0)
		return err_errno(e, -errno, "%s", node);
	if (a->un.sun_path[0] != '/')
		r = bind_elsewhere(fd, a, node, e);
	else if (strcmp(a->un.sun_path, node) == 0)
		r = bind_plain(fd, a);
	else
		r = bind_and_move(fd, a, AT_FDCWD, node);
	if (r < 0)
		return err_is(e) ? r : err_errno(e, r, "cannot bind a unix socket to %s", node);
	if (chmod(node, mode & 07777) < 0)
		return err_errno(e, -errno, "%s", node);
	*ret = address_of(node, strlen(node));
	return 0;
}

/* ---- interface ------------------------------------------------------------------------------ */

int unix_bind(struct ckpt_build *b, int fd, struct unix_name name, const char *node, mode_t mode,
	struct unix_address *ret, struct err *e)
{
	struct unix_address a = address_of(name.data, name.len);
	char room[PATH_MAX];
	struct stat st;
	int r;

	if (!a.len || (name.data[0] && memchr(name.data, 0, name.len)) ||
		(node[0] && node[0] != '/'))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad name of a unix socket");
	if (!name.data[0]) {
		r = bind_plain(fd, &a);
		*ret = a;
		return r < 0 ? err_errno(e, r, "cannot bind a unix socket to @%.*s",
				       (int)name.len - 1, name.data + 1)
			     : 0;
	}
	if (node[0] && lstat(node, &st) == 0 && ckpt_where_alone(b->world, "socket", node, e) < 0)
		return e->error;
	if (b->world->paths) {
		char path[UNIX_NAME_MAX + 1] = {0}, at[PATH_MAX];
		const char *host;

		memcpy(path, a.un.sun_path, sizeof(a.un.sun_path));
		host = path[0] == '/' ? ckpt_where_socket(b->world, path, UNIX_NAME_MAX, at) : path;
		a = address_of(host, strlen(host));
		if (!a.len)
			return err_set(e, ERR_HOST, -ENAMETOOLONG,
				"too long for the name of a unix socket: %s", host);
		return bind_host(b, fd, &a,
			node[0] ? ckpt_where_socket(b->world, node, UNIX_NAME_MAX, room) : node,
			mode, ret, e);
	}
	if (!node[0])
		return bind_nowhere(b, fd, &a, ret, e);
	if (!lstat(node, &st) && S_ISSOCK(st.st_mode) && unlink(node) < 0)
		return err_errno(e, -errno, "%s", node);
	if (strlen(node) == name.len && !memcmp(node, name.data, name.len))
		r = bind_plain(fd, &a);
	else
		r = bind_elsewhere(fd, &a, node, e);
	if (r < 0)
		return err_is(e) ? r : err_errno(e, r, "cannot bind a unix socket to %s", node);
	if (chmod(node, mode & 07777) < 0)
		return err_errno(e, -errno, "%s", node);
	*ret = address_of(node, strlen(node));
	return 0;
}

void unix_names_end(struct ckpt_build *b)
{
	struct names *n = b->kind_state[PROTO_KIND_UNIX];

	if (n && n->staging[0])
		io_rm_rf(AT_FDCWD, n->staging);
	if (!n)
		return;
	n->staging[0] = '\0';
	while (n->asides) {
		struct aside *s = n->asides;

		n->asides = s->next;
		free_aside(s);
	}
}
