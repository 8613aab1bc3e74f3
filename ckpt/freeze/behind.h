/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * behind - the call behind restart_syscall(2).  Private to ckpt.
 *
 * A wait that was interrupted without a signal for the program, by a stop or an earlier freeze, is
 * gone on with by restart_syscall: orig_rax has that number then, and what it was before only the
 * kernel knows.  But only four calls go on so (those that set a restart_block in the kernel's
 * sources): poll, nanosleep, clock_nanosleep and futex, and their arguments are all in registers.
 * Which of them it is tells
 *
 *      the code            mov $nr, %eax; syscall
 *      the registers       which of the four could have been called with these: what has to point to
 *                          a timespec does, operations and clocks are such, sizes are likely.  C
 *                          libraries have functions that make any call, in whose code is no number
 *                          (syscall(2); glibc 2.41 for all calls that may be cancelled)
 *      the stack           which timespec it was, of 32-bit programs: such functions were told the
 *                          number there
 */
#ifndef CKPT_FREEZE_BEHIND_H
#define CKPT_FREEZE_BEHIND_H

#include <sys/user.h>

struct remote;

/* Where argument @i is of the call that @g are the registers of, 64 bits or 32. */
unsigned long long *ckpt_call_argument(struct user_regs_struct *g, unsigned i);

/* Of a task with registers @g whose memory is in place: the number of the call, -1 if unknown. */
long ckpt_call_behind(struct remote *r, struct user_regs_struct *g);

#endif
