// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * seen - files that are mapped, looked at before the session is stopped for a snapshot.
 *
 * Theory of operation
 *
 * What a process has mapped is read while it sleeps (before.c).  Who sleeps has the same mappings
 * later, but somebody else may have given their files other names, or none.  A path is still right
 * if it leads to the inode that the mapping names:
 *
 *      maps: path, inode; the path leads to that inode; what it is recognised by        (the session runs)
 *      the path leads to the same inode, as large and as old as it was                   (it stands still)
 *
 * Each file is looked at once, however many have it mapped.  Where inodes of maps and of stat(2)
 * differ, as on some overlays, nothing is known.  A mapping whose file is deleted has a name that
 * nobody can change.
 *
 * What a file is recognised by (file.c) takes longest, and is taken over if size and times are what
 * they were.  That does not tell of a file that is written to by a shared mapping: then it is not.
 * To open a file is an event, which a program may be waiting for (kinds/find_ahead.c): then no file
 * is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

#define MAX_FILES 65536

struct file {
	char *path; /* of the maps */
	uint64_t ino;
	struct stat st;
	struct ckpt_file_mark mark;
	bool written; /* by somebody who has it mapped, perhaps */
	bool known, marked, same;
};

struct ckpt_seen {
	const struct ckpt_world *world;
	bool may_open;
	struct file *files; /* by inode and path */
	size_t n;
};

static int compare(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return strcmp(x->path, y->path);
}

static bool has_name(const struct proc_vma *v)
{
	return v->path[0] == '/' && !v->deleted;
}

static bool is_same_name(const struct proc_vma *a, const struct proc_vma *b)
{
	return a->ino == b->ino && strcmp(a->path, b->path) == 0;
}

/* As the kernel told it, which may not be how the session says it. */
static int open_path(const struct ckpt_seen *s, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, s->world->root_fd, path + 1, &how, sizeof(how));
}

static bool stat_path(const struct ckpt_seen *s, const char *path, struct stat *ret)
{
	_cleanup_close_ int fd = open_path(s, path, O_PATH);

	return fd >= 0 && fstat(fd, ret) == 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- while it runs -------------------------------------------------------------------------- */

static int look_at(void *ctx, size_t i, struct err *e)
{
	struct ckpt_seen *s = ctx;
	struct file *f = &s->files[i];
	_cleanup_close_ int fd = -1;
	struct stat now;

	f->known = stat_path(s, f->path, &f->st) && f->st.st_ino == f->ino;
	if (!f->known || f->written || !s->may_open || !S_ISREG(f->st.st_mode))
		return 0;
	fd = open_path(s, f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &now) < 0 || !is_same_inode(&now, &f->st))
		return 0;
	f->st = now;
	ckpt_file_mark(fd, &now, &f->mark);
	f->marked = true;
	return 0;
}

static void put_file(struct ckpt_seen *s, const struct proc_vma *v)
{
	struct file *f = &s->files[s->n++];

	f->path = v->path;
	f->ino = v->ino;
	f->written = v->shared && proc_vma_has(v, "mw");
}

/* Each once, with a path of its own. */
static void make_unique(struct ckpt_seen *s)
{
	size_t n = 0, all = s->n;

	sort_array(s->files, all, sizeof(*s->files), compare);
	for (size_t i = 0; i < all; i++) {
		if (n && compare(&s->files[n - 1], &s->files[i]) == 0)
			s->files[n - 1].written |= s->files[i].written;
		else
			s->files[n++] = s->files[i];
	}
	for (s->n = 0; s->n < n; s->n++) {
		s->files[s->n].path = strdup(s->files[s->n].path);
		if (!s->files[s->n].path)
			return;
	}
}

static void put_files(struct ckpt_seen *s, const struct proc_maps *m)
{
	const struct proc_vma *last = NULL;

	for (size_t i = 0; i < m->n && s->n < MAX_FILES; i++) {
		const struct proc_vma *v = &m->vmas[i];

		/* The mappings of one file follow each other. */
		if (!has_name(v) || (last && !v->shared && is_same_name(last, v)))
			continue;
		put_file(s, v);
		last = v;
	}
}

struct ckpt_seen *ckpt_seen_look(
	const struct ckpt_world *w, bool may_open, struct proc_maps *const *maps, size_t n)
{
	struct ckpt_seen *s = calloc(1, sizeof(*s));
	size_t most = 0;

	for (size_t i = 0; i < n; i++)
		most += maps[i]->n;
	if (s)
		s->files = calloc(MIN(most, (size_t)MAX_FILES) + 1, sizeof(*s->files));
	if (!s || !s->files) {
		free(s);
		return NULL;
	}
	s->world = w;
	s->may_open = may_open;
	for (size_t i = 0; i < n; i++)
		put_files(s, maps[i]);
	make_unique(s);
	par_each(s->n, look_at, s, NULL);
	return s;
}

void ckpt_seen_free(struct ckpt_seen *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		free(s->files[i].path);
	if (s)
		free(s->files);
	free(s);
}

/* ---- while it stands still ------------------------------------------------------------------ */

static int look_again(void *ctx, size_t i, struct err *e)
{
	struct ckpt_seen *s = ctx;
	struct file *f = &s->files[i];
	struct stat now;

	f->same = f->known && stat_path(s, f->path, &now) && is_same_inode(&now, &f->st);
	f->marked = f->marked && f->same && now.st_size == f->st.st_size &&
		    is_same_time(&now.st_mtim, &f->st.st_mtim) &&
		    is_same_time(&now.st_ctim, &f->st.st_ctim);
	return 0;
}

void ckpt_seen_look_again(struct ckpt_seen *s)
{
	par_each(s->n, look_again, s, NULL);
}

static const struct file *find(const struct ckpt_seen *s, const char *path, uint64_t ino)
{
	struct file key = {.path = (char *)path, .ino = ino};

	return s->n ? bsearch(&key, s->files, s->n, sizeof(key), compare) : NULL;
}

bool ckpt_seen_all(const struct ckpt_seen *s, const struct proc_maps *m)
{
	const struct proc_vma *last = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct proc_vma *v = &m->vmas[i];
		const struct file *f;

		if (!has_name(v) || (last && is_same_name(last, v)))
			continue;
		f = find(s, v->path, v->ino);
		if (!f || !f->same)
			return false;
		last = v;
	}
	return true;
}

bool ckpt_seen_mark(
	const struct ckpt_seen *s, const char *path, uint64_t ino, struct ckpt_file_mark *ret)
{
	const struct file *f = find(s, path, ino);

	if (!f || !f->same || !f->marked)
		return false;
	*ret = f->mark;
	return true;
}
