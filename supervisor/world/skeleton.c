// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * To root inside, the host's files belong to nobody: a file can't be made in /usr/share, since an
 * overlay would have to copy the directory up and give it to an owner who has no number inside.  So
 * all directories that the user can see are made anew, empty, as the user's, and merged over the
 * host's.  Files of the host stay what they are - they can be read, hidden, and replaced by new
 * ones, which is what package managers do - except for those which programs change in place: all
 * of /etc, the package database without its per-package files, logs and caches that are opened for
 * writing.  Of those which the user may not read an empty file stands in; /etc/shadow is made up.
 *
 * There are two parts, each named by a key of what it was made from: etc by the change times of
 * everything in /etc, tree (expensive) by those of the package databases.  A directory that was
 * made later by hand is missing in the tree: then files can't be made in it, nothing worse.
 *
 * A part is built beside its place, by one at a time, and renamed.  Sessions hold a shared lock on
 * it; who builds a new one removes those that nobody holds.
 */
#include "supervisor/world/skeleton.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/base.h"

#define MAX_DEPTH 40
#define MAX_DIRS  500000
#define MAX_COPY  (8 << 20)

/* ---- keys ---------------------------------------------------------------------------------- */

static void mix(uint64_t *key, const void *data, size_t n)
{
	const uint8_t *p = data;

	/* FNV-1a: names a cache, protects nothing. */
	for (size_t i = 0; i < n; i++)
		*key = (*key ^ p[i]) * 0x100000001b3ULL;
}

static void mix_stat(uint64_t *key, const char *name, const struct stat *st)
{
	mix(key, name, strlen(name));
	mix(key, &st->st_ctim, sizeof(st->st_ctim));
	mix(key, &st->st_ino, sizeof(st->st_ino));
}

/* Everything in @dirfd, in an order that does not depend on the directory's. */
static void mix_tree(uint64_t *key, int dirfd, int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(dirfd);
	struct dirent *d;

	if (!dir) {
		close(dirfd);
		return;
	}
	while (depth < MAX_DEPTH && (d = readdir(dir))) {
		uint64_t one = 0xcbf29ce484222325ULL;
		struct stat st;
		int fd;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		mix_stat(&one, d->d_name, &st);
		*key += one;
		if (!S_ISDIR(st.st_mode))
			continue;
		fd = openat(dirfd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			mix_tree(key, fd, depth + 1);
	}
}

static uint64_t key_of(enum skeleton_part part)
{
	static const char *const databases[] = {"/var/lib/dpkg/status", "/var/lib/rpm",
		"/usr/lib/sysimage/rpm", "/var/lib/pacman/local", "/lib/apk/db/installed"};
	uint64_t key = 2; /* the version of what is built below */
	struct stat st;

	if (part == SKELETON_ETC) {
		int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			mix_tree(&key, fd, 0);
		return key;
	}
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++)
		if (stat(databases[i], &st) == 0)
			mix_stat(&key, databases[i], &st);
	return key;
}

/* ---- building ------------------------------------------------------------------------------ */

struct build {
	char path[PATH_MAX]; /* where we are, as the host has it */
	size_t dirs;
	dev_t dev;
};

/* Which files are copied: those that are changed in place rather than replaced. */
static bool wants_files(const char *path)
{
	static const char *const yes[] = {"/etc", "/var/lib", "/var/log", "/var/cache",
		"/var/spool"};
	static const char *const no[] = {"/var/lib/dpkg/info", "/var/lib/apt/lists",
		"/var/cache/apt/archives", "/var/lib/docker",
		"/var/lib/containers", "/var/lib/flatpak", "/var/lib/snapd", "/var/log/journal"};
	bool wanted = false;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		size_t n = strlen(yes[i]);

		wanted |= !strncmp(path, yes[i], n) && (path[n] == '/' || !path[n]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		wanted &= strncmp(path, no[i], strlen(no[i])) != 0;
	return wanted;
}

/* passwd or group, as shadow or gshadow: nobody has a password. */
static void make_shadow(const char *from, const char *format, int dirfd, const char *name)
{
	_cleanup_buf_ struct buf in = BUF_INIT, out = BUF_INIT;
	char *line, *save = NULL;

	if (io_read_file(AT_FDCWD, from, MAX_COPY, &in) < 0 || !buf_cstr(&in))
		return;
	for (line = strtok_r(buf_cstr(&in), "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		buf_printf(&out, "%.*s:*:", (int)strcspn(line, ":"), line);
		buf_put_str(&out, format);
	}
	if (!buf_error(&out))
		io_write_file(dirfd, name, out.data, out.len, 0640);
}

static int copy_file(const struct build *b, int from, int to, const char *name,
	const struct stat *st, struct err *e)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int r;

	if (!strcmp(b->path, "/etc") && !strcmp(name, "shadow"))
		return make_shadow("/etc/passwd", "19000:0:99999:7:::\n", to, name), 0;
	if (!strcmp(b->path, "/etc") && !strcmp(name, "gshadow"))
		return make_shadow("/etc/group", ":\n", to, name), 0;
	if (st->st_size > 0 && st->st_size <= MAX_COPY)
		io_read_file(from, name, MAX_COPY, &data);
	else if (st->st_size > MAX_COPY && strncmp(b->path, "/var/log", 8))
		return 0; /* too large to be worth it; a log may well begin anew */
	r = io_write_file(to, name, data.data, data.len, (st->st_mode & 07777) | 0600);
	return r < 0 ? err_errno(e, r, "cannot copy %s/%s", b->path, name) : 0;
}

/* The host's directory is not the user's to read: root inside gets an empty one of its own. */
static int close_off(int dirfd, const char *name)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsetxattr(fd, "user.overlay.opaque", "y", 1, 0);
	return 0;
}

static int build_dir(struct build *b, int from, int to, int depth, struct err *e);

static int build_entry(struct build *b, DIR *dir, int to, const char *name, int depth,
	struct err *e)
{
	size_t len = strlen(b->path);
	int from, sub, r;
	struct stat st;

	if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != b->dev)
		return 0;
	/* Locks also lie among what is not copied. */
	if (S_ISREG(st.st_mode) && (wants_files(b->path) || !strcmp(name, "lock")))
		return copy_file(b, dirfd(dir), to, name, &st, e);
	if (!S_ISDIR(st.st_mode) || len + strlen(name) + 2 > sizeof(b->path))
		return 0;
	if (++b->dirs > MAX_DIRS)
		return err_set(e, ERR_HOST, -E2BIG, "more than %d directories", MAX_DIRS);
	if (mkdirat(to, name, 0700) < 0)
		return err_errno(e, -errno, "cannot make %s/%s", b->path, name);
	from = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sub = from < 0 ? -1 : openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(b->path + len, sizeof(b->path) - len, "/%s", name);
	r = sub < 0 ? close_off(to, name) : build_dir(b, from, sub, depth + 1, e);
	b->path[len] = '\0';
	fchmodat(to, name, st.st_mode & 07777, 0);
	return r;
}

/* Owns both descriptors. */
static int build_dir(struct build *b, int from, int to, int depth, struct err *e)
{
	_cleanup_closedir_ DIR *dir = fdopendir(from);
	struct dirent *d;
	int r = 0;

	if (!dir)
		close(from);
	while (r == 0 && dir && depth < MAX_DEPTH && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			r = build_entry(b, dir, to, d->d_name, depth, e);
	close(to);
	return r;
}

static int build_top(int cache, const char *top, struct err *e)
{
	struct build b = {0};
	struct stat st;
	int from, to;

	from = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return 0;
	if (mkdirat(cache, top + 1, 0755) < 0 || fstat(from, &st) < 0) {
		close(from);
		return err_errno(e, -errno, "cannot make %s", top);
	}
	b.dev = st.st_dev;
	snprintf(b.path, sizeof(b.path), "%s", top);
	to = openat(cache, top + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return to < 0 ? (close(from), err_errno(e, -errno, "%s", top)) :
			build_dir(&b, from, to, 0, e);
}

static int build_part(enum skeleton_part part, int cache, struct err *e)
{
	static const char *const tops[] = {"/usr", "/var", "/opt", "/srv", "/lib", "/lib32", "/lib64",
		"/bin", "/sbin", "/boot"};
	int r = 0;

	if (part == SKELETON_ETC)
		return build_top(cache, "/etc", e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tops); i++)
		r = build_top(cache, tops[i], e);
	return r;
}

/* ---- the cache ----------------------------------------------------------------------------- */

static const char *part_name(enum skeleton_part part)
{
	return part == SKELETON_ETC ? "etc-" : "tree-";
}

static int open_cache(char path[PATH_MAX], struct err *e)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n, fd, r;

	if (base && base[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/podrun/skeleton", base);
	else
		n = snprintf(path, PATH_MAX, "%s/.cache/podrun/skeleton", home ? home : "");
	if (n >= PATH_MAX || path[0] != '/')
		return err_set(e, ERR_FAILED, -ENOENT, "no place for a cache: HOME is not set");
	r = io_mkdir_p(AT_FDCWD, path, 0700);
	fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, r < 0 ? r : -errno, "cannot open %s", path) : fd;
}

/* Removes the parts of other keys which no session stands on. */
static void prune(int cache, enum skeleton_part part, const char *keep)
{
	_cleanup_closedir_ DIR *dir = fdopendir(dup(cache));
	struct dirent *d;

	if (!dir)
		return;
	rewinddir(dir);
	while ((d = readdir(dir))) {
		_cleanup_close_ int fd = -1;

		if (strncmp(d->d_name, part_name(part), strlen(part_name(part))) ||
			!strcmp(d->d_name, keep))
			continue;
		fd = openat(cache, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			io_rm_rf(cache, d->d_name);
	}
}

/* One at a time: the others find it made. */
static int build(int cache, enum skeleton_part part, const char *name, struct err *e)
{
	_cleanup_close_ int lock = openat(cache, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char tmp[64];
	int fd, r;

	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return err_errno(e, -errno, "cannot lock the cache");
	if (faccessat(cache, name, F_OK, 0) == 0)
		return 0;
	snprintf(tmp, sizeof(tmp), "%s%d.tmp", part_name(part), getpid());
	io_rm_rf(cache, tmp);
	if (mkdirat(cache, tmp, 0700) < 0)
		return err_errno(e, -errno, "cannot make %s", tmp);
	fd = openat(cache, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "%s", tmp);
	log_info("building the skeleton layer, once");
	r = build_part(part, fd, e);
	if (r == 0 && renameat(cache, tmp, cache, name) < 0)
		r = err_errno(e, -errno, "cannot name %s", name);
	close(fd);
	io_rm_rf(cache, tmp);
	if (r == 0)
		prune(cache, part, name);
	return r;
}

static void name_of(enum skeleton_part part, char ret[48])
{
	snprintf(ret, 48, "%s%016llx", part_name(part), (unsigned long long)key_of(part));
}

int skeleton_build(struct err *e)
{
	_cleanup_close_ int cache = -1;
	char path[PATH_MAX], name[48];
	mode_t mask = umask(0);
	int r = 0;

	cache = open_cache(path, e);
	if (cache < 0)
		r = cache;
	for (int part = 0; r == 0 && part < SKELETON_PART_MAX; part++) {
		name_of(part, name);
		if (faccessat(cache, name, F_OK, 0) < 0)
			r = build(cache, part, name, e);
	}
	umask(mask);
	return r < 0 ? err_wrap(e, "skeleton layer") : 0;
}

static int open_part(int cache, const char *path, enum skeleton_part part, struct skeleton *s,
	struct err *e)
{
	char name[48];

	name_of(part, name);
	s->lock[part] = openat(cache, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->lock[part] < 0 && errno == ENOENT)
		return 1;
	if (s->lock[part] < 0 || flock(s->lock[part], LOCK_SH | LOCK_NB) < 0 ||
		asprintf(&s->path[part], "%s/%s", path, name) < 0)
		return err_errno(e, -errno, "cannot use %s/%s", path, name);
	return 0;
}

int skeleton_open(struct skeleton *ret, struct err *e)
{
	struct skeleton s = {.lock = {-1, -1}};
	_cleanup_close_ int cache = -1;
	char path[PATH_MAX];
	int r = 0;

	cache = open_cache(path, e);
	if (cache < 0)
		return cache;
	for (int part = 0; r == 0 && part < SKELETON_PART_MAX; part++)
		r = open_part(cache, path, part, &s, e);
	if (r == 0)
		*ret = s;
	else
		skeleton_fini(&s);
	return r < 0 ? err_wrap(e, "skeleton layer") : r;
}

int skeleton_hold(const struct skeleton *s, struct skeleton *ret, struct err *e)
{
	struct skeleton held = {.lock = {-1, -1}};

	for (int part = 0; part < SKELETON_PART_MAX; part++) {
		/*
		 * Anew: a descriptor from outside is of another mount namespace, no layer for us.
		 */
		held.lock[part] = open(s->path[part], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (held.lock[part] < 0 ||
			asprintf(&held.path[part], "/proc/self/fd/%d", held.lock[part]) < 0) {
			err_errno(e, -errno, "cannot use %s", s->path[part]);
			skeleton_fini(&held);
			return e->error;
		}
	}
	*ret = held;
	return 0;
}

void skeleton_fini(struct skeleton *s)
{
	for (int part = 0; part < SKELETON_PART_MAX; part++) {
		s->lock[part] = close_fd(s->lock[part]);
		free(take_ptr(s->path[part]));
	}
}

int skeleton_find(const struct skeleton *s, const char *path, char ret[PATH_MAX])
{
	bool etc = !strncmp(path, "/etc", 4) && (path[4] == '/' || !path[4]);
	const char *base = s->path[etc ? SKELETON_ETC : SKELETON_TREE];

	if (!base || snprintf(ret, PATH_MAX, "%s%s", base, path) >= PATH_MAX ||
		access(ret, F_OK) < 0)
		return 1;
	return 0;
}
