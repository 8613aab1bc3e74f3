// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inotify - kind INOTIFY.  inotify(7); fdinfo has a line for every watch.
 *
 * Theory of operation
 *
 * fdinfo tells watch descriptor, mask and inode; the name is searched (find.h), or the inode is
 * that of an open file without one.  A watch whose name can't be found makes the freeze fail.  The
 * names of all inotifies of the session are searched together, at the first of them.
 *
 * At resume watches are added at finish, so that the making of all else makes no events.  The
 * kernel counts watch descriptors up and never uses one again, so numbers in between are used up
 * with a watch that is removed again; the events of that are thrown away.
 *
 * Events that nobody has read stay in the kernel: they can't be looked at without taking them away,
 * nor put back.  A freeze that meets some lets the session run on for a moment
 * (ckpt/survey/walks.c).  One that runs on (snapshot, failed suspend) still has them; to one that
 * is resumed the kernel says what it says when it has lost some itself: IN_Q_OVERFLOW, on which a
 * program looks at its files again.  No call makes that event, so as many others are made as the
 * queue takes, and read away in front of it:
 *
 *      watch on a file nobody knows   M A M A M A ... M A   IN_Q_OVERFLOW
 *                                     '----- read -----'    '- left to be read'
 *      M modified, A accessed
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/find.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/where.h"
#include "proto/files.pb-c.h"

#define MAX_WATCHES 65536
#define MAX_WD	    (1 << 20)
#define MAX_QUEUED  (1u << 22) /* of fs.inotify.max_queued_events; 16384 mostly */
#define MASKS	    (IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK)

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:inotify") || !strcmp(f->link, "anon_inode:[inotify]");
}

/* ---- dump ------------------------------------------------------------------------------------ */

/* Those of one inotify. */
struct watches {
	const struct ckpt_file *file;
	Pb__InotifyWatch *w;
	Pb__InotifyWatch **p; /* for the message */
	size_t n, first;      /* first: of its inodes among all */
	int pending;
	int r; /* what is wrong with it, in @why */
	struct err why;
};

struct registry {
	struct buf inodes; /* struct find_inode, of all watches; paths are ours */
	struct watches *of;
	size_t n;
};

static void forget(void *state)
{
	struct registry *g = state;
	struct find_inode *inodes = (struct find_inode *)g->inodes.data;

	for (size_t i = 0; i < g->inodes.len / sizeof(*inodes); i++)
		free(inodes[i].path);
	for (size_t i = 0; i < g->n; i++) {
		free(g->of[i].w);
		free(g->of[i].p);
	}
	buf_fini(&g->inodes);
	free(g->of);
	free(g);
}

static int compare_watches(const void *a, const void *b)
{
	const Pb__InotifyWatch *x = *(Pb__InotifyWatch *const *)a;
	const Pb__InotifyWatch *y = *(Pb__InotifyWatch *const *)b;

	return x->wd < y->wd ? -1 : x->wd > y->wd;
}

static int parse(const char *text, struct watches *l, struct buf *inodes, struct err *e)
{
	struct find_watch watch;
	size_t lines = 0;
	int r;

	for (const char *p = text; ckpt_find_watch(&p, &watch) > 0;)
		lines++;
	if (lines > MAX_WATCHES)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG, "inotify has %zu watches", lines);
	l->w = calloc(lines + 1, sizeof(*l->w));
	l->p = calloc(lines + 1, sizeof(*l->p));
	l->first = inodes->len / sizeof(struct find_inode);
	if (!l->w || !l->p)
		return err_errno(e, -ENOMEM, "inotify");
	while ((r = ckpt_find_watch(&text, &watch)) > 0) {
		Pb__InotifyWatch *w = &l->w[l->n];

		pb__inotify_watch__init(w);
		w->wd = watch.wd;
		w->mask = watch.mask & MASKS;
		buf_put(inodes, &watch.inode, sizeof(watch.inode));
		l->p[l->n++] = w;
	}
	if (r < 0)
		return err_set(e, ERR_HOST, r, "fdinfo of inotify is not understood");
	return buf_error(inodes) < 0 ? err_errno(e, -ENOMEM, "inotify") : 0;
}

/* The open file without a name which watch @i is on, 0 if there is none. */
static uint32_t find_ghost(const struct ckpt_dump *d, const struct find_inode *inode)
{
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i]->st.st_ino == inode->ino && d->files[i]->st.st_nlink == 0 &&
			d->files[i]->st.st_dev == inode->dev)
			return d->files[i]->id;
	return 0;
}

static void take_up(struct ckpt_dump *d, struct registry *g, const struct ckpt_file *f)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct watches *l = &g->of[g->n++];

	l->file = f;
	l->r = ckpt_common_fdinfo(d, f, &text, &l->why);
	if (l->r == 0)
		l->r = parse(buf_cstr(&text), l, &g->inodes, &l->why);
	for (size_t i = 0; l->r == 0 && i < l->n; i++) {
		struct find_inode *inode = (struct find_inode *)g->inodes.data + l->first + i;

		l->w[i].file = find_ghost(d, inode);
		/* Not to be searched for. */
		inode->found = l->w[i].file != 0;
	}
	/* Before the search, which may open what is watched. */
	ioctl(f->fd, FIONREAD, &l->pending);
}

/* All inotifies of the session, found at the first question. */
static struct registry *get_registry(struct ckpt_dump *d)
{
	struct registry *g = d->kind_state[PROTO_KIND_INOTIFY];

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (g)
		g->of = calloc(d->n_files + 1, sizeof(*g->of));
	if (!g || !g->of) {
		free(g);
		return NULL;
	}
	d->kind_state[PROTO_KIND_INOTIFY] = g;
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i]->kind == &ckpt_kind_inotify)
			take_up(d, g, d->files[i]);
	ckpt_find_inodes(
		d, (struct find_inode *)g->inodes.data, g->inodes.len / sizeof(struct find_inode));
	return g;
}

static struct watches *watches_of(
	const struct registry *g, const struct ckpt_file *f, struct err *e)
{
	for (size_t i = 0; g && i < g->n; i++) {
		struct watches *l = &g->of[i];

		if (l->file != f)
			continue;
		if (l->r < 0)
			*e = l->why;
		return l->r < 0 ? NULL : l;
	}
	err_errno(e, -ENOMEM, "inotify");
	return NULL;
}

static int name_watches(const struct registry *g, struct watches *l, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct find_inode *inode = (struct find_inode *)g->inodes.data + l->first + i;

		if (inode->path) {
			l->w[i].path.data = (uint8_t *)inode->path;
			l->w[i].path.len = strlen(inode->path);
		}
		if (!inode->found)
			return err_set(e, ERR_UNFREEZABLE, -ENOENT,
				"inotify watches inode %lu of device %u:%u, whose name cannot be found",
				(unsigned long)inode->ino, major(inode->dev), minor(inode->dev));
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__Inotify m = PB__INOTIFY__INIT;
	const struct registry *g = get_registry(d);
	struct watches *l = watches_of(g, s.file, e);
	int r = l ? ckpt_common_dump(d, s.file, &common, e) : e->error;

	if (r == 0)
		r = name_watches(g, l, e);
	if (r < 0)
		return r;
	sort_array(l->p, l->n, sizeof(*l->p), compare_watches);
	m.common = common;
	m.watches = l->p;
	m.n_watches = l->n;
	m.pending = (uint32_t)l->pending;
	return ckpt_pack(&m.base, body, e);
}

/* ---- restore --------------------------------------------------------------------------------- */

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Inotify *m = pb__inotify__unpack(NULL, r->len, r->body);
	_cleanup_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int x;

	if (fd < 0)
		x = err_errno(e, -errno, "inotify_init1");
	else
		x = m ? ckpt_common_restore(b, fd, m->common, e) : ckpt_common_bad(r, e);
	if (m)
		pb__inotify__free_unpacked(m, NULL);
	if (x == 0)
		*ret_fd = take_fd(&fd);
	return x;
}

/* Adds a watch; returns its descriptor.  The working directory is @b->host_proc. */
static int add_watch(struct ckpt_build *b, int fd, const Pb__InotifyWatch *w, struct err *e)
{
	const struct ckpt_build_file *f;
	char path[PATH_MAX], room[PATH_MAX];
	int wd;

	if (w->file == 0) {
		if (!ckpt_common_check_path(w->path.data, w->path.len, path))
			return err_set(e, ERR_IMAGE, -EBADMSG, "an inotify watch on nothing");
		wd = inotify_add_watch(fd, ckpt_where_host(b->world, path, room),
			(w->mask & MASKS) | IN_DONT_FOLLOW);
		if (wd < 0)
			err_errno(e, -errno, "cannot watch %s", path);
		return wd < 0 ? ckpt_common_blame_host(e) : wd;
	}
	f = ckpt_build_file(b, w->file);
	if (!f || f->fd < 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "an inotify watch on nothing");
	snprintf(path, sizeof(path), "self/fd/%d", f->fd);
	wd = inotify_add_watch(fd, path, w->mask & MASKS);
	return wd < 0 ? err_errno(e, -errno, "cannot watch a deleted file") : wd;
}

/* Uses up watch descriptors from @next to before @wd with watches on @spare, a path. */
static int skip_to(int fd, int next, int wd, const char *spare, struct err *e)
{
	while (next < wd) {
		int got = inotify_add_watch(fd, spare, IN_MOVE_SELF);

		if (got < 0)
			return err_errno(e, -errno, "inotify_add_watch");
		inotify_rm_watch(fd, got);
		if (got != next)
			return err_set(e, ERR_HOST, -ENOTSUP,
				"inotify counts otherwise than expected here");
		next++;
	}
	return 0;
}

static void throw_events_away(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	char events[8192];

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	while (read(fd, events, sizeof(events)) > 0)
		;
	fcntl(fd, F_SETFL, flags);
}

static int add_watches(
	struct ckpt_build *b, int fd, const Pb__Inotify *m, const char *spare, struct err *e)
{
	int next = 1;

	for (size_t i = 0; i < m->n_watches; i++) {
		const Pb__InotifyWatch *w = m->watches[i];
		int r;

		if (w->wd < next || w->wd > MAX_WD)
			return err_set(e, ERR_IMAGE, -EBADMSG, "inotify watch %d", w->wd);
		r = skip_to(fd, next, w->wd, spare, e);
		if (r == 0)
			r = add_watch(b, fd, w, e);
		if (r < 0)
			return r;
		if (r != w->wd)
			return err_set(e, ERR_HOST, -EEXIST,
				"inotify watches %d and %d are the same file here", w->wd, r);
		next = w->wd + 1;
	}
	throw_events_away(fd);
	return 0;
}

/* Fills the queue of @fd with events of @file, whose watch is on it, until it
 * takes no more: IN_Q_OVERFLOW is the last one then.  Two kinds by turns: one
 * that is like the last is not taken. */
static bool fill_queue(int fd, int file)
{
	unsigned made = 0;
	int queued = 0, then = -1;
	char byte = 0;

	while (queued > then && made < MAX_QUEUED) {
		then = queued;
		for (int i = 0; i < 1024; i++, made += 2)
			if (pwrite(file, &byte, 1, 0) != 1 || pread(file, &byte, 1, 0) != 1)
				return false;
		if (ioctl(fd, FIONREAD, &queued) < 0)
			return false;
	}
	return queued == then;
}

/* Leaves IN_Q_OVERFLOW in the empty queue of @fd and nothing else; or nothing at all, which is told
 * in the log, where the host lets a queue be longer than is filled here. */
static int say_lost(struct ckpt_build *b, int fd, int spare, const char *path, struct err *e)
{
	_cleanup_close_ int file = ckpt_common_reopen(b, spare, O_RDWR, e);
	int wd = file < 0 ? -1 : inotify_add_watch(fd, path, IN_MODIFY | IN_ACCESS), queued = 0;
	struct inotify_event events[512];
	bool full;

	if (file < 0)
		return file;
	if (wd < 0)
		return err_errno(e, -errno, "inotify_add_watch");
	full = fill_queue(fd, file);
	/* The end of the watch is not told any more. */
	inotify_rm_watch(fd, wd);
	ioctl(fd, FIONREAD, &queued);
	if (!full || queued < (int)sizeof(events[0])) {
		throw_events_away(fd);
		log_warn("an inotify has lost its unread events, and the queue is too long to say "
			 "so");
		return 0;
	}
	for (size_t left = (size_t)queued - sizeof(events[0]); left;) {
		ssize_t n = read(fd, events, MIN(left, sizeof(events)));

		if (n <= 0)
			return err_errno(e, n < 0 ? -errno : -EIO, "reading of an inotify");
		left -= (size_t)n;
	}
	return 0;
}

static int restore(struct ckpt_build *b, int fd, const Pb__Inotify *m, struct err *e)
{
	_cleanup_close_ int spare = memfd_create("podrun-watch", MFD_CLOEXEC);
	char path[32];
	int r;

	if (spare < 0 || fchdir(b->host_proc) < 0)
		return err_errno(e, -errno, "something to watch");
	snprintf(path, sizeof(path), "self/fd/%d", spare);
	r = add_watches(b, fd, m, path, e);
	if (r == 0 && m->pending)
		r = say_lost(b, fd, spare, path, e);
	if (chdir("/") < 0 && r == 0)
		r = err_errno(e, -errno, "/");
	return r;
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Inotify *m = pb__inotify__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = m && f && f->fd >= 0 ? restore(b, f->fd, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__inotify__free_unpacked(m, NULL);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Inotify *m = pb__inotify__unpack(NULL, len, body);

	if (!m) {
		fputs("unreadable", out);
		return;
	}
	fprintf(out, "%zu watches, %u bytes of events unread", m->n_watches, m->pending);
	for (size_t i = 0; i < m->n_watches; i++)
		fprintf(out, "%s %d %.*s mask %#x", i ? "," : ":", m->watches[i]->wd,
			(int)m->watches[i]->path.len, (const char *)m->watches[i]->path.data,
			m->watches[i]->mask);
	pb__inotify__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_inotify = {
	.number = PROTO_KIND_INOTIFY,
	.name = "inotify",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.forget = forget,
	.create = create,
	.finish = finish,
	.show = show,
};
