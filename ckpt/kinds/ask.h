/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ask - what only a thread itself can tell, asked once for all kinds.  Private to ckpt.
 *
 * A batch costs a stop of the thread whatever is in it, so the kinds of processes and threads share
 * one: the first kind that wants to know asks everything.
 */
#ifndef CKPT_KINDS_ASK_H
#define CKPT_KINDS_ASK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "ckpt/survey/survey.h"

#define CKPT_LAST_SIGNAL 64
#define CKPT_MAX_GROUPS	 16384
#define CKPT_N_PRCTL	 6

/* rt_sigaction(2) as the kernel takes it. */
struct ckpt_sigaction {
	uint64_t handler, flags, restorer, mask;
};

/* prctl(2) options that are of processes. */
struct ckpt_prctl_option {
	int set, get;
	bool by_pointer; /* the getter writes an int where its argument points */
	int standard;	 /* value that needs no record */
};
extern const struct ckpt_prctl_option ckpt_prctl_options[CKPT_N_PRCTL];

struct ckpt_asked {
	/* of the thread */
	stack_t altstack;
	uint64_t robust, robust_length, tid_address;
	uint32_t robust_i386, robust_i386_length; /* 0 of 64-bit programs */
	int pdeathsig, tsc;
	char name[16];
	uint64_t timer_slack;
	int mce_kill, cpuid; /* PR_MCE_KILL_*; whether the instruction is there */
	uint32_t securebits;
	/* only of a first thread, and of one that has others than that */
	bool has_ids;
	uint32_t uid[3], gid[3];

	/* of the process; only asked of its first thread */
	struct ckpt_sigaction actions[CKPT_LAST_SIGNAL + 1]; /* [SIGNAL]; zero if default */
	struct itimerval itimers[3];
	long prctl[CKPT_N_PRCTL]; /* -errno if the kernel does not have it */
	uint32_t membarrier;
	uint64_t brk; /* program break */
	uint32_t keys; /* protection keys that are given out: bit K is key K */
	bool subreaper;
	siginfo_t continued; /* of a child of which it has not asked that; si_pid 0: none */
	uint32_t n_groups, groups[]; /* of who has_ids; at most CKPT_MAX_GROUPS */
};

/* Asks all threads of the session, many at the same time: a stop of a task takes a wake-up, which
 * is most of its time. */
int ckpt_ask_all(struct ckpt_dump *d, struct err *e);
/* The answers of @t, kept with it. */
int ckpt_ask(struct ckpt_thread *t, const struct ckpt_asked **ret, struct err *e);

static inline int ckpt_ask_proc(struct ckpt_proc *p, const struct ckpt_asked **ret, struct err *e)
{
	return ckpt_ask(p->threads[0], ret, e);
}

#endif
