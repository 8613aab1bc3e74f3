// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ghost - files without a name: deleted files, O_TMPFILE, removed directories: kind GHOST.
 *
 * Theory of operation
 *
 * The inode is the object; the first open file of it (by id) carries size, times and contents, the
 * others refer to it.  At resume the object is made where it was, so that it is on the same file
 * system and /proc/PID/fd tells the same name, and deleted again; every open file is then an open
 * of that inode with its own flags and position.
 *
 * Mappings of the same inode (ckpt/kinds of memory) find it by ckpt_common_carrier at dump and by
 * ckpt_common_contents at resume.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/where.h"
#include "ckpt/xattrs.h"
#include "proto/files.pb-c.h"

#define MAGIC_SECRETMEM 0x5345434d /* linux/magic.h of 5.14 */

static bool claim(const struct ckpt_file *f)
{
	return f->link[0] == '/' && f->st.st_nlink == 0 && strncmp(f->link, "/memfd:", 7) != 0 &&
		(S_ISREG(f->st.st_mode) || S_ISDIR(f->st.st_mode));
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct statfs fs;

	if (fstatfs(s.file->fd, &fs) == 0 && fs.f_type == MAGIC_SECRETMEM)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "memfd_secret cannot be read");
	return 0;
}

/* The kernel calls a file of O_TMPFILE by "#" and its inode number; opened again by a descriptor it
 * has no other mark. */
static bool is_tmpfile(const struct ckpt_file *f, const char *path)
{
	const char *name = strrchr(path, '/');

	return (f->flags & (O_TMPFILE & ~O_DIRECTORY)) ||
		(name && name[1] == '#' && name[2] && !name[2 + strspn(name + 2, "0123456789")]);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	_cleanup_free_ char *path = ckpt_common_path(f);
	Pb__Ghost m = PB__GHOST__INIT;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!path)
		return err_errno(e, -ENOMEM, "%s", f->link);
	m.common = common;
	m.path.data = (uint8_t *)path;
	m.path.len = strlen(path);
	m.mode = f->st.st_mode;
	m.size = S_ISREG(f->st.st_mode) ? (uint64_t)f->st.st_size : 0;
	m.object = ckpt_common_first(d, f)->id;
	m.linkable = S_ISREG(f->st.st_mode) && is_tmpfile(f, path);
	m.mtime_ns = io_ns_of(f->st.st_mtim);
	m.atime_ns = io_ns_of(f->st.st_atim);
	/* Those of one that may not be read, or is a name alone, nobody here may read either. */
	if (m.object == f->id)
		r = ckpt_xattrs_read(f->fd, &m.xattrs, &m.n_xattrs);
	if (r < 0 && r != -EACCES && r != -EBADF)
		return err_errno(e, r, "attributes of %s", f->link);
	r = ckpt_pack(&m.base, body, e);
	ckpt_xattrs_free(m.xattrs, m.n_xattrs);
	return r;
}

static int dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	if (ckpt_common_first(d, s.file) != s.file || !S_ISREG(s.file->st.st_mode))
		return 0;
	return ckpt_contents_dump(d, s.file, e);
}

/* ---- restore --------------------------------------------------------------------------------- */

/* The name taken for a moment; what the directory looks like afterwards is as before. */
static int make_file(const char *path, const char *dir, bool linkable)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
	struct stat st;
	int fd;

	if (linkable)
		return open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (stat(dir, &st) == 0)
		times[1] = st.st_mtim;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	unlink(path);
	utimensat(AT_FDCWD, dir, times, 0);
	return fd;
}

static int make_object(const struct ckpt_build *b, const Pb__Ghost *m, struct ckpt_object *o,
	struct err *e)
{
	char path[PATH_MAX], dir[PATH_MAX], room[PATH_MAX];
	char *slash;

	if (!ckpt_common_check_path(m->path.data, m->path.len, path) || m->size > INT64_MAX ||
		!(S_ISREG(m->mode) || S_ISDIR(m->mode)))
		return err_set(e, ERR_IMAGE, -EBADMSG, "a deleted file's record makes no sense");
	strcpy(dir, ckpt_where_host(b->world, path, room));
	strcpy(path, dir);
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	if (S_ISDIR(m->mode)) {
		o->fd = ckpt_common_gone_dir(b, path);
		if (o->fd < 0)
			errno = -o->fd;
	} else {
		o->fd = make_file(path, dir, m->linkable);
		/* The place may be gone or read-only here. */
		if (o->fd < 0)
			o->fd = open(ckpt_where_host(b->world, "/tmp", room), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	if (o->fd < 0)
		return err_errno(e, -errno, "cannot make %s (deleted)", path);
	if (S_ISREG(m->mode) && ftruncate(o->fd, (off_t)m->size) < 0)
		return err_errno(e, -errno, "%s (deleted)", path);
	return 0;
}

/* The file system there may have none: the session can do without them. */
static int set_attributes(struct ckpt_build *b, const Pb__Ghost *m, int fd, struct err *e)
{
	int r = ckpt_xattrs_set(fd, m->xattrs, m->n_xattrs, e);

	if (r == 0 || e->class != ERR_HOST)
		return r < 0 ? err_wrap(e, "a deleted file") : 0;
	ckpt_build_note(b, "%.*s (deleted) has lost its attributes: %s", (int)m->path.len,
		(const char *)m->path.data, e->msg);
	*e = (struct err){0};
	return 0;
}

static int open_again(struct ckpt_build *b, const Pb__Ghost *m, struct err *e)
{
	struct ckpt_object *o = ckpt_object_get(b, PROTO_KIND_GHOST, m->object);
	int r = o ? 0 : err_errno(e, -ENOMEM, "deleted file");

	if (r == 0 && o->fd < 0)
		r = make_object(b, m, o, e);
	if (r == 0 && m->n_xattrs)
		r = set_attributes(b, m, o->fd, e);
	return r < 0 ? r : ckpt_common_view(b, o->fd, m->common, e);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Ghost *m = pb__ghost__unpack(NULL, r->len, r->body);
	int fd;

	/* There is nothing in a removed directory, and its positions are the file system's own. */
	if (m && m->common && S_ISDIR(m->mode))
		m->common->pos = 0;
	fd = m && m->common ? open_again(b, m, e) : ckpt_common_bad(r, e);
	if (m)
		pb__ghost__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int take_locks(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Ghost *m = pb__ghost__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = m && f ? ckpt_common_lock(f->fd, m->common, e) : ckpt_common_bad(r, e);

	if (m)
		pb__ghost__free_unpacked(m, NULL);
	return x;
}

/* Mode and times are last: writing the contents would have needed one and changed the other. */
static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Ghost *m = pb__ghost__unpack(NULL, r->len, r->body);
	struct ckpt_object *o = m ? ckpt_object_get(b, PROTO_KIND_GHOST, m->object) : NULL;
	const struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = 0;

	if (o && o->fd >= 0 && m->object == r->subject) {
		struct timespec times[2] = {io_timespec_of(m->atime_ns), io_timespec_of(m->mtime_ns)};

		if (fchmod(o->fd, m->mode & 07777) < 0)
			x = err_errno(e, -errno, "mode of a deleted file");
		futimens(o->fd, times);
		o->fd = close_fd(o->fd);
	}
	if (x == 0 && m)
		ckpt_common_lease(b, f, m->common);
	if (m)
		pb__ghost__free_unpacked(m, NULL);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Ghost *m = pb__ghost__unpack(NULL, len, body);

	if (!m || !m->common)
		fputs("unreadable", out);
	else
		fprintf(out, "%.*s (deleted), %llu bytes, object %u", (int)m->path.len,
			(const char *)m->path.data, (unsigned long long)m->size,
			bare ? 0 : m->object);
	if (m)
		pb__ghost__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_ghost = {
	.number = PROTO_KIND_GHOST,
	.name = "deleted file",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.dump_data = dump_data,
	.create = create,
	.data = ckpt_contents_fill,
	.link = take_locks,
	.finish = finish,
	.show = show,
};
