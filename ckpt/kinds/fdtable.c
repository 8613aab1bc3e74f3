// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptor tables: which number is which open file.
 *
 * The builder has every open file as a descriptor of its own; a task takes them with pidfd_getfd
 * (ckpt/lend.c), so two descriptors of one open file share its position and flags as they did.
 * The kernel gives the lowest free number.  Entries come in ascending order, so that is mostly the
 * one that is wanted: one call for a close-on-exec descriptor, two for another, and three
 * where there is a gap below.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/lend.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define MAX_FDS	     (1 << 20)
#define CALLS_PER_FD 7 /* an O_PATH descriptor takes most (ckpt/lend.c), or one with O_ASYNC */

/* Not by fdinfo, which shows O_CLOEXEC of the file's own flags as well:
 * TIOCGPTPEER leaves it there. */
static bool is_unsure(const struct ckpt_fd *f)
{
	int flags = f->unsure ? O_CLOEXEC : f->cloexec ? fcntl(f->file->fd, F_GETFL) : -1;

	return flags >= 0 && flags & O_CLOEXEC;
}

/* Asks the task about @n descriptors. */
static int ask(struct remote *remote, struct ckpt_fd *const *fds, size_t n, struct err *e)
{
	int r;

	for (size_t i = 0; i < n; i++)
		remote_add(remote, SYS_fcntl, (uint64_t)fds[i]->fd, F_GETFD, 0, 0, 0, 0);
	r = ckpt_run_all(remote, "fcntl", e);
	for (size_t i = 0; r == 0 && i < n; i++)
		fds[i]->cloexec = remote_result(remote, (int)i) & FD_CLOEXEC;
	return r;
}

/* Where nothing else tells whether a descriptor is closed by exec. */
static int ask_cloexec(struct ckpt_proc *p, struct err *e)
{
	struct ckpt_fd *unsure[REMOTE_MAX_CALLS];
	struct remote *remote;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_fds; i++) {
		if (is_unsure(&p->fds[i]))
			unsure[n++] = &p->fds[i];
		if (!n || (n < ARRAY_SIZE(unsure) && i + 1 < p->n_fds))
			continue;
		r = ckpt_proc_remote(p, &remote, e);
		if (r == 0)
			r = ask(remote, unsure, n, e);
		n = 0;
	}
	return r;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Fdtable m = PB__FDTABLE__INIT;
	_cleanup_free_ Pb__FdEntry *entries = NULL;
	_cleanup_free_ Pb__FdEntry **list = NULL;
	int r;

	if (s.proc->state == CKPT_ZOMBIE || s.proc->files != s.proc->vpid || !s.proc->n_fds)
		return 1;
	r = ask_cloexec(s.proc, e);
	if (r < 0)
		return r;
	entries = calloc(s.proc->n_fds, sizeof(*entries));
	list = calloc(s.proc->n_fds, sizeof(*list));
	if (!entries || !list)
		return err_errno(e, -ENOMEM, "descriptor table");
	for (size_t i = 0; i < s.proc->n_fds; i++) {
		const struct ckpt_fd *f = &s.proc->fds[i];

		pb__fd_entry__init(&entries[i]);
		entries[i].fd = f->fd;
		entries[i].file = f->file->id;
		entries[i].cloexec = f->cloexec;
		list[i] = &entries[i];
	}
	m.n_entries = s.proc->n_fds;
	m.entries = list;
	return ckpt_pack(&m.base, body, e);
}

static int check_entries(
	struct ckpt_build *b, const struct ckpt_record *rec, const Pb__Fdtable *m, struct err *e)
{
	if (m->n_entries > MAX_FDS)
		return ckpt_record_bad(rec, e);
	for (size_t i = 0; i < m->n_entries; i++) {
		const Pb__FdEntry *f = m->entries[i];

		if (f->fd < 0 || f->fd >= MAX_FDS || (i && f->fd <= m->entries[i - 1]->fd) ||
			!ckpt_build_file(b, f->file) || ckpt_build_file(b, f->file)->fd < 0)
			return ckpt_record_bad(rec, e);
	}
	return 0;
}

/* A hard limit can't be raised without privilege. */
static int check_limit(pid_t pid, int highest, struct err *e)
{
	struct rlimit l;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &l) < 0)
		return err_errno(e, -errno, "prlimit");
	if ((rlim_t)highest < l.rlim_max)
		return 0;
	err_set(e, ERR_HOST, -EMFILE, "descriptor %d is more than it may have here", highest);
	return err_hint(e, "the hard limit is %llu (ulimit -Hn)", (unsigned long long)l.rlim_max);
}

/* The lowest number no entry has. */
static int first_gap(const Pb__Fdtable *m)
{
	size_t i = 0;

	while (i < m->n_entries && m->entries[i]->fd == (int)i)
		i++;
	return (int)i;
}

/* Adds the calls for one entry.  @at: the number pidfd_getfd will give. */
static int add_entry(
	struct ckpt_build *b, struct remote *r, const Pb__FdEntry *f, int at, struct err *e)
{
	int got = ckpt_build_lend(b, r, ckpt_build_file(b, f->file)->fd, e);
	const struct remote_arg from[6] = {REMOTE_RESULT(got)};
	const struct remote_arg to[6] = {
		REMOTE_RESULT(got), REMOTE_ARG(f->fd), REMOTE_ARG(f->cloexec ? O_CLOEXEC : 0)};

	if (got < 0)
		return got;
	if (at != f->fd) {
		remote_add_args(r, SYS_dup3, to);
		remote_add_args(r, SYS_close, from);
	} else if (!f->cloexec) {
		remote_add(r, SYS_fcntl, (uint64_t)f->fd, F_SETFD, 0, 0, 0, 0);
	}
	return 0;
}

/* The signals of O_ASYNC tell the number by which it was set. */
static void say_number(struct remote *r, const struct ckpt_build_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);
	uint64_t fd = (uint64_t)file->holder_fd;

	if (flags < 0 || !(flags & O_ASYNC))
		return;
	remote_add(r, SYS_fcntl, fd, F_SETFL, (uint64_t)(flags & ~O_ASYNC), 0, 0, 0);
	remote_add(r, SYS_fcntl, fd, F_SETFL, (uint64_t)flags, 0, 0, 0);
}

static int link_table(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Fdtable *m = pb__fdtable__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	int r, gap, calls = CALLS_PER_FD;

	r = m && t ? check_entries(b, rec, m, e) : ckpt_record_bad(rec, e);
	if (r == 0 && m->n_entries)
		r = check_limit(t->proc->pid, m->entries[m->n_entries - 1]->fd, e);
	if (r < 0 || !m->n_entries)
		goto out;
	/* What lends, if anything does, lies in the first gap, so the next is
	 * where the kernel puts things. */
	gap = b->world->names ? -1 : first_gap(m);
	ckpt_lend_move(b, t->proc, gap);
	for (size_t i = 0, next = 0; r == 0 && i < m->n_entries; i++) {
		const Pb__FdEntry *f = m->entries[i];
		struct ckpt_build_file *file = ckpt_build_file(b, f->file);
		bool first = !file->holder;

		if (first) {
			file->holder = t->proc->vpid;
			file->holder_fd = f->fd;
		}
		if ((int)next == gap)
			next++;
		r = add_entry(b, t->remote, f, (int)next, e);
		if (r == 0 && first)
			say_number(t->remote, file);
		if ((int)next == f->fd)
			next++;
		calls += CALLS_PER_FD;
		if (r == 0 && (calls > REMOTE_MAX_CALLS - CALLS_PER_FD || i + 1 == m->n_entries)) {
			r = ckpt_run_all(t->remote, "descriptors", e);
			calls = 0;
		}
	}
out:
	pb__fdtable__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Fdtable *m = pb__fdtable__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_entries; i++)
		fprintf(out, "%s%d=file %u", i ? " " : "", m->entries[i]->fd,
			bare ? 0 : m->entries[i]->file);
	pb__fdtable__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_fdtable = {
	.number = PROTO_KIND_FDTABLE,
	.name = "fdtable",
	.scope = CKPT_PROC,
	.dump = dump,
	.link = link_table,
	.show = show,
};
