// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Record locks of fcntl(F_SETLK): they belong to a process and a file.
 *
 * The fdinfo of each descriptor that leads to the file shows them (/proc/locks would name the
 * processes that have any, but reading it makes all CPUs wait for each other: 5 to 15 ms).  They
 * are taken again by the process itself, when it has its descriptors.  (Locks of open files -
 * flock, F_OFD_SETLK - travel with those: ckpt/kinds/common.h.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/survey/survey.h"
#include "proto/ipc.pb-c.h"

#define MAX_LOCKS 16384

/* ---- dump ----------------------------------------------------------------------------------- */

struct found {
	Pb__PosixLocks m;
	/* Which file each lock is of, as the same one is seen through every descriptor. */
	struct {
		dev_t dev;
		ino_t ino;
	} * files;
};

static bool is_known(const struct found *f, const struct stat *st, const Pb__PosixLock *l)
{
	for (size_t i = 0; i < f->m.n_locks; i++) {
		const Pb__PosixLock *o = f->m.locks[i];

		if (f->files[i].dev == st->st_dev && f->files[i].ino == st->st_ino &&
			o->start == l->start && o->end == l->end && o->write == l->write)
			return true;
	}
	return false;
}

static int add(struct found *f, const struct stat *st, const Pb__PosixLock *l, struct err *e)
{
	Pb__PosixLock *copy;

	if (f->m.n_locks == MAX_LOCKS)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG, "too many record locks");
	if (!f->files) {
		f->files = calloc(MAX_LOCKS, sizeof(*f->files));
		f->m.locks = calloc(MAX_LOCKS, sizeof(*f->m.locks));
	}
	copy = malloc(sizeof(*copy));
	if (!f->files || !f->m.locks || !copy) {
		free(copy);
		return err_errno(e, -ENOMEM, "record locks");
	}
	*copy = *l;
	f->files[f->m.n_locks].dev = st->st_dev;
	f->files[f->m.n_locks].ino = st->st_ino;
	f->m.locks[f->m.n_locks++] = copy;
	return 0;
}

/* One "lock:" line: 1 if it is a record lock. */
static int parse(const char *line, Pb__PosixLock *l)
{
	char type[16], mode[16], end[32];
	unsigned long long start;

	if (sscanf(line, "lock: %*d: %15s %*s %15s %*d %*s %llu %31s", type, mode, &start, end) !=
			4 ||
		strcmp(type, "POSIX"))
		return 0;
	l->write = !strcmp(mode, "WRITE");
	l->start = start;
	l->end = strcmp(end, "EOF") ? strtoull(end, NULL, 10) : UINT64_MAX;
	return 1;
}

/* What @fd shows, if it is one that could have taken the lock. */
static int look(struct ckpt_dump *d, const struct ckpt_proc *p, const struct ckpt_fd *fd,
	struct found *found, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int access = fd->file->flags & O_ACCMODE, r;
	char path[64];

	snprintf(path, sizeof(path), "%d/fdinfo/%d", p->look, fd->fd);
	r = io_read_file(d->host_proc, path, 64 << 20, &text);
	if (r < 0 || !buf_cstr(&text))
		return err_errno(e, r < 0 ? r : -ENOMEM, "/proc/%s", path);
	for (const char *line = buf_cstr(&text); line && *line;) {
		Pb__PosixLock l = PB__POSIX_LOCK__INIT;

		l.fd = fd->fd;
		if (parse(line, &l) && access != (l.write ? O_RDONLY : O_WRONLY) &&
			!is_known(found, &fd->file->st, &l)) {
			r = add(found, &fd->file->st, &l, e);
			if (r < 0)
				return r;
		}
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_proc *p = s.proc;
	struct found found = {.m = PB__POSIX_LOCKS__INIT};
	int r = 0;

	if (p->state == CKPT_ZOMBIE || p->files != p->vpid)
		return 1;
	for (size_t i = 0; i < p->n_fds && r >= 0; i++)
		if (p->fds[i].locks && S_ISREG(p->fds[i].file->st.st_mode) &&
			!(p->fds[i].file->flags & O_PATH))
			r = look(d, p, &p->fds[i], &found, e);
	if (r >= 0)
		r = found.m.n_locks ? ckpt_pack(&found.m.base, body, e) : 1;
	for (size_t i = 0; i < found.m.n_locks; i++)
		free(found.m.locks[i]);
	free(found.m.locks);
	free(found.files);
	return r;
}

/* ---- restore -------------------------------------------------------------------------------- */

static int take(struct remote *r, const Pb__PosixLock *l, struct err *e)
{
	const struct flock lock = {
		.l_type = l->write ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)l->start,
		.l_len = l->end == UINT64_MAX ? 0 : (off_t)(l->end - l->start + 1),
	};

	if (l->end < l->start)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad record lock");
	if (remote_must(r, NULL, e, SYS_fcntl, (uint64_t)l->fd, F_SETLK,
		    remote_put(r, &lock, sizeof(lock)), 0, 0, 0) == 0)
		return 0;
	/* somebody who is not of the session has it, in a volume */
	return e->error == -EAGAIN ? err_reclass(e, ERR_HOST) : e->error;
}

static int link_locks(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__PosixLocks *m = pb__posix_locks__unpack(NULL, r->len, r->body);
	struct ckpt_build_proc *p = ckpt_build_proc(b, (pid_t)r->subject);
	int rc = 0;

	if (!m || !p || p->zombie || m->n_locks > MAX_LOCKS)
		rc = ckpt_common_bad(r, e);
	for (size_t i = 0; rc >= 0 && i < m->n_locks; i++)
		rc = take(p->threads[0].remote, m->locks[i], e);
	pb__posix_locks__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__PosixLocks *m = pb__posix_locks__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_locks; i++)
		fprintf(out, "%sfd %d %s from %llu", i ? ", " : "", m->locks[i]->fd,
			m->locks[i]->write ? "write" : "read",
			(unsigned long long)m->locks[i]->start);
	pb__posix_locks__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_posix_locks = {
	.number = PROTO_KIND_POSIX_LOCKS,
	.name = "posix locks",
	.scope = CKPT_PROC,
	.dump = dump,
	.link = link_locks,
	.show = show,
};
