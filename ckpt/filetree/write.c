// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * filetree/write - the session's own files into an image: kind TREE.
 *
 * Theory of operation
 *
 * The directory is walked depth first, each directory's names in alphabetic order, so that the
 * same files give the same bytes.  Entries gather in a batch, which becomes one record; a small
 * file's contents are in its entry, a large one's follow the record as DATA, without its holes.
 *
 *      record {entries}  DATA id 1 ... DATA id 1  DATA id 2 ...   record {entries} ...
 *
 * Nothing is followed: names are taken one at a time below descriptors (O_NOFOLLOW).  A file or
 * directory whose mode forbids its owner to read is changed for a moment; overlayfs leaves such a
 * directory in its work directory.
 *
 * A file of which the session has a lease is read as ckpt/survey/leased.h says.
 *
 * With the files beneath (ckpt_tree_write_all), those in use (ckpt/survey/lower.c) follow as if
 * they were in the upper layer, unless that has them already; at a resume they then cover whatever
 * the new host has there.  They are the user's from then on, so what the session could not write to
 * loses its write permission, and set-user-ID bits go.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ckpt/ckpt.h"
#include "ckpt/filetree/filetree.h"
#include "ckpt/kind.h"
#include "ckpt/survey/leased.h"
#include "ckpt/survey/lower.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "ckpt/xattrs.h"
#include "proto/files.pb-c.h"

#define PIECE (1u << 20)

/* An inode with several names, as it was met first. */
struct link {
	dev_t dev;
	ino_t ino;
	char *path;
};

/* Contents to be written behind the batch. */
struct later {
	int dirfd; /* borrowed */
	char *path; /* below it */
	uint64_t id;
	uint64_t size;
};

struct walk {
	int top; /* borrowed */
	const struct ckpt_dump *frozen; /* NULL: nobody has anything open */
	bool has_leases;
	struct proto_writer *out;
	Pb__Tree batch;
	size_t batch_bytes;
	struct later later[FILETREE_BATCH];
	size_t n_later;
	uint64_t next_id;
	void *links; /* tsearch(3) tree of struct link */
	void *below; /* tsearch(3) tree of paths of directories beneath that have been written */
	void *room; /* PIECE bytes */
	size_t most; /* entries, all of them directories that can be read; 0: any */
	bool other;  /* then: there is something else, or there are more */
};

/* ---- contents -------------------------------------------------------------------------------- */

static int write_range(struct walk *w, int fd, const struct later *f, off_t from, off_t to,
	struct err *e)
{
	while (from < to) {
		ssize_t n = io_pread_full(fd, w->room, (size_t)MIN(to - from, (off_t)PIECE), from);
		int r;

		if (n < 0)
			return err_errno(e, (int)n, "cannot read %s", f->path);
		if (n == 0)
			return 0;
		r = proto_write_data(w->out, PROTO_KIND_TREE, f->id, (uint64_t)from, w->room,
			(size_t)n, e);
		if (r < 0)
			return r;
		from += n;
	}
	return 0;
}

/* The open file whose lease of the inode of @st is in the way of readers, or NULL. */
static const struct ckpt_file *leased(const struct walk *w, const struct stat *st)
{
	for (size_t i = 0; w->has_leases && i < w->frozen->n_files; i++) {
		const struct ckpt_file *f = w->frozen->files[i];

		if (f->st.st_ino == st->st_ino && f->st.st_dev == st->st_dev && ckpt_leased(f))
			return f;
	}
	return NULL;
}

/* Opens a file for reading, whatever its mode says. */
static int open_readable(int dirfd, const char *name, const struct stat *st)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EACCES) {
		fchmodat(dirfd, name, (st->st_mode & 07777) | 0400, 0);
		fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		fchmodat(dirfd, name, st->st_mode & 07777, 0);
	}
	return fd < 0 ? -errno : fd;
}

static int write_data(struct walk *w, int fd, const struct later *f, struct err *e)
{
	off_t from, to = 0;

	while ((from = lseek(fd, to, SEEK_DATA)) >= 0 && (uint64_t)from < f->size) {
		int r;

		to = lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			break;
		to = MIN(to, (off_t)f->size);
		r = write_range(w, fd, f, from, to, e);
		if (r < 0)
			return r;
	}
	if (from < 0 && errno == EINVAL)
		return write_range(w, fd, f, 0, (off_t)f->size, e);
	return 0;
}

static int write_by_name(
	struct walk *w, const struct later *f, const struct stat *st, struct err *e)
{
	_cleanup_close_ int fd = open_readable(f->dirfd, f->path, st);

	return fd < 0 ? err_errno(e, fd, "cannot open %s", f->path) : write_data(w, fd, f, e);
}

static int write_contents(struct walk *w, const struct later *f, struct err *e)
{
	struct ckpt_leased_reading reading;
	const struct ckpt_file *lease;
	struct stat st;
	int r;

	if (fstatat(f->dirfd, f->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, -errno, "%s", f->path);
	lease = leased(w, &st);
	if (!lease)
		return write_by_name(w, f, &st, e);
	r = ckpt_leased_begin(&reading, lease, e);
	if (r < 0)
		return r;
	/* To look for holes would move the session's position. */
	r = r ? write_range(w, lease->fd, f, 0, (off_t)f->size, e) : write_by_name(w, f, &st, e);
	ckpt_leased_end(&reading);
	return r;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void free_entry(Pb__TreeEntry *t)
{
	if (t) {
		ckpt_xattrs_free(t->xattrs, t->n_xattrs);
		free(t->path.data);
		free(t->target.data);
		free(t->content.data);
	}
	free(t);
}

DEFINE_CLEANUP(entry, Pb__TreeEntry *, free_entry);

static void clear_batch(struct walk *w)
{
	for (size_t i = 0; i < w->batch.n_entries; i++)
		free_entry(w->batch.entries[i]);
	for (size_t i = 0; i < w->n_later; i++)
		free(w->later[i].path);
	w->batch.n_entries = w->n_later = w->batch_bytes = 0;
}

static int flush(struct walk *w, struct err *e)
{
	_cleanup_free_ uint8_t *body = NULL;
	size_t len;
	int r;

	if (w->batch.n_entries == 0 && !w->batch.last)
		return 0;
	len = pb__tree__get_packed_size(&w->batch);
	body = malloc(len);
	if (!body)
		return err_errno(e, -ENOMEM, "session's files");
	pb__tree__pack(&w->batch, body);
	r = proto_write_record(w->out, PROTO_KIND_TREE, 0, body, len, e);
	for (size_t i = 0; r == 0 && i < w->n_later; i++)
		r = write_contents(w, &w->later[i], e);
	clear_batch(w);
	return r;
}

/* Takes @t over. */
static int add_entry(struct walk *w, Pb__TreeEntry *t, struct err *e)
{
	w->batch.entries[w->batch.n_entries++] = t;
	w->batch_bytes += t->path.len + t->content.len + t->target.len + 64;
	for (size_t i = 0; i < t->n_xattrs; i++)
		w->batch_bytes += t->xattrs[i]->value.len;
	if (w->batch.n_entries == FILETREE_BATCH || w->batch_bytes > FILETREE_BATCH_BYTES)
		return flush(w, e);
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int set_bytes(ProtobufCBinaryData *b, const void *data, size_t len)
{
	b->data = malloc(len + 1);
	if (!b->data)
		return -ENOMEM;
	memcpy(b->data, data, len);
	b->len = len;
	return 0;
}

/* A descriptor is not enough: the mode decides at each question. */
static int read_xattrs(int fd, const struct stat *st, Pb__TreeEntry *t)
{
	int r = ckpt_xattrs_read(fd, &t->xattrs, &t->n_xattrs);

	if (r != -EACCES || fchmod(fd, (st->st_mode & 07777) | 0400) < 0)
		return r;
	r = ckpt_xattrs_read(fd, &t->xattrs, &t->n_xattrs);
	fchmod(fd, st->st_mode & 07777);
	return r;
}

/* A regular file by its descriptor. */
static int describe_open(struct walk *w, int fd, const struct stat *st, Pb__TreeEntry *t)
{
	int r = read_xattrs(fd, st, t);

	if (r < 0)
		return r;
	t->size = (uint64_t)st->st_size;
	if (t->size == 0)
		return 0;
	if (t->size <= FILETREE_INLINE) {
		ssize_t n;

		t->content.data = calloc(1, t->size);
		if (!t->content.data)
			return -ENOMEM;
		n = io_pread_full(fd, t->content.data, t->size, 0);
		t->content.len = t->size;
		return n < 0 ? (int)n : 0;
	}
	t->id = ++w->next_id;
	w->later[w->n_later] = (struct later){.dirfd = w->top,
		.path = strdup((char *)t->path.data),
		.id = t->id,
		.size = t->size};
	return w->later[w->n_later].path ? (w->n_later++, 0) : -ENOMEM;
}

static int describe_regular(struct walk *w, int dirfd, const char *name, const struct stat *st,
	Pb__TreeEntry *t)
{
	const struct ckpt_file *lease = leased(w, st);
	struct ckpt_leased_reading reading;
	int r = lease ? ckpt_leased_begin(&reading, lease, NULL) : 0, fd;

	if (r < 0)
		return r;
	fd = r ? lease->fd : open_readable(dirfd, name, st);
	r = fd < 0 ? fd : describe_open(w, fd, st, t);
	if (fd >= 0 && !(lease && fd == lease->fd))
		close(fd);
	if (lease)
		ckpt_leased_end(&reading);
	return r;
}

static int describe_link(int dirfd, const char *name, Pb__TreeEntry *t)
{
	_cleanup_free_ char *target = io_readlink(dirfd, name);

	if (!target)
		return -errno;
	t->type = PB__TREE_ENTRY__TYPE__SYMLINK;
	return set_bytes(&t->target, target, strlen(target));
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static void free_link(void *p)
{
	struct link *l = p;

	free(l->path);
	free(l);
}

/* 1 (and the entry is complete) if another name of the inode has been met. */
static int find_hard_link(struct walk *w, const struct stat *st, Pb__TreeEntry *t)
{
	struct link key = {.dev = st->st_dev, .ino = st->st_ino}, **found, *l;
	int r;

	found = tfind(&key, &w->links, compare_links);
	if (found) {
		t->type = PB__TREE_ENTRY__TYPE__HARDLINK;
		r = set_bytes(&t->target, (*found)->path, strlen((*found)->path));
		return r < 0 ? r : 1;
	}
	l = malloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = key;
	l->path = strdup((char *)t->path.data);
	if (!l->path || !tsearch(l, &w->links, compare_links)) {
		free_link(l);
		return -ENOMEM;
	}
	return 0;
}

/* Fills @t; returns 1 for something that is not taken along. */
static int describe(struct walk *w, int dirfd, const char *name, const struct stat *st,
	Pb__TreeEntry *t)
{
	t->mode = st->st_mode & 07777;
	t->mtime_ns = io_ns_of(st->st_mtim);
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1) {
		int r = find_hard_link(w, st, t);

		if (r != 0)
			return r < 0 ? r : 0;
	}
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return describe_regular(w, dirfd, name, st, t);
	case S_IFLNK:
		return describe_link(dirfd, name, t);
	case S_IFDIR:
		t->type = PB__TREE_ENTRY__TYPE__DIRECTORY;
		return 0;
	case S_IFIFO:
		t->type = PB__TREE_ENTRY__TYPE__FIFO;
		return 0;
	case S_IFSOCK:
		t->type = PB__TREE_ENTRY__TYPE__SOCKET;
		return 0;
	case S_IFCHR:
		t->type = PB__TREE_ENTRY__TYPE__WHITEOUT;
		return st->st_rdev == makedev(0, 0) ? 0 : 1;
	default:
		return 1; /* an ordinary user can't have made it */
	}
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int walk_dir(struct walk *w, int fd, const char *path, struct err *e);

/* A directory, described but for its attributes, and what is in it.  Takes @t over. */
static int walk_into(struct walk *w, int dirfd, const char *name, Pb__TreeEntry *t, struct err *e)
{
	_cleanup_free_ char *path = strdup((char *)t->path.data);
	_cleanup_close_ int fd = -1;
	bool closed = (t->mode & 0500) != 0500;
	mode_t mode = t->mode;
	int r;

	if (closed)
		fchmodat(dirfd, name, mode | 0500, 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : ckpt_xattrs_read(fd, &t->xattrs, &t->n_xattrs);
	if (r < 0) {
		free_entry(t);
		err_errno(e, r, "cannot read directory %s", path);
	} else {
		r = add_entry(w, t, e);
	}
	if (r == 0)
		r = path ? walk_dir(w, fd, path, e) : err_errno(e, -ENOMEM, "session's files");
	/* Contents that are written later are reached through it. */
	if (r == 0 && closed)
		r = flush(w, e);
	if (closed)
		fchmodat(dirfd, name, mode, 0);
	return r;
}

static int too_long(const char *name, struct err *e)
{
	err_set(e, ERR_UNFREEZABLE, -ENAMETOOLONG, "the path of %.80s is too long", name);
	return ckpt_where_unread(e);
}

static int walk_entry(struct walk *w, int dirfd, const char *dir, const char *name, struct err *e)
{
	_cleanup_(cleanup_entry) Pb__TreeEntry *t = malloc(sizeof(*t));
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int r;

	if (!t)
		return err_errno(e, -ENOMEM, "session's files");
	pb__tree_entry__init(t);
	if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", name) < 0) {
		path = NULL;
		return err_errno(e, -ENOMEM, "session's files");
	}
	if (strlen(path) >= PATH_MAX)
		return too_long(name, e);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, -errno, "%s", path);
	if (w->most && (w->batch.n_entries == w->most || !S_ISDIR(st.st_mode) ||
			       (st.st_mode & 0500) != 0500)) {
		w->other = true;
		return 0;
	}
	r = set_bytes(&t->path, path, strlen(path) + 1);
	if (r == 0) {
		t->path.len--; /* it stays a string for us */
		r = describe(w, dirfd, name, &st, t);
	}
	if (r != 0)
		return r < 0 ? err_errno(e, r, "cannot read %s", path) : 0;
	if (t->type == PB__TREE_ENTRY__TYPE__DIRECTORY)
		return walk_into(w, dirfd, name, take_ptr(t), e);
	return add_entry(w, take_ptr(t), e);
}

static int is_name(const struct dirent *d)
{
	return strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
}

/* What stands in the session's directory for a /dev/shm, a /proc and hidden directories
 * (supervisor/rewrite/view/view.h). */
static bool is_made(const char *path, const char *name)
{
	static const char *const made[] = {"shm", "proc", "empty", "programs"};

	for (size_t i = 0; !*path && i < ARRAY_SIZE(made); i++)
		if (strcmp(name, made[i]) == 0)
			return true;
	return false;
}

static int walk_dir(struct walk *w, int fd, const char *path, struct err *e)
{
	struct dirent **names;
	int n = scandirat(fd, ".", &names, is_name, alphasort), r = 0;

	if (n < 0)
		return err_errno(e, -errno, "cannot read directory %s", path);
	for (int i = 0; i < n; i++) {
		if (r == 0 && !w->other && !is_made(path, names[i]->d_name))
			r = walk_entry(w, fd, path, names[i]->d_name, e);
		free(names[i]);
	}
	free(names);
	return r;
}

/* ---- what is beneath ------------------------------------------------------------------------- */

#define UPPER "upper" /* of the session's directory; see supervisor/world/layers.c */

static int compare_paths(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Without what only its owner may do, for it gets another one. */
static uint32_t mode_for_user(int root, const char *name, mode_t mode)
{
	bool writable = faccessat(root, name, W_OK, 0) == 0;

	return mode & (writable ? 01777 : 01555);
}

/* Writes the entry of @name ("usr/lib/x", below the session's root) as one of the upper layer. */
static int write_below(struct walk *w, int root, const char *name, const struct stat *st,
	struct err *e)
{
	_cleanup_(cleanup_entry) Pb__TreeEntry *t = malloc(sizeof(*t));
	char path[PATH_MAX];
	size_t n_later = w->n_later;
	int r;

	if (!t)
		return err_errno(e, -ENOMEM, "%s", name);
	pb__tree_entry__init(t);
	if (snprintf(path, sizeof(path), "%s/%s", UPPER, name) >= (int)sizeof(path))
		return too_long(name, e);
	r = set_bytes(&t->path, path, strlen(path) + 1);
	if (r == 0) {
		t->path.len--;
		r = describe(w, root, name, st, t);
	}
	if (r != 0)
		return r < 0 ? err_errno(e, r, "cannot take /%s along", name) : 0;
	t->mode = mode_for_user(root, name, st->st_mode);
	if (w->n_later > n_later) {
		struct later *l = &w->later[n_later];

		l->dirfd = root;
		memmove(l->path, l->path + sizeof(UPPER), strlen(l->path + sizeof(UPPER)) + 1);
	}
	return add_entry(w, take_ptr(t), e);
}

/* @name, unless the upper layer has it or it has been written. */
static int take_below(struct walk *w, int root, const char *name, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	char *key;

	if (snprintf(path, sizeof(path), "%s/%s", UPPER, name) >= (int)sizeof(path))
		return err_errno(e, -ENAMETOOLONG, "%s", name);
	if (tfind(name, &w->below, compare_paths) ||
		faccessat(w->top, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "/%s", name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	key = strdup(name);
	if (!key || !tsearch(key, &w->below, compare_paths)) {
		free(key);
		return err_errno(e, -ENOMEM, "%s", name);
	}
	return write_below(w, root, name, &st, e);
}

/* A file in use and the directories on the way to it. */
static int take_with_parents(struct walk *w, int root, const char *path, struct err *e)
{
	char part[PATH_MAX];
	int r = 0;

	for (const char *end = strchr(path + 1, '/'); end && r == 0; end = strchr(end + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path - 1), path + 1);
		r = take_below(w, root, part, e);
	}
	return r < 0 ? r : take_below(w, root, path + 1, e);
}

static bool is_under(const char *path, char *const *tops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(tops[i]);

		if (!strncmp(path, tops[i], len) && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

/* @root: the session's /, open as long as contents may have to be read. */
static int walk_below(struct walk *w, const struct ckpt_dump *d, int root, char *const *except,
	size_t n_except, struct err *e)
{
	char **list;
	size_t n;
	int r = ckpt_lower_list(d, &list, &n, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		if (!is_under(list[i], except, n_except))
			r = take_with_parents(w, root, list[i], e);
	ckpt_lower_free(list, n);
	return r;
}

static int write_tree(int dirfd, const struct ckpt_dump *frozen, const struct ckpt_dump *d,
	char *const *except, size_t n_except, struct proto_writer *out, struct err *e)
{
	Pb__TreeEntry *entries[FILETREE_BATCH];
	struct walk *w = calloc(1, sizeof(*w));
	_cleanup_close_ int root = d ? ckpt_where_open(d->world, "/", O_PATH | O_DIRECTORY) : -1;
	int r = -ENOMEM;

	if (w)
		w->room = malloc(PIECE);
	if (!w || !w->room) {
		free(w);
		return err_errno(e, -ENOMEM, "session's files");
	}
	w->top = dirfd;
	w->out = out;
	w->frozen = frozen;
	for (size_t i = 0; frozen && i < frozen->n_files; i++)
		w->has_leases |= ckpt_leased(frozen->files[i]);
	pb__tree__init(&w->batch);
	w->batch.entries = entries;
	r = walk_dir(w, dirfd, "", e);
	if (r == 0 && d)
		r = root < 0 ? err_errno(e, root, "/")
			     : walk_below(w, d, root, except, n_except, e);
	if (r == 0)
		r = flush(w, e);
	w->batch.last = true;
	if (r == 0)
		r = flush(w, e);
	clear_batch(w);
	tdestroy(w->links, free_link);
	tdestroy(w->below, free);
	free(w->room);
	free(w);
	return r < 0 ? err_wrap(e, "the session's files") : 0;
}

int ckpt_tree_write_all(int dirfd, const struct ckpt_dump *d, char *const *except, size_t n_except,
	struct proto_writer *out, struct err *e)
{
	return write_tree(dirfd, d, d, except, n_except, out, e);
}

int ckpt_tree_write(
	int dirfd, const struct ckpt_dump *frozen, struct proto_writer *out, struct err *e)
{
	return write_tree(dirfd, frozen, NULL, NULL, 0, out, e);
}

/* ---- of a layer, its directories ------------------------------------------------------------- */

int ckpt_tree_layer(int dirfd, struct buf *ret, struct err *e)
{
	Pb__TreeEntry *entries[FILETREE_BATCH];
	struct walk *w = calloc(1, sizeof(*w));
	void *room;
	int r;

	if (!w)
		return err_errno(e, -ENOMEM, "session's files");
	w->top = dirfd;
	w->most = FILETREE_LAYER;
	pb__tree__init(&w->batch);
	w->batch.entries = entries;
	r = walk_entry(w, dirfd, "", UPPER, e);
	/* They are set when all is there. */
	for (size_t i = 0; i < w->batch.n_entries; i++)
		entries[i]->mtime_ns = 0;
	room = r == 0 && !w->other ? buf_reserve(ret, pb__tree__get_packed_size(&w->batch)) : NULL;
	if (room)
		ret->len += pb__tree__pack(&w->batch, room);
	r = r < 0 ? r : w->other ? 1 : buf_error(ret);
	clear_batch(w);
	free(w);
	return r;
}
