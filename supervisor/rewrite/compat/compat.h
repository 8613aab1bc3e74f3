/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compat - calls of i386, in the words of x86-64.  Private to rewrite/.
 *
 *      ebx ecx edx esi edi ebp   ->   rdi rsi rdx r10 r8 r9
 *      getpid is 20              ->   getpid is 39 (supervisor/policy: what a call is like)
 *
 * A 32-bit program makes them, by int 0x80 or through the vDSO, and so may 64-bit code by int 0x80:
 * the kernel says which it was, the code segment does not.  Whoever deals with a call sees it as
 * x86-64's, with the upper halves zero, and need not know, unless it looks at a structure in memory
 * that has pointers or longs in it.  Those structures are here.  What a task gets back are its own
 * registers, all of each.
 *
 * Two calls of i386 stand for many others, one for each operation on sockets and one for System
 * V's.  They become those (compat/calls.c), so that arguments in memory are read once, and the
 * filter is asked again about the call that is made.
 */
#ifndef SUPERVISOR_REWRITE_COMPAT_COMPAT_H
#define SUPERVISOR_REWRITE_COMPAT_COMPAT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/user.h>

struct compat_call {
	bool is; /* of i386 */
	bool unpacked;
	int nr; /* of i386 */
	/* As the task has made the call; of x86-64 what the kernel has now, of which only that is
	 * written which is to change. */
	struct user_regs_struct raw;
};

/* In orig_rax, of a call that no call of x86-64 is like: its number of i386 and this. */
#define COMPAT_OWN 0x1000000

/* ---- registers ------------------------------------------------------------------------------ */

/*
 * Of task @host, which stands in a call or has just left one.  At the entry of a call of x86-64
 * they are the number, arguments, result, rip and rsp; the others are 0.  0 or a negative errno.
 */
int compat_get(pid_t host, struct compat_call *c, struct user_regs_struct *ret);
/*
 * The same of one whose call began as @c.  Of one that leaves a call of x86-64 the result, rip and
 * rsp are read, and @c has them from now on; the others are as @c knows them, or 0.
 */
int compat_get_again(pid_t host, struct compat_call *c, struct user_regs_struct *ret);
/* Of one that makes another task, or is made: all of them. */
int compat_get_birth(pid_t host, struct compat_call *c, struct user_regs_struct *ret);
/*
 * It makes the call that @regs say; @c has these registers from now on, also after compat_set_back.
 */
void compat_set(pid_t host, struct compat_call *c, const struct user_regs_struct *regs);
/* Its own registers come back, with the result of @regs. */
void compat_set_back(pid_t host, struct compat_call *c, const struct user_regs_struct *regs);
/* The call, whose other registers are the task's own, returns @value. */
void compat_set_result(pid_t host, long value);
/* The number by which the task itself makes a call again that is x86-64's @nr. */
int compat_number(const struct compat_call *c, int nr);
/* Does a program that runs with these registers have pointers of 32 bits? */
bool compat_is_code(const struct user_regs_struct *regs);

/* ---- structures ----------------------------------------------------------------------------- */

#define COMPAT_SIGINFO 128 /* bytes, as of the other one */
struct compat_siginfo_head {
	int32_t signo, error, code, pid;
};

/* What rt_sigqueueinfo(2) and its like are given. */
void compat_siginfo(const void *from, siginfo_t *ret);

struct compat_timespec64 {
	uint32_t sec, nsec;
};

struct compat_stat {
	uint32_t dev, ino;
	uint16_t mode, nlink, uid, gid;
	uint32_t rdev, size, blksize, blocks;
	struct compat_timespec64 atime, mtime, ctime;
	uint32_t unused[2];
};
_Static_assert(sizeof(struct compat_stat) == 64, "arch/x86/include/asm/compat.h");

struct compat_stat64 {
	uint64_t dev;
	uint32_t pad0, short_ino, mode, nlink, uid, gid;
	uint64_t rdev;
	uint32_t pad1;
	uint64_t size;
	uint32_t blksize;
	uint64_t blocks;
	struct compat_timespec64 atime, mtime, ctime;
	uint64_t ino;
} __attribute__((packed));
_Static_assert(sizeof(struct compat_stat64) == 96, "arch/x86/include/asm/sys_ia32.h");

/* Room for either. */
union compat_any_stat {
	struct compat_stat old;
	struct compat_stat64 large;
};
/* What call @nr of i386 fills in: its size, or -EOVERFLOW. */
int compat_fill_stat(int nr, const struct stat *st, union compat_any_stat *ret);

struct compat_msghdr {
	uint32_t name, namelen, iov, iovlen, control, controllen, flags;
};

struct compat_sigevent {
	uint32_t value;
	int signo, notify, tid;
};

struct compat_robust_list {
	uint32_t next;
	int32_t futex_offset;
	uint32_t pending;
};
/* The list of @host, if it has one for 32-bit code; else 0. */
uint32_t compat_robust_list(pid_t host);

/* struct flock; F_GETLK64 has the other one. */
struct compat_flock {
	int16_t type, whence;
	int32_t start, len, pid;
};
struct compat_flock64 {
	int16_t type, whence;
	int64_t start, len;
	int32_t pid;
} __attribute__((packed));
#define COMPAT_F_GETLK64 12

#endif
