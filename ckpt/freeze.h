/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freeze - stops every task of a session, and lets them all go again.
 *
 * Knows tasks by their host numbers only; what they are to the session is the survey's business.
 */
#ifndef CKPT_FREEZE_H
#define CKPT_FREEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;

enum ckpt_task_state {
	CKPT_TASK_SEIZED,  /* ours, told to stop */
	CKPT_TASK_LET_GO,  /* ours, running on because its vfork parent can't stop before it does */
	CKPT_TASK_STOPPED, /* in a PTRACE_EVENT_STOP */
	CKPT_TASK_ZOMBIE,
	CKPT_TASK_ENDED,
};

struct ckpt_task {
	pid_t pid, tid;
	enum ckpt_task_state state;
	int stop_signal; /* of a group stop it is in, else 0 */
	pid_t waits_for_us; /* of LET_GO: the vfork parent */
	struct user_regs_struct regs; /* of STOPPED, as it will go on */
	uint64_t asleep_ns; /* had not run for so long; 0: unknown */
};

struct ckpt_freeze_options {
	int host_proc; /* the host's /proc, borrowed */
	int session_proc; /* one that shows the session and nothing else, or -1 */
	pid_t init_pid; /* everything below it is stopped; it is not */
	uint32_t deadline_ms; /* 0: a few seconds */
	const long *notified; /* system calls which the session's filter notifies */
	size_t n_notified;
};

struct ckpt_frozen;

/*
 * Stops everything.  On failure (ERR_UNFREEZABLE names the task) all that could be stopped runs
 * again; what could not is let go when the calling process ends.
 */
int ckpt_frozen_make(struct ckpt_frozen **ret, const struct ckpt_freeze_options *o, struct err *e);
/* All tasks, sorted by process, leaders first: STOPPED and ZOMBIE only. */
const struct ckpt_task *ckpt_frozen_tasks(const struct ckpt_frozen *f, size_t *ret_n);
/* When the first task was told to stop, of io_now_ns. */
uint64_t ckpt_frozen_since(const struct ckpt_frozen *f);
/* Lets everything run on.  NULL is fine. */
void ckpt_frozen_release(struct ckpt_frozen *f);

/*
 * Single-steps a stopped task until its instruction pointer leaves [@start, @end); @regs follows.
 * For vDSO code, which may not be there after a restore.  If SIGTRAP is ignored the kernel forgets
 * that, and the caller has to put it back.
 */
int ckpt_step_out(int host_proc, pid_t tid, uint64_t start, uint64_t end,
	struct user_regs_struct *regs, struct err *e);

#endif
