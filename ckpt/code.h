/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code - 64-bit and 32-bit programs of a frozen session.  Private to ckpt.
 *
 * A process is one or the other, which the kernel does not tell: it is seen by the code segment of
 * its threads and by its vDSO.  A process that mixes both is refused, because nobody can know for
 * which of them its handlers and lists are.
 */
#ifndef CKPT_CODE_H
#define CKPT_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;

/* Is the vDSO at @start of process @pid that of a 32-bit program, as its code is (@i386)?
 * ERR_UNFREEZABLE if it mixes. */
int ckpt_code_check_vdso(pid_t pid, bool i386, uint64_t start, struct err *e);

/*
 * Of a thread (stopped, with the registers *@regs) of a 32-bit program that is inside the vDSO at
 * @start: if it is on its way into the kernel it is put back to the beginning of that.  True: it
 * may stay there, also with another vDSO (memory/vdso.c). One that is stepped there would wait in
 * the kernel.
 */
bool ckpt_code_leave_vsyscall(pid_t tid, struct user_regs_struct *regs, uint64_t start);

/* ERR_HOST on a host that runs no 32-bit programs. */
int ckpt_code_host(struct err *e);

#endif
