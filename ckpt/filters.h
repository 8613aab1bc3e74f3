/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filters - seccomp filters that programs of a session have installed for themselves.
 *
 * Theory of operation
 *
 * The kernel shows nobody but root which filters a task has, lets nobody but root suspend them, and
 * a strict one kills its task for nearly every call that a freeze would have to make inside.  So a
 * filter is known, and has a door, from the moment it is installed: the supervisor is notified of
 * seccomp(2), copies the program, and a worker has the task install a *guarded* form of that copy
 * (supervisor/filter/install.c).  What is recorded is therefore what is installed.  Where names are
 * rewritten all this is the rewriter's (supervisor/rewrite/confine.c).
 *
 *      front     answers SYS_PODRUN_FILTER with the filter's number;  lets restart_syscall pass
 *      program   as it was, but where it would return anything other than "allow" it jumps to
 *      tails     "if the instruction pointer is PODRUN_DOOR: allow; else return that"
 *
 * No instruction can be at PODRUN_DOOR, in the kernel's half of addresses: only a tracer passes
 * there (ckpt/remote), and whoever may trace a task may have it do anything already.  What the
 * program allows is decided by its own instructions alone, so the kernel's bitmap of calls that are
 * always allowed is what it was.
 *
 * restart_syscall is how the kernel goes on with a sleep that a freeze has interrupted; a filter
 * that does not know it would kill a task for having been looked at.  It does nothing else.
 *
 * A task's filters are a chain, and children share their parents': so filters are numbered as nodes
 * of a tree, and the newest of a task says it all.  Nodes that look the same are one.
 *
 * What the supervisor could not replace (the task is traced inside the session, is a 32-bit
 * program, or the program is too long to take up a door) is installed as it is and makes the table
 * *foreign*: then a task with filters is not touched, and a suspend refused.
 *
 * Memory shared with a thread that runs can't be kept from being changed while the worker has the
 * program there (some 100 us).  Whoever does that has a filter without a door, or with another
 * number, and may be killed by it when the session is suspended: nobody else is.
 */
#ifndef CKPT_FILTERS_H
#define CKPT_FILTERS_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct remote;

struct ckpt_filter {
	uint32_t parent; /* number, 0: none */
	uint32_t flags;	 /* SECCOMP_FILTER_FLAG_*, without those about the moment of installing */
	const struct sock_filter *code;
	size_t n;
};

/* Filter @number; false: there is none. */
bool ckpt_filters_read(const struct ckpt_filters *f, uint32_t number, struct ckpt_filter *ret);
/* Has a filter been installed that nobody knows? */
bool ckpt_filters_foreign(const struct ckpt_filters *f);
/* Are all tasks traced by podrun, so that nobody inside can be their tracer? */
bool ckpt_filters_untraced(const struct ckpt_filters *f);
/* How many filters a task has whose newest is @number; 0 if there is something wrong with it. */
size_t ckpt_filters_depth(const struct ckpt_filters *f, uint32_t number);
/* Takes up a filter as @number: for those of an image.  -EINVAL, -EEXIST, -ENOSPC, -ENOMEM. */
int ckpt_filters_put(struct ckpt_filters *f, uint32_t number, uint32_t parent, uint32_t flags,
	const struct sock_filter *code, size_t n);

/*
 * The guarded form of a program; if it is @untraced RET_TRACE is in it what the kernel makes of
 * that where there is no tracer, ENOSYS.  -EINVAL for what the kernel refuses as well, -E2BIG when
 * there is no room for a door.
 */
int ckpt_filter_guard(
	const struct sock_filter *code, size_t n, uint32_t number, bool untraced, struct buf *ret);

/* The number of the newest filter of a guarded remote's task. */
int ckpt_filter_ask(struct remote *r, uint32_t *ret, struct err *e);
/* Installs filter @number there, with more @flags.  *ret: 0, -errno, or a thread as seccomp(2). */
int ckpt_filter_put(struct remote *r, const struct ckpt_filters *f, uint32_t number, uint32_t flags,
	long *ret, struct err *e);

struct ckpt_build;
/*
 * ckpt/kinds/seccomp.c: gives the tasks of all processes which are (not) @stopped their filters;
 * the last thing that happens in them.
 */
int ckpt_filters_restore(struct ckpt_build *b, bool stopped, struct err *e);

#endif
