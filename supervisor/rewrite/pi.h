/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pi - priority-inheritance mutexes.  Private to rewrite/.
 *
 * Such a mutex (futex(2), FUTEX_LOCK_PI) is a word with its owner's number.  Whoever finds it free puts
 * its own there without a call: the session's number.  Whoever finds it taken asks the kernel, which
 * looks for the owner by the host's.  So the word has two forms, told apart by a bit:
 *
 *      without FUTEX_WAITERS     the session's number; the owner gives it up without a call
 *      with it                   the host's; the owner finds a word that is not its own, and asks the
 *                                kernel, which gives it to the next
 *
 * It changes from the first to the second when somebody begins to wait, while the owner is kept from
 * running, and back when it is free.  Whoever takes a free one in just that moment is found out when
 * the kernel does not know its number: the call is made again.
 */
#ifndef SUPERVISOR_REWRITE_PI_H
#define SUPERVISOR_REWRITE_PI_H

struct rewrite;
struct task;
struct user_regs_struct;

/* A row's functions (calls.h) for those operations of futex(2). */
int pi_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void pi_leave(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

#endif
