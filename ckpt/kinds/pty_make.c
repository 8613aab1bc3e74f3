// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pty_make - pseudo terminals at resume; see pty.c.
 *
 * The kernel gives each new pair the lowest free index, so masters are opened until the wanted one
 * comes up and the others are closed again.  Where the session's paths are rewritten any will do
 * that is free.  A pair is made when it is needed first: for the
 * controlling terminal of a session leader, while processes are born, or for an open file.
 *
 * The builder keeps a master and (unless none was ever opened) a slave of its own until finish, so
 * that nothing hangs up in between.  What would be in the way of that comes last: packet mode, the
 * lock, exclusive use.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/pty.h"
#include "ckpt/lend.h"
#include "ckpt/nested/build.h"
#include "ckpt/said.h"
#include "ckpt/survey/take.h"
#include "proto/files.pb-c.h"

#define MAX_INDEX 4096 /* kernel.pty.max */
#define MAX_BYTES (1u << 20)
#define TRIES	  50 /* to get an index, 20 ms apart */

/* ---- making a pair --------------------------------------------------------------------------- */

/* A master with @index, or with any if @index < 0. */
static int open_master(int index, struct err *e)
{
	int held[MAX_INDEX], n_held = 0, found = -1;

	while (n_held < MAX_INDEX) {
		int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		unsigned n;

		if (fd < 0 || ioctl(fd, TIOCGPTN, &n) < 0) {
			err_errno(e, -errno, "cannot make a terminal");
			if (errno == ENOSPC)
				err_set(e, ERR_HOST, -ENOSPC, "this host has no terminal %d",
					index);
			close_fd(fd);
			break;
		}
		if (index < 0 || (int)n == index) {
			found = fd;
			break;
		}
		held[n_held++] = fd;
		if ((int)n > index) {
			err_set(e, ERR_HOST, -EBUSY, "terminal /dev/pts/%d is in use", index);
			break;
		}
	}
	if (found < 0 && n_held == MAX_INDEX)
		err_set(e, ERR_IMAGE, -EBADMSG, "terminal number %d", index);
	while (n_held)
		close(held[--n_held]);
	return found < 0 ? e->error : found;
}

/* Where terminals are the host's, another resume may hold it while it looks for its own. */
static int await_master(int index, struct err *e)
{
	for (int i = 0;; i++) {
		struct err why = {0};
		int fd = open_master(index, &why);

		if (fd >= 0)
			return fd;
		if (fd != -EBUSY || i == TRIES) {
			*e = why;
			return fd;
		}
		poll(NULL, 0, 20);
	}
}

/* The number that the host calls it by, which is the session's where that has a devpts. */
static unsigned host_index(int master)
{
	unsigned n = 0;

	ioctl(master, TIOCGPTN, &n);
	return n;
}

/*
 * One that the session knows as @index.  Where its paths are rewritten the host may call it as it
 * likes; best is the same.
 */
static int make_master(const struct ckpt_world *w, unsigned index, struct err *e)
{
	_cleanup_close_ int fd = -1;
	struct err why = {0};
	int r;

	if (!w->paths || !w->paths->terminal)
		return await_master((int)index, e);
	fd = open_master((int)index, &why);
	if (fd < 0)
		fd = open_master(-1, e);
	if (fd < 0)
		return fd;
	r = w->paths->terminal(w->paths->ctx, index, host_index(fd));
	return r < 0 ? err_errno(e, r, "terminal number %u", index) : take_fd(&fd);
}

static int open_slave(int master, struct err *e)
{
	int off = 0, fd;

	if (ioctl(master, TIOCSPTLCK, &off) < 0)
		return err_errno(e, -errno, "cannot unlock a terminal");
	fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "cannot open a terminal") : fd;
}

static int read_bytes(const Pb__PtyPair *m, struct pty_bytes *b)
{
	size_t total = m->input.len + m->output.len;

	for (size_t i = 0; i < m->n_lines; i++) {
		total += m->lines[i].len;
		if (total > MAX_BYTES)
			return -EBADMSG;
		buf_put_u32(&b->lines, (uint32_t)m->lines[i].len);
		buf_put(&b->lines, m->lines[i].data, m->lines[i].len);
	}
	if (total > MAX_BYTES || m->stopped > PTY_STOPPED_BY_CHAR)
		return -EBADMSG;
	buf_put(&b->input, m->input.data, m->input.len);
	buf_put(&b->output, m->output.data, m->output.len);
	b->flow = (enum pty_flow)m->stopped;
	return b->lines.failed || b->input.failed || b->output.failed ? -ENOMEM : 0;
}

static int fill(const Pb__PtyPair *m, int master, int slave, struct err *e)
{
	_cleanup_(pty_bytes_fini) struct pty_bytes bytes = {0};
	struct winsize size = {.ws_row = (unsigned short)m->rows,
		.ws_col = (unsigned short)m->cols,
		.ws_xpixel = (unsigned short)m->xpixel,
		.ws_ypixel = (unsigned short)m->ypixel};
	struct termios2 t;

	if (m->termios.len != sizeof(t) || read_bytes(m, &bytes) < 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a terminal's record makes no sense");
	memcpy(&t, m->termios.data, sizeof(t));
	ioctl(master, TIOCSWINSZ, &size);
	if (slave < 0)
		return ioctl(master, TCSETS2, &t) < 0 ? err_errno(e, -errno, "TCSETS2") : 0;
	return pty_bytes_put(master, slave, &t, &bytes, e);
}

static int make_pair(
	struct ckpt_build *b, const Pb__PtyPair *m, struct ckpt_object *o, struct err *e)
{
	char path[32];
	int r;

	if (m->index >= MAX_INDEX)
		return err_set(e, ERR_IMAGE, -EBADMSG, "terminal number %u", m->index);
	o->fd = make_master(b->world, m->index, e);
	if (o->fd < 0)
		return o->fd;
	if (!m->unopened) {
		o->fd2 = open_slave(o->fd, e);
		if (o->fd2 < 0)
			return o->fd2;
	}
	r = fill(m, o->fd, o->fd2, e);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/dev/pts/%u", host_index(o->fd));
	if (m->mode && chmod(path, m->mode & 07777) < 0)
		log_warn("%s keeps its mode: %s", path, strerror(errno));
	if (*m->edge && b->world->edge) {
		r = b->world->edge(b->world->ctx, m->edge, o->fd, e);
		if (r < 0)
			return err_wrap(e, "edge %s", m->edge);
	}
	return 0;
}

/* The pair of @m, which must exist if @m does not carry it. */
static struct ckpt_object *pair_of(struct ckpt_build *b, const Pb__Pty *m, struct err *e)
{
	struct ckpt_object *o = ckpt_object_get(b, PROTO_KIND_PTY, m->pair->index);

	if (!o) {
		err_errno(e, -ENOMEM, "terminal");
		return NULL;
	}
	if (o->fd >= 0)
		return o;
	if (!m->first) {
		err_set(e, ERR_IMAGE, -EBADMSG, "terminal %u has no settings", m->pair->index);
		return NULL;
	}
	return make_pair(b, m->pair, o, e) < 0 ? NULL : o;
}

/* ---- open files ------------------------------------------------------------------------------ */

/* A slave whose master is gone. */
static int open_hung_up(const Pb__Pty *m, struct err *e)
{
	_cleanup_close_ int master = -1;
	int slave;

	/* The number is only a name by now: any will do where it is taken. */
	if (m->pair->index < MAX_INDEX)
		master = open_master((int)m->pair->index, e);
	if (master < 0)
		master = open_master(-1, e);
	if (master < 0)
		return master;
	slave = open_slave(master, e);
	return slave;
}

/* /dev/tty is what controls the caller: the session's leader opens it, and we take it. */
static int open_dev_tty(struct ckpt_build *b, const Pb__Pty *m, int flags)
{
	struct ckpt_build_thread *leader = ckpt_build_thread(b, m->pair->session);
	uint64_t path;
	long theirs;
	int fd, number, r;

	if (!leader || !leader->remote)
		return -ESRCH;
	path = remote_put_str(leader->remote, "/dev/tty");
	if (!path || remote_call(leader->remote, &theirs, NULL, SYS_openat, (uint64_t)AT_FDCWD,
			     path, (uint64_t)flags | O_NONBLOCK | O_CLOEXEC, 0, 0, 0) < 0)
		return -EIO;
	if (theirs < 0)
		return (int)theirs;
	number = (int)theirs;
	r = ckpt_take(b->world, leader->remote, &number, 1, &fd, NULL);
	remote_call(leader->remote, &theirs, NULL, SYS_close, (uint64_t)theirs, 0, 0, 0, 0, 0);
	return r < 0 ? r : fd;
}

static int open_end(
	struct ckpt_build *b, const Pb__Pty *m, const struct ckpt_object *o, struct err *e)
{
	int flags = ckpt_common_open_flags(m->common), fd;
	char path[32];

	if (m->master) {
		fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? err_errno(e, -errno, "dup") : fd;
	}
	if (m->devtty) {
		fd = open_dev_tty(b, m, flags & O_ACCMODE);
		if (fd >= 0)
			return fd;
	}
	/* Nobody is controlled by it any more: it is what the file was opened for all the same. */
	snprintf(path, sizeof(path), "/dev/pts/%u", host_index(o->fd));
	fd = open(path, flags);
	return fd < 0 ? err_errno(e, -errno, "cannot open %s", path) : fd;
}

static int open_again(struct ckpt_build *b, const Pb__Pty *m, struct err *e)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (m->pair->hung_up) {
		fd = open_hung_up(m, e);
	} else {
		const struct ckpt_object *o = pair_of(b, m, e);

		fd = o ? open_end(b, m, o, e) : e->error;
	}
	if (fd < 0)
		return fd;
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

int ckpt_pty_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Pty *m = pb__pty__unpack(NULL, r->len, r->body);
	int fd = m && m->common && m->pair ? open_again(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__pty__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ---- whose terminal it is -------------------------------------------------------------------- */

/* Calls @each for the first record of every pair, until it returns nonzero. */
static int each_pair(struct ckpt_build *b, pid_t session,
	int (*each)(struct ckpt_build *b, const Pb__Pty *m, void *ctx, struct err *e), void *ctx,
	struct err *e)
{
	int x = 0;

	for (size_t i = 0; x == 0 && i < b->n_records; i++) {
		const struct ckpt_record *r = &b->records[i];
		Pb__Pty *m;

		if (!r->kind ||
			(r->kind->number != PROTO_KIND_PTY && r->kind->number != PROTO_KIND_TTY))
			continue;
		m = pb__pty__unpack(NULL, r->len, r->body);
		if (m && m->pair && m->first && m->pair->session == session)
			x = each(b, m, ctx, e);
		if (m)
			pb__pty__free_unpacked(m, NULL);
	}
	return x;
}

struct leader {
	struct remote *remote;
	int lend_fd;
};

static int control(struct ckpt_build *b, const Pb__Pty *m, void *ctx, struct err *e)
{
	const struct leader *l = ctx;
	struct remote *leader = l->remote;
	struct ckpt_object *o = pair_of(b, m, e);
	struct remote_arg args[6] = {0};
	int fd, ctl;

	if (!o)
		return e->error;
	if (o->fd2 < 0)
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "terminal %u controls nobody", m->pair->index);
	fd = b->world->names ? ckpt_lend_call(b->world->names, leader, o->fd2)
			     : remote_add(leader, SYS_pidfd_getfd, (uint64_t)l->lend_fd,
				       (uint64_t)o->fd2, 0, 0, 0, 0);
	if (fd < 0)
		return err_errno(e, fd, "controlling terminal");
	args[0] = REMOTE_RESULT(fd);
	args[1] = REMOTE_ARG(TIOCSCTTY);
	ctl = remote_add_args(leader, SYS_ioctl, args);
	args[1] = REMOTE_ARG(0);
	if (ctl < 0 || remote_add_args(leader, SYS_close, args) < 0)
		return err_errno(e, -ENOSPC, "controlling terminal");
	if (remote_run(leader, false, e) < 0)
		return e->error;
	if (remote_result(leader, ctl) < 0)
		return err_errno(e, (int)remote_result(leader, ctl),
			"cannot make /dev/pts/%u a controlling terminal", m->pair->index);
	return 0;
}

int ckpt_pty_controlling(
	struct ckpt_build *b, pid_t vpid, struct remote *leader, int lend_fd, struct err *e)
{
	struct leader l = {.remote = leader, .lend_fd = lend_fd};

	return each_pair(b, vpid, control, &l, e);
}

/* Everything about the pair that only a process of its session can say. */
static int set_foreground(struct ckpt_build *b, const Pb__Pty *m, struct err *e)
{
	struct ckpt_build_thread *t = ckpt_build_thread(b, m->pair->session);
	struct ckpt_object *o = pair_of(b, m, e);
	struct remote_arg args[6] = {0};
	int32_t group = m->pair->foreground;
	uint64_t at;
	int fd, call;

	if (!o)
		return e->error;
	if (!t || !t->remote || o->fd2 < 0)
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "terminal %u has no session", m->pair->index);
	group = ckpt_nested_said(b, t->proc, group);
	at = remote_put(t->remote, &group, sizeof(group));
	fd = at ? ckpt_build_lend(b, t->remote, o->fd2, e) : err_errno(e, -ENOSPC, "terminal");
	if (fd < 0)
		return fd;
	args[0] = REMOTE_RESULT(fd);
	args[1] = REMOTE_ARG(TIOCSPGRP);
	args[2] = REMOTE_ARG(at);
	call = remote_add_args(t->remote, SYS_ioctl, args);
	args[1] = args[2] = REMOTE_ARG(0);
	if (call < 0 || remote_add_args(t->remote, SYS_close, args) < 0)
		return err_errno(e, -ENOSPC, "terminal");
	if (remote_run(t->remote, false, e) < 0)
		return e->error;
	if (remote_result(t->remote, call) == -ESRCH)
		return err_set(e, ERR_IMAGE, -EBADMSG,
			"terminal %u has group %d in the foreground, which nobody is in",
			m->pair->index, group);
	if (remote_result(t->remote, call) < 0)
		return err_errno(e, (int)remote_result(t->remote, call),
			"cannot put group %d into the foreground of /dev/pts/%u", group,
			m->pair->index);
	return 0;
}

int ckpt_pty_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Pty *m = pb__pty__unpack(NULL, r->len, r->body);
	int x = 0;

	if (!m || !m->pair)
		x = ckpt_common_bad(r, e);
	else if (m->first && m->pair->session && m->pair->foreground)
		x = set_foreground(b, m, e);
	if (m)
		pb__pty__free_unpacked(m, NULL);
	return x;
}

int ckpt_pty_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Pty *m = pb__pty__unpack(NULL, r->len, r->body);
	struct ckpt_object *o = m && m->pair && m->first
					? ckpt_object_get(b, PROTO_KIND_PTY, m->pair->index)
					: NULL;
	int on = 1;

	if (o && o->fd >= 0) {
		if (m->pair->packet)
			ioctl(o->fd, TIOCPKT, &on);
		if (m->pair->exclusive_master)
			ioctl(o->fd, TIOCEXCL);
		if (m->pair->exclusive_slave && o->fd2 >= 0)
			ioctl(o->fd2, TIOCEXCL);
		if (m->pair->locked)
			ioctl(o->fd, TIOCSPTLCK, &on);
		o->fd2 = close_fd(o->fd2);
		o->fd = close_fd(o->fd);
	}
	if (m)
		pb__pty__free_unpacked(m, NULL);
	return 0;
}

/* ---- the kinds ------------------------------------------------------------------------------- */

const struct ckpt_kind ckpt_kind_pty = {
	.number = PROTO_KIND_PTY,
	.name = "pseudo terminal",
	.scope = CKPT_FILE,
	.claim = ckpt_pty_claim,
	.check = ckpt_pty_check,
	.dump = ckpt_pty_dump,
	.forget = ckpt_pty_forget,
	.create = ckpt_pty_create,
	.link = ckpt_pty_link,
	.finish = ckpt_pty_finish,
	.show = ckpt_pty_show,
};

const struct ckpt_kind ckpt_kind_tty = {
	.number = PROTO_KIND_TTY,
	.name = "/dev/tty",
	.scope = CKPT_FILE,
	.claim = ckpt_pty_claim_tty,
	.check = ckpt_pty_check,
	.dump = ckpt_pty_dump,
	.create = ckpt_pty_create,
	.link = ckpt_pty_link,
	.finish = ckpt_pty_finish,
	.show = ckpt_pty_show,
};
