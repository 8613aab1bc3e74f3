// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open files: which slots of which tables lead to the same one, and which kind it is.
 *
 * All slots are sorted by what is cheap to know (inode, flags, position), and where that is equal
 * by kcmp(2), which orders open files as the kernel's pointers do: equals stand together, and
 * only one of them is duplicated into this process.
 *
 * Where a container engine's profile refuses kcmp or pidfd_getfd, all of them are duplicated
 * (ckpt/survey/take.h), and those that look alike are told apart here (ckpt/survey/same.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ckpt/helper.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/nested/sock.h"
#include "ckpt/survey/openfiles.h"
#include "ckpt/survey/opensock.h"
#include "ckpt/survey/same.h"
#include "ckpt/survey/take.h"
#include "ckpt/where.h"

#define MAX_FDINFO (1 << 20)
#define MANY	   128 /* descriptors of one table from which on threads are worth it */

/* One slot of one table, on its way to become part of a ckpt_file. */
struct slot {
	struct ckpt_proc *proc;
	struct ckpt_fd *in_table;
	int fd;
	dev_t dev;
	ino_t ino;
	int flags;
	off_t pos;
	int mnt_id;
	char *fdinfo;
	int taken;    /* our duplicate, or -1: only the first of each file is duplicated, later */
	size_t group; /* of taken ones that look alike: the same in all that lead to one file */
};

struct ckpt_slots {
	struct slot *v;
	size_t n, cap;
};

int ckpt_file_wrap(const struct ckpt_file *f, struct err *e)
{
	if (f->holder)
		return err_wrap(e, "task %d (%s) fd %d", f->holder->vpid, f->holder->status.comm,
			f->holder_fd);
	return err_wrap(e, "a file in flight");
}

/* ---- fdinfo ------------------------------------------------------------------------------- */

static const char *fdinfo_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		if (strncmp(p, key, len) || p[len] != ':')
			continue;
		p += len + 1;
		return p + strspn(p, " \t");
	}
	return NULL;
}

const char *ckpt_fdinfo_get(const struct ckpt_file *f, const char *key)
{
	return fdinfo_value(f->fdinfo, key);
}

static long long fdinfo_number(const char *text, const char *key, int base)
{
	const char *p = fdinfo_value(text, key);

	return p ? strtoll(p, NULL, base) : 0;
}

/* Mostly short, and then no memory is taken that has never been used. */
static char *read_fdinfo(int dir, const char *path, struct err *e)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : 0;
	struct buf b = BUF_INIT;
	char room[1024], *text;

	if (n == 0)
		n = pread(fd, room, sizeof(room) - 1, 0);
	if (n > 0 && n < (ssize_t)sizeof(room) - 1) {
		room[n] = '\0';
		text = strdup(room);
	} else {
		n = fd < 0 ? n : io_read_fd(fd, MAX_FDINFO, &b);
		text = n < 0 ? NULL : buf_cstr(&b);
	}
	if (!text) {
		buf_fini(&b);
		err_errno(e, n < 0 ? (int)n : -ENOMEM, "read fdinfo %s", path);
	}
	return text;
}

/* ---- slots -------------------------------------------------------------------------------- */

/*
 * The inode, which fdinfo tells since Linux 5.14; a mount has one device only, more or less: those
 * that look alike are compared.
 */
static int find_inode(struct ckpt_dump *d, struct slot *slot, struct err *e)
{
	struct stat st;
	char path[64];

	slot->ino = (ino_t)fdinfo_number(slot->fdinfo, "ino", 10);
	if (slot->ino)
		return 0;
	snprintf(path, sizeof(path), "%d/fd/%d", slot->proc->look, slot->fd);
	if (fstatat(d->host_proc, path, &st, 0) < 0)
		return err_errno(e, -errno, "stat");
	slot->dev = st.st_dev;
	slot->ino = st.st_ino;
	return 0;
}

/* Slots for all that @p has, with nothing in them yet; the first of them. */
static struct slot *add_slots(struct ckpt_slots *s, struct ckpt_proc *p)
{
	struct slot *first;

	if (s->n + p->n_fds > s->cap) {
		size_t cap = MAX(2 * (s->n + p->n_fds), (size_t)1024);
		struct slot *v = realloc(s->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		s->v = v;
		s->cap = cap;
	}
	first = &s->v[s->n];
	for (size_t i = 0; i < p->n_fds; i++)
		first[i] = (struct slot){
			.proc = p, .in_table = &p->fds[i], .fd = p->fds[i].fd, .taken = -1};
	s->n += p->n_fds;
	return first;
}

struct table {
	struct ckpt_dump *d;
	struct slot *slots; /* of one process */
	int dir;	    /* its directory "fdinfo" */
	struct ckpt_opensock sockets;
	int pidfd;
};

static bool is_socket(const struct table *t, struct slot *slot)
{
	struct ckpt_opensock_look look;

	if (!ckpt_opensock_look(&t->sockets, t->pidfd, slot->fd, &look))
		return false;
	slot->ino = look.ino;
	slot->flags = look.flags;
	slot->mnt_id = t->sockets.mnt_id;
	slot->in_table->unsure = true;
	return true;
}

static int fill_slot(void *ctx, size_t i, struct err *e)
{
	const struct table *t = ctx;
	struct slot *slot = &t->slots[i];
	struct ckpt_fd *in_table = slot->in_table;
	char name[16];

	if (is_socket(t, slot))
		return 0;
	snprintf(name, sizeof(name), "%d", slot->fd);
	slot->fdinfo = read_fdinfo(t->dir, name, e);
	if (!slot->fdinfo || find_inode(t->d, slot, e) < 0)
		return err_wrap(e, "task %d (%s) fd %d", slot->proc->vpid,
			slot->proc->status.comm, slot->fd);
	slot->pos = fdinfo_number(slot->fdinfo, "pos", 10);
	slot->mnt_id = (int)fdinfo_number(slot->fdinfo, "mnt_id", 10);
	slot->flags = (int)fdinfo_number(slot->fdinfo, "flags", 8);
	in_table->cloexec = slot->flags & O_CLOEXEC;
	in_table->locks = fdinfo_value(slot->fdinfo, "lock") != NULL;
	slot->flags &= ~O_CLOEXEC; /* of the slot, not of the file */
	return 0;
}

/* Not with kcmp and pidfd_getfd, each of which the other way needs. */
static bool takes_all(const struct ckpt_dump *d)
{
	return d->world->names && !(ckpt_same_by_kcmp() && ckpt_take_by_pidfd());
}

/* Our duplicates of the slots from @v on, all in the table of @p. */
static int take_table(struct ckpt_dump *d, struct slot *v, struct ckpt_proc *p, struct err *e)
{
	_cleanup_free_ int *theirs = calloc(p->n_fds + 1, sizeof(*theirs));
	_cleanup_free_ int *ours = calloc(p->n_fds + 1, sizeof(*ours));
	struct remote *remote;
	int r = theirs && ours ? ckpt_proc_remote(p, &remote, e) : err_errno(e, -ENOMEM, "survey");

	for (size_t i = 0; r >= 0 && i < p->n_fds; i++)
		theirs[i] = v[i].fd;
	if (r >= 0)
		r = ckpt_take(d->world, remote, theirs, p->n_fds, ours, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_fds; i++)
		v[i].taken = ours[i];
	return 0;
}

/* A process whose first thread has ended has no descriptors by its number. */
static void begin_sockets(struct table *t, struct ckpt_proc *p)
{
	if (takes_all(t->d) || p->headless)
		return;
	if (p->pidfd < 0)
		p->pidfd = sys_pidfd_open(p->pid, 0);
	t->pidfd = p->pidfd;
	if (t->pidfd >= 0)
		t->sockets = ckpt_opensock_begin();
}

static int read_table(struct ckpt_dump *d, struct ckpt_slots *s, struct ckpt_proc *p, struct err *e)
{
	struct table t = {.d = d};
	_cleanup_free_ int *list = NULL;
	_cleanup_close_ int dir = -1;
	size_t n;
	int r;

	t.dir = dir = proc_open_file(d->host_proc, p->look, "fdinfo", O_RDONLY | O_DIRECTORY, e);
	if (dir < 0)
		return dir;
	r = proc_list_numbers_of(dir, &list, &n);
	if (r < 0)
		return err_errno(e, r, "list descriptors of task %d", p->vpid);
	p->fds = calloc(n + 1, sizeof(*p->fds));
	if (!p->fds)
		return err_errno(e, -ENOMEM, "survey");
	p->n_fds = n;
	for (size_t i = 0; i < n; i++)
		p->fds[i].fd = list[i];
	t.slots = add_slots(s, p);
	if (!t.slots)
		return err_errno(e, -ENOMEM, "survey");
	if (n >= MANY) {
		begin_sockets(&t, p);
		return par_each(n, fill_slot, &t, e);
	}
	for (size_t i = 0; i < n && r == 0; i++)
		r = fill_slot(&t, i, e);
	return r;
}

static void free_slots(struct ckpt_slots *s)
{
	for (size_t i = 0; s && i < s->n; i++) {
		free(s->v[i].fdinfo);
		close_fd(s->v[i].taken);
	}
	if (s)
		free(s->v);
	free(s);
}

/*
 * /proc takes its time for each descriptor: 5 to 8 us.  This is one thread, beside others that have
 * something else to do; for a large table there are more.
 */
int ckpt_openfiles_read(struct ckpt_dump *d, struct err *e)
{
	int r = 0;

	d->slots = calloc(1, sizeof(*d->slots));
	if (!d->slots)
		return err_errno(e, -ENOMEM, "survey");
	for (size_t i = 0; i < d->n_procs && r == 0; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state != CKPT_ZOMBIE && p->files == p->vpid)
			r = read_table(d, d->slots, p, e);
	}
	return r;
}

static int take_tables(struct ckpt_dump *d, struct err *e)
{
	struct slot *v = d->slots->v;
	int r = 0;

	for (size_t i = 0; i < d->n_procs && r == 0; i++) {
		if (d->procs[i]->n_fds)
			r = take_table(d, v, d->procs[i], e);
		v += d->procs[i]->n_fds;
	}
	return r;
}

#define ORDER(a, b)                                \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

static int compare_looks(const struct slot *x, const struct slot *y)
{
	ORDER(x->dev, y->dev);
	ORDER(x->ino, y->ino);
	ORDER(x->flags, y->flags);
	ORDER(x->pos, y->pos);
	ORDER(x->mnt_id, y->mnt_id);
	return 0;
}

/* 0: the same open file. */
static int compare_files(const struct slot *x, const struct slot *y)
{
	int look = compare_looks(x, y);

	if (look)
		return look;
	ORDER(x->group, y->group);
	if (x->taken >= 0)
		return 0;
	switch (sys_kcmp(x->proc->look, y->proc->look, SYS_KCMP_FILE, (unsigned long)x->fd,
		(unsigned long)y->fd)) {
	case 0:
		return 0;
	case 1:
		return -1;
	case 2:
		return 1;
	}
	/* Can't be told: not the same. */
	ORDER(x->proc->vpid, y->proc->vpid);
	return (x->fd > y->fd) - (x->fd < y->fd);
}

static int compare_slots(const void *a, const void *b)
{
	return compare_files(a, b);
}

/* ---- open files --------------------------------------------------------------------------- */

static void free_file(struct ckpt_file *f)
{
	if (!f)
		return;
	close_fd(f->fd);
	free(f->link);
	free(f->fdinfo);
	free(f);
}

DEFINE_CLEANUP(file, struct ckpt_file *, free_file);

static int append_file(struct ckpt_dump *d, struct ckpt_file *f, struct err *e)
{
	/* Grown at every power of two. */
	if ((d->n_files & (d->n_files + 1)) == 0) {
		struct ckpt_file **v =
			realloc(d->files, (2 * d->n_files + 2) * sizeof(struct ckpt_file *));

		if (!v)
			return err_errno(e, -ENOMEM, "survey");
		d->files = v;
	}
	d->files[d->n_files++] = f;
	f->id = (uint32_t)d->n_files;
	return 0;
}

static int take_descriptor(struct ckpt_proc *p, struct slot *slot, struct err *e)
{
	int got, fd = slot->fd;

	if (slot->taken >= 0)
		return take_fd(&slot->taken);
	if (p->pidfd < 0)
		p->pidfd = sys_pidfd_open(p->pid, 0);
	if (p->pidfd < 0)
		return err_errno(e, -errno, "pidfd_open");
	got = sys_pidfd_getfd(p->pidfd, fd);
	if (got < 0 && (errno == EPERM || errno == ENOSYS))
		return err_set(e, ERR_HOST, -errno, "this host does not allow pidfd_getfd");
	if (got < 0 && errno == EMFILE)
		return ckpt_take_full(e);
	return got < 0 ? err_errno(e, -errno, "pidfd_getfd") : got;
}

/* As ckpt_file.link.  Of a socket no more than its number, which is known. */
static char *link_of(const struct ckpt_dump *d, const struct slot *slot, const struct stat *st)
{
	char text[64];

	/* not a name of one */
	if (S_ISSOCK(st->st_mode) && !(slot->flags & O_PATH)) {
		snprintf(text, sizeof(text), "socket:[%ju]", (uintmax_t)st->st_ino);
		return strdup(text);
	}
	snprintf(text, sizeof(text), "%d/fd/%d", slot->proc->look, slot->fd);
	return ckpt_where_say(d->world, io_readlink(d->host_proc, text));
}

/* All kinds of sockets tell theirs by it. */
static void look_at_socket(struct ckpt_file *f)
{
	if (!S_ISSOCK(f->st.st_mode))
		return;
	f->domain = ckpt_sock_get_int(f->fd, SOL_SOCKET, SO_DOMAIN);
	f->type = ckpt_sock_get_int(f->fd, SOL_SOCKET, SO_TYPE);
	f->protocol = ckpt_sock_get_int(f->fd, SOL_SOCKET, SO_PROTOCOL);
}

/* The file of @n slots that lead to it; the one in the first table is its holder. */
static int make_file(struct ckpt_dump *d, struct slot *slots, size_t n, struct err *e)
{
	_cleanup_(cleanup_file) struct ckpt_file *f = calloc(1, sizeof(*f));
	struct slot *first = slots;
	int r;

	if (!f)
		return err_errno(e, -ENOMEM, "survey");
	f->fd = -1;
	for (size_t i = 1; i < n; i++)
		if (slots[i].proc->vpid < first->proc->vpid ||
			(slots[i].proc == first->proc && slots[i].fd < first->fd))
			first = &slots[i];
	f->holder = first->proc;
	f->holder_fd = first->fd;
	f->flags = first->flags;
	f->pos = first->pos;
	f->mnt_id = first->mnt_id;
	f->fdinfo = take_ptr(first->fdinfo);
	f->fd = take_descriptor(first->proc, first, e);
	if (f->fd < 0)
		return ckpt_file_wrap(f, e);
	if (fstat(f->fd, &f->st) < 0) {
		err_errno(e, -errno, "stat");
		return ckpt_file_wrap(f, e);
	}
	look_at_socket(f);
	f->link = link_of(d, first, &f->st);
	if (!f->link) {
		err_errno(e, -errno, "task %d (%s) fd %d", first->proc->vpid,
			first->proc->status.comm, first->fd);
		return ckpt_where_unread(e);
	}
	r = append_file(d, f, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		slots[i].in_table->file = f;
	f = NULL;
	return 0;
}

static int compare_holder(const void *a, const void *b)
{
	const struct ckpt_file *x = *(struct ckpt_file *const *)a;
	const struct ckpt_file *y = *(struct ckpt_file *const *)b;

	ORDER(x->holder->vpid, y->holder->vpid);
	return (x->holder_fd > y->holder_fd) - (x->holder_fd < y->holder_fd);
}

/* Who is asked for the descriptors of processes whose first thread has ended. */
static int borrow_tables(struct ckpt_dump *d, struct ckpt_helper *helpers, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < d->n_procs && r == 0; i++)
		if (d->procs[i]->headless && d->procs[i]->files == d->procs[i]->vpid)
			r = ckpt_helper_borrow(d->procs[i], &helpers[i], &d->procs[i]->pidfd, e);
	return r;
}

static int return_tables(struct ckpt_dump *d, struct ckpt_helper *helpers, int r, struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		int x = ckpt_helper_return(&helpers[i], r < 0 ? NULL : e);

		if (d->procs[i]->headless)
			d->procs[i]->pidfd = close_fd(d->procs[i]->pidfd);
		r = r < 0 ? r : x;
	}
	return r;
}

/* @n of them look alike. */
static int tell_apart(struct slot *v, size_t n)
{
	_cleanup_free_ int *fds = calloc(n, sizeof(*fds));
	_cleanup_free_ size_t *first = calloc(n, sizeof(*first));
	int r = -ENOMEM;

	for (size_t i = 0; fds && i < n; i++)
		fds[i] = v[i].taken;
	if (fds && first)
		r = ckpt_same_files(fds, n, first);
	for (size_t i = 0; r == 0 && i < n; i++)
		v[i].group = first[i];
	return r;
}

static int tell_all_apart(struct ckpt_slots *s, struct err *e)
{
	size_t count;

	sort_array(s->v, s->n, sizeof(*s->v), compare_slots);
	for (size_t i = 0; i < s->n; i += count) {
		for (count = 1; i + count < s->n; count++)
			if (compare_looks(&s->v[i], &s->v[i + count]))
				break;
		if (count > 1 && tell_apart(s->v + i, count) < 0)
			return err_errno(e, -ENOMEM, "survey");
	}
	return 0;
}

static int make_files(struct ckpt_dump *d, struct ckpt_slots *s, struct err *e)
{
	size_t count;

	if (takes_all(d) && tell_all_apart(s, e) < 0)
		return e->error;
	sort_array(s->v, s->n, sizeof(*s->v), compare_slots);
	for (size_t i = 0; i < s->n; i += count) {
		int r;

		for (count = 1; i + count < s->n;)
			if (compare_files(&s->v[i], &s->v[i + count]) == 0)
				count++;
			else
				break;
		r = make_file(d, s->v + i, count, e);
		if (r < 0)
			return r;
	}
	/* Numbered as a reader expects: the first process's descriptors first. */
	sort_array(d->files, d->n_files, sizeof(struct ckpt_file *), compare_holder);
	for (size_t i = 0; i < d->n_files; i++)
		d->files[i]->id = (uint32_t)i + 1;
	return 0;
}

int ckpt_openfiles_survey(struct ckpt_dump *d, struct err *e)
{
	_cleanup_free_ struct ckpt_helper *helpers = calloc(d->n_procs + 1, sizeof(*helpers));
	int r = helpers ? 0 : err_errno(e, -ENOMEM, "survey");

	/* A session's open files may be more than this process is allowed at first. */
	io_allow_fds();
	if (r == 0)
		r = takes_all(d) ? take_tables(d, e) : borrow_tables(d, helpers, e);
	if (r == 0)
		r = make_files(d, d->slots, e);
	if (helpers)
		r = return_tables(d, helpers, r, e);
	ckpt_openfiles_forget(d);
	return r;
}

void ckpt_openfiles_forget(struct ckpt_dump *d)
{
	free_slots(take_ptr(d->slots));
}

void ckpt_openfiles_close(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_files; i++)
		d->files[i]->fd = close_fd(d->files[i]->fd);
}

void ckpt_openfiles_free(struct ckpt_dump *d)
{
	ckpt_openfiles_forget(d);
	for (size_t i = 0; i < d->n_files; i++)
		free_file(d->files[i]);
	free(d->files);
	d->files = NULL;
	d->n_files = 0;
}

/* ---- kinds -------------------------------------------------------------------------------- */

/* Of a socket of no kind: what people call it, with a space in front. */
static const char *sort_of_socket(const struct ckpt_file *f)
{
	if (f->domain == AF_PACKET)
		return " (a packet socket)";
	if (f->domain == AF_VSOCK)
		return " (a vsock socket)";
	if (f->domain == AF_ALG)
		return " (AF_ALG)";
	if (f->protocol == IPPROTO_MPTCP)
		return " (MPTCP)";
	return f->type == SOCK_RAW ? " (a raw socket)" : "";
}

/* "anon_inode:[io_uring]" is io_uring to people; other links stay as they are. */
static int refuse(const struct ckpt_file *f, struct err *e)
{
	static const char anonymous[] = "anon_inode:[";
	size_t skip = strlen(anonymous), len = strlen(f->link);

	if (!strncmp(f->link, anonymous, skip) && f->link[len - 1] == ']')
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "%.*s is not supported",
			(int)(len - skip - 1), f->link + skip);
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "%s%s is not supported", f->link,
		sort_of_socket(f));
}

static int claim(struct ckpt_file *f, struct err *e)
{
	for (size_t i = 0; i < ckpt_n_kinds; i++) {
		const struct ckpt_kind *k = ckpt_kinds[i];

		if (k->scope == CKPT_FILE && k->claim && k->claim(f)) {
			f->kind = k;
			return 0;
		}
	}
	refuse(f, e);
	return ckpt_file_wrap(f, e);
}

int ckpt_openfiles_claim(struct ckpt_dump *d, struct err *e)
{
	for (size_t i = 0; i < d->n_files; i++) {
		int r = claim(d->files[i], e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Those taken up meanwhile come at the end of the list. */
int ckpt_openfiles_gather(struct ckpt_dump *d, struct err *e)
{
	for (size_t i = 0; i < d->n_files; i++) {
		struct ckpt_file *f = d->files[i];
		int r = ckpt_nested_check_socket(d, f, e);

		if (r >= 0 && f->kind->gather)
			r = f->kind->gather(d, (union ckpt_subject){.file = f}, e);
		if (r < 0)
			return ckpt_file_wrap(f, e);
	}
	return 0;
}

static struct ckpt_file *find_same(const struct ckpt_dump *d, int fd, const struct stat *st)
{
	for (size_t i = 0; i < d->n_files; i++) {
		struct ckpt_file *f = d->files[i];

		if (f->st.st_dev == st->st_dev && f->st.st_ino == st->st_ino &&
			ckpt_same_file(fd, f->fd))
			return f;
	}
	return NULL;
}

int ckpt_file_add(struct ckpt_dump *d, int fd, struct ckpt_file **ret, struct err *e)
{
	_cleanup_(cleanup_file) struct ckpt_file *f = calloc(1, sizeof(*f));
	struct ckpt_file *known;
	char path[64];
	int r;

	if (!f) {
		close_fd(fd);
		return err_errno(e, -ENOMEM, "survey");
	}
	f->fd = fd;
	if (fstat(fd, &f->st) < 0)
		return err_errno(e, -errno, "stat a file in flight");
	known = find_same(d, fd, &f->st);
	if (known) {
		*ret = known;
		return 0;
	}
	snprintf(path, sizeof(path), "%d/fdinfo/%d", getpid(), fd);
	f->fdinfo = read_fdinfo(d->host_proc, path, e);
	if (!f->fdinfo)
		return -EIO;
	snprintf(path, sizeof(path), "%d/fd/%d", getpid(), fd);
	f->link = ckpt_where_say(d->world, io_readlink(d->host_proc, path));
	if (!f->link) {
		err_errno(e, -errno, "name of a file in flight");
		return ckpt_where_unread(e);
	}
	f->pos = fdinfo_number(f->fdinfo, "pos", 10);
	f->mnt_id = (int)fdinfo_number(f->fdinfo, "mnt_id", 10);
	f->flags = (int)fdinfo_number(f->fdinfo, "flags", 8) & ~O_CLOEXEC;
	look_at_socket(f);
	r = claim(f, e);
	if (r == 0)
		r = append_file(d, f, e);
	if (r < 0)
		return r;
	*ret = take_ptr(f);
	return 0;
}

/* ---- edges -------------------------------------------------------------------------------- */

const struct ckpt_edge *ckpt_edge_of_pipe(const struct ckpt_dump *d, const struct stat *st)
{
	for (size_t i = 0; i < d->world->n_edges; i++) {
		const struct ckpt_edge *edge = &d->world->edges[i];
		struct stat theirs;

		if (fstat(edge->fd, &theirs) == 0 && S_ISFIFO(theirs.st_mode) &&
			theirs.st_dev == st->st_dev && theirs.st_ino == st->st_ino)
			return edge;
	}
	return NULL;
}

const struct ckpt_edge *ckpt_edge_of_pty(const struct ckpt_dump *d, unsigned index)
{
	for (size_t i = 0; i < d->world->n_edges; i++) {
		const struct ckpt_edge *edge = &d->world->edges[i];
		unsigned theirs;

		if (ioctl(edge->fd, TIOCGPTN, &theirs) == 0 && theirs == index)
			return edge;
	}
	return NULL;
}
