/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clocks - monotonic and boot time of a session that no time namespace carries on.  Private to
 * rewrite/.
 *
 * Where a session has come from, its clocks said one thing, and this host's say another; the
 * difference is told when it is resumed, and 0 for one that begins here: then nothing of all this
 * happens, and its filter knows nothing of clocks.  What the kernel's time namespaces do
 * (time_namespaces(7)) is done in three places:
 *
 *      the vDSO     adds it to what it tells (ckpt/memory/vdso_clock.c): in those that have been rebuilt from the
 *                   start, in a program that begins when its exec is told (clocks_execed); children inherit it
 *      questions    the call clock_gettime(2), sysinfo(2), files of /proc: answered with it (clock_calls.c)
 *      deadlines    points in time of calls that wait or set timers are the host's when the kernel reads
 *                   them: the task stops at the call, and another timespec is put in the place of its own
 *
 * A duration is the same on either clock, and nearly all waits say one; the filter lets them pass,
 * and a futex(2) that waits for ever.
 *
 * A vDSO that can't tell the time on this host (some clock sources) asks the kernel itself, and
 * what is added comes on top of that: such a call is known by where it comes from.
 */
#ifndef SUPERVISOR_REWRITE_CLOCKS_H
#define SUPERVISOR_REWRITE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct task;

struct clocks {
	struct ckpt_clocks offset; /* the session's less the host's */
	bool carried;		   /* one of them is not 0 */
	size_t vdso_len;	   /* of 64-bit programs here */
};

/* 0, or -ENOSYS: this host's vDSO can't be understood. */
int clocks_begin(struct clocks *c, const struct ckpt_clocks *offset);
/* @task has called exec, and stands at that. */
void clocks_execed(const struct clocks *c, struct task *task);

/* What is to be added to @clock (of clock_gettime(2)) of the host's; 0 for most. */
int64_t clocks_offset(const struct clocks *c, int clock);
/* Where the vDSO of @host, a task, is; false if it has none. */
bool clocks_find_vdso(int host, uint64_t *ret_start, uint64_t *ret_end);

#endif
