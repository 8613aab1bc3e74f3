/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place - on which CPU the rewriter waits.  Private to rewrite/.
 *
 * A stop wakes the rewriter, who wakes the task: on one CPU that takes 10 us, from one to the other
 * and back three times as long, most of all on a virtual machine, where an idle CPU is woken by way
 * of the host. The kernel would rather wake the rewriter on a CPU that is idle.  So where a task
 * may run on some CPUs only (sched_setaffinity(2), taskset(1)), the rewriter waits on these.
 */
#ifndef SUPERVISOR_REWRITE_PLACE_H
#define SUPERVISOR_REWRITE_PLACE_H

#include <sched.h>
#include <stdbool.h>

struct task;

struct place {
	bool asked;    /* somebody has chosen CPUs in this session */
	cpu_set_t now; /* where the thread for stops may run, once that is so */
	unsigned turn; /* whoever was asked in an earlier one is asked again */
};

/* By the thread for stops: @task has just stopped. */
void place_follow(struct place *p, struct task *task);
/*
 * Some task may have other CPUs by now: that was chosen inside, or so long ago that it may have
 * been outside.
 */
void place_again(struct place *p);

#endif
