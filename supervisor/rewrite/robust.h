/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * robust - mutexes whose owner dies.  Private to rewrite/.
 *
 * A robust mutex (futex(2), Documentation/locking/robust-futexes.rst of the kernel) is a word in memory
 * with its owner's number.  When a task dies the kernel walks its list of them, and gives up
 * those whose words have its number: the host's.  But what is in memory is the session's, which stays
 * right when the session moves.  So just before the end the words are made what the kernel looks for.
 */
#ifndef SUPERVISOR_REWRITE_ROBUST_H
#define SUPERVISOR_REWRITE_ROBUST_H

struct task;

/* @task stands in its PTRACE_EVENT_EXIT. */
void robust_prepare(const struct task *task);

#endif
