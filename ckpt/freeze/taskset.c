// SPDX-License-Identifier: GPL-2.0-or-later
/* An array sorted by tid: most tasks are put once, and looked for at every stop. */
#include "ckpt/freeze/taskset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

size_t ckpt_taskset_place(const struct ckpt_frozen *f, pid_t tid)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->tasks[mid].tid < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct ckpt_task *ckpt_taskset_find(const struct ckpt_frozen *f, pid_t tid)
{
	size_t i = ckpt_taskset_place(f, tid);

	return i < f->n && f->tasks[i].tid == tid ? &f->tasks[i] : NULL;
}

int ckpt_taskset_put(
	struct ckpt_frozen *f, pid_t pid, pid_t tid, enum ckpt_task_state state, struct err *e)
{
	struct ckpt_task t = {.pid = pid, .tid = tid, .state = state};
	size_t i = ckpt_taskset_place(f, tid);

	f->fresh = true;
	if (i < f->n && f->tasks[i].tid == tid) { /* it had ended, and its number came back */
		f->tasks[i] = t;
		return 0;
	}
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		struct ckpt_task *p = realloc(f->tasks, cap * sizeof(*p));

		if (!p)
			return err_errno(e, -ENOMEM, "freeze");
		f->tasks = p;
		f->cap = cap;
	}
	memmove(f->tasks + i + 1, f->tasks + i, (f->n - i) * sizeof(t));
	f->tasks[i] = t;
	f->n++;
	return 0;
}

int ckpt_taskset_blame(
	const struct ckpt_frozen *f, pid_t tid, int error, const char *why, struct err *e)
{
	struct proc_status s = {.comm = "?"};
	pid_t number = tid;

	proc_read_status(f->o.host_proc, tid, &s, NULL);
	if (f->o.names)
		number = f->o.names->number(f->o.names->ctx, tid);
	else if (proc_at_level(s.ns_pid, &s, f->level))
		number = proc_at_level(s.ns_pid, &s, f->level);
	return err_set(e, ERR_UNFREEZABLE, error, "task %d (%s) %s", number, s.comm, why);
}
