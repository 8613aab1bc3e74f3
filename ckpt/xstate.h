/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xstate - extended registers, component by component.  Private to ckpt.
 *
 * ptrace(2) gives them as one block whose layout the CPU chooses; an image has the components by
 * themselves, those only which are in use, so that it can be moved to a CPU that places them
 * elsewhere or has more.  Intel SDM volume 1, chapter 13.
 */
#ifndef CKPT_XSTATE_H
#define CKPT_XSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
typedef struct Pb__Thread Pb__Thread;

#define XSTATE_MAX	  16384
#define XSTATE_COMPONENTS 63

/* Of a component in a block that is not compacted; size 0: there is none. */
struct ckpt_xstate_place {
	uint32_t size, offset; /* bytes */
};

/* Of this CPU, by number.  It is asked once, which may take a millisecond. */
const struct ckpt_xstate_place *ckpt_xstate_places(void);

/* Is that what a task has which never used the component?  Then a CPU without it loses nothing. */
bool ckpt_xstate_is_initial(unsigned number, const uint8_t *data, size_t len);
/* To be put behind the number of a component: ", AVX", or nothing. */
const char *ckpt_xstate_name(unsigned number);

/* Fills fxsave, xstate, xstate_bv of @m from the stopped task.  They point into what *ret_mem
 * holds, which the caller frees. */
int ckpt_xstate_dump(pid_t tid, Pb__Thread *m, void **ret_mem, struct err *e);
/*
 * ERR_HOST when this CPU lacks a component that is in use.  @xcr0: the components that the kernel
 * had enabled where @m is from; what was not among them gets the value of a new task.
 */
int ckpt_xstate_restore(pid_t tid, const Pb__Thread *m, uint64_t xcr0, struct err *e);

#endif
