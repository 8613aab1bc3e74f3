/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step - takes a stopped task out of code in which it must not be frozen.
 */
#ifndef CKPT_FREEZE_STEP_H
#define CKPT_FREEZE_STEP_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;

/*
 * Single-steps a stopped task until its instruction pointer leaves [@start, @end); @regs follows.
 * For vDSO code, which may not be there after a restore.  If SIGTRAP is ignored the kernel forgets
 * that, and the caller has to put it back.
 */
int ckpt_step_out(int host_proc, pid_t tid, uint64_t start, uint64_t end,
	struct user_regs_struct *regs, struct err *e);

#endif
