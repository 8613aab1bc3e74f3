// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * convert - memory that a resume mapped from its image (mapped.c) becomes the session's own.
 *
 * Theory of operation
 *
 * One process at a time is stopped, with everybody who shares its memory, for a slice of some
 * milliseconds.  For a part of the mapped memory (place) it does itself, in two batches:
 *
 *      copy   process_vm_readv of itself, from place to spare: pages of the image as well as
 *             those that it has written since.  Nothing is different when this fails
 *      move   mremap of spare to place: one call, after which the image is not there any more
 *
 * So the converter may be killed at any moment: place is whole before and after each of the two,
 * other threads are kept from writing to it during the second (ckpt/remote/gate.c), and whoever
 * goes on copies that slice once more.  All it must know is in /proc/PID/maps, read while the
 * process stands still: a mapping of the image is a piece, or what munmap, mprotect and fork have
 * made of one; its offset tells which, and the piece where its spare is.
 *
 * What has been unmapped meanwhile leaves its spare behind: addresses, no memory.
 *
 * Who is looked at: every process of the session, in passes, until one pass has found nothing and
 * nobody new has come.  A child that was forked from what is still mapped is found like any other.
 * Where processes come and go all the time they are all stopped at once after some passes, and what
 * is left is done there and then.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/freeze/freeze.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/remote.h"

#define SLICE_NS      3000000ULL /* what a stop may copy for */
#define FIRST_SLICE   (1UL << 20)
#define MIN_SLICE     (1UL << 20)
#define MAX_SLICE     (16UL << 20)
#define MAX_WHOLE     (32UL << 20) /* where somebody waits for it */
#define IDLE_PASSES   10 /* then everybody stops, once */
#define ALL_STOP_MS   200
#define STOP_MS	      40 /* for who does not stop, such as a parent in vfork */
#define MAX_PARTS     64 /* in one slice */
#define ALL_OF_MEMORY CKPT_TASK_SIZE

struct ckpt_convert {
	struct ckpt_convert_options o;
	int host_proc;
	size_t level; /* of the session's numbers */
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	struct buf pids;    /* pid_t of the host, of this pass */
	struct buf numbers; /* int, as the session's /proc listed them before */
	size_t at;
	bool found;	/* something in this pass */
	bool stuck;	/* and could not do it */
	unsigned idle;	/* passes that have found nothing, though processes come and go */
	unsigned most;	/* of these before everybody stops */
	uint64_t slice, copied_ns;
};

struct part {
	uint64_t place, len, spare;
	uint32_t prot, spare_prot;
};

/* ---- who is there --------------------------------------------------------------------------- */

/* All processes of the session, pid 1 first. */
static int list_processes(const struct ckpt_convert *c, struct buf *ret, struct err *e)
{
	pid_t init = c->o.world->init_pid;

	buf_clear(ret);
	buf_put(ret, &init, sizeof(init));
	for (size_t i = 0; i < ret->len / sizeof(pid_t); i++) {
		pid_t pid = ((pid_t *)ret->data)[i];
		_cleanup_free_ int *tids = NULL;
		char path[32];
		size_t n;

		snprintf(path, sizeof(path), "%d/task", pid);
		if (proc_list_numbers(c->host_proc, path, &tids, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			_cleanup_free_ pid_t *children = NULL;
			size_t n_children;

			if (proc_read_children(
				    c->host_proc, pid, tids[k], &children, &n_children, NULL) == 0)
				buf_put(ret, children, n_children * sizeof(*children));
		}
	}
	return buf_error(ret) < 0 ? err_errno(e, -ENOMEM, "processes") : 0;
}

/* The session's own /proc: nobody is missing there, but it says nothing but numbers. */
static int list_numbers(const struct ckpt_convert *c, struct buf *ret, struct err *e)
{
	_cleanup_free_ int *numbers = NULL;
	size_t n;
	int r = proc_list_numbers(c->o.world->proc_fd, ".", &numbers, &n, e);

	if (r < 0)
		return r;
	buf_clear(ret);
	buf_put(ret, numbers, n * sizeof(*numbers));
	return buf_error(ret) < 0 ? err_errno(e, -ENOMEM, "processes") : 0;
}

static bool still_there(const struct ckpt_convert *c, int vpid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", vpid);
	return faccessat(c->o.world->proc_fd, name, F_OK, 0) == 0;
}

/* Is every one of @numbers in @pids?  Children whose parent just ended may have been overlooked. */
static bool all_known(
	const struct ckpt_convert *c, const struct buf *pids, const struct buf *numbers)
{
	const pid_t *v = (const pid_t *)pids->data;
	const int *n = (const int *)numbers->data;
	_cleanup_buf_ struct buf known = BUF_INIT;
	size_t n_known;

	for (size_t i = 0; i < pids->len / sizeof(*v); i++) {
		struct proc_status s;

		if (proc_read_status(c->host_proc, v[i], &s, NULL) == 0) {
			pid_t number = proc_at_level(s.ns_pid, &s, c->level);

			buf_put(&known, &number, sizeof(int));
		}
	}
	n_known = known.len / sizeof(int);
	for (size_t i = 0; i < numbers->len / sizeof(*n); i++) {
		size_t k = 0;

		while (k < n_known && ((const int *)known.data)[k] != n[i])
			k++;
		if (k == n_known && still_there(c, n[i]))
			return false;
	}
	return true;
}

/* True if the session has the very processes that it had when @then was listed. */
static bool nobody_came(const struct ckpt_convert *c, const struct buf *then)
{
	_cleanup_buf_ struct buf now = BUF_INIT;

	return list_numbers(c, &now, NULL) == 0 && now.len == then->len &&
	       !memcmp(now.data, then->data, now.len);
}

static int begin_pass(struct ckpt_convert *c, struct err *e)
{
	int r = list_numbers(c, &c->numbers, e);

	if (r == 0)
		r = list_processes(c, &c->pids, e);
	c->at = 1; /* [0] is pid 1, which has nothing of it */
	c->found = false;
	c->stuck = r < 0 || !all_known(c, &c->pids, &c->numbers);
	return r;
}

/* ---- what of it is mapped ------------------------------------------------------------------- */

static bool is_image(const struct ckpt_convert *c, const struct proc_vma *v)
{
	return v->ino == c->ino && v->dev_major == c->dev_major && v->dev_minor == c->dev_minor &&
	       !v->shared;
}

/* The piece that @at, in @v, is of, if it is of any. */
static const struct ckpt_piece *find_piece(
	const struct ckpt_convert *c, const struct proc_vma *v, uint64_t at)
{
	uint64_t offset = v->offset + (at - v->start);

	for (size_t lo = 0, hi = c->o.n_pieces; lo < hi;) {
		size_t mid = (lo + hi) / 2;
		const struct ckpt_piece *p = &c->o.pieces[mid];

		if (offset >= p->offset + p->len) {
			lo = mid + 1;
		} else if (offset < p->offset) {
			hi = mid;
		} else {
			/* else the program has mapped the file itself */
			return at - p->addr == offset - p->offset ? p : NULL;
		}
	}
	return NULL;
}

static const struct proc_vma *vma_of(const struct proc_maps *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->vmas[i].start <= start && m->vmas[i].end >= end)
			return &m->vmas[i];
	return NULL;
}

static bool is_own(const struct proc_vma *v)
{
	return v && !v->shared && v->ino == 0;
}

/*
 * As it was left by mapped.c, or by a converter that was killed.  Else a program has mapped
 * something there, and nobody wants memory that can be written to and not read.
 */
static bool is_spare(const struct proc_vma *v)
{
	return is_own(v) && (v->prot == PROT_NONE || v->prot == PROT_WRITE);
}

/* The parts of [@start, @end) to be done next, at most @max bytes.  Returns their number. */
static size_t choose(const struct ckpt_convert *c, const struct proc_maps *m, uint64_t start,
	uint64_t end, uint64_t max, struct part *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n && n < MAX_PARTS && max; i++) {
		const struct proc_vma *v = &m->vmas[i];
		uint64_t at = MAX(v->start, start), to = MIN(v->end, end), len, spare;
		const struct ckpt_piece *p;
		const struct proc_vma *own;

		if (at >= to || !is_image(c, v))
			continue;
		p = find_piece(c, v, at);
		if (!p)
			continue;
		spare = p->spare + (at - p->addr);
		len = MIN(to - at, p->len - (at - p->addr));
		len = MIN(len, max);
		own = vma_of(m, spare, spare + len);
		ret[n++] = (struct part){.place = at,
			.len = len,
			.spare = is_spare(own) ? spare : 0,
			.prot = v->prot,
			.spare_prot = own ? own->prot : 0};
		max -= len;
	}
	return n;
}

/*
 * The memory of @pid as one of its threads sees it: a first one that has ended sees none.  What we
 * may not look at is that of a program whose file can't be read: nothing of ours has come through
 * its exec.
 */
static int read_maps(struct ckpt_convert *c, pid_t pid, struct proc_maps *ret, struct err *e)
{
	_cleanup_free_ int *tids = NULL;
	char path[32];
	size_t n = 0;
	int r;

	snprintf(path, sizeof(path), "%d/task", pid);
	r = proc_list_numbers(c->host_proc, path, &tids, &n, NULL);
	*ret = (struct proc_maps){0};
	if (r < 0)
		return 0; /* it has ended */
	for (size_t i = 0; i < n; i++) {
		r = proc_read_maps(c->host_proc, tids[i], false, ret, e);
		if (r == 0 && ret->n)
			return 0;
		if (r == 0)
			proc_maps_fini(ret);
		*ret = (struct proc_maps){0};
		if (r < 0 && r != -ESRCH && r != -ENOENT && r != -EACCES && r != -EPERM)
			return r;
	}
	return 0;
}

static bool has_any(struct ckpt_convert *c, const struct proc_maps *m, uint64_t start, uint64_t end)
{
	struct part one;

	for (size_t i = 0; i < m->n; i++)
		if (is_image(c, &m->vmas[i]) && m->vmas[i].start < end && m->vmas[i].end > start &&
			choose(c, m, start, end, PAGE_SIZE, &one))
			return true;
	return false;
}

/* ---- doing it ------------------------------------------------------------------------------- */

static int set_prot(struct remote *r, uint64_t at, uint64_t len, uint32_t prot)
{
	return remote_add(r, SYS_mprotect, at, len, prot, 0, 0, 0);
}

/* Memory of its own for a part whose spare the program has unmapped. */
static int make_spare(struct remote *r, struct part *p, struct err *e)
{
	long at;

	if (p->spare)
		return 0;
	if (remote_must(r, &at, e, SYS_mmap, 0, p->len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0) < 0)
		return e->error;
	p->spare = (uint64_t)at;
	p->spare_prot = PROT_READ | PROT_WRITE;
	return 0;
}

/* The task copies its own memory.  *ret_n: of so many parts all has been copied. */
static int copy_parts(const struct ckpt_convert *c, struct remote *r, pid_t vpid,
	const struct part *v, size_t *ret_n, struct err *e)
{
	int calls[MAX_PARTS], ret;
	size_t n = *ret_n, done = 0;

	for (size_t i = 0; i < n; i++) {
		struct iovec local = {(void *)v[i].spare, v[i].len};
		struct iovec remote = {(void *)v[i].place, v[i].len};

		if (!(v[i].spare_prot & PROT_WRITE))
			set_prot(r, v[i].spare, v[i].len, PROT_WRITE);
		if (!(v[i].prot & PROT_READ))
			set_prot(r, v[i].place, v[i].len, v[i].prot | PROT_READ);
		calls[i] = remote_add(r, SYS_process_vm_readv,
			(uint64_t)c->o.cookie << 32 | (uint32_t)vpid,
			remote_put(r, &local, sizeof(local)), 1,
			remote_put(r, &remote, sizeof(remote)), 1, 0);
		if (!(v[i].prot & PROT_READ))
			set_prot(r, v[i].place, v[i].len, v[i].prot);
	}
	ret = remote_run(r, false, e);
	if (ret < 0)
		return ret;
	while (done < n && remote_result(r, calls[done]) == (long)v[done].len)
		done++;
	if (done < n)
		log_warn("task %d: cannot copy what is mapped at %llx: %ld", vpid,
			(unsigned long long)v[done].place, remote_result(r, calls[done]));
	*ret_n = done;
	return 0;
}

/*
 * What has been copied takes its place.  Should we be killed meanwhile, the other tasks may not go
 * on before that is done: what they write would be lost.
 */
static int move_parts(const struct ckpt_convert *c, struct remote *r, const struct part *v,
	size_t n, const pid_t *others, size_t n_others, struct err *e)
{
	struct remote_gate *gate = NULL;
	int calls[MAX_PARTS], ret;

	if (!n)
		return 0;
	ret = remote_gate_open(&gate, r, others, n_others, e);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < n; i++) {
		uint32_t now = v[i].spare_prot & PROT_WRITE ? v[i].spare_prot : PROT_WRITE;

		if (now != v[i].prot)
			set_prot(r, v[i].spare, v[i].len, v[i].prot);
		calls[i] = remote_add(r, SYS_mremap, v[i].spare, v[i].len, v[i].len,
			MREMAP_MAYMOVE | MREMAP_FIXED, v[i].place, c->o.cookie);
	}
	ret = remote_gate_run(gate, e);
	for (size_t i = 0; i < n && ret == 0; i++)
		if ((uint64_t)remote_result(r, calls[i]) != v[i].place)
			ret = err_errno(e, (int)remote_result(r, calls[i]), "moving memory");
	if (remote_gate_close(gate, ret < 0 ? NULL : e) < 0 && ret == 0)
		ret = e->error;
	return ret;
}

static bool is_among(pid_t pid, const struct buf *pids)
{
	for (size_t i = 0; i < pids->len / sizeof(pid_t); i++)
		if (((const pid_t *)pids->data)[i] == pid)
			return true;
	return false;
}

/* All tasks of @procs that stand still but @tid.  A child that was born meanwhile stands, too. */
static int find_others(
	const struct ckpt_frozen *f, const struct buf *procs, pid_t tid, struct buf *ret)
{
	const struct ckpt_task *tasks;
	size_t n;

	tasks = ckpt_frozen_tasks(f, &n);
	for (size_t i = 0; i < n; i++)
		if (tasks[i].tid != tid && tasks[i].state == CKPT_TASK_STOPPED &&
			is_among(tasks[i].pid, procs))
			buf_put(ret, &tasks[i].tid, sizeof(pid_t));
	return buf_error(ret);
}

static int copy_and_move(struct ckpt_convert *c, struct remote *rem, const struct buf *others,
	pid_t vpid, struct part *parts, size_t n, struct err *e)
{
	size_t done = n;
	uint64_t then;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = make_spare(rem, &parts[i], e);
	then = io_now_ns();
	if (r == 0)
		r = copy_parts(c, rem, vpid, parts, &done, e);
	c->copied_ns = io_now_ns() - then;
	if (r == 0)
		r = move_parts(c, rem, parts, done, (const pid_t *)others->data,
			others->len / sizeof(pid_t), e);
	return r < 0 ? r : done ? 1 : -EIO;
}

/* The builder has left its pages in every process that has anything mapped. */
static int open_task(struct ckpt_convert *c, pid_t tid, const struct buf *others,
	struct remote **ret, struct err *e)
{
	int r = remote_open_left(ret, c->host_proc, tid, c->o.pieces[0].area,
		(const pid_t *)others->data, others->len / sizeof(pid_t), e);

	return r == -ENOENT ? remote_open(ret, c->host_proc, tid, 0, e) : r;
}

static bool has_pages(const struct ckpt_convert *c, const struct proc_maps *m)
{
	uint64_t area = c->o.pieces[0].area;
	const struct proc_vma *v = vma_of(m, area, area + PAGE_SIZE);

	return is_own(v) && v->start == area && v->prot == (PROT_READ | PROT_EXEC);
}

/* The end of it: the builder's pages go.  1, or 0 if they are somebody else's. */
static int take_pages(
	struct ckpt_convert *c, const struct ckpt_task *t, const struct buf *others, struct err *e)
{
	struct remote *rem;
	int r = remote_open_left(&rem, c->host_proc, t->tid, c->o.pieces[0].area,
		(const pid_t *)others->data, others->len / sizeof(pid_t), e);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	remote_leave(rem, false);
	r = remote_close(rem, e);
	return r < 0 ? r : 1;
}

/* Everything that can be done in one stop, by the task @t, while @others have the same memory. */
static int convert_stopped(struct ckpt_convert *c, const struct ckpt_task *t,
	const struct buf *others, uint64_t start, uint64_t end, uint64_t max, struct err *e)
{
	struct part parts[MAX_PARTS];
	struct proc_status s = {0};
	struct proc_maps maps;
	struct remote *rem;
	size_t n;
	int r = proc_read_maps(c->host_proc, t->tid, false, &maps, e);

	if (r < 0)
		return r;
	n = choose(c, &maps, start, end, max, parts);
	r = !n && has_pages(c, &maps);
	proc_maps_fini(&maps);
	if (!n)
		return r ? take_pages(c, t, others, e) : 0;
	/* by its own number: the first thread may have ended, and then has no memory */
	r = proc_read_status(c->host_proc, t->tid, &s, e);
	if (r == 0)
		r = open_task(c, t->tid, others, &rem, e);
	if (r < 0)
		return r;
	r = copy_and_move(c, rem, others, s.ns_pid[s.ns_depth - 1], parts, n, e);
	if (remote_close(rem, r < 0 ? NULL : e) < 0 && r >= 0)
		r = e->error;
	return r;
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* A thread of @pid that lives: the first may have ended, and then has no memory. */
static pid_t find_living(const struct ckpt_convert *c, pid_t pid)
{
	_cleanup_free_ int *tids = NULL;
	struct proc_status s;
	char path[32];
	size_t n = 0;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (proc_list_numbers(c->host_proc, path, &tids, &n, NULL) < 0)
		return pid;
	for (size_t i = 0; i < n; i++)
		if (proc_read_task_status(c->host_proc, pid, tids[i], &s, NULL) == 0 &&
			s.state != 'Z' && s.state != 'X')
			return tids[i];
	return pid;
}

/* Everybody in @pids who shares the memory of @pid. */
static int find_sharers(
	const struct ckpt_convert *c, pid_t pid, const struct buf *pids, struct buf *ret)
{
	const pid_t *v = (const pid_t *)pids->data;
	pid_t one = find_living(c, pid);

	buf_clear(ret);
	for (size_t i = 1; i < pids->len / sizeof(*v); i++)
		if (v[i] == pid || sys_kcmp(one, v[i], SYS_KCMP_VM, 0, 0) == 0)
			buf_put(ret, &v[i], sizeof(*v));
	return buf_error(ret);
}

/*
 * While @only stand still: is there nobody else with the memory of @pid?  It would have been made
 * by one of them before he stopped.  @numbers: who was there when @only was found.
 */
static bool has_all(
	const struct ckpt_convert *c, pid_t pid, const struct buf *only, const struct buf *numbers)
{
	_cleanup_buf_ struct buf pids = BUF_INIT, now = BUF_INIT, sharers = BUF_INIT;

	if (nobody_came(c, numbers))
		return true;
	return list_numbers(c, &now, NULL) == 0 && list_processes(c, &pids, NULL) == 0 &&
	       all_known(c, &pids, &now) && find_sharers(c, pid, &pids, &sharers) == 0 &&
	       sharers.len == only->len;
}

static const struct ckpt_task *pick(const struct ckpt_frozen *f, pid_t pid)
{
	const struct ckpt_task *tasks, *any = NULL;
	size_t n;

	tasks = ckpt_frozen_tasks(f, &n);
	for (size_t i = 0; i < n; i++) {
		if (tasks[i].pid != pid || tasks[i].state != CKPT_TASK_STOPPED)
			continue;
		if (tasks[i].tid == pid)
			return &tasks[i];
		any = any ? any : &tasks[i];
	}
	return any;
}

static int stop_and_convert(struct ckpt_convert *c, pid_t pid, uint64_t start, uint64_t end,
	uint64_t max, struct err *e)
{
	_cleanup_buf_ struct buf only = BUF_INIT, pids = BUF_INIT, numbers = BUF_INIT,
				 others = BUF_INIT;
	struct ckpt_freeze_options o = {.host_proc = c->host_proc,
		.session_proc = -1,
		.deadline_ms = STOP_MS,
		.notified = c->o.notified,
		.n_notified = c->o.n_notified,
		.waiting = c->o.waiting,
		.ctx = c->o.ctx,
		.ring_workers = c->o.world->io_uring};
	struct ckpt_frozen *f;
	const struct ckpt_task *t;
	int r = list_numbers(c, &numbers, e);

	if (r == 0)
		r = list_processes(c, &pids, e);
	if (r == 0)
		r = find_sharers(c, pid, &pids, &only);
	if (r < 0 || !only.len)
		return -EAGAIN;
	o.only = (const pid_t *)only.data;
	o.n_only = only.len / sizeof(pid_t);
	if (ckpt_frozen_make(&f, &o, e) < 0)
		return -EAGAIN;
	t = pick(f, pid);
	r = -EAGAIN;
	if (t && has_all(c, pid, &only, &numbers) && find_others(f, &only, t->tid, &others) == 0)
		r = convert_stopped(c, t, &others, start, end, max, e);
	ckpt_frozen_release(f);
	return r;
}

/* All of what the task @t and whoever shares its memory have, while everybody stands still. */
static int convert_one_of_all(struct ckpt_convert *c, const struct ckpt_frozen *f,
	const struct buf *pids, pid_t pid, struct err *e)
{
	_cleanup_buf_ struct buf sharers = BUF_INIT, others = BUF_INIT;
	const struct ckpt_task *t = pick(f, pid);
	int r;

	if (!t)
		return 0; /* a zombie */
	r = find_sharers(c, pid, pids, &sharers);
	if (r == 0)
		r = find_others(f, &sharers, t->tid, &others);
	do {
		if (r >= 0)
			r = convert_stopped(c, t, &others, 0, ALL_OF_MEMORY, MAX_WHOLE, e);
	} while (r > 0);
	return r;
}

/*
 * Processes come and go faster than we can look at them one by one.  So all stop, once: whoever has
 * something is there, and after this nobody can have it from another.
 */
static int convert_all_at_once(struct ckpt_convert *c, struct err *e)
{
	_cleanup_buf_ struct buf pids = BUF_INIT;
	struct ckpt_freeze_options o = {.host_proc = c->host_proc,
		.session_proc = c->o.world->proc_fd,
		.init_pid = c->o.world->init_pid,
		.deadline_ms = ALL_STOP_MS,
		.notified = c->o.notified,
		.n_notified = c->o.n_notified,
		.waiting = c->o.waiting,
		.ctx = c->o.ctx,
		.ring_workers = c->o.world->io_uring};
	const struct ckpt_task *tasks;
	struct ckpt_frozen *f;
	size_t n;
	int r = 0;

	if (ckpt_frozen_make(&f, &o, e) < 0)
		return -EAGAIN;
	tasks = ckpt_frozen_tasks(f, &n);
	buf_put(&pids, &o.init_pid, sizeof(o.init_pid));
	for (size_t i = 0; i < n; i++)
		if (i == 0 || tasks[i].pid != tasks[i - 1].pid)
			buf_put(&pids, &tasks[i].pid, sizeof(pid_t));
	r = buf_error(&pids);
	for (size_t i = 1; i < pids.len / sizeof(pid_t) && r == 0; i++)
		r = convert_one_of_all(c, f, &pids, ((const pid_t *)pids.data)[i], e);
	ckpt_frozen_release(f);
	return r < 0 ? -EAGAIN : 0;
}

/* How much is copied in one stop follows from how long the last took. */
static void adapt(struct ckpt_convert *c)
{
	if (c->copied_ns > SLICE_NS && c->slice > MIN_SLICE)
		c->slice /= 2;
	else if (c->copied_ns < SLICE_NS / 3 && c->slice < MAX_SLICE)
		c->slice *= 2;
}

/* One stop.  1: a part was done, 0: there is nothing, negative: not now. */
static int one_stop(
	struct ckpt_convert *c, pid_t pid, uint64_t start, uint64_t end, bool whole, struct err *e)
{
	struct proc_maps maps;
	int r = read_maps(c, pid, &maps, e);

	if (r < 0)
		return r;
	r = has_any(c, &maps, start, end) || (start == 0 && has_pages(c, &maps));
	proc_maps_fini(&maps);
	if (!r)
		return 0;
	r = stop_and_convert(c, pid, start, end, whole ? MAX_WHOLE : c->slice, e);
	if (r > 0 && !whole)
		adapt(c);
	return r;
}

/* ---- interface ------------------------------------------------------------------------------ */

/* At the end of a pass.  0: it was the last, 1: another has begun, -EAGAIN: later. */
static int end_pass(struct ckpt_convert *c, struct err *e)
{
	bool stuck = c->stuck;

	c->idle = c->found ? 0 : c->idle + 1;
	if (c->idle && !stuck && nobody_came(c, &c->numbers))
		return 0;
	if (c->idle >= c->most) {
		if (convert_all_at_once(c, e) == 0)
			return 0;
		c->most *= 2; /* somebody can't be stopped: don't ask all the others too often */
	}
	return begin_pass(c, e) < 0 || stuck ? -EAGAIN : 1;
}

int ckpt_convert_step(struct ckpt_convert *c, struct err *e)
{
	for (;;) {
		int r;

		if (c->at >= c->pids.len / sizeof(pid_t)) {
			r = end_pass(c, e);
			if (r <= 0)
				return r;
			continue;
		}
		r = one_stop(c, ((const pid_t *)c->pids.data)[c->at], 0, ALL_OF_MEMORY, false, e);
		if (r > 0) {
			c->found = true;
			return 1;
		}
		c->stuck |= r < 0;
		c->at++;
	}
}

int ckpt_convert_range(
	struct ckpt_convert *c, pid_t tid, uint64_t start, uint64_t end, struct err *e)
{
	struct proc_status s;
	int r;

	if (proc_read_status(c->host_proc, tid, &s, NULL) < 0)
		return 0; /* it has ended */
	do {
		r = one_stop(c, s.tgid, start, end, end - start < ALL_OF_MEMORY, e);
	} while (r > 0);
	return r;
}

/* How the kernel shows the image in a list of mappings; st_dev may say something else (btrfs). */
static int learn_image(struct ckpt_convert *c, struct err *e)
{
	void *m = mmap(NULL, PAGE_SIZE, PROT_READ, MAP_PRIVATE, c->o.image, 0);
	const struct proc_vma *v;
	struct proc_maps maps;
	int r;

	if (m == MAP_FAILED)
		return err_errno(e, -errno, "image");
	r = proc_read_maps(c->host_proc, getpid(), false, &maps, e);
	if (r == 0) {
		v = vma_of(&maps, (uintptr_t)m, (uintptr_t)m + PAGE_SIZE);
		if (!v || !v->ino)
			r = err_errno(e, -ENOENT, "image");
		c->ino = v ? v->ino : 0;
		c->dev_major = v ? v->dev_major : 0;
		c->dev_minor = v ? v->dev_minor : 0;
		proc_maps_fini(&maps);
	}
	munmap(m, PAGE_SIZE);
	return r;
}

int ckpt_convert_new(struct ckpt_convert **ret, const struct ckpt_convert_options *o, struct err *e)
{
	struct ckpt_convert *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_errno(e, -ENOMEM, "convert");
	c->o = *o;
	c->slice = FIRST_SLICE;
	c->most = IDLE_PASSES;
	c->host_proc = r = proc_open(e);
	c->level = proc_level(c->host_proc, o->world->init_pid);
	if (r >= 0)
		r = learn_image(c, e);
	if (r == 0)
		r = begin_pass(c, e);
	if (r < 0) {
		ckpt_convert_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void ckpt_convert_free(struct ckpt_convert *c)
{
	if (!c)
		return;
	buf_fini(&c->pids);
	buf_fini(&c->numbers);
	close_fd(c->host_proc);
	free(c);
}
