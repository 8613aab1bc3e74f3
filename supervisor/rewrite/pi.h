/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pi - priority-inheritance mutexes.  Private to rewrite/.
 *
 * Such a mutex (futex(2), FUTEX_LOCK_PI) is a word with its owner's number.  Whoever finds it free
 * puts its own there without a call, the session's; whoever finds it taken asks the kernel, which
 * would look for the owner by the host's.  So the kernel is not asked: the word has the session's
 * numbers at all times, the rewriter decides who gets it, and who has to wait sleeps in the kernel
 * on the same word as on any futex.
 *
 *      0, or a number     nobody waits: taken and given up without a call
 *      FUTEX_WAITERS      set: all that happens to the word is the rewriter's doing
 *
 * The rewriter cannot change a word in one step, and needs not: the bit is set by a call that the
 * task makes in place of its own (FUTEX_WAKE_OP), and whoever comes back from that and finds it
 * gone again sets it once more.
 *
 * What is lost is inheritance itself.  An ordinary user has no real-time priorities, and among
 * others there is nothing to inherit; nor is one who waits longest served first.  An owner that
 * dies, and a circle of owners, are seen as the kernel sees them.
 */
#ifndef SUPERVISOR_REWRITE_PI_H
#define SUPERVISOR_REWRITE_PI_H

struct rewrite;
struct task;
struct user_regs_struct;

/* A row's functions (calls.h) for those operations of futex(2). */
int pi_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void pi_leave(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

/* @task ends or has ended: who waits for it is told. */
void pi_ended(struct rewrite *rw, struct task *task);

#endif
