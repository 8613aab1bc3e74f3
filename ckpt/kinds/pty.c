// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pty - pseudo terminals, both ends (kind PTY), and /dev/tty (kind TTY): freezing.
 *
 * Theory of operation
 *
 * Each open end is a record, and one of them, the first of its pair, carries what the pair is:
 * index, settings, size, who controls it, and the bytes which wait in it (pty_bytes.c).
 *
 *      supervisor or session                   session
 *      master  /dev/ptmx     <-- the pair -->  slaves  /dev/pts/INDEX, /dev/tty
 *
 * The master is the session's own (tmux, script) or the supervisor's (`run -t`): then it is an
 * edge, and what waits for the master stays with the supervisor, which reads it anyway.  A slave
 * whose master is neither leads to a terminal outside and is refused or severed (outside.h): hung
 * up. One whose master is gone (hung up) is made again that way.
 *
 * pty_make.c makes pairs at resume.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ckpt/careful.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/outside.h"
#include "ckpt/kinds/pty.h"
#include "proto/files.pb-c.h"

#define MAJOR_PTS   136
#define MAX_WAITING 4096

bool ckpt_pty_claim(const struct ckpt_file *f)
{
	return S_ISCHR(f->st.st_mode) && !(f->flags & O_PATH) &&
		(major(f->st.st_rdev) == MAJOR_PTS || f->st.st_rdev == makedev(5, 2));
}

bool ckpt_pty_claim_tty(const struct ckpt_file *f)
{
	return S_ISCHR(f->st.st_mode) && !(f->flags & O_PATH) && f->st.st_rdev == makedev(5, 0);
}

static bool is_terminal(const struct ckpt_file *f)
{
	return f->kind && (f->kind->number == PROTO_KIND_PTY || f->kind->number == PROTO_KIND_TTY);
}

static bool is_master(const struct ckpt_file *f)
{
	return f->st.st_rdev == makedev(5, 2);
}

/* Asks: the N of /dev/pts/N, -1 if it is another sort of terminal or hung up and opened as /dev/tty. */
static int ask_index(const struct ckpt_file *f)
{
	unsigned n;

	if (is_master(f))
		return ioctl(f->fd, TIOCGPTN, &n) < 0 ? -1 : (int)n;
	if (major(f->st.st_rdev) == MAJOR_PTS)
		return (int)minor(f->st.st_rdev);
	/* The kernel's own encoding of a device number. */
	if (ioctl(f->fd, TIOCGDEV, &n) < 0 || (n & 0xfff00) >> 8 != MAJOR_PTS)
		return -1;
	return (int)((n & 0xff) | ((n >> 12) & 0xfff00));
}

/* Of each file, asked once: who looks for the other end of a terminal looks at all files. */
struct indexes {
	size_t n;
	int of[]; /* by id, as index_of */
};

static int index_of(struct ckpt_dump *d, const struct ckpt_file *f)
{
	struct indexes *all = d->kind_state[PROTO_KIND_TTY];

	if (!all || all->n != d->n_files) {
		free(all);
		all = malloc(sizeof(*all) + (d->n_files + 1) * sizeof(all->of[0]));
		d->kind_state[PROTO_KIND_TTY] = all;
		if (!all)
			return ask_index(f);
		all->n = d->n_files;
		for (size_t i = 0; i < d->n_files; i++)
			all->of[d->files[i]->id] = is_terminal(d->files[i]) ? ask_index(d->files[i]) : -1;
	}
	return all->of[f->id];
}

/* What of a pair the session and the supervisor hold. */
struct pair {
	int index;
	const struct ckpt_file *first, *master;
	const struct ckpt_file *slave; /* one, for reading and writing if there is such a one */
	const struct ckpt_edge *edge;
	int master_fd; /* borrowed, -1 when the master is gone */
};

/* A slave of another devpts than the session's is somebody else's, whatever its number. */
static bool is_foreign(const struct ckpt_dump *d, const struct ckpt_file *f)
{
	struct stat st;

	return major(f->st.st_rdev) == MAJOR_PTS &&
	       fstatat(d->world->root_fd, "dev/pts", &st, 0) == 0 && st.st_dev != f->st.st_dev;
}

static struct pair find_pair(struct ckpt_dump *d, int index)
{
	struct pair p = {.index = index, .master_fd = -1};

	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];

		if (!is_terminal(f) || index_of(d, f) != index || is_foreign(d, f))
			continue;
		/* Records of PTY are created before those of TTY. */
		if (!p.first || (p.first->kind->number == PROTO_KIND_TTY &&
					f->kind->number == PROTO_KIND_PTY))
			p.first = f;
		if (is_master(f))
			p.master = f;
		else if (!p.slave || (f->flags & O_ACCMODE) == O_RDWR)
			p.slave = f;
	}
	p.edge = p.master ? NULL : ckpt_edge_of_pty(d, (unsigned)index);
	if (p.master)
		p.master_fd = p.master->fd;
	else if (p.edge)
		p.master_fd = p.edge->fd;
	return p;
}

static bool hung_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) >= 0 && (p.revents & POLLHUP);
}

/* A master whose slave was never opened: to open it would be seen. */
static bool is_unopened(const struct pair *p)
{
	return !p->slave && !hung_up(p->master_fd);
}

/* True if nobody of the session or the supervisor holds its master, but somebody does. */
static bool leads_out(struct ckpt_dump *d, const struct ckpt_file *f)
{
	if (is_master(f) || hung_up(f->fd))
		return false;
	return is_foreign(d, f) || find_pair(d, index_of(d, f)).master_fd < 0;
}

int ckpt_pty_check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	const struct ckpt_file *f = s.file;
	int index = index_of(d, f), discipline = 0;

	if (!is_master(f) && hung_up(f->fd))
		return 0;
	if (index < 0)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "%s is not a pseudo terminal",
			f->link);
	if (leads_out(d, f))
		return ckpt_outside(
			d, e, "the other end of terminal %s is outside the session", f->link);
	if (ioctl(f->fd, TIOCGETD, &discipline) == 0 && discipline != 0)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"terminal %s has line discipline %d", f->link, discipline);
	return 0;
}

/* ---- what the pair is ------------------------------------------------------------------------ */

static void dump_control(struct ckpt_dump *d, const struct pair *p, Pb__PtyPair *m)
{
	int dev = (int)makedev(MAJOR_PTS, (unsigned)p->index);

	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *leader = d->procs[i];

		if (leader->vpid != leader->vsid || leader->status.tty_nr != dev ||
			leader->state == CKPT_ZOMBIE)
			continue;
		m->session = leader->vpid;
		m->foreground = ckpt_common_vpgid(d, leader->status.tty_pgrp);
		return;
	}
}

static void dump_modes(const struct ckpt_dump *d, const struct pair *p, Pb__PtyPair *m)
{
	struct winsize size = {0};
	char path[32];
	struct stat st;
	int on = 0;

	if (ioctl(p->master_fd, TIOCGWINSZ, &size) == 0) {
		m->rows = size.ws_row;
		m->cols = size.ws_col;
		m->xpixel = size.ws_xpixel;
		m->ypixel = size.ws_ypixel;
	}
	m->locked = ioctl(p->master_fd, TIOCGPTLCK, &on) == 0 && on;
	m->packet = ioctl(p->master_fd, TIOCGPKT, &on) == 0 && on;
	m->exclusive_master = ioctl(p->master_fd, TIOCGEXCL, &on) == 0 && on;
	m->exclusive_slave = p->slave && ioctl(p->slave->fd, TIOCGEXCL, &on) == 0 && on;
	m->unopened = is_unopened(p);
	m->slave_closed = !p->slave && !m->unopened;
	snprintf(path, sizeof(path), "dev/pts/%d", p->index);
	if (fstatat(d->world->root_fd, path, &st, 0) == 0)
		m->mode = st.st_mode & 07777;
}

/* ---- what waits in it ------------------------------------------------------------------------ */

/* A slave of ours, not blocking, beside the session's: *ret_flags is what to give back to it, or -1
 * when it is really ours and to be closed. */
static int borrow_slave(const struct pair *p, int *ret_flags)
{
	int fd = ioctl(p->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	*ret_flags = -1;
	if (fd >= 0)
		return fd;
	/* Locked or exclusive: the session's own, which must not keep our flag. */
	if (!p->slave || (p->slave->flags & O_ACCMODE) != O_RDWR)
		return -1;
	*ret_flags = p->slave->flags;
	return p->slave->fd;
}

/* What waits is in our hands for a moment: ckpt/careful.h. */
struct taking {
	int index, master, slave;
	int master_flags, slave_flags; /* of the session's own, to be given back; -1 */
	bool output, packet;
	struct termios2 t;
	bool taken, putting;
	enum pty_flow flow;
	bool done;
	int r; /* what came of it, in @e */
	struct err e;
	struct pty_notes notes;
};

/* All pairs of the session: a child for each would take a millisecond. */
struct takings {
	size_t n, size; /* in bytes */
	struct taking of[];
};

static void recall(const struct taking *t, struct pty_bytes *b)
{
	buf_put(&b->lines, t->notes.lines.data, t->notes.lines.len);
	buf_put(&b->input, t->notes.input.data, t->notes.input.len);
	buf_put(&b->output, t->notes.output.data, t->notes.output.len);
	b->flow = t->flow;
}

/*
 * What is switched for the while: we do not wait, and in packet mode every read has a byte in
 * front, and changes of settings are told.
 */
static void switch_modes(const struct taking *t, bool ours)
{
	int packet = ours ? 0 : 1, nonblock = ours ? O_NONBLOCK : 0;

	if (t->master_flags >= 0)
		fcntl(t->master, F_SETFL, t->master_flags | nonblock);
	if (t->slave_flags >= 0)
		fcntl(t->slave, F_SETFL, t->slave_flags | nonblock);
	if (t->packet)
		ioctl(t->master, TIOCPKT, &packet);
}

static int take_and_put(void *shared, struct err *e)
{
	_cleanup_(pty_bytes_fini) struct pty_bytes b = {0}, again = {0};
	struct taking *t = shared;
	int r = 0, x;

	switch_modes(t, true);
	recall(t, &b);
	if (!t->taken) {
		b.notes = &t->notes;
		r = pty_bytes_take(t->master, t->slave, t->output, &t->t, &b, e);
		t->flow = b.flow;
		t->taken = true;
	}
	fault_at(FAULT_TAKE_TERMINAL, NULL);
	/* Somebody was killed while putting it back: what is there now is what he had put. */
	if (t->putting)
		pty_bytes_take(t->master, t->slave, t->output, &t->t, &again, NULL);
	t->putting = true;
	x = pty_bytes_put(t->master, t->slave, &t->t, &b, r < 0 ? NULL : e);
	switch_modes(t, false);
	return r < 0 ? r : x;
}

static int take_and_put_all(void *shared, struct err *e)
{
	struct takings *all = shared;

	for (size_t i = 0; i < all->n; i++) {
		struct taking *t = &all->of[i];

		if (!t->done)
			t->r = take_and_put(t, &t->e);
		t->done = true;
	}
	return 0;
}

/* The pair whose first record is @f's, with two ends and settings in @t. */
static bool prepare(struct ckpt_dump *d, const struct ckpt_file *f, struct taking *t)
{
	struct pair p;
	int on = 0;

	if (!is_terminal(f) || (!is_master(f) && (hung_up(f->fd) || leads_out(d, f))))
		return false;
	p = find_pair(d, index_of(d, f));
	if (p.first != f || p.index < 0 || is_unopened(&p) ||
		ioctl(p.master_fd, TCGETS2, &t->t) < 0)
		return false;
	t->slave = borrow_slave(&p, &t->slave_flags);
	if (t->slave < 0)
		return false;
	t->index = p.index;
	t->master = p.master_fd;
	t->master_flags = p.master ? p.master->flags : -1;
	t->packet = ioctl(p.master_fd, TIOCGPKT, &on) == 0 && on;
	t->output = p.master != NULL;
	return true;
}

/* Takes what waits in all pairs, and puts it back at once. */
static struct takings *take_all_pairs(struct ckpt_dump *d, struct err *e)
{
	struct takings *all;
	size_t n = 0, size;

	for (size_t i = 0; i < d->n_files; i++)
		n += is_terminal(d->files[i]);
	size = sizeof(*all) + n * sizeof(all->of[0]);
	all = ckpt_careful_alloc(size);
	if (!all) {
		err_errno(e, -ENOMEM, "terminal");
		return NULL;
	}
	all->size = size;
	for (size_t i = 0; i < d->n_files; i++)
		all->n += prepare(d, d->files[i], &all->of[all->n]);
	if (all->n)
		ckpt_careful(d->tracer, take_and_put_all, all, NULL);
	for (size_t i = 0; i < all->n; i++)
		if (all->of[i].slave_flags < 0)
			close_fd(all->of[i].slave);
	return all;
}

void ckpt_pty_forget(void *state)
{
	struct takings *all = state;

	ckpt_careful_free(all, all->size);
}

/* What waited in @p, into @b. */
static int look_at_bytes(
	struct ckpt_dump *d, const struct pair *p, struct pty_bytes *b, struct err *e)
{
	void **state = &d->kind_state[PROTO_KIND_PTY];
	const struct takings *all = *state ? *state : take_all_pairs(d, e);

	if (!all)
		return e->error;
	*state = (void *)all;
	for (size_t i = 0; i < all->n; i++) {
		const struct taking *t = &all->of[i];

		if (t->index != p->index)
			continue;
		recall(t, b);
		if (t->r < 0)
			*e = t->e;
		else if (b->lines.failed || b->input.failed || b->output.failed)
			return err_errno(e, -ENOMEM, "terminal");
		return t->r;
	}
	return 0;
}

/* Points @m's fields into @b; @lines has room for all. */
static void describe_bytes(struct pty_bytes *b, ProtobufCBinaryData *lines, Pb__PtyPair *m)
{
	struct cursor c = cursor_of(b->lines.data, b->lines.len);

	m->lines = lines;
	while (cursor_left(&c) && m->n_lines < MAX_WAITING) {
		uint32_t n = cursor_u32(&c);

		lines[m->n_lines].data = (uint8_t *)cursor_take(&c, n);
		lines[m->n_lines++].len = n;
	}
	m->input = (ProtobufCBinaryData){.data = b->input.data, .len = b->input.len};
	m->output = (ProtobufCBinaryData){.data = b->output.data, .len = b->output.len};
	m->stopped = b->flow;
}

/*
 * The number that the session knows the terminal by: where it has no devpts it may be another than
 * the host's.
 */
static uint32_t said_index(const struct ckpt_dump *d, int index)
{
	const struct ckpt_paths *paths = d->world->paths;
	char host[32], path[PATH_MAX];
	unsigned said;

	snprintf(host, sizeof(host), "/dev/pts/%d", index);
	if (index < 0)
		return 0;
	if (!paths || paths->say(paths->ctx, host, path) < 0 ||
		sscanf(path, "/dev/pts/%u", &said) != 1)
		return (uint32_t)index;
	return said;
}

/* ---- record ---------------------------------------------------------------------------------- */

/* The pair as its first record carries it. */
static int dump_first(struct ckpt_dump *d, const struct pair *p, Pb__Pty *m, struct buf *body,
	struct err *e)
{
	_cleanup_(pty_bytes_fini) struct pty_bytes bytes = {0};
	_cleanup_free_ ProtobufCBinaryData *lines = calloc(MAX_WAITING, sizeof(*lines));
	struct termios2 t;
	int r = 0;

	if (!lines)
		return err_errno(e, -ENOMEM, "terminal");
	if (ioctl(p->master_fd, TCGETS2, &t) < 0)
		return err_errno(e, -errno, "cannot ask for a terminal's settings");
	m->first = true;
	m->pair->termios.data = (uint8_t *)&t;
	m->pair->termios.len = sizeof(t);
	dump_modes(d, p, m->pair);
	if (p->edge)
		m->pair->edge = (char *)p->edge->name;
	if (!m->pair->unopened)
		r = look_at_bytes(d, p, &bytes, e);
	if (r < 0)
		return r;
	describe_bytes(&bytes, lines, m->pair);
	return ckpt_pack(&m->base, body, e);
}

int ckpt_pty_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__PtyPair pair = PB__PTY_PAIR__INIT;
	Pb__Pty m = PB__PTY__INIT;
	int index = index_of(d, f);
	struct pair p;
	int r = ckpt_pty_check(d, s, e);

	if (r >= 0)
		r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	m.common = common;
	m.pair = &pair;
	m.master = is_master(f);
	m.devtty = f->kind->number == PROTO_KIND_TTY;
	pair.index = said_index(d, index);
	if (!m.master && (hung_up(f->fd) || leads_out(d, f))) {
		pair.hung_up = true;
		return ckpt_pack(&m.base, body, e);
	}
	p = find_pair(d, index);
	dump_control(d, &p, &pair);
	return p.first == f ? dump_first(d, &p, &m, body, e) : ckpt_pack(&m.base, body, e);
}

void ckpt_pty_show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Pty *m = pb__pty__unpack(NULL, len, body);

	if (!m || !m->pair) {
		fputs("unreadable", out);
	} else {
		fprintf(out, "%s %u%s", m->master ? "master of" : "/dev/pts", m->pair->index,
			m->pair->hung_up ? ", hung up" : "");
		if (*m->pair->edge)
			fprintf(out, ", edge %s", m->pair->edge);
		if (m->pair->session)
			fprintf(out, ", of session %d, foreground %d", m->pair->session,
				m->pair->foreground);
	}
	if (m)
		pb__pty__free_unpacked(m, NULL);
}
