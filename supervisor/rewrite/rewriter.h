/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rewriter - the process that gives a session names of its own where the host allows no namespaces.
 *
 *      supervisor --- rewriter --- pid 1 --- the session's processes
 *                        |___________|____________|   traces them all, answers their calls
 *
 * It stands between the session and the kernel as MobiDesk's and Zap's system call interposition does
 * (MobiDesk, section 4; Zap, section 3), from outside.  Three things reach it:
 *
 *      a notification   the call is answered in the task's place (answers.h)
 *      a stop           at a call that the task has to make itself, for the numbers in it (calls.h);
 *                       at births and execs, for the table of numbers (tasks.h, numbers.h); at
 *                       signals, for who sent them (signals.h)
 *      an end           the number is free again, once nothing is called by it
 *
 * It waits for nothing but these, and deals with one after another.  If it dies, the
 * kernel kills all it traces (PTRACE_O_EXITKILL), and if the supervisor dies, it dies: nothing of
 * a session outlives its names.
 */
#ifndef SUPERVISOR_REWRITE_REWRITER_H
#define SUPERVISOR_REWRITE_REWRITER_H

#include <sys/types.h>

struct err;
struct ipc_names;
struct numbers;
struct world_config;

/* What it shares with its supervisor from now on. */
struct rewriter_tables {
	struct numbers *numbers;
	struct ipc_names *ipc;
};

/*
 * Forks the rewriter, which forks pid 1 (init_main with @init_sock, borrowed).  Returns the
 * rewriter's pid (a child of the caller, who kills and awaits it), where it takes orders (orders.h), and
 * pid 1's pid with a pidfd (descriptors are the caller's), or
 * a negative errno with @e set.  @c and @tables are needed for the call only.
 */
pid_t rewriter_start(const struct world_config *c, const struct rewriter_tables *tables,
	int init_sock, int *ret_orders, pid_t *ret_init, int *ret_init_pidfd, struct err *e);

#endif
