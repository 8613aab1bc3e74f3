// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs/mirror.h. */
#include "supervisor/rewrite/procfs/mirror.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

enum order { ANY, FORWARDS, BACKWARDS };

struct procfs_mirror {
	char path[PATH_MAX]; /* of its uppermost directory, as the kernel spells it */
	int top, turn;	     /* directories */
	enum order order;
	size_t made; /* entries, since directories were removed */
};

/* ---- lists ---------------------------------------------------------------------------------- */

int mirror_list_add(struct mirror_list *l, const char *name, unsigned char type)
{
	if (l->n == MIRROR_MAX)
		return -ENOMEM;
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct mirror_entry *v = realloc(l->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->cap = cap;
	}
	snprintf(l->v[l->n].name, sizeof(l->v[l->n].name), "%s", name);
	l->v[l->n++].type = type;
	return 0;
}

int mirror_list_read(struct mirror_list *l, int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), r = 0;
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		r = -errno;
		close_fd(fd);
		return r;
	}
	while (r == 0) {
		const struct dirent *d = (errno = 0, readdir(dir));

		if (!d)
			return -errno;
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			r = mirror_list_add(l, d->d_name, d->d_type);
	}
	return r;
}

void mirror_list_fini(struct mirror_list *l)
{
	free(l->v);
	*l = (struct mirror_list){0};
}

static bool same(const struct mirror_entry *a, const struct mirror_entry *b)
{
	return !strcmp(a->name, b->name) && (a->type == DT_DIR) == (b->type == DT_DIR) &&
	       (a->type == DT_LNK) == (b->type == DT_LNK);
}

static bool are_same(const struct mirror_list *a, const struct mirror_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!same(&a->v[i], &b->v[i]))
			return false;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct mirror_entry *)a)->name, ((const struct mirror_entry *)b)->name);
}

static bool has(const struct mirror_list *sorted, const struct mirror_entry *one)
{
	const struct mirror_entry *found =
		sort_find(one, sorted->v, sorted->n, sizeof(*one), by_name);

	return found && same(found, one);
}

static int sorted_copy(const struct mirror_list *l, struct mirror_list *ret)
{
	for (size_t i = 0; i < l->n; i++)
		if (mirror_list_add(ret, l->v[i].name, l->v[i].type) < 0)
			return -ENOMEM;
	sort_array(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

/* ---- making a directory right --------------------------------------------------------------- */

static int make(int dir, const struct mirror_entry *one)
{
	int fd = -1, r;

	if (one->type == DT_DIR) {
		r = mkdirat(dir, one->name, 0755);
	} else if (one->type == DT_LNK) {
		r = symlinkat("/proc", dir, one->name);
	} else {
		fd = openat(dir, one->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		r = fd;
		close_fd(fd);
	}
	return r < 0 ? -errno : 0;
}

/* Every entry out and in again: the directory lists them in the order of their coming. */
static void put_in_order(const struct procfs_mirror *m, int dir, const struct mirror_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *name = list->v[m->order == FORWARDS ? i : list->n - 1 - i].name;

		if (renameat(dir, name, m->turn, name) == 0)
			renameat(m->turn, name, dir, name);
	}
}

static int fill(struct procfs_mirror *m, int dir, const struct mirror_list *list)
{
	_cleanup_list_ struct mirror_list is = {0}, shall = {0}, was = {0};
	int r = mirror_list_read(&is, dir, ".");

	if (r < 0 || are_same(&is, list))
		return r;
	r = sorted_copy(list, &shall);
	if (r == 0)
		r = sorted_copy(&is, &was);
	for (size_t i = 0; r == 0 && i < was.n; i++)
		if (!has(&shall, &was.v[i]))
			r = io_rm_rf(dir, was.v[i].name);
	for (size_t i = 0; r == 0 && i < shall.n; i++)
		if (!has(&was, &shall.v[i])) {
			r = make(dir, &shall.v[i]);
			m->made++;
		}
	if (r < 0 || m->order == ANY || list->n > MIRROR_ORDERED)
		return r;
	mirror_list_fini(&is);
	r = mirror_list_read(&is, dir, ".");
	if (r == 0 && !are_same(&is, list))
		put_in_order(m, dir, list);
	return r;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Goes down to @path, making what is not there; a link that somebody put there leads nowhere. */
static int descend(struct procfs_mirror *m, const char *path)
{
	int dir = openat(m->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (dir >= 0 && *path) {
		size_t len = strcspn(path, "/");
		char name[NAME_MAX + 1];
		int below;

		if (len > NAME_MAX) {
			close_fd(dir);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + (path[len] == '/');
		m->made += mkdirat(dir, name, 0755) == 0;
		below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close_fd(dir);
		dir = below;
	}
	return dir < 0 ? -errno : dir;
}

/* What is of processes; all else is little. */
static void begin_anew(struct procfs_mirror *m)
{
	_cleanup_list_ struct mirror_list all = {0};

	mirror_list_read(&all, m->top, ".");
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].name[0] >= '1' && all.v[i].name[0] <= '9')
			io_rm_rf(m->top, all.v[i].name);
	m->made = 0;
}

static int open_right(struct procfs_mirror *m, const char *path, size_t more)
{
	if (m->made + more > MIRROR_MAX)
		begin_anew(m);
	return descend(m, path);
}

int procfs_mirror_open(
	struct procfs_mirror *m, const char *path, const struct mirror_list *list, int flags)
{
	_cleanup_close_ int dir = open_right(m, path, list ? list->n : 0);
	int r, fd;

	if (dir < 0)
		return take_fd(&dir);
	r = list ? fill(m, dir, list) : 0;
	if (r < 0)
		return r;
	fd = openat(dir, ".", flags | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

const char *procfs_mirror_below(const struct procfs_mirror *m, const char *host)
{
	size_t n = strlen(m->path);

	if (strncmp(host, m->path, n) || (host[n] && host[n] != '/'))
		return NULL;
	return host + n + (host[n] == '/');
}

/* ---- making it ------------------------------------------------------------------------------ */

/* In which order this file system lists what was made one after the other. */
static enum order try_order(int dir)
{
	static const char *const names[] = {"b", "a", "d", "c"};
	_cleanup_list_ struct mirror_list l = {0};
	bool forwards = true, backwards = true;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (mkdirat(dir, names[i], 0700) < 0)
			return ANY;
	if (mirror_list_read(&l, dir, ".") < 0)
		return ANY;
	for (size_t i = 0; i < l.n; i++) {
		forwards &= !strcmp(l.v[i].name, names[i % ARRAY_SIZE(names)]);
		backwards &= !strcmp(l.v[l.n - 1 - i].name, names[i % ARRAY_SIZE(names)]);
		unlinkat(dir, l.v[i].name, AT_REMOVEDIR);
	}
	if (l.n != ARRAY_SIZE(names) || forwards == backwards)
		return ANY;
	return forwards ? FORWARDS : BACKWARDS;
}

static int make_below(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int prepare(struct procfs_mirror *m, const char *path)
{
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *real = NULL;
	char self[64];

	if (dir < 0)
		return -errno;
	m->turn = make_below(dir, "turn");
	m->top = make_below(dir, "proc");
	if (m->turn < 0 || m->top < 0)
		return MIN(m->turn, m->top);
	m->order = try_order(m->turn);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", m->top);
	real = io_readlink(AT_FDCWD, self);
	if (!real || strlen(real) >= sizeof(m->path))
		return real ? -ENAMETOOLONG : -errno;
	snprintf(m->path, sizeof(m->path), "%s", real);
	return 0;
}

int procfs_mirror_create(struct procfs_mirror **ret, const char *path, struct err *e)
{
	struct procfs_mirror *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	if (m) {
		m->top = -1;
		m->turn = -1;
		r = prepare(m, path);
	}
	if (r < 0) {
		procfs_mirror_free(m);
		return err_errno(e, r, "directories of /proc in %s", path);
	}
	*ret = m;
	return 0;
}

void procfs_mirror_free(struct procfs_mirror *m)
{
	if (!m)
		return;
	close_fd(m->top);
	close_fd(m->turn);
	free(m);
}
