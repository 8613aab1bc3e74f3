/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * taskset - the tasks met so far while a session is being stopped.  Private to the freeze: freeze.c
 * fills it in sweeps, collect.c takes their stops.
 */
#ifndef CKPT_FREEZE_TASKSET_H
#define CKPT_FREEZE_TASKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/freeze/restart.h"
#include "ckpt/freeze/task.h"

struct ckpt_reaper;
struct err;

struct ckpt_frozen {
	struct ckpt_freeze_options o;
	uint64_t since, deadline;
	size_t level; /* of the session */
	uint64_t orphan_ns; /* when pid 1 was first seen not to have reaped somebody yet; 0 */
	struct ckpt_task *tasks; /* by tid while freezing, by (pid, tid) afterwards */
	size_t n, cap;
	bool fresh;		    /* something came or went: sweep once more */
	struct ckpt_reaper *reaper; /* once a process with threads has been met */
	bool shallow; /* only look for threads: the session's /proc tells about processes */
	bool hinted;  /* first those who were met ahead, and nobody else */
	struct ckpt_restart_clocks clocks;
	bool settled; /* all stand still with the registers they will go on with */
};

/* Where @tid stands in tasks, or would. */
size_t ckpt_taskset_place(const struct ckpt_frozen *f, pid_t tid);
/* NULL if it has not been met.  Valid until the next put. */
struct ckpt_task *ckpt_taskset_find(const struct ckpt_frozen *f, pid_t tid);
/* Adds @tid, or begins anew with one whose number came back.  -ENOMEM. */
int ckpt_taskset_put(
	struct ckpt_frozen *f, pid_t pid, pid_t tid, enum ckpt_task_state state, struct err *e);
/* ERR_UNFREEZABLE: "task 12 (mysqld) @why", by the session's own number; returns @error. */
int ckpt_taskset_blame(
	const struct ckpt_frozen *f, pid_t tid, int error, const char *why, struct err *e);

#endif
