/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * settle - what a stopped task will go on with.
 */
#ifndef CKPT_FREEZE_SETTLE_H
#define CKPT_FREEZE_SETTLE_H

#include <sys/types.h>
#include <sys/user.h>

#include "ckpt/freeze/task.h"

/*
 * Reads the registers of a task in a PTRACE_EVENT_STOP, and changes what only means something while
 * it is stopped like this.  1: it stands still, and will go on with @regs.  0: it does not after
 * all.
 */
int ckpt_settle(const struct ckpt_freeze_options *o, pid_t tid, struct user_regs_struct *regs);

#endif
