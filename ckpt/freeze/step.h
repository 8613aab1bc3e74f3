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
struct proc_maps;
struct proc_vma;

/*
 * Lets a stopped task go on until its instruction pointer leaves @vdso, which is one of its @maps;
 * @regs follows.  That code may not be there after a restore.  If SIGTRAP is ignored the kernel
 * forgets that, and the caller has to put it back.
 */
int ckpt_step_out(int host_proc, pid_t tid, const struct proc_maps *maps,
	const struct proc_vma *vdso, struct user_regs_struct *regs, struct err *e);

#endif
