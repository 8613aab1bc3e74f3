// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The calls.  What is special about a file is a row of the table in procfs/node.c; all else is the
 * host's own.
 */
#include "supervisor/rewrite/procfs/procfs.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/procfs/copy.h"
#include "supervisor/rewrite/tasks.h"

/* ---- making it ------------------------------------------------------------------------------ */

/* What /proc has for all; no entry comes or goes but with a module. */
static int list_always(struct procfs *p)
{
	_cleanup_list_ struct mirror_list all = {0};
	int r = mirror_list_read(&all, p->host, ".");

	for (size_t i = 0; r == 0 && i < all.n; i++)
		if (!isdigit((unsigned char)*all.v[i].name))
			r = mirror_list_add(&p->always, all.v[i].name, all.v[i].type);
	return r;
}

int procfs_create(struct procfs **ret, const struct tasks *tasks, const char *mirror,
	const struct procfs_ops *ops, struct err *e)
{
	struct procfs *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_errno(e, -ENOMEM, "/proc");
	p->tasks = tasks;
	p->tracer = getpid();
	p->ops = ops;
	p->ptrace_scope = proc_read_setting("/proc/sys/kernel/yama/ptrace_scope");
	p->host = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = p->host < 0 ? -errno : list_always(p);
	r = r < 0 ? err_errno(e, r, "/proc") : procfs_mirror_create(&p->mirror, mirror, e);
	if (r < 0) {
		procfs_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void procfs_free(struct procfs *p)
{
	if (!p)
		return;
	procfs_mirror_free(p->mirror);
	mirror_list_fini(&p->always);
	close_fd(p->host);
	free(p);
}

/* ---- open ----------------------------------------------------------------------------------- */

static bool wants_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

static int open_dir(struct procfs *p, const struct procfs_node *n, int flags)
{
	_cleanup_list_ struct mirror_list list = {0};
	int r;

	if (!(flags & O_PATH) && (wants_write(flags) || (flags & O_CREAT)))
		return -EISDIR;
	flags &= O_PATH | O_NONBLOCK;
	if (!n->row || !n->row->list) {
		r = openat(n->dir, n->host, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return r < 0 ? -errno : r;
	}
	r = n->row->list(p, n, &list);
	return r < 0 ? r : procfs_mirror_open(p->mirror, n->path, &list, flags);
}

/*
 * Of what else has no numbers the host's own file is read by whoever wants to know, and may wait
 * for whoever uses it, as an epoll does.
 */
static bool fdinfo_has_numbers(const struct procfs_node *n)
{
	static const char *const without[] = {"anon_inode:", "pipe:", "socket:"};
	char path[PATH_MAX + 8], link[64] = "";

	snprintf(path, sizeof(path), "fd%s", strchr(n->host, '/'));
	if (readlinkat(n->dir, path, link, sizeof(link) - 1) < 0 || strstr(link, "[pidfd]"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (!strncmp(link, without[i], strlen(without[i])))
			return false;
	return true;
}

static bool is_copied(const struct procfs *p, const struct procfs_node *n)
{
	if (n->row && n->row->sort == PROCFS_PATHS && !p->ops->rooted)
		return false;
	if (n->row && n->row->sort == PROCFS_FDINFO)
		return fdinfo_has_numbers(n);
	/* Who waits for a change of mounts can do so only where nothing is left out. */
	if (n->row && n->row->sort == PROCFS_MOUNTS)
		return procfs_copy_differs(p, n);
	return S_ISREG(n->type) && n->row && (n->row->text || n->row->sort == PROCFS_IPC);
}

static int open_host(const struct procfs_node *n, int flags)
{
	int fd;

	flags &= O_ACCMODE | O_PATH | O_APPEND | O_NONBLOCK | O_TRUNC;
	fd = openat(n->dir, n->host, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	return fd;
}

static int open_file(
	struct procfs *p, const struct task *asker, const struct procfs_node *n, int flags)
{
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (is_copied(p, n) && !(flags & O_PATH))
		return wants_write(flags) ? -EACCES : procfs_copy_open(p, asker, n);
	if (n->row && n->row->sort == PROCFS_MEMORY && !procfs_node_may_trace(p, asker, n))
		return -EACCES;
	return open_host(n, flags);
}

int procfs_open(struct procfs *p, const struct task *asker, const struct procfs_node *n, int flags)
{
	int fd;

	if (!procfs_node_is_open(n, wants_write(flags)))
		return -EACCES;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (S_ISDIR(n->type))
		return open_dir(p, n, flags);
	if (!S_ISLNK(n->type))
		return open_file(p, asker, n, flags);
	if (!(flags & O_PATH) || (flags & O_DIRECTORY))
		return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
	fd = openat(n->dir, n->host, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- what is said of files ------------------------------------------------------------------ */

/* It is listed from the mirror: what fstat(2) says of it stat(2) says, too. */
static bool is_listed(const struct procfs_node *n)
{
	return S_ISDIR(n->type) && n->row && n->row->list;
}

int procfs_stat(struct procfs *p, const struct procfs_node *n, struct stat *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	*ret = n->st;
	if (!is_listed(n))
		return 0;
	fd = procfs_mirror_open(p->mirror, n->path, NULL, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->st_dev = st.st_dev;
	ret->st_ino = st.st_ino;
	return 0;
}

int procfs_access(struct procfs *p, const struct procfs_node *n, int mode)
{
	if (mode != F_OK && !procfs_node_is_open(n, mode & W_OK))
		return -EACCES;
	return faccessat(n->dir, n->host, mode, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* ---- texts of links ------------------------------------------------------------------------- */

static int put(char *ret, size_t size, const char *text)
{
	size_t n = MIN(strlen(text), size);

	memcpy(ret, text, n);
	return (int)n;
}

/* @text of the host becomes what the session calls it; what it has no name for stays. */
static void rename_text(struct procfs *p, char text[PATH_MAX])
{
	char name[PATH_MAX] = "/proc/";
	int n;

	if (*text != '/')
		return;
	n = procfs_of_copy(text, name + strlen(name), sizeof(name) - strlen(name));
	if (n < 0)
		n = procfs_from_host(p, text, name + strlen(name), sizeof(name) - strlen(name));
	if (n == 0)
		strcpy(text, "/proc");
	else if (n > 0)
		strcpy(text, name);
	else if (p->ops->session_path &&
		 p->ops->session_path(p->ops->arg, text, name, sizeof(name)) >= 0)
		snprintf(text, PATH_MAX, "%s", name);
}

int procfs_readlink(struct procfs *p, const struct task *asker, const struct procfs_node *n,
	char *buf, size_t size)
{
	char text[PATH_MAX];
	ssize_t len;

	if (!S_ISLNK(n->type))
		return -EINVAL;
	if (!procfs_node_is_open(n, false))
		return -EACCES;
	if (n->row && n->row->sort == PROCFS_SELF) {
		procfs_node_self(p, asker, n->path, text);
		return put(buf, size, text);
	}
	len = readlinkat(n->dir, n->host, text, sizeof(text) - 1);
	if (len < 0)
		return errno == ESRCH ? -ENOENT : -errno;
	text[len] = '\0';
	if (n->row && n->row->sort == PROCFS_ROOT)
		return put(buf, size, "/");
	if (n->number)
		rename_text(p, text);
	return put(buf, size, text);
}

/* ---- what the task does itself -------------------------------------------------------------- */

int procfs_host(struct procfs *p, const struct procfs_node *n, char ret[PATH_MAX])
{
	_cleanup_close_ int fd = -1;
	char dir[PATH_MAX];
	int r;

	if (!procfs_node_is_open(n, false))
		return -EACCES;
	if (is_listed(n)) {
		fd = procfs_mirror_open(p->mirror, n->path, NULL, O_PATH);
		return fd < 0 ? fd : procfs_name_of(fd, ret);
	}
	r = procfs_name_of(n->dir, dir);
	if (r < 0)
		return r;
	return snprintf(ret, PATH_MAX, "%s/%s", dir, n->host) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- for a session that is put together again ------------------------------------------------ */

/* One that is in an epoll, which would not take a copy, lists whatever else mounts are there. */
static bool is_waited_for(const struct procfs_node *n)
{
	return n->row && n->row->sort == PROCFS_MOUNTS;
}

int procfs_reopen(struct procfs *p, const char *path, int flags, bool copied)
{
	_cleanup_(procfs_node_fini) struct procfs_node n;
	int r = procfs_node_find(p, NULL, path, &n);

	if (r < 0)
		return r;
	if (!procfs_node_is_open(&n, wants_write(flags)))
		return -EACCES;
	if (!(flags & O_PATH) && (copied || !is_waited_for(&n)) && is_copied(p, &n))
		return procfs_copy_blank(&n);
	if (is_waited_for(&n))
		return open_host(&n, flags);
	return procfs_open(p, NULL, &n, flags);
}

int procfs_settle(struct procfs *p, const char *path, int fd)
{
	_cleanup_(procfs_node_fini) struct procfs_node n;
	_cleanup_close_ int dir = -1;
	int r = procfs_node_find(p, NULL, path, &n);

	if (r < 0)
		return r;
	if (is_waited_for(&n) || is_copied(p, &n))
		return procfs_copy_fill(p, &n, fd);
	if (is_listed(&n))
		dir = procfs_open(p, NULL, &n, O_RDONLY);
	return dir < -1 ? dir : 0;
}
