// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pipe - pipes and FIFOs: kinds PIPE and FIFO.
 *
 * Theory of operation
 *
 * Each open end is a record; the first one (by file id) stands for the pipe itself and carries the
 * bytes in flight.  They are copied with tee(2), which takes nothing out: a snapshot leaves no
 * trace.  Where the user's share of pipe pages is used up (fs.pipe-user-pages-soft) and the copy
 * can't hold everything, the bytes are read and written back while all are stopped.
 *
 *      session            pipe             supervisor
 *      reads  <---------- "stdin"  <------ writes         bytes travel with the session
 *      writes ----------> "stdout" ------> reads          bytes stay: the supervisor reads them
 *
 * An end whose other end is neither in the session nor the supervisor's leads out (outside.h): if
 * it is not refused it comes back with nobody at the other end. In packet mode (O_DIRECT) every
 * DATA frame is one packet.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/find.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/outside.h"
#include "ckpt/where.h"
#include "proto/files.pb-c.h"

#define MAX_CAPACITY (1u << 31)
#define CHUNK	     (64 * 1024)

static bool reads(const struct ckpt_file *f)
{
	return (f->flags & O_ACCMODE) != O_WRONLY;
}

static bool writes(const struct ckpt_file *f)
{
	return (f->flags & O_ACCMODE) != O_RDONLY;
}

static bool claim_pipe(const struct ckpt_file *f)
{
	return S_ISFIFO(f->st.st_mode) && !(f->flags & O_PATH) && !strncmp(f->link, "pipe:[", 6);
}

static bool claim_fifo(const struct ckpt_file *f)
{
	return S_ISFIFO(f->st.st_mode) && !(f->flags & O_PATH) && f->link[0] == '/';
}

/* The ends of one pipe which the session holds. */
struct ends {
	const struct ckpt_file *first, *reader, *writer;
	bool packets;
};

static struct ends find_ends(struct ckpt_dump *d, const struct ckpt_file *f)
{
	const struct ckpt_file *const *same;
	size_t n = ckpt_common_by_inode(d, f->st.st_ino, &same);
	struct ends ends = {0};

	for (size_t i = 0; i < n; i++) {
		const struct ckpt_file *o = same[i];

		if (o->kind != f->kind || o->st.st_dev != f->st.st_dev)
			continue;
		if (!ends.first)
			ends.first = o;
		if (!ends.reader && reads(o))
			ends.reader = o;
		if (!ends.writer && writes(o))
			ends.writer = o;
		ends.packets |= writes(o) && (o->flags & O_DIRECT);
	}
	if (!ends.first)
		ends.first = f;
	return ends;
}

/* True if somebody holds the other end of @f. */
static bool has_peer(const struct ckpt_file *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN | POLLOUT};

	return poll(&p, 1, 0) >= 0 && !(p.revents & (writes(f) ? POLLERR : POLLHUP));
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	const struct ckpt_file *f = s.file;
	struct ends ends = find_ends(d, f);

	if ((ends.reader && ends.writer) || ckpt_edge_of_pipe(d, &f->st) || !has_peer(f))
		return 0;
	return ckpt_outside(d, e, "the other end of %s is outside the session", f->link);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	const struct ckpt_edge *edge = ckpt_edge_of_pipe(d, &f->st);
	struct ends ends = find_ends(d, f);
	Pb__Pipe m = PB__PIPE__INIT;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	int capacity = fcntl(f->fd, F_GETPIPE_SZ);
	_cleanup_free_ char *path = NULL;
	int r = f->kind->check ? f->kind->check(d, s, e) : 0;

	if (r >= 0)
		r = ckpt_common_dump(d, f, &common, e);
	if (r < 0)
		return r;
	if (capacity < 0)
		return err_errno(e, -errno, "cannot ask for the capacity of %s", f->link);
	m.common = common;
	m.object = ends.first->id;
	m.capacity = (uint32_t)capacity;
	m.packets = ends.packets;
	if (edge) {
		m.edge = (char *)edge->name;
		m.edge_writes = (fcntl(edge->fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	}
	if (f->kind->number == PROTO_KIND_FIFO) {
		m.gone = f->st.st_nlink == 0;
		m.mode = f->st.st_mode & 07777;
		m.quiet = !ends.writer && has_peer(f);
		/* That by which it was opened may be gone. */
		path = m.gone ? NULL : ckpt_find_name(d, f);
		if (!path)
			path = ckpt_common_path(f);
		if (!path)
			return err_errno(e, -ENOMEM, "%s", f->link);
		m.path.data = (uint8_t *)path;
		m.path.len = strlen(path);
	}
	return ckpt_pack(&m.base, body, e);
}

/* Writes everything that can be read from @fd (non-blocking) as DATA; appends the sizes of the
 * pieces and their bytes to @sizes and @bytes, if given. */
static int dump_bytes(struct ckpt_dump *d, const struct ckpt_file *f, int fd, struct buf *sizes,
	struct buf *bytes, struct err *e)
{
	uint64_t offset = 0;
	uint8_t chunk[CHUNK];
	int r = 0;

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno == EAGAIN))
			return r;
		if (n < 0)
			return err_errno(e, -errno, "cannot read %s", f->link);
		if (sizes) {
			buf_put_u32(sizes, (uint32_t)n);
			buf_put(bytes, chunk, (size_t)n);
		}
		/* What has been taken out must be put back even if the image can't be written. */
		if (r == 0)
			r = ckpt_dump_data(d, f->kind, f->id, offset, chunk, (size_t)n, e);
		if (r < 0 && !sizes)
			return r;
		offset += (uint64_t)n;
	}
}

static int open_own(const struct ckpt_dump *d, const struct ckpt_file *f, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "self/fd/%d", f->fd);
	return openat(d->host_proc, path, flags | O_NONBLOCK | O_CLOEXEC);
}

/* Takes the bytes out and puts them back: nobody can look in between. */
static int dump_by_reading(struct ckpt_dump *d, const struct ckpt_file *f, bool packets,
	const struct ckpt_file *reader, struct err *e)
{
	_cleanup_close_ int in = open_own(d, reader, O_RDONLY);
	_cleanup_close_ int out = open_own(d, reader, O_WRONLY | (packets ? O_DIRECT : 0));
	_cleanup_buf_ struct buf sizes = BUF_INIT, bytes = BUF_INIT;
	struct cursor size, byte;
	int r;

	if (in < 0 || out < 0)
		return err_errno(e, -errno, "cannot open %s", f->link);
	r = dump_bytes(d, f, in, &sizes, &bytes, e);
	size = cursor_of(sizes.data, sizes.len);
	byte = cursor_of(bytes.data, bytes.len);
	while (cursor_left(&size)) {
		uint32_t n = cursor_u32(&size);
		const void *p = cursor_take(&byte, n);
		int w = p ? io_write_full(out, p, n) : -ENOMEM;

		if (w < 0)
			return err_errno(e, w, "cannot put bytes back into %s", f->link);
	}
	return r;
}

static int dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	const struct ckpt_file *f = s.file;
	struct ends ends = find_ends(d, f);
	_cleanup_close_ int copy_in = -1, copy_out = -1;
	int p[2], waiting = 0, capacity;
	ssize_t n;

	if (ends.first != f || !ends.reader)
		return 0;
	if (ioctl(ends.reader->fd, FIONREAD, &waiting) < 0)
		return err_errno(e, -errno, "cannot ask what is in %s", f->link);
	if (waiting == 0)
		return 0;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(e, -errno, "pipe");
	copy_in = p[1];
	copy_out = p[0];
	capacity = fcntl(f->fd, F_GETPIPE_SZ);
	if (fcntl(copy_in, F_GETPIPE_SZ) < capacity)
		fcntl(copy_in, F_SETPIPE_SZ, capacity);
	n = tee(ends.reader->fd, copy_in, INT32_MAX, SPLICE_F_NONBLOCK);
	if (n != waiting)
		return dump_by_reading(d, f, ends.packets, ends.reader, e);
	return dump_bytes(d, f, copy_out, NULL, NULL, e);
}

/* ---- restore --------------------------------------------------------------------------------- */

/* A FIFO by its name, or one without any. */
static int open_fifo(
	struct ckpt_build *b, const Pb__Pipe *m, const char *path, int flags, struct err *e)
{
	_cleanup_close_ int fd = -1;
	const char *name = path;
	char spare[64];
	struct stat st;

	if (m->gone && mkfifo(name, 0600) < 0) {
		snprintf(spare, sizeof(spare), "/tmp/.podrun-fifo-%u", m->object);
		name = spare;
		if (mkfifo(name, 0600) < 0)
			return err_errno(e, -errno, "cannot make FIFO %s", path);
	}
	fd = ckpt_common_open_own(b, name, flags | O_NOFOLLOW | O_CLOEXEC, e);
	if (fd < 0)
		ckpt_common_blame_host(e);
	else if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		err_set(e, ERR_HOST, -ENOTSUP, "%s is not a FIFO any more", path);
	if (m->gone) {
		chmod(name, m->mode & 07777);
		unlink(name);
	}
	return fd < 0 || !S_ISFIFO(st.st_mode) ? e->error : take_fd(&fd);
}

/* Makes the pipe behind @m, and gives the supervisor its end. */
static int make_pipe(struct ckpt_build *b, const Pb__Pipe *m, struct ckpt_object *o, struct err *e)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(e, -errno, "pipe");
	o->fd = p[0];
	o->fd2 = p[1];
	if (*m->edge && b->world->edge) {
		_cleanup_close_ int end = ckpt_common_reopen(b, m->edge_writes ? o->fd2 : o->fd,
			m->edge_writes ? O_WRONLY : O_RDONLY, e);
		int r = end < 0 ? end : b->world->edge(b->world->ctx, m->edge, end, e);

		if (r < 0)
			return err_wrap(e, "edge %s", m->edge);
	}
	return 0;
}

static int make_fifo(struct ckpt_build *b, const Pb__Pipe *m, struct ckpt_object *o, struct err *e)
{
	char path[PATH_MAX], room[PATH_MAX];

	if (!ckpt_common_check_path(m->path.data, m->path.len, path))
		return err_set(e, ERR_IMAGE, -EBADMSG, "a FIFO without a path");
	if (!m->gone && ckpt_where_alone(b->world, "FIFO", path, e) < 0)
		return e->error;
	/* A quiet reader must not see a writer come and go: O_PATH holds the file until then. */
	o->fd = open_fifo(
		b, m, ckpt_where_host(b->world, path, room), m->quiet ? O_PATH : O_RDWR | O_NONBLOCK, e);
	if (o->fd < 0)
		return o->fd;
	o->fd2 = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	return o->fd2 < 0 ? err_errno(e, -errno, "dup") : 0;
}

static int make_object(struct ckpt_build *b, struct ckpt_record *r, const Pb__Pipe *m,
	struct ckpt_object *o, struct err *e)
{
	bool fifo = r->kind->number == PROTO_KIND_FIFO;
	int x = fifo ? make_fifo(b, m, o, e) : make_pipe(b, m, o, e);

	if (x < 0 || m->quiet)
		return x;
	/* Never less than is needed; a user at the limit for pipe pages keeps the default. */
	if (fcntl(o->fd, F_SETPIPE_SZ, m->capacity) < 0)
		log_warn("a pipe of %u bytes has only %d here: %s", m->capacity,
			fcntl(o->fd, F_GETPIPE_SZ), strerror(errno));
	if (m->packets && fcntl(o->fd2, F_SETFL, O_NONBLOCK | O_DIRECT) < 0)
		return err_errno(e, -errno, "O_DIRECT on a pipe");
	return 0;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Pipe *m = pb__pipe__unpack(NULL, r->len, r->body);
	_cleanup_close_ int fd = -1;
	struct ckpt_object *o;
	int x = 0;

	if (!m || !m->common || m->capacity > MAX_CAPACITY || (m->common->flags & O_PATH)) {
		x = ckpt_common_bad(r, e);
		goto out;
	}
	o = ckpt_object_get(b, r->kind->number, m->object);
	if (!o)
		x = err_errno(e, -ENOMEM, "pipe");
	else if (o->fd < 0)
		x = make_object(b, r, m, o, e);
	if (x < 0)
		goto out;
	fd = ckpt_common_reopen(b, (m->common->flags & O_ACCMODE) == O_RDONLY ? o->fd : o->fd2,
		(int)(m->common->flags & O_ACCMODE) | O_NONBLOCK, e);
	x = fd < 0 ? fd : ckpt_common_restore(b, fd, m->common, e);
	if (x == 0)
		*ret_fd = take_fd(&fd);
out:
	if (m)
		pb__pipe__free_unpacked(m, NULL);
	return x;
}

/* A DATA frame's subject is the first file of the object, and so its key. */
static int data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *bytes,
	size_t len, struct err *e)
{
	struct ckpt_object *o = ckpt_object_get(b, r->kind->number, r->subject);
	int x = o && o->fd2 >= 0 ? io_write_full(o->fd2, bytes, len) : -EBADF;

	if (x == -EBADF)
		return ckpt_common_bad(r, e);
	if (x == -EAGAIN)
		return err_set(e, ERR_HOST, -ENOBUFS,
			"a pipe cannot hold what was in it (fs.pipe-user-pages-soft)");
	return x < 0 ? err_errno(e, x, "cannot fill a pipe") : 0;
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	/* As long as we hold an end, nobody sees the end of the file. */
	ckpt_objects_close(b, r->kind->number);
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	static const char *const modes[] = {"read", "write", "both", "?"};
	Pb__Pipe *m = pb__pipe__unpack(NULL, len, body);

	if (!m || !m->common) {
		fputs("unreadable", out);
	} else {
		fprintf(out, "pipe %u, %s end, %u bytes", bare ? 0 : m->object,
			modes[m->common->flags & O_ACCMODE], m->capacity);
		if (*m->edge)
			fprintf(out, ", edge %s", m->edge);
		if (m->path.len)
			fprintf(out, ", %.*s", (int)m->path.len, (const char *)m->path.data);
	}
	if (m)
		pb__pipe__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_pipe = {
	.number = PROTO_KIND_PIPE,
	.name = "pipe",
	.scope = CKPT_FILE,
	.claim = claim_pipe,
	.check = check,
	.dump = dump,
	.dump_data = dump_data,
	.create = create,
	.data = data,
	.finish = finish,
	.show = show,
};

const struct ckpt_kind ckpt_kind_fifo = {
	.number = PROTO_KIND_FIFO,
	.name = "FIFO",
	.scope = CKPT_FILE,
	.claim = claim_fifo,
	.dump = dump,
	.dump_data = dump_data,
	.create = create,
	.data = data,
	.finish = finish,
	.show = show,
};
