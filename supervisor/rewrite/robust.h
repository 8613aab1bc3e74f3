/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * robust - mutexes whose owner dies.  Private to rewrite/.
 *
 * A robust mutex (futex(2), Documentation/locking/robust-futexes.rst of the kernel) is a word in
 * memory with its owner's number.  When a task dies the kernel walks its list of them, and gives up
 * those whose words have its number: the host's.  But what is in memory is the session's, which
 * stays right when the session moves.  So just before the end the words are made what the kernel
 * looks for.
 *
 * That takes a stop, and matters only where somebody is left who can see the word: other threads,
 * or whoever shares a mapping.  An exec leaves a process with neither.  So its end is not looked at
 * from then on, until it maps something shared, or has a child with the same memory; what is born
 * has its parent's options.
 *
 * An exec gives up the mutexes of the thread that calls it as an end does, if that is the first
 * one: another has the first one's number by the time the kernel looks.  Where its entry is a stop
 * (with a private view) the words are made the host's there, and the session's again if it fails;
 * of who shares nothing they are not looked at, as at its end.
 */
#ifndef SUPERVISOR_REWRITE_ROBUST_H
#define SUPERVISOR_REWRITE_ROBUST_H

#include <stdbool.h>
#include <stdint.h>

struct task;

/* @task stands in its PTRACE_EVENT_EXIT. */
void robust_prepare(const struct task *task);
/*
 * @task is about to exec; true if it holds any, or may: then robust_no_exec is due if the exec
 * fails.
 */
bool robust_before_exec(const struct task *task);
void robust_no_exec(const struct task *task);
/* Whether the mutex at @addr is robust, and @task, in a call to take it, has said so before. */
bool robust_takes(const struct task *task, uint64_t addr);
/* @task stands in some stop: whether its end is to be one. */
void robust_watch(struct task *task, bool watch);

#endif
