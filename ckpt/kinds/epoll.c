// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * epoll - kind EPOLL.  epoll(7); fdinfo has a "tfd:" line for every entry.
 *
 * Theory of operation
 *
 * The kernel knows an entry by its open file *and* the number under which it was added.  Neither
 * the number nor the inode in fdinfo says for certain which open file it is: the number may have
 * been closed or used again since, while a duplicate keeps the entry alive.  kcmp(KCMP_EPOLL_TFD)
 * does, and it can compare our own duplicates: we hold every open file of the session.  Where it is
 * refused, a file that is in question is added once more, at that number and by a child of ours,
 * whose numbers nobody else uses: if it is there already, the kernel says so.
 *
 * At resume the builder does the same: it puts each target at the recorded number in its own table
 * for a moment, adds it, and puts back what was there.  Where names are rewritten it is not alone
 * with its table: another of its threads answers calls, and must not find a stranger under the
 * number it asks for them.  There a child with a table of its own does it.
 *
 * An entry of EPOLLONESHOT that has fired waits for nothing, not even EPOLLHUP, which epoll_ctl
 * always adds.  Such entries are added first, with every event, and made to fire.
 *
 * A signalfd is special: whoever adds it is whose signals wake (the entry hangs on the queue of
 * that process's signal handlers).  So it is added by a process of the session that has both, the
 * first of them: the kernel does not tell which one it was.  The builder's own would wake nobody.
 *
 * An edge which the session has seen already is seen once more after a resume; that is allowed by
 * epoll(7) at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/survey/same.h"
#include "proto/files.pb-c.h"
#include "proto/tasks.pb-c.h"

#define MAX_NUMBER (1 << 30) /* fs/file.c: sysctl_nr_open_max */
#define MODES (EPOLLWAKEUP | EPOLLONESHOT | EPOLLET | EPOLLEXCLUSIVE) /* not events */

struct epoll_slot { /* linux/kcmp.h: kcmp_epoll_slot */
	uint32_t efd, tfd, toff;
};

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:[eventpoll]");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Has our @fd at @number as well; *saved is what was there, -1 for nothing. */
static int take_number(int fd, int number, int *saved)
{
	*saved = -1;
	if (fd == number)
		return 0;
	*saved = fcntl(number, F_DUPFD_CLOEXEC, number + 1);
	if ((*saved < 0 && errno != EBADF) || dup3(fd, number, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static void give_number_back(int fd, int number, int saved)
{
	if (fd == number)
		return;
	if (saved >= 0)
		dup3(saved, number, O_CLOEXEC);
	else
		close(number);
	close_fd(saved);
}

/* ---- dump ------------------------------------------------------------------------------------ */

/* The first of @same that is in @epoll under @number already, or @n. */
static size_t first_added(int epoll, int number, const struct ckpt_file *const *same, size_t n)
{
	struct epoll_event ev = {0};

	for (size_t i = 0; i < n; i++) {
		int ep = fcntl(epoll, F_DUPFD_CLOEXEC, number + 1), saved, r;

		if (ep < 0 || take_number(same[i]->fd, number, &saved) < 0)
			return n;
		r = epoll_ctl(ep, EPOLL_CTL_ADD, number, &ev) < 0 ? -errno : 0;
		if (r == 0)
			epoll_ctl(ep, EPOLL_CTL_DEL, number, &ev);
		give_number_back(same[i]->fd, number, saved);
		close(ep);
		if (r == -EEXIST)
			return i;
	}
	return n;
}

/* Without kcmp.  An inode that only one open file has is as good. */
static const struct ckpt_file *find_by_adding(
	int epoll, int number, const struct ckpt_file *const *same, size_t n)
{
	size_t found = n;
	int told[2];
	pid_t pid;

	if (n <= 1)
		return n ? same[0] : NULL;
	if (pipe2(told, O_CLOEXEC) < 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		/* Out of the way of the number. */
		int out = fcntl(told[1], F_DUPFD_CLOEXEC, number + 1);

		found = first_added(epoll, number, same, n);
		_exit(out < 0 || io_write_full(out, &found, sizeof(found)) < 0);
	}
	close(told[1]);
	if (pid < 0 || io_read_full(told[0], &found, sizeof(found)) != sizeof(found))
		found = n;
	close(told[0]);
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return found < n ? same[found] : NULL;
}

/* Those that kcmp(2) could tell apart have different numbers or inodes, or it can't be done. */
static bool is_ambiguous(const char *text, int number, unsigned long ino)
{
	size_t n = 0;

	for (const char *line = strstr(text, "tfd:"); line; line = strstr(line + 1, "tfd:")) {
		unsigned long its;
		int fd;

		if (sscanf(line, "tfd: %d events: %*x data: %*x pos:%*d ino:%lx", &fd, &its) == 2)
			n += fd == number && its == ino;
	}
	return n > 1;
}

/* The open file behind an entry: @slot, and the inode number fdinfo gives. */
static const struct ckpt_file *find_target(struct ckpt_dump *d, struct epoll_slot slot,
	unsigned long ino)
{
	const struct ckpt_file *const *same;
	size_t n = ckpt_common_by_inode(d, ino, &same);

	if (!ckpt_same_by_kcmp())
		return find_by_adding((int)slot.efd, (int)slot.tfd, same, n);
	for (size_t i = 0; i < n; i++)
		if (sys_kcmp(getpid(), getpid(), SYS_KCMP_EPOLL_TFD, (unsigned long)same[i]->fd,
			    (unsigned long)&slot) == 0)
			return same[i];
	return NULL;
}

static int dump_target(struct ckpt_dump *d, const struct ckpt_file *f, const char *text,
	const char *line, Pb__Epoll *m, struct err *e)
{
	struct epoll_slot slot = {.efd = (uint32_t)f->fd};
	Pb__EpollTarget t = PB__EPOLL_TARGET__INIT;
	const struct ckpt_file *target;
	unsigned long ino;
	unsigned long long data;

	if (sscanf(line, "tfd: %d events: %x data: %llx pos:%*d ino:%lx", &t.fd, &t.events, &data,
		    &ino) != 4)
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo of epoll is not understood");
	slot.tfd = (uint32_t)t.fd;
	for (size_t i = 0; i < m->n_targets; i++)
		slot.toff += m->targets[i]->fd == t.fd;
	if (!ckpt_same_by_kcmp() && is_ambiguous(text, t.fd, ino))
		return err_set(e, ERR_HOST, -ENOTSUP,
			"epoll waits for two files as descriptor %d, and this host does not allow kcmp",
			t.fd);
	target = find_target(d, slot, ino);
	if (!target)
		return err_set(e, ERR_UNFREEZABLE, -ENOENT,
			"epoll waits for descriptor %d, whose open file cannot be found", t.fd);
	t.file = target->id;
	t.data = data;
	m->targets[m->n_targets] = malloc(sizeof(t));
	if (!m->targets[m->n_targets])
		return err_errno(e, -ENOMEM, "epoll");
	*m->targets[m->n_targets++] = t;
	return 0;
}

static int dump_targets(struct ckpt_dump *d, const struct ckpt_file *f, const char *text,
	Pb__Epoll *m, struct err *e)
{
	size_t n = 0;

	for (const char *line = text; line; line = strchr(line + 1, '\n'))
		n++;
	m->targets = calloc(n + 1, sizeof(*m->targets));
	if (!m->targets)
		return err_errno(e, -ENOMEM, "epoll");
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		int r;

		line += *line == '\n';
		if (strncmp(line, "tfd:", 4) != 0)
			continue;
		r = dump_target(d, f, text, line, m, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	Pb__Epoll m = PB__EPOLL__INIT;
	int r = ckpt_common_dump(d, s.file, &common, e);

	if (r == 0)
		r = ckpt_common_fdinfo(d, s.file, &text, e);
	if (r < 0)
		return r;
	m.common = common;
	r = dump_targets(d, s.file, buf_cstr(&text), &m, e);
	if (r == 0)
		r = ckpt_pack(&m.base, body, e);
	for (size_t i = 0; i < m.n_targets; i++)
		free(m.targets[i]);
	free(m.targets);
	return r;
}

/* ---- restore --------------------------------------------------------------------------------- */

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Epoll *m = pb__epoll__unpack(NULL, r->len, r->body);
	_cleanup_close_ int fd = epoll_create1(EPOLL_CLOEXEC);
	int x;

	if (fd < 0)
		x = err_errno(e, -errno, "epoll_create1");
	else
		x = m ? ckpt_common_restore(b, fd, m->common, e) : ckpt_common_bad(r, e);
	if (m)
		pb__epoll__free_unpacked(m, NULL);
	if (x == 0)
		*ret_fd = take_fd(&fd);
	return x;
}

static bool has_fired(const Pb__EpollTarget *t)
{
	return (t->events & EPOLLONESHOT) && !(t->events & ~MODES);
}

/* Adds an entry that is to wait for nothing. */
static int add_fired(int epoll, const Pb__EpollTarget *t)
{
	struct epoll_event ev = {.data.u64 = t->data,
		.events = t->events | EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP};
	struct epoll_event got;

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, t->fd, &ev) < 0)
		return -errno;
	if (epoll_wait(epoll, &got, 1, 0) == 1)
		return 0;
	ev.events = t->events;
	return epoll_ctl(epoll, EPOLL_CTL_MOD, t->fd, &ev) < 0 ? -errno : 0;
}

static int add(int epoll, const Pb__EpollTarget *t)
{
	struct epoll_event ev = {.data.u64 = t->data, .events = t->events};

	if (has_fired(t))
		return add_fired(epoll, t);
	return epoll_ctl(epoll, EPOLL_CTL_ADD, t->fd, &ev) < 0 ? -errno : 0;
}

/* Adds @target as if its number were @t->fd. */
static int add_at(int epoll, int target, const Pb__EpollTarget *t)
{
	/* Out of the way of that number. */
	_cleanup_close_ int ep = fcntl(epoll, F_DUPFD_CLOEXEC, t->fd + 1);
	int saved, r;

	if (ep < 0)
		return -errno;
	r = take_number(target, t->fd, &saved);
	if (r < 0)
		return r;
	r = add(ep, t);
	give_number_back(target, t->fd, saved);
	return r;
}

/* ---- by the task itself ---------------------------------------------------------------------- */

/*
 * The descriptor of file @id in a table, or only @at if that is not negative; -1 if there is none.
 */
static int number_of(const Pb__Fdtable *m, uint32_t id, int at)
{
	for (size_t i = 0; i < m->n_entries; i++)
		if (m->entries[i]->file == id && (at < 0 || m->entries[i]->fd == at))
			return m->entries[i]->fd;
	return -1;
}

/* The first process that has @epoll, and @t under its number; *ret_fd is its epoll's. */
static struct ckpt_build_proc *find_adder(struct ckpt_build *b, uint32_t epoll,
	const Pb__EpollTarget *t, int *ret_fd)
{
	for (size_t i = 0; i < b->n_procs; i++) {
		struct ckpt_build_proc *p = &b->procs[i];
		struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_FDTABLE, (uint64_t)p->vpid);
		Pb__Fdtable *m = r ? pb__fdtable__unpack(NULL, r->len, r->body) : NULL;
		int fd = m && number_of(m, t->file, t->fd) >= 0 ? number_of(m, epoll, -1) : -1;

		pb__fdtable__free_unpacked(m, NULL);
		if (fd < 0 || p->zombie || !p->threads[0].remote)
			continue;
		*ret_fd = fd;
		return p;
	}
	return NULL;
}

/* A signalfd, which never hangs up: one that has fired needs no more than the others. */
static int add_inside(struct ckpt_build *b, uint32_t epoll, const Pb__EpollTarget *t, struct err *e)
{
	struct epoll_event ev = {.data.u64 = t->data, .events = t->events};
	struct ckpt_build_proc *p;
	struct remote *r;
	int fd;

	p = find_adder(b, epoll, t, &fd);
	if (!p)
		return err_set(e, ERR_FAILED, -ESRCH, "nobody has epoll and signalfd any more");
	r = p->threads[0].remote;
	return remote_must(r, NULL, e, SYS_epoll_ctl, (uint64_t)fd, EPOLL_CTL_ADD, (uint64_t)t->fd,
		remote_put(r, &ev, sizeof(ev)), 0, 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* What the builder adds itself. */
struct additions {
	int epoll;
	Pb__EpollTarget *const *targets;
	int *fds; /* parallel to them; -1: a task adds it */
	size_t n;
	size_t at; /* the one that fails */
};

/* Those that have fired come first: nothing else may be ready when they are made to. */
static int add_each(struct additions *a)
{
	int r = 0;

	for (int fired = 1; r == 0 && fired >= 0; fired--)
		for (size_t i = 0; r == 0 && i < a->n; i++) {
			if (a->fds[i] < 0 || has_fired(a->targets[i]) != fired)
				continue;
			a->at = i;
			r = add_at(a->epoll, a->fds[i], a->targets[i]);
		}
	return r;
}

/* With a table of its own, in this memory: this thread sleeps until it has ended. */
static int add_by_child(struct additions *a)
{
	volatile int r = -ECHILD;
	pid_t pid = vfork();

	if (pid == 0) {
		r = add_each(a);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return r;
}

static int find_all(struct ckpt_build *b, uint32_t epoll, struct additions *a, struct err *e)
{
	a->fds = calloc(a->n + 1, sizeof(*a->fds));
	if (!a->fds)
		return err_errno(e, -ENOMEM, "epoll");
	for (size_t i = 0; i < a->n; i++) {
		const Pb__EpollTarget *t = a->targets[i];
		const struct ckpt_build_file *f = ckpt_build_file(b, t->file);
		int at;

		if (!f || f->fd < 0 || t->fd < 0 || t->fd > MAX_NUMBER)
			return err_set(e, ERR_IMAGE, -EBADMSG, "an epoll entry makes no sense");
		a->fds[i] = f->record->kind->number == PROTO_KIND_SIGNALFD &&
					    find_adder(b, epoll, t, &at)
				    ? -1
				    : f->fd;
	}
	return 0;
}

static int add_all(struct ckpt_build *b, const struct ckpt_build_file *epoll, const Pb__Epoll *m,
	struct err *e)
{
	struct additions a = {.epoll = epoll->fd, .targets = m->targets, .n = m->n_targets};
	int r = find_all(b, epoll->id, &a, e);

	if (r == 0 && a.n) {
		r = b->world->names ? add_by_child(&a) : add_each(&a);
		if (r < 0)
			err_errno(e, r, "cannot add descriptor %d to epoll", m->targets[a.at]->fd);
	}
	for (size_t i = 0; r == 0 && i < a.n; i++)
		if (a.fds[i] < 0 && add_inside(b, epoll->id, m->targets[i], e) < 0)
			r = err_blame_image(e);
	free(a.fds);
	return r;
}

static int link_targets(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Epoll *m = pb__epoll__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x;

	if (!m || !f || f->fd < 0) {
		x = ckpt_common_bad(r, e);
	} else {
		/* Numbers up to the hard limit may have been in use. */
		io_allow_fds();
		x = add_all(b, f, m, e);
	}
	if (m)
		pb__epoll__free_unpacked(m, NULL);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Epoll *m = pb__epoll__unpack(NULL, len, body);

	if (!m) {
		fputs("unreadable", out);
		return;
	}
	fprintf(out, "%zu entries", m->n_targets);
	for (size_t i = 0; i < m->n_targets; i++)
		fprintf(out, "%s fd %d file %u events %#x", i ? "," : ":", m->targets[i]->fd,
			bare ? 0 : m->targets[i]->file, m->targets[i]->events);
	pb__epoll__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_epoll = {
	.number = PROTO_KIND_EPOLL,
	.name = "epoll",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.link = link_targets,
	.show = show,
};
