/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks - what the kinds of processes and threads have in common.  Private to ckpt.
 */
#ifndef CKPT_KINDS_TASKS_H
#define CKPT_KINDS_TASKS_H

#include <stdint.h>

#include "ckpt/build.h"

/* Runs the batch; every call in it must succeed.  @what names the call in errors. */
int ckpt_run_all(struct remote *r, const char *what, struct err *e);

/* "the NAME record of SUBJECT makes no sense", ERR_IMAGE. */
int ckpt_record_bad(const struct ckpt_record *r, struct err *e);

/* The process or thread that @r is about (of a process the first thread), or NULL if it has none
 * alive: a hostile image may name any. */
struct ckpt_build_thread *ckpt_record_thread(struct ckpt_build *b, const struct ckpt_record *r);
struct remote *ckpt_record_remote(struct ckpt_build *b, const struct ckpt_record *r);

/* Of kinds/pending.c: empties the queues of a task whose signals are all blocked. */
int ckpt_pending_drain(struct remote *r, struct err *e);

/* Of kinds/task.c: can the process tree be rebuilt? */
int ckpt_tree_check(struct ckpt_dump *d, struct err *e);

#endif
