// SPDX-License-Identifier: GPL-2.0-or-later
/* See common.h: dump side first, then the restore side, then objects shared by several files. */
#include "ckpt/kinds/common.h"
#include "ckpt/said.h"
#include "ckpt/where.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "proto/files.pb-c.h"

/* What fcntl(F_SETFL) can change. */
#define SETTABLE (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC)
/* What open(2) wants again; O_TMPFILE without its O_DIRECTORY would be an error. */
#define OPENABLE                                                                                \
	(O_ACCMODE | O_APPEND | O_DIRECT | O_NOATIME | O_SYNC | O_DSYNC | O_PATH | O_NOFOLLOW | \
		O_LARGEFILE)
#define MAX_LOCKS 1024

/* ---- numbers of processes -------------------------------------------------------------------- */

pid_t ckpt_common_vpid(const struct ckpt_dump *d, pid_t pid)
{
	const struct ckpt_proc *p;

	if (pid == d->world->init_pid)
		return 1;
	p = ckpt_proc_by_pid(d, pid);
	if (p)
		return p->vpid;
	/* One that has ended. */
	return d->world->names ? d->world->names->number(d->world->names->ctx, pid) : 0;
}

pid_t ckpt_common_vtid(const struct ckpt_dump *d, pid_t tid)
{
	if (tid == d->world->init_pid)
		return 1;
	for (size_t i = 0; i < d->n_procs; i++)
		for (size_t k = 0; k < d->procs[i]->n_threads; k++)
			if (d->procs[i]->threads[k]->tid == tid)
				return d->procs[i]->threads[k]->vtid;
	return ckpt_common_vpid(d, tid);
}

pid_t ckpt_common_vpgid(const struct ckpt_dump *d, pid_t pgid)
{
	for (size_t i = 0; i < d->n_procs; i++)
		if (d->procs[i]->status.pgid == pgid)
			return d->procs[i]->vpgid;
	return 0;
}

/* The number of virtual process group @vpgid as the builder must say it; 0 when nobody is in it. */
static pid_t builders_pgid(struct ckpt_build *b, pid_t vpgid)
{
	const struct ckpt_build_proc *leader = ckpt_build_proc(b, vpgid);
	size_t level;

	if (leader)
		return leader->pid;
	if (b->world->names)
		return ckpt_said(b->world, vpgid);
	level = proc_level(b->host_proc, b->world->init_pid);
	for (size_t i = 0; i < b->n_procs; i++) {
		struct proc_status st;

		if (proc_read_status(b->host_proc, b->procs[i].pid, &st, NULL) == 0 &&
			proc_at_level(st.ns_pgid, &st, level) == vpgid)
			return st.pgid;
	}
	return 0;
}

/* ---- fdinfo ---------------------------------------------------------------------------------- */

int ckpt_common_fdinfo(
	const struct ckpt_dump *d, const struct ckpt_file *f, struct buf *b, struct err *e)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "self/fdinfo/%d", f->fd);
	r = io_read_file(d->host_proc, path, 64 << 20, b);
	if (r < 0)
		return err_errno(e, r, "cannot read fdinfo of %s", f->link);
	return buf_cstr(b) ? 0 : err_errno(e, -ENOMEM, "fdinfo of %s", f->link);
}

bool ckpt_fdinfo_number(const char *text, const char *key, int base, uint64_t *ret)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		char *end;

		line += *line == '\n';
		if (strncmp(line, key, n) != 0 || line[n] != ':')
			continue;
		*ret = strtoull(line + n + 1, &end, base);
		return end != line + n + 1;
	}
	return false;
}

/* ---- paths ----------------------------------------------------------------------------------- */

char *ckpt_common_path(const struct ckpt_file *f)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(f->link), tail = sizeof(mark) - 1;

	if (f->st.st_nlink == 0 && len > tail && !strcmp(f->link + len - tail, mark))
		len -= tail;
	return strndup(f->link, len);
}

/* @way, with a slash at its end, made with what is missing above it, opened and removed again.
 * -EEXIST if it is there. */
static int make_for_a_moment(char *way)
{
	char *first = NULL;
	int fd = -EEXIST;

	for (char *p = strchr(way + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(way, 0700) == 0 && !first)
			first = p;
		*p = '/';
	}
	if (first) {
		fd = open(way, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	for (char *p = strrchr(way, '/'); first && p >= first; p = strrchr(way, '/')) {
		*p = '\0';
		rmdir(way);
	}
	return fd;
}

int ckpt_common_gone_dir(const struct ckpt_build *b, const char *path)
{
	char way[PATH_MAX + 1], spare[PATH_MAX], room[PATH_MAX];
	int fd = -ENAMETOOLONG;

	if (snprintf(way, sizeof(way), "%s/", path) < (int)sizeof(way))
		fd = make_for_a_moment(way);
	if (fd >= 0)
		return fd;
	snprintf(spare, sizeof(spare), "%s",
		ckpt_where_host(b->world, "/tmp/.podrun-XXXXXX", room));
	if (!mkdtemp(spare))
		return fd;
	fd = open(spare, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	rmdir(spare);
	return fd;
}

bool ckpt_common_check_path(const void *data, size_t len, char ret[PATH_MAX])
{
	if (len == 0 || len >= PATH_MAX || *(const char *)data != '/' || memchr(data, 0, len))
		return false;
	memcpy(ret, data, len);
	ret[len] = '\0';
	return true;
}

/* ---- dump ------------------------------------------------------------------------------------ */

static void dump_owner(struct ckpt_dump *d, const struct ckpt_file *f, Pb__FileCommon *c)
{
	struct f_owner_ex owner = {0};
	int sig;

	/* O_PATH knows neither. */
	if (fcntl(f->fd, F_GETOWN_EX, &owner) < 0)
		return;
	sig = fcntl(f->fd, F_GETSIG);
	c->signal = sig > 0 ? sig : 0;
	if (owner.pid == 0)
		return;
	switch (owner.type) {
	case F_OWNER_TID:
		c->owner_type = PB__FILE_COMMON__OWNER_TYPE__THREAD;
		c->owner = ckpt_common_vtid(d, owner.pid);
		break;
	case F_OWNER_PID:
		c->owner_type = PB__FILE_COMMON__OWNER_TYPE__PROCESS;
		c->owner = ckpt_common_vpid(d, owner.pid);
		break;
	case F_OWNER_PGRP:
		c->owner_type = PB__FILE_COMMON__OWNER_TYPE__GROUP;
		c->owner = ckpt_common_vpgid(d, owner.pid);
		break;
	}
	if (c->owner == 0)
		c->owner_type = PB__FILE_COMMON__OWNER_TYPE__NONE;
}

/* One "lock:" line of fdinfo: "1: FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF".  Returns 1 if it is
 * one that belongs to the open file. */
static int parse_lock(const char *line, Pb__FileLock *lock)
{
	char type[16], mode[16], end[32];
	unsigned long long start;

	if (sscanf(line, "lock: %*d: %15s %*s %15s %*d %*s %llu %31s", type, mode, &start, end) !=
		4)
		return 0;
	if (!strcmp(type, "FLOCK"))
		lock->type = PB__FILE_LOCK__TYPE__FLOCK;
	else if (!strcmp(type, "OFDLCK"))
		lock->type = PB__FILE_LOCK__TYPE__OFD;
	else if (!strcmp(type, "LEASE"))
		lock->type = PB__FILE_LOCK__TYPE__LEASE;
	else
		return 0;
	lock->write = !strcmp(mode, "WRITE");
	lock->start = start;
	lock->end = strcmp(end, "EOF") ? strtoull(end, NULL, 10) : UINT64_MAX;
	return 1;
}

static int dump_locks(const struct ckpt_file *f, Pb__FileCommon *c, struct err *e)
{
	for (const char *line = f->fdinfo; line && *line;) {
		const char *next = strchr(line, '\n');
		Pb__FileLock lock = PB__FILE_LOCK__INIT;

		if (parse_lock(line, &lock)) {
			if (c->n_locks == MAX_LOCKS)
				return err_set(e, ERR_UNFREEZABLE, -E2BIG, "too many locks on %s",
					f->link);
			if (!c->locks)
				c->locks = calloc(MAX_LOCKS, sizeof(*c->locks));
			if (c->locks)
				c->locks[c->n_locks] = malloc(sizeof(lock));
			if (!c->locks || !c->locks[c->n_locks])
				return err_errno(e, -ENOMEM, "locks of %s", f->link);
			*c->locks[c->n_locks++] = lock;
		}
		line = next ? next + 1 : NULL;
	}
	return 0;
}

int ckpt_common_dump(
	struct ckpt_dump *d, const struct ckpt_file *f, Pb__FileCommon **ret, struct err *e)
{
	_cleanup_(cleanup_common) Pb__FileCommon *c = malloc(sizeof(*c));
	int r;

	if (!c)
		return err_errno(e, -ENOMEM, "%s", f->link);
	pb__file_common__init(c);
	c->flags = (uint32_t)f->flags;
	c->pos = f->pos;
	dump_owner(d, f, c);
	r = dump_locks(f, c, e);
	if (r < 0)
		return r;
	*ret = take_ptr(c);
	return 0;
}

void ckpt_common_free(Pb__FileCommon *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_locks; i++)
		free(c->locks[i]);
	free(c->locks);
	free(c);
}

/* ---- files by inode -------------------------------------------------------------------------- */

/* Every open file, by inode and then by id; made again when files were taken up since. */
struct index {
	size_t n;
	const struct ckpt_file *files[];
};

static int compare_inodes(const void *a, const void *b)
{
	const struct ckpt_file *x = *(const struct ckpt_file *const *)a;
	const struct ckpt_file *y = *(const struct ckpt_file *const *)b;

	if (x->st.st_ino != y->st.st_ino)
		return x->st.st_ino < y->st.st_ino ? -1 : 1;
	if (x->st.st_dev != y->st.st_dev)
		return x->st.st_dev < y->st.st_dev ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static const struct index *get_index(struct ckpt_dump *d)
{
	struct index *x = d->kind_state[PROTO_KIND_REGULAR];

	if (x && x->n == d->n_files)
		return x;
	free(x);
	d->kind_state[PROTO_KIND_REGULAR] = x =
		malloc(sizeof(*x) + d->n_files * sizeof(x->files[0]));
	if (!x)
		return NULL;
	x->n = d->n_files;
	for (size_t i = 0; i < x->n; i++)
		x->files[i] = d->files[i];
	sort_array(x->files, x->n, sizeof(x->files[0]), compare_inodes);
	return x;
}

size_t ckpt_common_by_inode(struct ckpt_dump *d, ino_t ino, const struct ckpt_file *const **ret)
{
	const struct index *x = get_index(d);
	size_t lo = 0, hi = x ? x->n : 0, end;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (x->files[mid]->st.st_ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (end = lo; x && end < x->n && x->files[end]->st.st_ino == ino;)
		end++;
	*ret = x ? &x->files[lo] : NULL;
	return end - lo;
}

const struct ckpt_file *ckpt_common_first(struct ckpt_dump *d, const struct ckpt_file *f)
{
	const struct ckpt_file *const *same;
	size_t n = ckpt_common_by_inode(d, f->st.st_ino, &same);

	for (size_t i = 0; i < n; i++)
		if (same[i]->kind == f->kind && same[i]->st.st_dev == f->st.st_dev)
			return same[i];
	return f;
}

const struct ckpt_file *ckpt_common_carrier(const struct ckpt_dump *d, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];

		if (f->st.st_ino == ino && f->st.st_dev == dev && f->kind &&
			(f->kind->number == PROTO_KIND_GHOST ||
				f->kind->number == PROTO_KIND_MEMFD))
			return f;
	}
	return NULL;
}

/* ---- restore --------------------------------------------------------------------------------- */

static int restore_owner(struct ckpt_build *b, int fd, const Pb__FileCommon *c, struct err *e)
{
	struct f_owner_ex owner = {0};
	struct ckpt_build_thread *t;
	struct ckpt_build_proc *p;

	switch (c->owner_type) {
	case PB__FILE_COMMON__OWNER_TYPE__THREAD:
		owner.type = F_OWNER_TID;
		t = ckpt_build_thread(b, c->owner);
		owner.pid = t ? t->tid : 0;
		break;
	case PB__FILE_COMMON__OWNER_TYPE__PROCESS:
		owner.type = F_OWNER_PID;
		p = ckpt_build_proc(b, c->owner);
		owner.pid = p ? p->pid : 0;
		break;
	case PB__FILE_COMMON__OWNER_TYPE__GROUP:
		owner.type = F_OWNER_PGRP;
		owner.pid = builders_pgid(b, c->owner);
		break;
	default:
		break;
	}
	if (owner.pid && fcntl(fd, F_SETOWN_EX, &owner) < 0)
		return err_errno(e, -errno, "cannot set the owner of a descriptor");
	if (c->signal && fcntl(fd, F_SETSIG, c->signal) < 0)
		return err_errno(e, -errno, "cannot set the signal of a descriptor");
	return 0;
}

int ckpt_common_restore(struct ckpt_build *b, int fd, const Pb__FileCommon *c, struct err *e)
{
	int flags, r;

	if (!c)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a file without flags");
	if (c->flags & O_PATH)
		return 0;
	r = restore_owner(b, fd, c, e);
	if (r < 0)
		return r;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return err_errno(e, -errno, "F_GETFL");
	if ((flags ^ (int)c->flags) & SETTABLE) {
		int want = (flags & ~SETTABLE) | ((int)c->flags & SETTABLE);

		/* O_NOATIME is for owners; nobody's result depends on it. */
		if (fcntl(fd, F_SETFL, want) < 0 && fcntl(fd, F_SETFL, want & ~O_NOATIME) < 0)
			return err_errno(e, -errno, "cannot set flags %#o", want);
	}
	if (c->pos > 0 && lseek(fd, c->pos, SEEK_SET) < 0 && errno != ESPIPE)
		return err_errno(e, -errno, "cannot seek to %lld", (long long)c->pos);
	return 0;
}

static int restore_lock(int fd, const Pb__FileLock *l)
{
	struct flock ofd = {.l_type = l->write ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};

	switch (l->type) {
	case PB__FILE_LOCK__TYPE__FLOCK:
		return flock(fd, (l->write ? LOCK_EX : LOCK_SH) | LOCK_NB);
	case PB__FILE_LOCK__TYPE__OFD:
		ofd.l_start = (off_t)l->start;
		ofd.l_len = l->end == UINT64_MAX ? 0 : (off_t)(l->end - l->start + 1);
		return fcntl(fd, F_OFD_SETLK, &ofd);
	case PB__FILE_LOCK__TYPE__LEASE:
		return 0;
	default:
		errno = EINVAL;
		return -1;
	}
}

int ckpt_common_lock(int fd, const Pb__FileCommon *c, struct err *e)
{
	for (size_t i = 0; c && i < c->n_locks; i++)
		if (restore_lock(fd, c->locks[i]) < 0) {
			err_errno(e, -errno, "cannot take its lock again");
			/* somebody who is not of the session has it, in a volume */
			return e->error == -EAGAIN ? err_reclass(e, ERR_HOST) : e->error;
		}
	return 0;
}

void ckpt_common_lease(
	struct ckpt_build *b, const struct ckpt_build_file *f, const Pb__FileCommon *c)
{
	struct ckpt_build_proc *p = f && f->holder ? ckpt_build_proc(b, f->holder) : NULL;
	struct err e = {0};

	for (size_t i = 0; p && c && i < c->n_locks; i++)
		/* It depends on who else has the file open: a hint, not a promise. */
		if (c->locks[i]->type == PB__FILE_LOCK__TYPE__LEASE &&
			remote_must(p->threads[0].remote, NULL, &e, SYS_fcntl, (uint64_t)f->holder_fd,
				F_SETLEASE, c->locks[i]->write ? F_WRLCK : F_RDLCK, 0, 0, 0) < 0)
			log_warn("a file lease was lost: %s", e.msg);
}

int ckpt_common_open_flags(const Pb__FileCommon *c)
{
	int flags = (int)c->flags & OPENABLE;

	if (flags & O_PATH)
		return (flags & (O_PATH | O_NOFOLLOW)) | O_CLOEXEC;
	return flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
}

int ckpt_common_open(const char *path, int flags, struct err *e)
{
	struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && errno == EPERM && (flags & O_NOATIME)) {
		how.flags &= ~(uint64_t)O_NOATIME;
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	}
	return fd < 0 ? err_errno(e, -errno, "cannot open %s", path) : fd;
}

int ckpt_common_blame_host(struct err *e)
{
	static const int lacking[] = {ENOENT, ENOTDIR, EACCES, EISDIR, ELOOP};

	for (size_t i = 0; i < ARRAY_SIZE(lacking); i++)
		if (e->class == ERR_FAILED && e->error == -lacking[i]) {
			err_reclass(e, ERR_HOST);
			err_hint(e, "it has to be there when the session is resumed, as it was");
		}
	return e->error;
}

/*
 * One's own file @fd, whose mode closes it to its owner: git(1) and others make what they write 0444,
 * and have it open.  Nobody without capabilities gets in; so it has another mode for a moment.
 */
static int open_closed(struct ckpt_build *b, const char *path, int fd, int flags)
{
	mode_t both = S_IRUSR | S_IWUSR;
	struct stat st;
	int n, error;

	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & both) == both ||
		fchmodat(b->host_proc, path, (st.st_mode & 07777) | both, 0) < 0) {
		errno = EACCES;
		return -1;
	}
	n = openat(b->host_proc, path, flags);
	error = errno;
	if (fchmodat(b->host_proc, path, st.st_mode & 07777, 0) < 0)
		log_warn("a file has another mode than it had: %s", strerror(errno));
	errno = error;
	return n;
}

int ckpt_common_reopen(struct ckpt_build *b, int fd, int flags, struct err *e)
{
	char path[64];
	int n;

	flags = (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NOCTTY;
	snprintf(path, sizeof(path), "self/fd/%d", fd);
	n = openat(b->host_proc, path, flags);
	if (n < 0 && errno == EACCES)
		n = open_closed(b, path, fd, flags);
	if (n < 0)
		return err_errno(e, -errno, "cannot open a descriptor anew");
	return n;
}

int ckpt_common_open_own(struct ckpt_build *b, const char *path, int flags, struct err *e)
{
	_cleanup_close_ int at = -1;
	int fd = ckpt_common_open(path, flags, e);

	if (fd != -EACCES)
		return fd;
	at = ckpt_common_open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC, e);
	if (at < 0)
		return at;
	fd = ckpt_common_reopen(b, at, flags, e);
	return fd < 0 ? err_errno(e, fd, "cannot open %s", path) : fd;
}

int ckpt_common_view(struct ckpt_build *b, int fd, const Pb__FileCommon *c, struct err *e)
{
	_cleanup_close_ int view = ckpt_common_reopen(b, fd, ckpt_common_open_flags(c), e);
	int r = view < 0 ? view : ckpt_common_restore(b, view, c, e);

	return r < 0 ? r : take_fd(&view);
}

int ckpt_common_bad(const struct ckpt_record *r, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EBADMSG, "a %s record makes no sense", r->kind->name);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct objects {
	size_t n, cap;
	struct ckpt_object o[];
};

struct ckpt_object *ckpt_object_get(struct ckpt_build *b, enum proto_kind kind, uint64_t key)
{
	struct objects *s = b->kind_state[kind];

	for (size_t i = 0; s && i < s->n; i++)
		if (s->o[i].key == key)
			return &s->o[i];
	if (!s || s->n == s->cap) {
		size_t cap = s ? s->cap * 2 : 16, n = s ? s->n : 0;
		struct objects *more = realloc(s, sizeof(*s) + cap * sizeof(s->o[0]));

		if (!more)
			return NULL;
		s = b->kind_state[kind] = more;
		s->n = n;
		s->cap = cap;
	}
	s->o[s->n] = (struct ckpt_object){.key = key, .fd = -1, .fd2 = -1};
	return &s->o[s->n++];
}

void ckpt_objects_close(struct ckpt_build *b, enum proto_kind kind)
{
	struct objects *s = b->kind_state[kind];

	for (size_t i = 0; s && i < s->n; i++) {
		s->o[i].fd = close_fd(s->o[i].fd);
		s->o[i].fd2 = close_fd(s->o[i].fd2);
	}
}

int ckpt_common_contents(struct ckpt_build *b, uint32_t file, struct err *e)
{
	const struct ckpt_build_file *f = ckpt_build_file(b, file);
	enum proto_kind kind;
	struct ckpt_object *o;

	kind = f && f->record && f->record->kind ? f->record->kind->number : PROTO_KIND_NONE;
	if (kind != PROTO_KIND_GHOST && kind != PROTO_KIND_MEMFD)
		return err_set(e, ERR_IMAGE, -ENOENT, "open file %u carries no contents", file);
	o = ckpt_object_get(b, kind, file);
	if (!o || o->fd < 0)
		return err_set(e, ERR_IMAGE, -ENOENT, "open file %u carries no contents", file);
	return o->fd;
}
