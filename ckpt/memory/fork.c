// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fork - copies of memory spaces, so that a session stops for a snapshot only while it is forked.
 *
 * Theory of operation
 *
 * A fork shares all private pages copy-on-write: 20 ms for a gigabyte, whoever has written to a
 * page since then has paid for its copy.  The copy is made by the task itself (ckpt/remote):
 *
 *      task ---- clone(CLONE_VM) ----> helper          the helper ends at once and the task waits
 *                                        |             for it, so no trace is left in the task
 *                                        '-- clone --> copy
 *
 * The copy falls to pid 1 (or a program that reaps orphans), which reaps it when its time has come.
 * It never runs a line of the session's code, has no descriptors (or the readers of pipes would
 * wait for it) and is in no process group of the session's (or kill(-pgid) would hit it), because
 * the helper closes all and leaves before it makes it; and it dies with us.
 *
 * A fork takes the kernel some 30 us for each hundred mappings, and each stop of a task a wake-up:
 * many are made at the same time, each step of all before the next of any.
 *
 * Of large processes it is made before anything is written, for it tells about their mappings, too
 * (outline.c).
 *
 * What a fork does not take along is written while all are stopped: DONTFORK and WIPEONFORK areas
 * here; shared memory is copied then, by its own kinds (stash.h).
 *
 * Small spaces are not forked but copied by ourselves (aside.c), which is faster and leaves the
 * number of processes alone.  So are spaces which can't be forked because a limit is reached, and
 * those of sandboxes with a pid namespace of their own, for these would notice:
 *
 *      parent  the copy would fall to pid 1 of the sandbox, a program which reaps only whom it knows:
 *              the renderer of a browser itself, most often.  A child of the task, or of that, is
 *              waited for by who waits for all (__WALL), and its zombie stays until one of both is
 *              stopped again to reap it, which ends calls that can't be restarted
 *      end     when pid 1 of a namespace ends, the kernel kills all in it, so that a snapshot would
 *              fail whenever a tab is closed while it is written; and pid 1 is not gone before we
 *              have let go of the copy
 */
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/helper.h"
#include "ckpt/memory/aside.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/trace.h"
#include "ckpt/survey/survey.h"

#define WORTH_KB 256UL /* forking takes less than a millisecond, writing as much some more */
#define AT_ONCE	 32    /* each is two tasks more, until it is done */
#define MAPPINGS_KB 40UL /* to fork one takes as long as so much in pages that are there */
#define HELPS	 (CLONE_VM | CLONE_FS)

/* Kilobytes that must be written for @p, more or less. */
static uint64_t private_kb(const struct ckpt_proc *p)
{
	uint64_t kb = 0;

	for (size_t i = 0; i < p->maps.n; i++)
		if (!p->maps.vmas[i].shared)
			kb += p->maps.vmas[i].anonymous_kb + p->maps.vmas[i].swap_kb;
	return kb;
}

bool ckpt_has_another_pid_1(const struct ckpt_dump *d, const struct proc_status *s)
{
	return d->level != PROC_INNERMOST && s->ns_depth > d->level + 1;
}

bool ckpt_fork_pays(const struct ckpt_proc *p)
{
	if (ckpt_has_another_pid_1(p->dump, &p->status))
		return false;
	/*
	 * Of the first the maps tell later how much there is; of the others the copy tells whether
	 * they are right.
	 */
	return p->dump->options.snapshot &&
	       (p->outlined || p->from_before || private_kb(p) >= WORTH_KB);
}

static void kill_copy(const struct ckpt_proc *p)
{
	trace_kill(remote_tid(p->memory_copy));
	waitpid(remote_tid(p->memory_copy), NULL, __WALL);
}

void ckpt_fork_drop(struct ckpt_proc *p)
{
	const struct ckpt_names *names = p->dump->world->names;

	if (!p->memory_copy)
		return;
	if (!names || names->uncopied(names->ctx, remote_tid(p->memory_copy)))
		kill_copy(p);
	remote_forget(p->memory_copy);
	p->memory_copy = NULL;
}

/* ---- steps, each in two halves ------------------------------------------------------------ */

/* One copy being made. */
struct forking {
	struct ckpt_proc *p;
	struct remote *task, *helper;
	long vpid; /* the helper's */
	int r;	   /* the first failure, in @e */
	int started;
	int cpu; /* of its copy, until that has begun; -1: any */
	struct err e;
};

static int start_helper(struct forking *f, struct err *e)
{
	int r = ckpt_proc_remote(f->p, &f->task, e);

	return r < 0 ? r : ckpt_helper_start(f->task, HELPS, e);
}

static int have_helper(struct forking *f, struct err *e)
{
	return ckpt_helper_wait(f->task, HELPS, &f->helper, &f->vpid, e);
}

/* The helper has descriptors and a session of its own, so the copy has neither the task's. */
static int start_copy(struct forking *f, struct err *e)
{
	pid_t helper = remote_tid(f->helper);
	cpu_set_t all, one;
	bool placed = f->cpu >= 0 && sched_getaffinity(helper, sizeof(all), &all) == 0 &&
		      CPU_ISSET(f->cpu, &all);
	int r;

	remote_add(f->helper, SYS_close_range, 0, ~0U, 0, 0, 0, 0);
	remote_add(f->helper, SYS_setsid, 0, 0, 0, 0, 0, 0);
	CPU_ZERO(&one);
	if (placed) {
		CPU_SET(f->cpu, &one);
		sched_setaffinity(helper, sizeof(one), &one);
	}
	r = ckpt_helper_start(f->helper, 0, e);
	/* it waits there, or has begun; what comes of that CPU may move it like any other */
	if (placed)
		sched_setaffinity(helper, sizeof(all), &all);
	return r;
}

static int have_copy(struct forking *f, struct err *e)
{
	const struct ckpt_names *names = f->p->dump->world->names;
	int r = ckpt_helper_wait(f->helper, 0, &f->p->memory_copy, &(long){0}, e), k = 0;

	if (r >= 0 && names)
		k = names->copied(names->ctx, remote_tid(f->p->memory_copy));
	if (k < 0) {
		kill_copy(f->p);
		return err_errno(e, k, "copy of memory");
	}
	if (r >= 0 && ptrace(PTRACE_SETOPTIONS, remote_tid(f->p->memory_copy), 0,
			      TRACE_OPTIONS | PTRACE_O_EXITKILL) < 0)
		return err_errno(e, -errno, "copy of memory");
	return r;
}

/* The helper has ended: nobody else shall find it. */
static int start_reaping(struct forking *f, struct err *e)
{
	int i = remote_add(f->task, SYS_wait4, (uint64_t)f->vpid, 0, __WALL, 0, 0, 0);

	return i < 0 ? err_errno(e, i, "wait4") : remote_start(f->task, false, e);
}

static int have_reaped(struct forking *f, struct err *e)
{
	int r = remote_wait(f->task, e);

	if (r < 0)
		return r;
	if (remote_result(f->task, 0) < 0)
		return err_errno(
			e, (int)remote_result(f->task, 0), "wait4 in task %d", remote_tid(f->task));
	return remote_note_child(f->task, 0, e);
}

typedef int half_step(struct forking *f, struct err *e);

static void take_half(struct forking *f, int *ret, half_step *half)
{
	struct err e = {0};

	*ret = half(f, &e);
	if (*ret < 0 && f->r >= 0) {
		f->r = *ret;
		f->e = e;
	}
}

/* Of those to which nothing has happened. */
static void step(struct forking *f, size_t n, half_step *start, half_step *have)
{
	for (size_t i = 0; i < n; i++) {
		f[i].started = -1;
		if (f[i].r >= 0)
			take_half(&f[i], &f[i].started, start);
	}
	for (size_t i = 0; i < n; i++)
		if (f[i].started >= 0)
			take_half(&f[i], &(int){0}, have);
}

/* Helpers go, whatever happened; then a task that has lost its helper is as it was. */
static void end_helpers(struct forking *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (f[i].helper)
			f[i].started = ckpt_helper_end_start(f[i].helper);
	for (size_t i = 0; i < n; i++)
		if (f[i].helper)
			ckpt_helper_end_wait(f[i].helper, f[i].started);
	for (size_t i = 0; i < n; i++) {
		f[i].started = -1;
		if (f[i].helper)
			take_half(&f[i], &f[i].started, start_reaping);
	}
	for (size_t i = 0; i < n; i++)
		if (f[i].started >= 0)
			take_half(&f[i], &(int){0}, have_reaped);
}

/*
 * A copy takes a millisecond or two, for which a kernel does not find a CPU that has just become
 * idle: those of a few CPUs are dealt out, each to the one with the least to copy.
 */
static void deal_out(struct forking *f, size_t n)
{
	uint64_t load[AT_ONCE] = {0};
	int cpus[AT_ONCE], n_cpus = 0;
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof(ours), &ours) == 0 && CPU_COUNT(&ours) < (int)n)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &ours))
				cpus[n_cpus++] = i;
	for (size_t i = 0; i < n; i++) {
		int least = 0;

		for (int k = 1; k < n_cpus; k++)
			if (load[k] < load[least])
				least = k;
		f[i].cpu = n_cpus > 1 ? cpus[least] : -1;
		load[least] += MAPPINGS_KB * f[i].p->maps.n + private_kb(f[i].p);
	}
}

static void fork_some(struct forking *f, size_t n)
{
	deal_out(f, n);
	step(f, n, start_helper, have_helper);
	fault_at(FAULT_COPY_HELPED, NULL);
	step(f, n, start_copy, have_copy);
	fault_at(FAULT_COPY_HELPED, NULL);
	end_helpers(f, n);
	for (size_t i = 0; i < n; i++)
		if (f[i].r < 0)
			ckpt_fork_drop(f[i].p);
}

int ckpt_fork_space(struct ckpt_proc *p, struct err *e)
{
	struct forking f = {.p = p};

	fork_some(&f, 1);
	if (f.r < 0 && e)
		*e = f.e;
	return f.r;
}

static int write_now(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	p->memory_written = true;
	return ckpt_space_write(d, p, p->look, CKPT_SPACE_ALL, e);
}

static bool has_own_memory(const struct ckpt_proc *p)
{
	return p->state != CKPT_ZOMBIE && p->mm == p->vpid;
}

void ckpt_fork_make(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs;) {
		struct forking f[AT_ONCE] = {0};
		size_t n = 0;

		for (; i < d->n_procs && n < AT_ONCE; i++) {
			struct ckpt_proc *p = d->procs[i];

			if (has_own_memory(p) && !p->memory_copy && ckpt_fork_pays(p))
				f[n++].p = p;
		}
		fork_some(f, n);
		for (size_t k = 0; k < n; k++)
			if (f[k].r < 0)
				log_info("task %d is copied while it is stopped: %s", f[k].p->vpid,
					f[k].e.msg);
	}
}

int ckpt_fork_rest(struct ckpt_dump *d, struct err *e)
{
	int r = ckpt_aside_take(d, e);

	for (size_t i = 0; i < d->n_procs && r >= 0; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (!has_own_memory(p))
			continue;
		/* Of a copy there is time for that when the session runs. */
		if (!p->memory_copy && ckpt_before_check(p, p->look, e) < 0)
			r = e->error;
		if (r < 0)
			break;
		if (p->memory_aside)
			continue;
		r = p->memory_copy ? ckpt_space_write(d, p, p->look, CKPT_SPACE_UNFORKED, e)
				   : write_now(d, p, e);
		if (r < 0)
			err_wrap(e, "task %d", p->vpid);
	}
	if (r < 0)
		ckpt_fork_end(d);
	return r;
}

void ckpt_fork_end(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		ckpt_fork_drop(d->procs[i]);
		ckpt_aside_free(take_ptr(d->procs[i]->memory_aside));
	}
	ckpt_reserve_fini(&d->reserve);
}
