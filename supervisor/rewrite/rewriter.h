/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rewriter - the process that gives a session names of its own where the host allows no namespaces.
 *
 *      supervisor --- rewriter --- pid 1 --- the session's processes
 *                        |___________|____________|   traces them all, answers their calls
 *
 * It stands between the session and the kernel as MobiDesk's and Zap's system call interposition
 * does (MobiDesk, section 4; Zap, section 3), from outside.  Three things reach it:
 *
 *      a notification   the call is answered in the task's place (answers.h)
 *      a stop           at a call that the task has to make itself, for the numbers in it (calls.h);
 *                       at births and execs, for the table of numbers (tasks.h, numbers.h); at
 *                       signals, for who sent them (signals.h)
 *      an end           the number is free again, once nothing is called by it
 *
 * It waits for nothing but these, and deals with one after another (but for a task that installs a
 * filter, confine.h, and while it freezes the session, orders.h).  If it dies, the kernel kills all
 * it traces (PTRACE_O_EXITKILL), and if the supervisor dies, it dies: nothing of a session outlives
 * its names.
 */
#ifndef SUPERVISOR_REWRITE_REWRITER_H
#define SUPERVISOR_REWRITE_REWRITER_H

#include <stdbool.h>
#include <sys/types.h>

struct ckpt_ipc_names;
struct ckpt_names;
struct ckpt_paths;
struct err;
struct ipc_names;
struct numbers;
struct rewriter;
struct users_groups;
struct world_config;

/* What it shares with its supervisor from now on. */
struct rewriter_tables {
	struct numbers *numbers;
	struct ipc_names *ipc;
	struct users_groups *groups;
};

/*
 * What a rewriter is given: pid 1's end of its socket (init_main), where orders come from
 * (orders.h), and where it writes pid 1's pid.
 */
enum rewriter_fd { REWRITER_INIT, REWRITER_ORDERS, REWRITER_TOLD, REWRITER_N_FDS };

/*
 * The supervisor's side.  Makes the last two of @fds and their other ends: where to send orders,
 * and where to read the pid.  All are the caller's; on failure there are none.
 */
int rewriter_ways(int fds[REWRITER_N_FDS], int *ret_orders, int *ret_told, struct err *e);
/*
 * Forks the rewriter, which forks pid 1.  Returns its pid (a child of the caller, who kills and
 * awaits it) or a negative errno with @e set.  @c is needed for the call only; @fds are borrowed.
 */
pid_t rewriter_start(const struct world_config *c, const struct rewriter_tables *tables,
	const int fds[REWRITER_N_FDS], struct err *e);

/*
 * In a process that is going to rebuild a session: it becomes the rewriter of it, in the calling
 * thread.  Takes @fds.  Pid 1 is forked; until rewriter_follow the caller sees to
 * it that its stops are dealt with, and all calls are let through.
 */
int rewriter_become(struct rewriter **ret, const struct world_config *c,
	const struct rewriter_tables *tables, const int fds[REWRITER_N_FDS], struct err *e);
/* What is called, with the status of wait(2), when pid 1 ends, just before the rewriter does; NULL: nothing. */
void rewriter_on_end(struct rewriter *w, void (*tell)(void *ctx, int status), void *ctx);
/* Pid 1 does not answer any more: deals with its end, unless that takes too long. */
void rewriter_await_end(struct rewriter *w);
/* The same if it is about to end, by what the kernel has told. */
void rewriter_check_end(struct rewriter *w);
/* Deals with stops until @fd is readable; until @number has called exec, and runs (-ETIMEDOUT). */
void rewriter_await(struct rewriter *w, int fd);
int rewriter_await_exec(struct rewriter *w, pid_t number);
/* As ckpt_world.filters wants it. */
int rewriter_filters(struct rewriter *w, const void *record, size_t len, struct err *e);
/* For ckpt_restore, as long as the rewriter lives.  True if *paths is to be used, too. */
bool rewriter_describe(struct rewriter *w, struct ckpt_names *names, struct ckpt_paths *paths,
	struct ckpt_ipc_names *ipc);
/* The rewriter's exit code when pid 1 has ended: all the rest goes with both. */
#define REWRITER_INIT_ENDED 3
/* The rest of its life. */
_Noreturn void rewriter_follow(struct rewriter *w);

#endif
