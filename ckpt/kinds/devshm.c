// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * devshm - the contents of the session's /dev/shm.
 *
 * Theory of operation
 *
 * /dev/shm is a tmpfs of the session's own and ends with its mount namespace, so what is in it
 * travels in the image: files, directories, symlinks, FIFOs, with modes, owners, times and hard
 * links.  Sockets are made again by those who had bound them.  Whoever has a file open or mapped
 * refers to it by path: DEVSHM is created before all of them.
 *
 * The record lists the entries, directories before what is in them; each file has a part of one
 * offset space for its DATA (`data_at`), holes are not written.  Times are set at the very end,
 * when nobody writes any more, and those of files also at first: whoever has one open compares.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/stash.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/memory.pb-c.h"

#define DIRECTORY   "dev/shm"
#define MAX_ENTRIES 262144
#define MAX_DEPTH   64
#define MAX_SIZE    (1ULL << 46)

/* ---- dump ----------------------------------------------------------------------------------- */

/* The walk: entries as found, and what is needed to see hard links. */
struct walk {
	Pb__ShmEntry **entries;
	struct inode {
		uint64_t ino;
		nlink_t nlink;
	} * inodes;
	size_t n, cap;
	uint64_t data_at;
	const struct ckpt_world *world;
};

static void walk_fini(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->entries[i]->path);
		if (*w->entries[i]->target)
			free(w->entries[i]->target);
		free(w->entries[i]);
	}
	free(w->entries);
	free(w->inodes);
}

static int open_shm(struct ckpt_dump *d, struct err *e)
{
	int fd;

	/* The host's own, all of it. */
	if (d->world->ns_mnt < 0 && !d->world->paths)
		return -ENOENT;
	fd = ckpt_where_open(d->world, "/" DIRECTORY, O_RDONLY | O_DIRECTORY);
	if (fd < 0 && fd != -ENOENT)
		return err_errno(e, fd, "/dev/shm");
	return fd;
}

/*
 * Opens an entry for reading even where its mode forbids that: the owner may lend himself the
 * right for a moment, while nobody in the session runs.
 */
static int open_entry(int dirfd, const char *name, const struct stat *st, int flags)
{
	int fd = openat(dirfd, name, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	if (fchmodat(dirfd, name, (st->st_mode | S_IRUSR | S_IXUSR) & 07777, 0) < 0)
		return -EACCES;
	fd = openat(dirfd, name, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	fchmodat(dirfd, name, st->st_mode & 07777, 0);
	return fd < 0 ? -errno : fd;
}

static Pb__ShmEntry *add_entry(struct walk *w, const char *path, const struct stat *st)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		void *entries = realloc(w->entries, cap * sizeof(*w->entries));

		if (entries)
			w->entries = entries;
		void *inodes = realloc(w->inodes, cap * sizeof(*w->inodes));

		if (inodes)
			w->inodes = inodes;
		if (!entries || !inodes)
			return NULL;
		w->cap = cap;
	}
	Pb__ShmEntry *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	pb__shm_entry__init(m);
	m->path = strdup(path);
	if (!m->path) {
		free(m);
		return NULL;
	}
	m->mode = st->st_mode & 07777;
	/* the user's own files are his inside as well, under the number he has there */
	m->uid = st->st_uid == geteuid() ? w->world->uid : st->st_uid;
	m->gid = st->st_gid == getegid() ? w->world->gid : st->st_gid;
	m->atime_sec = st->st_atim.tv_sec;
	m->atime_nsec = (uint32_t)st->st_atim.tv_nsec;
	m->mtime_sec = st->st_mtim.tv_sec;
	m->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
	w->inodes[w->n] = (struct inode){st->st_ino, st->st_nlink};
	w->entries[w->n++] = m;
	return m;
}

/* The path of an earlier entry with the same inode, or NULL. */
static const char *find_link(const struct walk *w, const struct stat *st)
{
	for (size_t i = 0; st->st_nlink > 1 && i < w->n; i++)
		if (w->inodes[i].ino == st->st_ino && w->inodes[i].nlink > 1)
			return w->entries[i]->path;
	return NULL;
}

static int walk_directory(struct walk *w, int fd, const char *path, int depth, struct err *e);

static int walk_entry(
	struct walk *w, int dirfd, const char *name, const char *path, int depth, struct err *e)
{
	const char *link;
	struct stat st;
	Pb__ShmEntry *m;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, -errno, "/dev/shm/%s", path);
	if (S_ISSOCK(st.st_mode))
		return 0;
	link = S_ISDIR(st.st_mode) ? NULL : find_link(w, &st);
	m = add_entry(w, path, &st);
	if (!m)
		return err_errno(e, -ENOMEM, "/dev/shm");
	if (link || S_ISLNK(st.st_mode)) {
		char *target = link ? strdup(link) : io_readlink(dirfd, name);

		if (!target)
			return err_errno(e, -errno, "/dev/shm/%s", path);
		m->target = target;
		m->type = link ? PB__SHM_ENTRY_TYPE__SHM_ENTRY_LINK
			       : PB__SHM_ENTRY_TYPE__SHM_ENTRY_SYMLINK;
	} else if (S_ISDIR(st.st_mode)) {
		int fd = open_entry(dirfd, name, &st, O_DIRECTORY);

		m->type = PB__SHM_ENTRY_TYPE__SHM_ENTRY_DIR;
		if (fd < 0)
			return err_errno(e, fd, "/dev/shm/%s", path);
		return walk_directory(w, fd, path, depth + 1, e);
	} else if (S_ISFIFO(st.st_mode)) {
		m->type = PB__SHM_ENTRY_TYPE__SHM_ENTRY_FIFO;
	} else if (S_ISREG(st.st_mode)) {
		m->type = PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE;
		m->size = (uint64_t)st.st_size;
		m->data_at = w->data_at;
		w->data_at += ALIGN_UP(m->size, PAGE_SIZE);
	} else {
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "/dev/shm/%s is a device", path);
	}
	return 0;
}

/* Takes @fd. */
static int walk_directory(struct walk *w, int fd, const char *path, int depth, struct err *e)
{
	_cleanup_closedir_ DIR *dir = fdopendir(fd);
	char child[PATH_MAX];
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close_fd(fd);
		return err_errno(e, -errno, "/dev/shm/%s", path);
	}
	if (depth > MAX_DEPTH || w->n > MAX_ENTRIES)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG, "too many directories in /dev/shm");
	while (r == 0 && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if ((size_t)snprintf(child, sizeof(child), "%s%s%s", path, *path ? "/" : "",
			    entry->d_name) >= sizeof(child))
			return err_set(e, ERR_UNFREEZABLE, -ENAMETOOLONG, "/dev/shm/%s", path);
		r = walk_entry(w, dirfd(dir), entry->d_name, child, depth, e);
	}
	return r;
}

static int walk_all(struct ckpt_dump *d, struct walk *w, struct err *e)
{
	int fd = open_shm(d, e);

	w->world = d->world;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return walk_directory(w, fd, "", 0, e);
}

static int devshm_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Devshm m = PB__DEVSHM__INIT;
	struct walk w = {0};
	int r = walk_all(d, &w, e);

	m.entries = w.entries;
	m.n_entries = w.n;
	if (r >= 0)
		r = w.n ? ckpt_pack(&m.base, body, e) : 1;
	walk_fini(&w);
	return r;
}

static int write_range(struct ckpt_dump *d, int fd, const Pb__ShmEntry *m, off_t from, off_t to,
	struct err *e)
{
	const struct ckpt_stash_place place = {PROTO_KIND_DEVSHM, 0, m->data_at, false};
	uint64_t done;

	if (ckpt_stash_file(d, &place, fd, (uint64_t)from, (uint64_t)to, &done, e) < 0)
		return err_wrap(e, "/dev/shm/%s", m->path);
	from += (off_t)done;
	while (from < to) {
		size_t len = MIN((size_t)(to - from), (size_t)PROTO_LONG_DATA);
		void *room;
		int r = proto_write_data_begin(d->out, len, &room, e);

		if (r < 0)
			return r;
		ssize_t n = io_pread_full(fd, room, len, from);

		r = proto_write_data_commit(d->out, PROTO_KIND_DEVSHM, 0,
			m->data_at + (uint64_t)from, n > 0 ? (size_t)n : 0, e);
		if (n < 0)
			return err_errno(e, (int)n, "/dev/shm/%s", m->path);
		if (r < 0)
			return r;
		from += (off_t)len;
	}
	return 0;
}

static int write_file(struct ckpt_dump *d, int shm, const Pb__ShmEntry *m, struct err *e)
{
	struct stat st;
	int r;

	if (fstatat(shm, m->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, -errno, "/dev/shm/%s", m->path);
	_cleanup_close_ int fd = open_entry(shm, m->path, &st, 0);

	if (fd < 0)
		return err_errno(e, fd, "/dev/shm/%s", m->path);
	for (off_t at = 0; at < (off_t)m->size;) {
		off_t from = lseek(fd, at, SEEK_DATA), to;

		if (from < 0 && errno == ENXIO)
			return 0;
		to = from < 0 ? from : lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			return err_errno(e, -errno, "/dev/shm/%s", m->path);
		to = MIN(to, (off_t)m->size);
		r = write_range(d, fd, m, from, to, e);
		if (r < 0)
			return r;
		at = to;
	}
	return 0;
}

static int devshm_dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct walk w = {0};
	int r = walk_all(d, &w, e);

	_cleanup_close_ int shm = w.n ? open_shm(d, e) : -1;
	for (size_t i = 0; r >= 0 && i < w.n; i++)
		if (w.entries[i]->type == PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE && w.entries[i]->size)
			r = write_file(d, shm, w.entries[i], e);
	walk_fini(&w);
	return r < 0 ? r : 0;
}

/* ---- restore -------------------------------------------------------------------------------- */

struct shm_state {
	int dir;
	int fd;	     /* of the file whose DATA came last */
	size_t open; /* its index */
	Pb__Devshm *m;
};

static bool path_is_safe(const char *path)
{
	size_t len = strlen(path);

	if (!len || len >= PATH_MAX || *path == '/')
		return false;
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (!strncmp(p, "..", 2) && (p[2] == '/' || p[2] == '\0'))
			return false;
	}
	return true;
}

/* Opens below /dev/shm without ever leaving it by a symlink. */
static int open_below(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int make_file(int dir, const Pb__ShmEntry *m)
{
	_cleanup_close_ int fd = open_below(dir, m->path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return fd;
	return ftruncate(fd, (off_t)m->size) < 0 ? -errno : 0;
}

static int make_entry(int dir, const Pb__ShmEntry *m)
{
	int r = 0;

	if (!path_is_safe(m->path) || m->size > MAX_SIZE || m->data_at > MAX_SIZE)
		return -EBADMSG;
	switch (m->type) {
	case PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE:
		return make_file(dir, m);
	case PB__SHM_ENTRY_TYPE__SHM_ENTRY_DIR:
		r = mkdirat(dir, m->path, 0700);
		break;
	case PB__SHM_ENTRY_TYPE__SHM_ENTRY_SYMLINK:
		r = symlinkat(m->target, dir, m->path);
		break;
	case PB__SHM_ENTRY_TYPE__SHM_ENTRY_FIFO:
		r = mkfifoat(dir, m->path, 0600);
		break;
	case PB__SHM_ENTRY_TYPE__SHM_ENTRY_LINK:
		if (!path_is_safe(m->target))
			return -EBADMSG;
		r = linkat(dir, m->target, dir, m->path, 0);
		break;
	default:
		return -EBADMSG;
	}
	return r < 0 ? -errno : 0;
}

static int set_owner(const struct ckpt_world *w, int dir, const Pb__ShmEntry *m)
{
	struct stat st;

	/* Without a user namespace all are the caller's, whoever that is inside. */
	if (w->names)
		return 0;
	if (fstatat(dir, m->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* an owner that this session does not know stays whoever it is */
	if ((st.st_uid != m->uid || st.st_gid != m->gid) &&
		fchownat(dir, m->path, m->uid, m->gid, AT_SYMLINK_NOFOLLOW) < 0)
		log_debug("/dev/shm/%s: owner %u:%u is lost", m->path, m->uid, m->gid);
	return 0;
}

static int set_times(int dir, const Pb__ShmEntry *m)
{
	struct timespec times[2] = {
		{m->atime_sec, m->atime_nsec}, {m->mtime_sec, m->mtime_nsec}};

	return utimensat(dir, m->path, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int devshm_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	struct shm_state *s = calloc(1, sizeof(*s));
	char room[PATH_MAX];

	if (!s)
		return err_errno(e, -ENOMEM, "/dev/shm");
	r->state = s;
	s->fd = -1;
	s->dir = open(ckpt_where_host(b->world, "/" DIRECTORY, room),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_errno(e, -errno, "/dev/shm");
	s->m = pb__devshm__unpack(NULL, r->len, r->body);
	if (!s->m || s->m->n_entries > MAX_ENTRIES)
		return err_set(e, ERR_IMAGE, -EBADMSG, "record of /dev/shm is damaged");
	for (size_t i = 0; i < s->m->n_entries; i++) {
		const Pb__ShmEntry *m = s->m->entries[i];
		int ret = make_entry(s->dir, m);

		if (ret >= 0)
			ret = set_owner(b->world, s->dir, m);
		if (ret < 0)
			return err_errno(e, ret, "/dev/shm/%s", m->path);
	}
	/* files get their modes now, they may be opened next; directories must stay writable */
	for (size_t i = 0; i < s->m->n_entries; i++) {
		const Pb__ShmEntry *m = s->m->entries[i];

		if ((m->type == PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE ||
			    m->type == PB__SHM_ENTRY_TYPE__SHM_ENTRY_FIFO) &&
			(fchmodat(s->dir, m->path, m->mode & 07777, 0) < 0 ||
				set_times(s->dir, m) < 0))
			return err_errno(e, -errno, "/dev/shm/%s", m->path);
	}
	return 0;
}

/* Opens the file of entry @i for writing, whatever its mode is. */
static int open_for_data(struct shm_state *s, size_t i, struct err *e)
{
	const Pb__ShmEntry *m = s->m->entries[i];

	if (s->fd >= 0 && s->open == i)
		return 0;
	s->fd = close_fd(s->fd);
	s->fd = open_below(s->dir, m->path, O_WRONLY, 0);
	if (s->fd == -EACCES && fchmodat(s->dir, m->path, 0600, 0) == 0) {
		s->fd = open_below(s->dir, m->path, O_WRONLY, 0);
		fchmodat(s->dir, m->path, m->mode & 07777, 0);
	}
	if (s->fd < 0)
		return err_errno(e, s->fd, "/dev/shm/%s", m->path);
	s->open = i;
	return 0;
}

static int devshm_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset,
	const void *data, size_t len, struct err *e)
{
	struct shm_state *s = r->state;

	for (size_t k = 0; s && s->m && k < s->m->n_entries; k++) {
		/* data comes in order: most often it is the same file again */
		size_t i = (s->open + k) % s->m->n_entries;
		const Pb__ShmEntry *m = s->m->entries[i];

		if (m->type != PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE || offset < m->data_at ||
			offset - m->data_at >= m->size || len > m->size - (offset - m->data_at))
			continue;
		int ret = open_for_data(s, i, e);

		if (ret < 0)
			return ret;
		ret = io_pwrite_full(s->fd, data, len, (off_t)(offset - m->data_at));
		return ret < 0 ? err_errno(e, ret, "/dev/shm/%s", m->path) : 0;
	}
	return err_set(e, ERR_IMAGE, -EBADMSG, "data of no file in /dev/shm");
}

static int devshm_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct shm_state *s = r->state;
	int ret = 0;

	/* backwards: what is in a directory comes before the directory itself */
	for (size_t i = s->m->n_entries; i > 0 && ret >= 0; i--) {
		const Pb__ShmEntry *m = s->m->entries[i - 1];

		if (m->type == PB__SHM_ENTRY_TYPE__SHM_ENTRY_DIR &&
			fchmodat(s->dir, m->path, m->mode & 07777, 0) < 0)
			ret = err_errno(e, -errno, "/dev/shm/%s", m->path);
		/* contents have taken set-user-id and the like away */
		if (m->type == PB__SHM_ENTRY_TYPE__SHM_ENTRY_FILE && m->mode & 06000 &&
			fchmodat(s->dir, m->path, m->mode & 07777, 0) < 0)
			ret = err_errno(e, -errno, "/dev/shm/%s", m->path);
		if (ret >= 0 && set_times(s->dir, m) < 0)
			ret = err_errno(e, -errno, "/dev/shm/%s", m->path);
	}
	pb__devshm__free_unpacked(s->m, NULL);
	s->m = NULL;
	s->fd = close_fd(s->fd);
	s->dir = close_fd(s->dir);
	return ret;
}

static void devshm_show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Devshm *m = pb__devshm__unpack(NULL, len, body);

	if (!m)
		return;
	fprintf(out, "%zu entries", m->n_entries);
	pb__devshm__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_devshm = {
	.number = PROTO_KIND_DEVSHM,
	.name = "/dev/shm",
	.scope = CKPT_SESSION,
	.dump = devshm_dump,
	.dump_data = devshm_dump_data,
	.create = devshm_create,
	.data = devshm_data,
	.finish = devshm_finish,
	.show = devshm_show,
};
