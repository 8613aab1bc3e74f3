/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freeze - stops every task of a session, and lets them all go again.
 *
 * Knows tasks by their host numbers only; what they are to the session is the survey's business.
 */
#ifndef CKPT_FREEZE_FREEZE_H
#define CKPT_FREEZE_FREEZE_H

#include <stddef.h>
#include <stdint.h>

#include "ckpt/freeze/task.h"

struct ckpt_frozen;
struct err;

/*
 * Stops everything.  On failure (ERR_UNFREEZABLE names the task) all that could be stopped runs
 * again; what could not is let go when the calling process ends.
 */
int ckpt_frozen_make(struct ckpt_frozen **ret, const struct ckpt_freeze_options *o, struct err *e);
/* All tasks, sorted by process, leaders first: STOPPED and ZOMBIE only. */
const struct ckpt_task *ckpt_frozen_tasks(const struct ckpt_frozen *f, size_t *ret_n);
/* When the first task was told to stop, of io_now_ns. */
uint64_t ckpt_frozen_since(const struct ckpt_frozen *f);
/* Lets everything run on.  NULL is fine. */
void ckpt_frozen_release(struct ckpt_frozen *f);

#endif
