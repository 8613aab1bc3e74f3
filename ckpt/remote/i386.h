/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * i386 - 32-bit code: its segment, and numbers of its system calls (asm/unistd_32.h,
 * asm/segment.h).
 */
#ifndef CKPT_REMOTE_I386_H
#define CKPT_REMOTE_I386_H

#include <stdbool.h>
#include <sys/user.h>

#define CODE_64 0x33 /* __USER_CS */
#define CODE_32 0x23 /* __USER32_CS */
#define END_32	(1ULL << 32)

enum i386_call {
	I386_RESTART_SYSCALL = 0,
	I386_READ = 3,
	I386_WRITE = 4,
	I386_MUNMAP = 91,
	I386_SOCKETCALL = 102,
	I386_IPC = 117,
	I386_READV = 145,
	I386_WRITEV = 146,
	I386_NANOSLEEP = 162,
	I386_POLL = 168,
	I386_PRCTL = 172,
	I386_RT_SIGACTION = 174,
	I386_RT_SIGTIMEDWAIT = 177,
	I386_MMAP2 = 192,
	I386_FUTEX = 240,
	I386_EPOLL_WAIT = 256,
	I386_CLOCK_NANOSLEEP = 267,
	I386_SET_ROBUST_LIST = 311,
	I386_GET_ROBUST_LIST = 312,
	I386_EPOLL_PWAIT = 319,
	I386_SECCOMP = 354,
	I386_ACCEPT4 = 364,
	I386_SENDTO = 369,
	I386_SENDMSG = 370,
	I386_RECVFROM = 371,
	I386_RECVMSG = 372,
	I386_CLOCK_NANOSLEEP_TIME64 = 407,
	I386_SEMTIMEDOP_TIME64 = 420,
	I386_RT_SIGTIMEDWAIT_TIME64 = 421,
	I386_FUTEX_TIME64 = 422,
	I386_EPOLL_PWAIT2 = 441,
};

/* Is it 32-bit code that runs with these registers? */
static inline bool i386_runs(const struct user_regs_struct *regs)
{
	return regs->cs == CODE_32;
}

#endif
