/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task - one thread of a session while it is stopped, by its host numbers.
 */
#ifndef CKPT_FREEZE_TASK_H
#define CKPT_FREEZE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

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
	int stop_signal;	      /* of a group stop it is in, else 0 */
	pid_t waits_for_us;	      /* of LET_GO: the vfork parent */
	struct user_regs_struct regs; /* of STOPPED, as it will go on */
	uint64_t asleep_ns;	      /* had not run for so long; 0: unknown */
	bool slept; /* nor since it was met ahead (foreseen.h); false: unknown */
};

struct ckpt_foreseen;
struct ckpt_frozen;
struct ckpt_names;

struct ckpt_freeze_options {
	int host_proc;			/* the host's /proc, borrowed */
	int session_proc;		/* one that shows the session and nothing else, or -1 */
	pid_t init_pid;			/* everything below it is stopped; it is not */
	const struct ckpt_names *names; /* if given, it stops them (init_pid, session_proc: -1) */
	uint32_t deadline_ms;		/* 0: a few seconds */
	const struct ckpt_foreseen *foreseen; /* who was met before it, borrowed; or NULL */
	const long *notified;		/* system calls which the session's filter notifies */
	size_t n_notified;
	void (*unhold)(void *ctx, pid_t tid); /* as in ckpt_dump_options */
	/*
	 * If given, these processes are stopped and no others (init_pid and session_proc: 0, -1).
	 */
	const pid_t *only;
	size_t n_only;
	/*
	 * There may be threads that the kernel has made for io_uring.  They run in the kernel only,
	 * where nobody stops them, run on, and are not among the tasks.  What they work for is not
	 * there to be kept: who has a ring is refused.
	 */
	bool ring_workers;
	/* Is called again and again while tasks are waited for: ckpt_frozen_expects (ckpt.h) says
	 * which. */
	void (*waiting)(void *ctx, const struct ckpt_frozen *f);
	void *ctx;
};

#endif
