/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sigframe - the registers that a signal handler's return will load.  Private to ckpt.
 *
 * A handler that runs has what it interrupted on its stack, extended registers in the layout that
 * the CPU had.  rt_sigreturn(2) takes them as they are: it fails where a register is said to be in
 * use that this CPU lacks, reads another in place of one that this CPU has elsewhere, and leaves
 * out all extended ones where there are more bytes than its own.  So a frame that comes from a CPU
 * with another layout is laid out anew when its memory has come back.
 */
#ifndef CKPT_SIGFRAME_H
#define CKPT_SIGFRAME_H

#include <stdint.h>
#include <sys/types.h>

#include "ckpt/xstate.h"

struct err;
/* One allocation, freed with free(). */
struct ckpt_sigframes;

/*
 * @old and @now: components of the CPU the frames are from and of this one, by number.  *ret is
 * NULL if frames are as good here.  ERR_IMAGE for @old that can't be.
 */
int ckpt_sigframes_new(const struct ckpt_xstate_place *old, const struct ckpt_xstate_place *now,
	struct ckpt_sigframes **ret, struct err *e);
/*
 * All frames on the stack at @sp of the stopped task @tid, and on those stacks that they lead to.
 * @memory tells address spaces apart: several tasks may meet the same frame, which is done
 * once.  ERR_HOST when one holds what this CPU has no register for, with nothing of that frame
 * changed.  *all may have been moved.
 */
int ckpt_sigframes_mend(
	struct ckpt_sigframes **all, pid_t tid, uint64_t memory, uint64_t sp, struct err *e);

#endif
