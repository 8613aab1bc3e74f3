// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * regular - files and directories by path, everything opened with O_PATH, and devices without
 * state: kind REGULAR.
 *
 * Theory of operation
 *
 * /proc/PID/fd/N tells the path as the session's mounts have it.  The file is opened again by that
 * path at resume; its contents are elsewhere: in the session's own files (kind TREE), or beneath
 * them, where they are not carried.
 *
 * Whether the path still leads to the same file is looked up at check.  If it does not (the file
 * was renamed over, or deleted while it has another name), that is searched for (find.h); what has
 * none left goes to kind GHOST.
 *
 * A directory's position is a cookie of its file system.  Beside it the number of entries that
 * had been read is recorded, which means the same everywhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/find.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/where.h"
#include "proto/files.pb-c.h"

#define MAGIC_MQUEUE 0x19800202
#define MAX_ENTRIES (1u << 24) /* of a directory that is read half */

/* Character devices which hold no state: null, zero, full, random, urandom. */
static bool is_plain_device(mode_t mode, dev_t dev)
{
	static const unsigned minors[] = {3, 5, 7, 8, 9};

	if (!S_ISCHR(mode) || major(dev) != 1)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++)
		if (minor(dev) == minors[i])
			return true;
	return false;
}

static bool claim(const struct ckpt_file *f)
{
	struct statfs fs;

	if (f->link[0] != '/')
		return false;
	if (f->flags & O_PATH)
		return true;
	/* Queues have names and look like files (kind MQFILE). */
	if (fstatfs(f->fd, &fs) == 0 && fs.f_type == MAGIC_MQUEUE)
		return S_ISDIR(f->st.st_mode);
	return (S_ISREG(f->st.st_mode) && f->st.st_nlink > 0) ||
		(S_ISDIR(f->st.st_mode) && f->st.st_nlink > 0) ||
		is_plain_device(f->st.st_mode, f->st.st_rdev);
}

/* ---- where it is now ------------------------------------------------------------------------- */

/*
 * A file of the layer beneath that was opened for reading keeps that layer's count of names, whatever
 * becomes of its name above, and its bytes when the name leads to a copy (the kernel's
 * Documentation/filesystems/overlayfs.rst, "Non-standard behavior").
 */
static bool is_covered(const struct ckpt_file *f)
{
	struct statfs fs;

	return (f->flags & O_ACCMODE) == O_RDONLY && fstatfs(f->fd, &fs) == 0 &&
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct ckpt_file *f = s.file;
	_cleanup_free_ char *name = ckpt_find_name(d, f);

	if (name) {
		/* From here on the path is what the kernel would say, had it been opened just
		 * now. */
		free(f->link);
		f->link = take_ptr(name);
		return 0;
	}
	if (S_ISREG(f->st.st_mode) || S_ISDIR(f->st.st_mode)) {
		if (is_covered(f))
			f->st.st_nlink = 0;
		if (S_ISREG(f->st.st_mode) && f->st.st_nlink > 0) {
			err_set(e, ERR_UNFREEZABLE, -ENOENT,
				"%s has lost the name it was opened by, and the other one it has cannot be "
				"found", f->link);
			return err_hint(e, "what is written to it would go to another file");
		}
		f->kind = &ckpt_kind_ghost;
		return f->kind->check ? f->kind->check(d, s, e) : 0;
	}
	return err_set(e, ERR_UNFREEZABLE, -ENOENT, "%s cannot be found by its name any more",
		f->link);
}

/* ---- dump ------------------------------------------------------------------------------------ */

/* How many entries of directory @f lie before its position, plus one; 0 if that can't be told. */
static uint64_t count_entries(const struct ckpt_file *f)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t n = 0;

	if (!dir) {
		close_fd(fd);
		return 0;
	}
	if (f->pos == 0)
		return 1;
	for (struct dirent *entry; n < MAX_ENTRIES && (entry = readdir(dir));) {
		n++;
		if (entry->d_off == f->pos)
			return n + 1;
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__Regular m = PB__REGULAR__INIT;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	m.common = common;
	m.path.data = (uint8_t *)f->link;
	m.path.len = strlen(f->link);
	m.mode = f->st.st_mode;
	if (S_ISREG(f->st.st_mode)) {
		m.size = (uint64_t)f->st.st_size;
		m.mtime_ns = io_ns_of(f->st.st_mtim);
	} else if (S_ISCHR(f->st.st_mode)) {
		m.major = major(f->st.st_rdev);
		m.minor = minor(f->st.st_rdev);
	} else if (S_ISDIR(f->st.st_mode) && !(f->flags & O_PATH)) {
		m.entries_read = count_entries(f);
	}
	return ckpt_pack(&m.base, body, e);
}

/* ---- restore --------------------------------------------------------------------------------- */

/* Goes behind the @n first entries of a directory.  Positions are the file system's own. */
static int skip_entries(int fd, uint64_t n, struct err *e)
{
	_cleanup_closedir_ DIR *dir = NULL;
	off_t pos = 0;
	int own;

	if (n == 0)
		return 0;
	own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = own < 0 ? NULL : fdopendir(own);
	if (!dir) {
		close_fd(own);
		return err_errno(e, -errno, "cannot read a directory");
	}
	for (struct dirent *entry; n && (entry = readdir(dir)); n--)
		pos = entry->d_off;
	return lseek(fd, pos, SEEK_SET) < 0 ? err_errno(e, -errno, "lseek of a directory") : 0;
}

/* Where only an installation changes files: hier(7). */
static bool is_installed(const char *path)
{
	static const char *const tops[] = {
		"/usr/", "/opt/", "/lib", "/bin/", "/sbin/", "/nix/", "/gnu/"};

	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (!strncmp(path, tops[i], strlen(tops[i])))
			return strncmp(path, "/usr/local/", 11) != 0;
	return false;
}

/*
 * A file read by position (an archive of classes, a database of fonts) which is another version on
 * this host gives nonsense later.  Elsewhere others may write to a file at any time, as they might
 * have while the session ran: that is worth a line.
 */
static int compare_contents(struct ckpt_build *b, const Pb__Regular *m, const char *path,
	const struct stat *st, struct err *e)
{
	int64_t mtime_ns = io_ns_of(st->st_mtim);

	if ((uint64_t)st->st_size == m->size) {
		if (mtime_ns != m->mtime_ns)
			ckpt_build_note(b, "%s has been written since the session was frozen", path);
		return 0;
	}
	if (is_installed(path) && (m->common->flags & O_ACCMODE) == O_RDONLY) {
		err_set(e, ERR_HOST, -ESTALE, "is not the file which the session had open");
		return err_hint(e, "this host has another version of it; an image made with "
				   "--with-files carries its own");
	}
	ckpt_build_note(b, "%s had %llu bytes when the session was frozen and has %lld now", path,
		(unsigned long long)m->size, (long long)st->st_size);
	return 0;
}

/* The file found must be of the recorded sort. */
static int compare(
	struct ckpt_build *b, const Pb__Regular *m, const char *path, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "fstat");
	if ((st.st_mode & S_IFMT) != (m->mode & S_IFMT))
		return err_set(e, ERR_HOST, -EINVAL, "is of another type than it was");
	if (S_ISCHR(st.st_mode) && (major(st.st_rdev) != m->major || minor(st.st_rdev) != m->minor))
		return err_set(e, ERR_HOST, -ENODEV, "is another device than it was");
	return S_ISREG(st.st_mode) ? compare_contents(b, m, path, &st, e) : 0;
}

static int open_again(struct ckpt_build *b, const Pb__Regular *m, struct err *e)
{
	int flags = ckpt_common_open_flags(m->common), r = 0;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX], room[PATH_MAX];

	if (!ckpt_common_check_path(m->path.data, m->path.len, path) ||
		m->entries_read > MAX_ENTRIES + 1)
		return err_set(e, ERR_IMAGE, -EBADMSG, "an open file's record makes no sense");
	if (S_ISREG(m->mode) && (flags & O_ACCMODE) != O_RDONLY)
		r = ckpt_where_alone(b->world, "file", path, e);
	if (r < 0)
		return r;
	fd = ckpt_common_open_own(b, ckpt_where_host(b->world, path, room), flags, e);
	if (fd < 0)
		return ckpt_common_blame_host(e);
	r = compare(b, m, path, fd, e);
	if (r == 0)
		r = ckpt_common_restore(b, fd, m->common, e);
	if (r == 0 && m->entries_read && !(flags & O_PATH) && S_ISDIR(m->mode))
		r = skip_entries(fd, m->entries_read - 1, e);
	return r < 0 ? err_wrap(e, "%s", path) : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Regular *m = pb__regular__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? open_again(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__regular__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int take_locks(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Regular *m = pb__regular__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = m && f ? ckpt_common_lock(f->fd, m->common, e) : ckpt_common_bad(r, e);

	if (x < 0 && m)
		err_wrap(e, "%.*s", (int)m->path.len, (const char *)m->path.data);
	if (m)
		pb__regular__free_unpacked(m, NULL);
	return x;
}

static int take_leases(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Regular *m = pb__regular__unpack(NULL, r->len, r->body);

	if (m)
		ckpt_common_lease(b, ckpt_build_file(b, (uint32_t)r->subject), m->common);
	if (m)
		pb__regular__free_unpacked(m, NULL);
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Regular *m = pb__regular__unpack(NULL, len, body);

	if (!m || !m->common)
		fputs("unreadable", out);
	else
		fprintf(out, "%.*s, flags %#o, at %lld", (int)m->path.len,
			(const char *)m->path.data, m->common->flags, (long long)m->common->pos);
	if (m)
		pb__regular__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_regular = {
	.number = PROTO_KIND_REGULAR,
	.name = "file",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.create = create,
	.link = take_locks,
	.finish = take_leases,
	.show = show,
};
