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
 * The copy falls to pid 1 (or a program that reaps orphans), which reaps it when its time has come.  It never runs a line of the
 * session's code, closes all descriptors (or the readers of pipes would wait for it), leaves the
 * session's process groups (or kill(-pgid) would hit it) and dies with us.
 *
 * Of large processes it is made before anything is written, for it tells about their mappings, too (outline.c).
 *
 * What a fork does not take along is written while all are stopped: DONTFORK and WIPEONFORK areas
 * here, shared memory by its own kinds.  So are small spaces: copying a few pages is faster than
 * forking, and leaves the number of processes alone.  And so are spaces which can't be forked
 * because a limit is reached: the session stops longer, that is all.
 */
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/helper.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/trace.h"
#include "ckpt/survey.h"

#define WORTH_KB 1024UL /* forking takes less than a millisecond, writing as much some more */

/* Kilobytes that must be written for @p, more or less. */
static uint64_t private_kb(const struct ckpt_proc *p)
{
	uint64_t kb = 0;

	for (size_t i = 0; i < p->maps.n; i++)
		if (!p->maps.vmas[i].shared)
			kb += p->maps.vmas[i].anonymous_kb + p->maps.vmas[i].swap_kb;
	return kb;
}

/* The new copy lets go of everything but its memory. */
static int detach_copy(struct remote *copy, struct err *e)
{
	if (ptrace(PTRACE_SETOPTIONS, remote_tid(copy), 0, TRACE_OPTIONS | PTRACE_O_EXITKILL) < 0)
		return err_errno(e, -errno, "copy of memory");
	remote_add(copy, SYS_close_range, 0, ~0U, 0, 0, 0, 0);
	remote_add(copy, SYS_setsid, 0, 0, 0, 0, 0, 0);
	return remote_run(copy, false, e);
}

static void end_copy(struct ckpt_proc *p)
{
	if (!p->memory_copy)
		return;
	trace_kill(remote_tid(p->memory_copy));
	waitpid(remote_tid(p->memory_copy), NULL, __WALL);
	remote_forget(p->memory_copy);
	p->memory_copy = NULL;
}

int ckpt_fork_space(struct ckpt_proc *p, struct err *e)
{
	struct remote *task, *helper, *copy = NULL;
	long vpid;
	int r = ckpt_proc_remote(p, &task, e);

	if (r >= 0)
		r = ckpt_helper_clone(task, CLONE_VM | CLONE_FS | CLONE_FILES, &helper, &vpid, e);
	if (r < 0)
		return r;
	r = ckpt_helper_clone(helper, 0, &copy, &(long){0}, e);
	p->memory_copy = copy;
	if (r >= 0)
		r = detach_copy(copy, e);
	ckpt_helper_end(helper);
	if (r >= 0)
		r = remote_must(task, NULL, e, SYS_wait4, (uint64_t)vpid, 0, __WALL, 0, 0, 0);
	if (r < 0)
		end_copy(p);
	return r;
}

static int write_now(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	p->memory_written = true;
	return ckpt_space_write(d, p, p->look, CKPT_SPACE_ALL, e);
}

int ckpt_fork_all(struct ckpt_dump *d, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < d->n_procs && r >= 0; i++) {
		struct ckpt_proc *p = d->procs[i];
		struct err why = {0};

		if (p->state == CKPT_ZOMBIE || p->mm != p->vpid)
			continue;
		if (!p->memory_copy && private_kb(p) < WORTH_KB) {
			r = write_now(d, p, e);
		} else if (!p->memory_copy && ckpt_fork_space(p, &why) < 0) {
			log_info("task %d is copied while it is stopped: %s", p->vpid, why.msg);
			r = write_now(d, p, e);
		} else {
			r = ckpt_space_write(d, p, p->look, CKPT_SPACE_UNFORKED, e);
		}
		if (r < 0)
			err_wrap(e, "task %d", p->vpid);
	}
	if (r < 0)
		ckpt_fork_end(d);
	return r;
}

void ckpt_fork_end(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs; i++)
		end_copy(d->procs[i]);
}
