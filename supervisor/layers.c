// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * What is wanted is one overlay: the host's / below, the session's own layer on top.  The kernel
 * refuses it, because in a mount namespace made by an ordinary user all mounts are locked to their
 * parents, and a lower layer that would show what lies beneath one is EINVAL.  So the overlay is
 * put together directory by directory: a directory with no mount below it becomes one overlay;
 * one with mounts below is recreated on a small tmpfs (the skeleton) and its children are looked
 * at in turn.
 *
 *      /            skeleton        bin -> usr/bin     symlink, recreated
 *      |- usr       bind            the host's, read-only: nothing in it is the user's to change
 *      |- var       overlay         lower /var, upper files/upper/var, work files/work/%var
 *      |- mnt       skeleton        because of a mount at /mnt/data/disk
 *      |  `- data   skeleton
 *      |     `- disk   overlay      of the other file system
 *      |- srv       skeleton        empty on the host: not worth an overlay
 *      `- root      skeleton        not accessible to the user: stays closed
 *
 * An overlay makes stat(2) 1.4 and open(2) 2 times as expensive, so what holds programs and is
 * not writable for the user anyway is bound as it is, unless root inside or a layer from elsewhere
 * wants to change it.
 *
 * Where the skeleton itself must be writable (root inside; a home directory with a mount in it) it
 * is not a tmpfs but files/upper itself, and the overlays are mounted on top of their own upper
 * directories.  Either way files/upper mirrors the view, however many overlays it took: an image
 * made on one host is laid over another host's mounts without change.
 *
 * The top directory of an upper layer gives the merged directory its owner and mode.  It belongs to
 * the user, so where the user could not write on the host it is made without write permission.
 *
 * A file can be copied up only if its owner has a number inside, and so must all directories above
 * it.  /var/tmp, and home or working directories which lie deep in other users' directories, would be
 * EOVERFLOW for the first file made in them; those (world_config.places) are made in the upper
 * layer beforehand, where they belong to the user.
 */
#include "supervisor/layers.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <linux/magic.h>

#include "base/base.h"
#include "supervisor/mounts.h"
#include "supervisor/skeleton.h"
#include "supervisor/world_config.h"

#define MAX_MOUNTINFO (4 << 20)
#define MAX_COPY      (256 * 1024) /* larger files of a skeleton directory are bound instead */
#define MAX_PLANS     4096

/* A mount of the host: where, and whether looking at it would trigger something. */
struct host_mount {
	char *path;
	bool autofs;
};

/* What is mounted once the skeleton stands. */
struct plan {
	char *path; /* in the session, absolute */
	bool bind;  /* as it is, read-only; else an overlay */
	bool own;   /* the upper layer alone: the host has nothing there */
};

struct layers {
	const struct world_config *c;
	const char *source; /* prefix to reach the lower tree by */
	const char *real;   /* the same as mountinfo spells it */
	struct host_mount *mounts;
	size_t n_mounts;
	struct plan *plans;
	size_t n_plans;
	bool writable; /* the skeleton is files/upper, not a tmpfs */
	bool first;    /* files/upper has just been made */
};

static void layers_fini(struct layers *l)
{
	for (size_t i = 0; i < l->n_mounts; i++)
		free(l->mounts[i].path);
	for (size_t i = 0; i < l->n_plans; i++)
		free(l->plans[i].path);
	free(l->mounts);
	free(l->plans);
}

/* Undoes the octal escapes of /proc/PID/mountinfo, in place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* proc_pid_mountinfo(5): the fifth field is the mount point, the file system type follows " - ". */
static int read_mounts(struct layers *l, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *line, *next;
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MAX_MOUNTINFO, &text);

	buf_put_u8(&text, 0);
	if (r < 0 || buf_error(&text))
		return err_errno(e, r < 0 ? r : -ENOMEM, "cannot read the mount table");
	for (line = (char *)text.data; *line; line = next) {
		struct host_mount *more;
		char *field = line, *type, *end;

		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		for (int i = 0; field && i < 4; i++) {
			field = strchr(field, ' ');
			field += field != NULL;
		}
		type = strstr(line, " - ");
		end = field ? strchr(field, ' ') : NULL;
		if (!end || !type)
			continue;
		*end = '\0';
		unescape(field);
		more = reallocarray(l->mounts, l->n_mounts + 1, sizeof(*more));
		if (!more)
			return err_errno(e, -ENOMEM, "mount table");
		l->mounts = more;
		more[l->n_mounts].path = strdup(field);
		more[l->n_mounts].autofs = !strncmp(type + 3, "autofs ", 7);
		if (!more[l->n_mounts++].path)
			return err_errno(e, -ENOMEM, "mount table");
	}
	return 0;
}

/* Is there a mount strictly below @path of the lower tree? */
static bool mounts_below(const struct layers *l, const char *path)
{
	size_t real = strlen(l->real), n = strlen(path);

	for (size_t i = 0; i < l->n_mounts; i++) {
		const char *m = l->mounts[i].path;

		if (!strncmp(m, l->real, real) && !strncmp(m + real, path, n) &&
			m[real + n] == '/' && m[real + n + 1])
			return true;
	}
	return false;
}

static bool is_autofs(const struct layers *l, const char *path)
{
	size_t real = strlen(l->real);

	for (size_t i = 0; i < l->n_mounts; i++)
		if (l->mounts[i].autofs && !strncmp(l->mounts[i].path, l->real, real) &&
			!strcmp(l->mounts[i].path + real, path))
			return true;
	return false;
}

static int plan(struct layers *l, const char *path, bool bind, struct err *e)
{
	struct plan *more;

	if (l->n_plans == MAX_PLANS)
		return err_set(e, ERR_HOST, -E2BIG,
			"the host's mounts lie too deep: more than %d mounts would be needed",
			MAX_PLANS);
	more = reallocarray(l->plans, l->n_plans + 1, sizeof(*more));
	if (!more)
		return err_errno(e, -ENOMEM, "mount plan");
	l->plans = more;
	more[l->n_plans] = (struct plan){.path = strdup(path), .bind = bind};
	if (!more[l->n_plans].path)
		return err_errno(e, -ENOMEM, "mount plan");
	l->n_plans++;
	return 0;
}

/* Whether changes to a directory of the host would be the user's to make. */
static bool may_write(const struct layers *l, const char *host_path)
{
	return l->c->as_root || access(host_path, W_OK) == 0;
}

static mode_t shown_mode(const struct layers *l, const char *host_path, mode_t mode)
{
	mode &= 07777;
	return may_write(l, host_path) ? mode | 0200 : mode & ~0222;
}

static int is_empty(const char *host_path)
{
	_cleanup_closedir_ DIR *dir = opendir(host_path);
	struct dirent *d;

	if (!dir)
		return 0;
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			return 0;
	return 1;
}

static int join(char out[PATH_MAX], const char *a, const char *b, struct err *e)
{
	if (snprintf(out, PATH_MAX, "%s%s", a, b) >= PATH_MAX)
		return err_set(e, ERR_FAILED, -ENAMETOOLONG, "path too long: %s%s", a, b);
	return 0;
}

static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int r = io_read_file(AT_FDCWD, from, MAX_COPY, &data);

	/* Gone or closed meanwhile: then the session doesn't see it. */
	if (r < 0)
		return 0;
	r = io_write_file(AT_FDCWD, to, data.data, data.len, mode);
	return r < 0 ? err_errno(e, r, "cannot copy %s", from) : 0;
}

/* True if @below is a path strictly below @path. */
static bool is_below(const char *below, const char *path)
{
	size_t n = strlen(path);

	return !strncmp(below, path, n) && below[n] == '/';
}

static bool wanted_below(const struct layers *l, const char *path)
{
	for (size_t i = 0; i < l->c->n_places; i++)
		if (is_below(l->c->places[i], path))
			return true;
	for (size_t i = 0; i < l->c->n_hidden; i++)
		if (is_below(l->c->hidden[i], path))
			return true;
	for (size_t i = 0; i < l->c->n_binds; i++)
		if (is_below(l->c->binds[i].target, path))
			return true;
	return false;
}

/* Has @host a directory that the user may write to, one level down (and in usr/local, where it is
 * likely, one more)? */
static bool has_writable(const char *host)
{
	_cleanup_closedir_ DIR *dir = opendir(host);
	char local[PATH_MAX + 8];
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (faccessat(dirfd(dir), d->d_name, W_OK, 0) == 0)
			return true;
		if (!strcmp(d->d_name, "local") &&
			snprintf(local, sizeof(local), "%s/local", host) < sizeof(local) &&
			has_writable(local))
			return true;
	}
	return !dir;
}

/*
 * Directories of programs and their settings, as hier(7) has them.  Not those where daemons may have
 * sockets (/opt, /nix): through a bind they could be connected to, through an overlay not.
 */
static bool shown_as_is(const struct layers *l, const char *path, const char *host)
{
	static const char *const names[] = {"/usr", "/etc", "/boot", "/bin", "/sbin", "/lib",
		"/lib32", "/lib64", "/libx32"};
	char upper[PATH_MAX];
	bool listed = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		listed |= !strcmp(path, names[i]);
	if (!listed || snprintf(upper, sizeof(upper), "upper%s", path) >= sizeof(upper))
		return false;
	return !may_write(l, host) && !wanted_below(l, path) && !has_writable(host) &&
	       access(upper, F_OK) < 0;
}

static int skeleton_children(struct layers *l, const char *path, struct err *e);

static int skeleton_dir(struct layers *l, const char *path, const char *host, const char *target,
	const struct stat *st, struct err *e)
{
	mode_t mode = shown_mode(l, host, st->st_mode);
	bool closed = access(host, X_OK) < 0;

	/* Root inside may look into its own, empty /root. */
	if (mkdir(target, closed && !l->c->as_root ? 0 : mode | 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", target);
	if (closed || is_autofs(l, path))
		return 0;
	if (shown_as_is(l, path, host))
		return plan(l, path, true, e);
	if (mounts_below(l, path)) {
		int r = skeleton_children(l, path, e);

		if (r == 0 && chmod(target, mode) < 0)
			r = err_errno(e, -errno, "chmod %s", target);
		return r;
	}
	if (!may_write(l, host) && is_empty(host))
		return chmod(target, mode) < 0 ? err_errno(e, -errno, "chmod %s", target) : 0;
	return plan(l, path, false, e);
}

/* One entry of a directory that is recreated. */
static int skeleton_entry(struct layers *l, const char *path, struct err *e)
{
	char host[PATH_MAX], target[PATH_MAX];
	_cleanup_free_ char *link = NULL;
	struct stat st;
	int r;

	r = join(host, l->source, path, e);
	if (r == 0)
		r = join(target, MOUNTS_BASE, path, e);
	if (r < 0)
		return r;
	if (is_autofs(l, path)) {
		r = mkdir(target, 0555) < 0 ? -errno : 0;
		return r < 0 && r != -EEXIST ? err_errno(e, r, "cannot make %s", target) : 0;
	}
	if (lstat(host, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return skeleton_dir(l, path, host, target, &st, e);
	/* Not again at a resume: the session may have removed or changed it. */
	if (l->writable && !l->first)
		return 0;
	switch (st.st_mode & S_IFMT) {
	case S_IFLNK:
		link = io_readlink(AT_FDCWD, host);
		if (link && symlink(link, target) < 0)
			return err_errno(e, -errno, "cannot make symlink %s", target);
		return 0;
	case S_IFREG:
		if (access(host, R_OK) < 0)
			return 0;
		if (st.st_size <= MAX_COPY)
			return copy_file(host, target, shown_mode(l, host, st.st_mode) & 0777, e);
		r = io_write_file(AT_FDCWD, target, "", 0, 0444);
		return r < 0 ? err_errno(e, r, "%s", target) : plan(l, path, true, e);
	default:
		return 0; /* a device or a socket leads to the host */
	}
}

/* What the host has there is never shown. */
static const char *const private_names[] = {"dev", "proc", "sys", "tmp", "run"};

static bool is_private(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(private_names); i++)
		if (!strcmp(name, private_names[i]))
			return true;
	return false;
}

static bool top_is_private(const char *path)
{
	char name[8];

	snprintf(name, sizeof(name), "%.*s", (int)(strchrnul(path + 1, '/') - path - 1), path + 1);
	return is_private(name);
}

/* Mount points for them.  A --root may have anything there, symlinks to elsewhere included. */
static int make_private(struct err *e)
{
	char path[sizeof(MOUNTS_BASE) + 8];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(private_names); i++) {
		snprintf(path, sizeof(path), "%s/%s", MOUNTS_BASE, private_names[i]);
		if (lstat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				continue;
			unlink(path);
		}
		if (mkdir(path, 0755) < 0)
			return err_errno(e, -errno, "cannot make /%s", private_names[i]);
	}
	return 0;
}

/* A directory that only the upper layer has: an image of another host brought it. */
static int own_entry(struct layers *l, const char *path, const char *upper, struct err *e)
{
	char host[PATH_MAX], target[PATH_MAX];
	struct stat st;
	int r;

	r = join(host, l->source, path, e);
	if (r == 0)
		r = join(target, MOUNTS_BASE, path, e);
	if (r < 0)
		return r;
	if (lstat(host, &st) == 0 || errno != ENOENT || lstat(upper, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (mkdir(target, 0755) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", target);
	r = plan(l, path, false, e);
	if (r == 0)
		l->plans[l->n_plans - 1].own = true;
	return r;
}

static int own_children(struct layers *l, const char *path, struct err *e)
{
	char upper[PATH_MAX], child[PATH_MAX];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *d;
	int r = join(upper, "upper", path, e);

	if (r < 0)
		return r;
	dir = opendir(upper);
	while (r == 0 && dir && (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			(!*path && is_private(d->d_name)) ||
			snprintf(child, sizeof(child), "%s/%s", path, d->d_name) >= PATH_MAX ||
			snprintf(upper, sizeof(upper), "upper%s", child) >= PATH_MAX)
			continue;
		r = own_entry(l, child, upper, e);
	}
	return r;
}

/* @path is "" for the top. */
static int skeleton_children(struct layers *l, const char *path, struct err *e)
{
	char host[PATH_MAX], child[PATH_MAX];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *d;
	int r = join(host, l->source, *path ? path : "/", e);

	if (r < 0)
		return r;
	dir = opendir(host);
	if (!dir)
		return 0; /* traversable but not listable: what is below stays unseen */
	while ((d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
			(!*path && is_private(d->d_name)))
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", path, d->d_name) >= PATH_MAX)
			continue;
		r = skeleton_entry(l, child, e);
		if (r < 0)
			return r;
	}
	/* Where the skeleton is the upper layer itself, it is there already. */
	return l->writable ? 0 : own_children(l, path, e);
}

/* Overlay options separate with ',' and ':'; both and the backslash are escaped by one. */
static void put_escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (strchr("\\,:", *s))
			buf_put_u8(b, '\\');
		buf_put_u8(b, (uint8_t)*s);
	}
}

/* Makes files_dir/upper@path with the modes the host's directories have. */
static int make_upper(const struct layers *l, const char *path, struct err *e)
{
	char upper[PATH_MAX], host[PATH_MAX], part[PATH_MAX];
	const char *p = path;
	struct stat st;
	int r;

	do {
		p = strchrnul(p + (*p == '/'), '/');
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		r = join(upper, "upper", part, e);
		if (r == 0)
			r = join(host, l->source, *part ? part : "/", e);
		if (r < 0)
			return r;
		if (access(upper, F_OK) == 0)
			continue;
		if (stat(host, &st) < 0)
			st.st_mode = 0755;
		if (mkdir(upper, shown_mode(l, host, st.st_mode)) < 0 && errno != EEXIST)
			return err_errno(e, -errno, "cannot make %s", upper);
	} while (*p);
	return 0;
}

/* Directories of others on the way to @path, and @path if it is another's, become the user's. */
static int make_place(const struct layers *l, const char *path, struct err *e)
{
	char host[PATH_MAX];
	struct stat st;
	int r = join(host, l->source, path, e);

	if (r < 0)
		return r;
	if (path[0] != '/' || top_is_private(path) || stat(host, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (st.st_uid == getuid()) {
		/* It can be copied up by itself; what is above it, may be. */
		snprintf(host, sizeof(host), "%.*s", (int)(strrchr(path, '/') - path), path);
		return *host ? make_place(l, host, e) : 0;
	}
	return make_upper(l, path, e);
}

/*
 * Where a -v is to be mounted at a path that the host does not have, the mount point is made in the
 * session; where that would need a directory of somebody else's, the directory becomes the user's.
 */
static int make_mount_point(const struct layers *l, const char *target, struct err *e)
{
	char path[PATH_MAX], host[PATH_MAX];
	char *slash;

	if (target[0] != '/' || top_is_private(target) || strlen(target) >= sizeof(path))
		return 0;
	snprintf(host, sizeof(host), "%s%.*s", l->source, PATH_MAX / 2, target);
	if (access(host, F_OK) == 0)
		return 0;
	strcpy(path, target);
	while ((slash = strrchr(path, '/')) && slash != path) {
		*slash = '\0';
		if (join(host, l->source, path, e) < 0)
			return e->error;
		if (access(host, F_OK) == 0)
			return access(host, W_OK) == 0 ? 0 : make_upper(l, path, e);
	}
	return 0;
}

/* A directory of the upper layer that nothing shines through. */
static int hide(const struct layers *l, const char *path, struct err *e)
{
	char upper[PATH_MAX], host[PATH_MAX];
	int r = join(upper, "upper", path, e);

	if (r == 0)
		r = join(host, l->source, path, e);
	if (r < 0 || path[0] != '/' || top_is_private(path) || access(host, F_OK) < 0)
		return r;
	r = make_upper(l, path, e);
	if (r == 0 && setxattr(upper, "user.overlay.opaque", "y", 1, 0) < 0)
		r = err_errno(e, -errno, "cannot hide %s", path);
	return r;
}

static int make_places(const struct layers *l, struct err *e)
{
	int r = make_place(l, "/var/tmp", e);

	for (size_t i = 0; r == 0 && i < l->c->n_places; i++)
		r = make_place(l, l->c->places[i], e);
	for (size_t i = 0; r == 0 && i < l->c->n_binds; i++)
		r = make_mount_point(l, l->c->binds[i].target, e);
	for (size_t i = 0; r == 0 && i < l->c->n_hidden; i++)
		r = hide(l, l->c->hidden[i], e);
	return r;
}

/* work/%usr%local for /usr/local: flat, since one overlay's work must not lie in another's. */
static int make_work(const char *path, struct buf *ret, struct err *e)
{
	buf_put_str(ret, "work/%");
	for (const char *p = path + (*path == '/'); *p; p++)
		buf_put_u8(ret, *p == '/' ? '%' : (uint8_t)*p);
	if (!buf_cstr(ret))
		return err_errno(e, -ENOMEM, "overlay");
	if (mkdir(buf_cstr(ret), 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", buf_cstr(ret));
	return 0;
}

/* Says why an overlay was refused, if it is because of where files_dir is. */
static int overlay_refused(int error, const char *path, struct err *e)
{
	struct statfs fs;

	err_errno(e, error, "cannot lay the session's own layer over %s", *path ? path : "/");
	err_reclass(e, ERR_HOST);
	if (error == -ENODEV || error == -EPERM)
		return err_hint(e, "this kernel has no overlayfs for ordinary users (Linux 5.11)");
	if (statfs("upper", &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return err_hint(e, "the session's files lie on an overlay themselves; point "
				   "XDG_STATE_HOME to another file system (a volume, /dev/shm)");
	return err_hint(e, "point XDG_STATE_HOME to a local file system such as ext4, xfs, btrfs "
			   "or tmpfs");
}

static int overlay(const struct layers *l, const char *lower, const char *path, struct err *e)
{
	_cleanup_buf_ struct buf options = BUF_INIT, work = BUF_INIT;
	char target[PATH_MAX], between[PATH_MAX];
	int r;

	r = join(target, MOUNTS_BASE, path, e);
	if (r == 0)
		r = make_upper(l, path, e);
	if (r == 0)
		r = make_work(path, &work, e);
	if (r < 0)
		return r;
	buf_put_str(&options, "lowerdir=");
	if (l->c->skeleton && skeleton_find(l->c->skeleton, path, between) == 0) {
		put_escaped(&options, between);
		buf_put_str(&options, ":");
	}
	put_escaped(&options, lower);
	buf_put_str(&options, ",upperdir=upper");
	put_escaped(&options, path);
	buf_put_str(&options, ",workdir=");
	put_escaped(&options, buf_cstr(&work));
	/* user.overlay.* instead of trusted.*; an index would refuse layers that lie in others. */
	buf_put_str(&options, ",userxattr,index=off");
	if (!buf_cstr(&options))
		return err_errno(e, -ENOMEM, "overlay");
	if (mount("overlay", target, "overlay", MS_NODEV | MS_NOSUID, buf_cstr(&options)) < 0)
		return overlay_refused(-errno, path, e);
	return 0;
}

/*
 * A directory that can't be a lower layer (some network and FUSE file systems) is shown read-only
 * as it is.  If the upper layer is what is wrong, no overlay works: that is an error.
 */
static int mount_plan(const struct layers *l, const struct plan *p, bool first, struct err *e)
{
	struct err ignored = {0};
	char host[PATH_MAX], target[PATH_MAX];
	int r;

	r = join(host, l->source, p->path, e);
	if (r == 0)
		r = join(target, MOUNTS_BASE, p->path, e);
	if (r == 0 && p->own)
		r = join(host, "upper", p->path, e);
	if (r < 0)
		return r;
	if (p->own)
		return mounts_bind(host, target, false, e);
	if (!p->bind) {
		r = overlay(l, host, p->path, first ? e : &ignored);
		if (r == 0 || first)
			return r;
		log_warn("%s is shown read-only: %s", p->path, ignored.msg);
	}
	return mounts_bind(host, target, true, e);
}

/* --root DIR, or a host / without mounts: one overlay does it. */
static int whole(struct layers *l, struct err *e)
{
	int r = overlay(l, *l->source ? l->source : "/", "", e);

	return r < 0 ? r : make_private(e);
}

/* Would the user expect to write to a directory that has to be recreated? */
static bool skeleton_writable(const struct layers *l)
{
	char path[PATH_MAX];
	size_t real = strlen(l->real);

	if (may_write(l, *l->source ? l->source : "/"))
		return true;
	for (size_t i = 0; i < l->n_mounts; i++) {
		const char *m = l->mounts[i].path, *end;

		if (strncmp(m, l->real, real) || top_is_private(m + real))
			continue;
		for (end = strchr(m + real + 1, '/'); end; end = strchr(end + 1, '/')) {
			snprintf(path, sizeof(path), "%s%.*s", l->source, (int)(end - m - real),
				m + real);
			if (may_write(l, path))
				return true;
		}
	}
	return false;
}

static int skeleton(struct layers *l, struct err *e)
{
	size_t overlays = 0;
	int r;

	l->writable = skeleton_writable(l);
	if (l->writable)
		r = mounts_mount("upper", MOUNTS_BASE, NULL, MS_BIND, NULL, e);
	else
		r = mounts_mount("podrun", MOUNTS_BASE, "tmpfs", MS_NODEV | MS_NOSUID, "mode=0755", e);
	if (r == 0)
		r = skeleton_children(l, "", e);
	if (r == 0)
		r = make_private(e);
	if (r == 0 && !l->writable && chmod(MOUNTS_BASE, 0555) < 0)
		r = err_errno(e, -errno, "chmod /");
	for (size_t i = 0; r == 0 && i < l->n_plans; i++) {
		r = mount_plan(l, &l->plans[i], !overlays, e);
		overlays += !l->plans[i].bind && !l->plans[i].own;
	}
	return r;
}

int layers_mount(const struct world_config *c, const char *source, struct err *e)
{
	_cleanup_free_ char *real = *source ? io_readlink(AT_FDCWD, source) : NULL;
	struct layers l = {.c = c, .source = source, .real = real ? real : ""};
	int r;

	l.first = mkdir("upper", 0755) == 0;
	if ((!l.first && errno != EEXIST) || (mkdir("work", 0700) < 0 && errno != EEXIST))
		return err_errno(e, -errno, "cannot make the session's layer");
	r = read_mounts(&l, e);
	if (r == 0)
		r = make_places(&l, e);
	if (r == 0)
		r = c->root && !mounts_below(&l, "") ? whole(&l, e) : skeleton(&l, e);
	layers_fini(&l);
	return r;
}
