// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A task whose tracer is killed goes on by itself (ckpt/remote/remote.h), but the pages which it
 * was lent stay in its memory.  They are known by the executor's code at their beginning, and a
 * note in them tells what else has to be undone: a child that the task has made, of which it knows
 * nothing, is a zombie until it is waited for there.  Everything is stopped once more, and they are
 * unmapped, unless somebody may still be in there: a thread that is in the middle of healing, or in
 * a handler that came upon it.  Then it runs a little, and is looked at again; at last the pages
 * stay, and nobody is the worse for it.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/filters.h"
#include "ckpt/freeze/freeze.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/remote.h"
#include "ckpt/survey/survey.h"

#define TRIES	  20
#define NAP_US	  10000
#define MAX_STACK (256 * 1024UL)

struct mend {
	struct ckpt_freeze_options o;
	const struct ckpt_filters *filters;
	void (*phase)(void *ctx, enum ckpt_phase phase);
	int init_filters;
};

static void tell_phase(const struct mend *m, enum ckpt_phase phase)
{
	if (m->phase)
		m->phase(m->o.ctx, phase);
}

/* ---- is somebody in there? ---------------------------------------------------------------- */

static const struct proc_vma *map_at(const struct proc_maps *maps, uint64_t addr)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->vmas[i].start <= addr && addr < maps->vmas[i].end)
			return &maps->vmas[i];
	return NULL;
}

/* Of pages, or of what is behind the vDSO. */
struct place {
	uint64_t at, len;
};

static bool leads_to(uint64_t addr, struct place p)
{
	return addr - p.at < p.len;
}

/* Might the thread come back to @area?  A handler's frame has the place among the words
 * of the stack. */
static bool may_return(const struct ckpt_task *t, const struct proc_maps *maps, struct place area)
{
	uint64_t from = t->regs.rsp & ~7UL;
	const struct proc_vma *stack = map_at(maps, from);
	size_t len = stack ? MIN(stack->end - from, MAX_STACK) : 0;
	_cleanup_free_ uint64_t *words = malloc(len + 1);
	struct iovec local = {words, len}, there = {(void *)from, len};
	ssize_t n;

	if (leads_to(t->regs.rip, area) || !words)
		return true;
	n = len ? process_vm_readv(t->tid, &local, 1, &there, 1, 0) : 0;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*words); i++)
		if (i386_runs(&t->regs) ? leads_to(words[i] & UINT32_MAX, area) ||
						  leads_to(words[i] >> 32, area)
					: leads_to(words[i], area))
			return true;
	return n < 0;
}

static bool in_use(const struct ckpt_task *tasks, size_t n, const struct proc_maps *maps,
	struct place area)
{
	for (size_t i = 0; i < n; i++)
		if (tasks[i].state == CKPT_TASK_STOPPED && may_return(&tasks[i], maps, area))
			return true;
	return false;
}

/* ---- one process -------------------------------------------------------------------------- */

/* One that was made for us (memory/track_wp.c); the session can't make any. */
static int close_userfaultfd(struct remote *r, int host_proc, pid_t tid, struct err *e)
{
	_cleanup_free_ int *fds = NULL;
	char path[48];
	size_t n;
	int k;

	snprintf(path, sizeof(path), "%d/fd", tid);
	k = proc_list_numbers(host_proc, path, &fds, &n, e);
	for (size_t i = 0; k == 0 && i < n; i++) {
		_cleanup_free_ char *link = NULL;

		snprintf(path, sizeof(path), "%d/fd/%d", tid, fds[i]);
		link = io_readlink(host_proc, path);
		if (link && !strcmp(link, "anon_inode:[userfaultfd]"))
			k = remote_must(r, NULL, e, SYS_close, (uint64_t)fds[i], 0, 0, 0, 0, 0);
	}
	return k;
}

/*
 * One that the task has made for us ends by itself; who made it does not know of it.  1: it has not
 * ended yet.
 */
static int reap_child(struct remote *r, long child, struct err *e)
{
	long got;
	int k = remote_call(r, &got, e, SYS_wait4, (uint64_t)child, 0, WNOHANG | __WALL, 0, 0, 0);

	return k < 0 ? k : got == 0;
}

/* 1: not yet. */
static int unmap(int host_proc, pid_t tid, uint64_t area, struct err *e)
{
	long child;
	struct remote *r;
	uint64_t note;
	int k = remote_open_guarded(&r, host_proc, tid, 0, e), x;

	if (k < 0)
		return k;
	note = remote_left_note(tid, area);
	child = remote_left_child(tid, area);
	if (child)
		k = reap_child(r, child, e);
	if (k == 0 && note & CKPT_NOTE_WATCHED)
		k = close_userfaultfd(r, host_proc, tid, e);
	if (k == 0 && note & CKPT_NOTE_CLOSED)
		k = remote_must(r, NULL, e, SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	if (k == 0)
		k = remote_must(r, NULL, e, SYS_munmap, area, REMOTE_AREA_SIZE, 0, 0, 0, 0);
	x = remote_close(r, k < 0 ? NULL : e);
	return k < 0 || x == 0 ? k : x;
}

/* A filter nobody knows might kill the task for what we do in it. */
static bool may_call(const struct mend *m, pid_t tid)
{
	struct proc_status s;

	if (m->filters && !ckpt_filters_foreign(m->filters))
		return true;
	return proc_read_status(m->o.host_proc, tid, &s, NULL) == 0 &&
	       s.seccomp_filters == m->init_filters;
}

/* @tasks: its @n threads, the leader first.  1: something had to stay. */
static int mend_process(const struct mend *m, const struct ckpt_task *tasks, size_t n, struct err *e)
{
	struct proc_maps maps;
	int host_proc = m->o.host_proc, r, left = 0;
	uint64_t boot;

	if (!may_call(m, tasks[0].tid))
		return 0;
	boot = remote_boot_left(host_proc, tasks[0].tid);
	r = proc_read_maps(host_proc, tasks[0].pid, false, &maps, e);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < maps.n; i++) {
		if (!remote_is_left(tasks[0].tid, &maps.vmas[i]))
			continue;
		if (in_use(tasks, n, &maps, (struct place){maps.vmas[i].start, REMOTE_AREA_SIZE}))
			left = 1;
		else
			r = unmap(host_proc, tasks[0].tid, maps.vmas[i].start, e);
		if (r == 1)
			left = 1;
		r = MIN(r, 0);
	}
	if (boot && in_use(tasks, n, &maps, (struct place){boot, REMOTE_BOOT_SIZE}))
		left = 1;
	else if (boot)
		remote_boot_remove(host_proc, tasks[0].tid, boot);
	proc_maps_fini(&maps);
	return r < 0 ? r : left;
}

static int mend_once(const struct mend *m, struct err *e)
{
	const struct ckpt_task *tasks;
	struct ckpt_frozen *f;
	size_t n, count;
	int r, left = 0;

	tell_phase(m, CKPT_STOPPING);
	r = ckpt_frozen_make(&f, &m->o, e);
	tell_phase(m, r < 0 ? CKPT_RUNS : CKPT_STANDS);
	if (r < 0)
		return r;
	tasks = ckpt_frozen_tasks(f, &n);
	for (size_t i = 0; r >= 0 && i < n; i += count) {
		for (count = 1; i + count < n && tasks[i + count].pid == tasks[i].pid;)
			count++;
		if (tasks[i].state == CKPT_TASK_STOPPED)
			r = mend_process(m, &tasks[i], count, e);
		left |= r > 0;
	}
	tell_phase(m, CKPT_RUNS);
	ckpt_frozen_release(f);
	return r < 0 ? r : left;
}

int ckpt_mend(const struct ckpt_world *w, const struct ckpt_dump_options *o, struct err *e)
{
	_cleanup_close_ int host_proc = proc_open(e);
	struct mend m = {
		.o = {.host_proc = host_proc,
			.session_proc = w->proc_fd,
			.init_pid = w->init_pid,
			.deadline_ms = o->deadline_ms,
			.notified = o->notified,
			.n_notified = o->n_notified,
			.unhold = o->unhold,
			.ctx = o->ctx,
			.ring_workers = w->io_uring},
		.filters = o->filters,
		.phase = o->phase,
	};
	struct proc_status init;
	int r = host_proc < 0 ? host_proc : proc_read_status(host_proc, w->init_pid, &init, e);

	m.init_filters = init.seccomp_filters;
	r = r < 0 ? r : 1;

	for (int i = 0; r == 1 && i < TRIES; i++) {
		if (i)
			usleep(NAP_US);
		r = mend_once(&m, e);
	}
	if (r == 1)
		log_warn("pages of a tracer that was killed stay in a task");
	return MIN(r, 0);
}
