// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filetree/read - the session's own files out of an image; see filetree/write.c.
 *
 * Theory of operation
 *
 * The image is not trusted.  Every path is taken apart first (relative, no "." or "..", no name
 * longer than a name can be), and its directory is opened below the given one with
 * RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS: even a symbolic link which an earlier entry of the same
 * image made is an error on the way to a later one.  Everything is made new (O_EXCL), so a name
 * that comes twice is an error, and DATA goes only to files of the record before it.
 *
 * Modes and times of directories are set when everything is in them, the deepest first.
 *
 * Where a world has been made already (supervisor/arrival.h) there are directories which every
 * session has, and some files of its own in /run.  They stay what they are, for there are mounts on
 * them: a directory of the image is the one that is there, and a file outside the layers is written
 * over.  Whatever makes the layers, or what the kernel keeps beside them, other than they are there
 * is told: no world stands on them then.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "ckpt/ckpt.h"
#include "ckpt/filetree/filetree.h"
#include "ckpt/kind.h"
#include "ckpt/xattrs.h"
#include "proto/files.pb-c.h"

#define LAYER	   "upper" /* supervisor/world/layers.c */
#define WORK	   "work"
#define RESOLVE	   (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct dir {
	char *path;
	mode_t mode;
	int64_t mtime_ns;
};

struct unpack {
	int top;       /* borrowed */
	bool *changed; /* there is something already; NULL: nothing is */
	struct dir *dirs;
	size_t n_dirs, cap_dirs;
	/* The directory of the entry before, which is most often the next one's. */
	char parent[PATH_MAX];
	int parent_fd;
	/* The file which DATA goes to, and its record. */
	Pb__Tree *batch;
	const Pb__TreeEntry *file;
	int file_fd;
};

static int bad(const Pb__TreeEntry *t, const char *why, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EBADMSG, "the session's files: '%.*s' %s",
		(int)MIN(t->path.len, (size_t)128), (const char *)t->path.data, why);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Copies a path as a string; false if it is none that may be used. */
static bool check_path(const ProtobufCBinaryData *p, char ret[PATH_MAX])
{
	const char *name = ret;

	if (p->len == 0 || p->len >= PATH_MAX || memchr(p->data, 0, p->len))
		return false;
	memcpy(ret, p->data, p->len);
	ret[p->len] = '\0';
	for (;;) {
		const char *end = strchrnul(name, '/');
		size_t n = (size_t)(end - name);

		if (n == 0 || n > NAME_MAX || (n == 1 && name[0] == '.') ||
			(n == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		if (!*end)
			return true;
		name = end + 1;
	}
}

static int open_below(int top, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC), .resolve = RESOLVE};
	int fd = (int)syscall(SYS_openat2, top, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Splits @path in place: *ret_name is its last name; returns the directory before it (borrowed). */
static int open_parent(struct unpack *u, char *path, const char **ret_name)
{
	char *slash = strrchr(path, '/');
	int fd;

	if (!slash) {
		*ret_name = path;
		return u->top;
	}
	*slash = '\0';
	*ret_name = slash + 1;
	if (u->parent_fd >= 0 && !strcmp(u->parent, path))
		return u->parent_fd;
	fd = open_below(u->top, path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	close_fd(u->parent_fd);
	u->parent_fd = fd;
	strcpy(u->parent, path);
	return fd;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void set_mtime(int dirfd, const char *name, int64_t ns)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, io_timespec_of(ns)};

	utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW);
}

static int set_xattrs(int fd, const Pb__TreeEntry *t, struct err *e)
{
	int r = ckpt_xattrs_set(fd, t->xattrs, t->n_xattrs, e);

	return r < 0 ? err_wrap(e, "the session's files: '%.*s'", (int)MIN(t->path.len, (size_t)128),
			       (const char *)t->path.data)
		     : 0;
}

static bool is_in(const Pb__TreeEntry *t, const char *dir)
{
	size_t n = strlen(dir);

	return t->path.len >= n && !memcmp(t->path.data, dir, n) &&
	       (t->path.len == n || t->path.data[n] == '/');
}

/* True if what was in the way of one that is no directory is not any more. */
static bool make_way(const struct unpack *u, int dirfd, const char *name)
{
	if (errno != EEXIST || !u->changed)
		return false;
	*u->changed = true;
	if (unlinkat(dirfd, name, 0) == 0 || unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
		return true;
	errno = EEXIST;
	return false;
}

/* Of a file that is there the inode stays. */
static int create(const struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, flags | O_CREAT | O_EXCL, 0600);
	struct stat st;

	if (fd >= 0 || errno != EEXIST || !u->changed)
		return fd;
	if (!is_in(t, LAYER) && !is_in(t, WORK))
		fd = openat(dirfd, name, flags | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	close_fd(fd);
	errno = EEXIST;
	return make_way(u, dirfd, name) ? openat(dirfd, name, flags | O_CREAT | O_EXCL, 0600) : -1;
}

static int make_regular(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (t->size > INT64_MAX || t->content.len > t->size || t->content.len > FILETREE_INLINE)
		return bad(t, "has an impossible size", e);
	fd = create(u, dirfd, name, t);
	if (fd < 0)
		return errno == EEXIST ? bad(t, "comes twice", e)
				       : err_errno(e, -errno, "%s", name);
	if ((u->changed && ftruncate(fd, 0) < 0) || ftruncate(fd, (off_t)t->size) < 0)
		return err_errno(e, -errno, "%s", name);
	r = io_pwrite_full(fd, t->content.data, t->content.len, 0);
	if (r < 0)
		return err_errno(e, r, "%s", name);
	r = set_xattrs(fd, t, e);
	if (r < 0)
		return r;
	if (fchmod(fd, t->mode & 07777) < 0)
		return err_errno(e, -errno, "%s", name);
	set_mtime(dirfd, name, t->mtime_ns);
	return 0;
}

static bool has_xattrs(int fd, const Pb__TreeEntry *t)
{
	_cleanup_free_ char *value = malloc(XATTR_SIZE_MAX);

	for (size_t i = 0; value && i < t->n_xattrs; i++) {
		ssize_t n = fgetxattr(fd, t->xattrs[i]->name, value, XATTR_SIZE_MAX);

		if (n != (ssize_t)t->xattrs[i]->value.len ||
			(n && memcmp(value, t->xattrs[i]->value.data, (size_t)n)))
			return false;
	}
	return value;
}

/* Is the directory that is there the one of @t? */
static bool is_as_there(int dirfd, const char *name, const struct stat *st, const Pb__TreeEntry *t)
{
	_cleanup_close_ int fd = -1;

	if ((st->st_mode & 07777) != (t->mode & 07777))
		return false;
	if (!t->n_xattrs)
		return true;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && has_xattrs(fd, t);
}

/* 1: it is there, as it is to be. */
static int begin_directory(
	const struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t, struct err *e)
{
	bool there = false, same;
	struct stat st;

	if (mkdirat(dirfd, name, 0700) < 0) {
		if (errno != EEXIST || !u->changed ||
			fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return errno == EEXIST ? bad(t, "comes twice", e)
					       : err_errno(e, -errno, "%s", name);
		there = true;
	}
	same = there && is_as_there(dirfd, name, &st, t);
	if (u->changed && !same && is_in(t, LAYER))
		*u->changed = true;
	/* until everything is in it */
	if (there && (st.st_mode & 0700) != 0700)
		fchmodat(dirfd, name, 0700, 0);
	return same;
}

static int make_directory(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e)
{
	int there = begin_directory(u, dirfd, name, t, e);
	_cleanup_close_ int fd = -1;
	struct dir *d;

	if (there < 0)
		return there;
	if (u->n_dirs == u->cap_dirs) {
		size_t cap = u->cap_dirs ? 2 * u->cap_dirs : 64;
		struct dir *more = reallocarray(u->dirs, cap, sizeof(*more));

		if (!more)
			return err_errno(e, -ENOMEM, "%s", name);
		u->dirs = more;
		u->cap_dirs = cap;
	}
	d = &u->dirs[u->n_dirs];
	*d = (struct dir){.mode = t->mode & 07777, .mtime_ns = t->mtime_ns};
	d->path = strndup((const char *)t->path.data, t->path.len);
	if (!d->path)
		return err_errno(e, -ENOMEM, "%s", name);
	u->n_dirs++;
	if (there || t->n_xattrs == 0)
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "%s", name) : set_xattrs(fd, t, e);
}

static int make_symlink(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e)
{
	char target[PATH_MAX];

	if (t->target.len == 0 || t->target.len >= PATH_MAX ||
		memchr(t->target.data, 0, t->target.len))
		return bad(t, "leads nowhere", e);
	memcpy(target, t->target.data, t->target.len);
	target[t->target.len] = '\0';
	while (symlinkat(target, dirfd, name) < 0)
		if (!make_way(u, dirfd, name))
			return errno == EEXIST ? bad(t, "comes twice", e)
					       : err_errno(e, -errno, "%s", name);
	set_mtime(dirfd, name, t->mtime_ns);
	return 0;
}

static int make_hard_link(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e)
{
	_cleanup_close_ int other_dir = -1;
	char target[PATH_MAX];
	const char *other = target;
	char *slash;

	if (!check_path(&t->target, target))
		return bad(t, "is a link to nowhere", e);
	slash = strrchr(target, '/');
	if (slash) {
		*slash = '\0';
		other = slash + 1;
		other_dir = open_below(u->top, target, O_PATH | O_DIRECTORY);
		if (other_dir < 0)
			return bad(t, "is a link to nowhere", e);
	}
	while (linkat(slash ? other_dir : u->top, other, dirfd, name, 0) < 0)
		if (!make_way(u, dirfd, name))
			return bad(t, "is a link that can't be made", e);
	return 0;
}

static int make_node(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e)
{
	mode_t type = t->type == PB__TREE_ENTRY__TYPE__FIFO ? S_IFIFO :
		t->type == PB__TREE_ENTRY__TYPE__SOCKET	    ? S_IFSOCK
							    : S_IFCHR;

	while (mknodat(dirfd, name, type | 0600, makedev(0, 0)) < 0)
		if (!make_way(u, dirfd, name))
			return errno == EEXIST ? bad(t, "comes twice", e)
					       : err_errno(e, -errno, "%s", name);
	fchmodat(dirfd, name, t->mode & 07777, 0);
	set_mtime(dirfd, name, t->mtime_ns);
	return 0;
}

typedef int (*maker)(struct unpack *u, int dirfd, const char *name, const Pb__TreeEntry *t,
	struct err *e);

static const maker makers[] = {
	[PB__TREE_ENTRY__TYPE__REGULAR] = make_regular,
	[PB__TREE_ENTRY__TYPE__DIRECTORY] = make_directory,
	[PB__TREE_ENTRY__TYPE__SYMLINK] = make_symlink,
	[PB__TREE_ENTRY__TYPE__HARDLINK] = make_hard_link,
	[PB__TREE_ENTRY__TYPE__FIFO] = make_node,
	[PB__TREE_ENTRY__TYPE__SOCKET] = make_node,
	[PB__TREE_ENTRY__TYPE__WHITEOUT] = make_node,
};

static int make_entry(struct unpack *u, const Pb__TreeEntry *t, struct err *e)
{
	char path[PATH_MAX];
	const char *name;
	int dirfd;

	if (!check_path(&t->path, path))
		return bad(t, "is not a path", e);
	if ((unsigned)t->type >= ARRAY_SIZE(makers))
		return bad(t, "is of an unknown sort", e);
	dirfd = open_parent(u, path, &name);
	if (dirfd == -ENOMEM || dirfd == -EMFILE || dirfd == -ENFILE)
		return err_errno(e, dirfd, "%s", path);
	if (dirfd < 0)
		return bad(t, "has no directory", e);
	if (u->changed && t->type != PB__TREE_ENTRY__TYPE__DIRECTORY &&
		(is_in(t, LAYER) || is_in(t, WORK)))
		*u->changed = true;
	return makers[t->type](u, dirfd, name, t, e);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The file that was filled is complete: its mtime was changed by the filling. */
static void end_file(struct unpack *u)
{
	if (u->file && u->file_fd >= 0) {
		struct timespec times[2] = {
			{.tv_nsec = UTIME_OMIT}, io_timespec_of(u->file->mtime_ns)};

		futimens(u->file_fd, times);
		fchmod(u->file_fd, u->file->mode & 07777);
	}
	u->file_fd = close_fd(u->file_fd);
	u->file = NULL;
}

static int read_record(struct unpack *u, const struct proto_frame *f, struct err *e)
{
	int r = 0;

	end_file(u);
	if (u->batch)
		pb__tree__free_unpacked(u->batch, NULL);
	u->batch = pb__tree__unpack(NULL, f->len, f->data);
	if (!u->batch)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the session's files cannot be parsed");
	for (size_t i = 0; r == 0 && i < u->batch->n_entries; i++)
		r = make_entry(u, u->batch->entries[i], e);
	return r;
}

static int find_file(struct unpack *u, uint64_t id, struct err *e)
{
	char path[PATH_MAX];

	if (u->file && u->file->id == id)
		return 0;
	end_file(u);
	for (size_t i = 0; id && u->batch && i < u->batch->n_entries; i++) {
		const Pb__TreeEntry *t = u->batch->entries[i];

		if (t->id != id || t->type != PB__TREE_ENTRY__TYPE__REGULAR ||
			!check_path(&t->path, path))
			continue;
		/* It may be read-only to its owner by now. */
		u->file_fd = open_below(u->top, path, O_WRONLY | O_NONBLOCK);
		if (u->file_fd == -EACCES) {
			_cleanup_close_ int o = open_below(u->top, path, O_PATH);
			char self[64];

			snprintf(self, sizeof(self), "/proc/self/fd/%d", o);
			if (o >= 0 && chmod(self, 0600) == 0)
				u->file_fd = open_below(u->top, path, O_WRONLY | O_NONBLOCK);
		}
		if (u->file_fd < 0)
			return err_errno(e, u->file_fd, "%s", path);
		u->file = t;
		return 0;
	}
	return err_set(e, ERR_IMAGE, -EBADMSG, "contents of a file that is not there");
}

static int read_data(struct unpack *u, const struct proto_frame *f, struct err *e)
{
	int r = find_file(u, f->subject, e);

	if (r < 0)
		return r;
	if (f->offset > u->file->size || f->len > u->file->size - f->offset)
		return bad(u->file, "has contents beyond its end", e);
	r = io_pwrite_full(u->file_fd, f->data, f->len, (off_t)f->offset);
	return r < 0 ? err_errno(e, r, "cannot write the session's files") : 0;
}

/* Children come after their parents, so the last directory is a deepest one. */
static int end_directories(struct unpack *u, struct err *e)
{
	for (size_t i = u->n_dirs; i > 0; i--) {
		const struct dir *d = &u->dirs[i - 1];
		_cleanup_close_ int fd = open_below(u->top, d->path, O_RDONLY | O_DIRECTORY);
		struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, io_timespec_of(d->mtime_ns)};

		if (fd < 0)
			return err_errno(e, fd, "%s", d->path);
		futimens(fd, times);
		if (fchmod(fd, d->mode) < 0)
			return err_errno(e, -errno, "%s", d->path);
	}
	return 0;
}

static int read_frames(struct unpack *u, struct proto_reader *in, struct err *e)
{
	for (;;) {
		struct proto_frame f;
		int r = proto_read(in, &f, e);

		if (r < 0)
			return r;
		if (f.type == PROTO_END || f.kind != PROTO_KIND_TREE) {
			proto_unread(in);
			end_file(u);
			return end_directories(u, e);
		}
		r = f.type == PROTO_RECORD ? read_record(u, &f, e) : read_data(u, &f, e);
		if (r < 0)
			return r;
		/* Somebody may wait for them who has the rest later. */
		if (f.type == PROTO_RECORD && u->batch->last)
			return end_directories(u, e);
	}
}

static struct unpack *unpack_new(int dirfd, bool *changed)
{
	struct unpack *u = calloc(1, sizeof(*u));

	if (u)
		*u = (struct unpack){
			.top = dirfd, .changed = changed, .parent_fd = -1, .file_fd = -1};
	return u;
}

static void unpack_free(struct unpack *u)
{
	end_file(u);
	close_fd(u->parent_fd);
	for (size_t i = 0; i < u->n_dirs; i++)
		free(u->dirs[i].path);
	free(u->dirs);
	if (u->batch)
		pb__tree__free_unpacked(u->batch, NULL);
	free(u);
}

int ckpt_tree_read(int dirfd, struct proto_reader *in, bool *changed, struct err *e)
{
	struct unpack *u = unpack_new(dirfd, changed);
	int r;

	if (!u)
		return err_errno(e, -ENOMEM, "session's files");
	r = read_frames(u, in, e);
	unpack_free(u);
	return r;
}

int ckpt_tree_make_layer(int dirfd, const void *layer, size_t len, struct err *e)
{
	struct unpack *u = unpack_new(dirfd, NULL);
	int r = 0;

	if (!u)
		return err_errno(e, -ENOMEM, "session's files");
	u->batch = pb__tree__unpack(NULL, len, layer);
	if (!u->batch || u->batch->n_entries > FILETREE_LAYER)
		r = err_set(e, ERR_IMAGE, -EBADMSG, "the session's layer cannot be parsed");
	for (size_t i = 0; r == 0 && i < u->batch->n_entries; i++) {
		const Pb__TreeEntry *t = u->batch->entries[i];

		r = t->type == PB__TREE_ENTRY__TYPE__DIRECTORY && is_in(t, LAYER)
			    ? make_entry(u, t, e)
			    : bad(t, "is not in the layer", e);
	}
	if (r == 0)
		r = end_directories(u, e);
	unpack_free(u);
	return r;
}
