/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rewrite - what a rewriter knows of its session, as its answers and calls see it.  Private to
 * rewrite/.
 *
 * Each class of names (supervisor/names/names.h) that is rewritten has a room of its own here, with
 * its own state, its own table of calls that are answered (answers.h) and of calls that the task
 * makes itself (calls.h).
 */
#ifndef SUPERVISOR_REWRITE_REWRITE_H
#define SUPERVISOR_REWRITE_REWRITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>

#include "supervisor/rewrite/host.h"
#include "supervisor/rewrite/clocks.h"
#include "supervisor/rewrite/place.h"
#include "supervisor/rewrite/tasks.h"

/* What every task is traced with while it runs; some without PTRACE_O_TRACEEXIT (robust.h). */
#define REWRITER_OPTIONS                                                                          \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP |                 \
		PTRACE_O_EXITKILL)

struct ckpt_filters;
struct ipc_names;
struct view;

struct rewrite {
	pthread_mutex_t lock; /* of all that follows: one thread for stops, one for calls */
	struct tasks tasks;
	bool trusting; /* all stand still: what asks is what we have them do, on the host's terms */
	struct ipc_names *ipc;
	struct place place;
	struct host_names host;
	struct clocks clocks;
	size_t pi_sleepers; /* at least as many as there are (pi.h) */
	struct view *view; /* NULL: files are the host's */
	struct ckpt_filters *filters; /* that programs have given themselves (confine.h) */
	bool confined;	   /* some have */
	uint64_t lend_key; /* of calls that ask for a descriptor of ours (answers.c); 0: none does */
	int listener; /* -1 until pid 1 has a filter */
};

#endif
