/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect - takes the stops of tasks that were told to stop.  Private to the freeze.
 */
#ifndef CKPT_FREEZE_COLLECT_H
#define CKPT_FREEZE_COLLECT_H

#include <sys/types.h>

struct ckpt_frozen;
struct err;

/* Returns when every task of the set stands still or has ended; -ETIMEDOUT past the deadline. */
int ckpt_collect(struct ckpt_frozen *f, struct err *e);
/* ERR_UNFREEZABLE, naming whoever has not stopped; returns -ETIMEDOUT. */
int ckpt_collect_too_late(struct ckpt_frozen *f, struct err *e);
/* A task in a seccomp stop is answered as if nobody traced it. */
void ckpt_collect_enosys(pid_t tid);

#endif
