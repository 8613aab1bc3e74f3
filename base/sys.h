/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sys - kernel interfaces newer than the headers of Debian 12, and raw calls libc does not wrap.
 *
 * Values are from the kernel's uapi headers named beside them.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <unistd.h>

/* PAGE_SIZE comes with <sys/user.h>, which would collide with one of ours. */

/* linux/seccomp.h, 5.19 and 6.6 */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS	   _IOW('!', 4, __u64)
#endif

/* linux/userfaultfd.h, 5.11 and 6.7 */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

/* linux/fs.h, 6.7: PAGEMAP_SCAN */
#ifndef PAGEMAP_SCAN
#define PAGE_IS_WPALLOWED  (1 << 0)
#define PAGE_IS_WRITTEN	   (1 << 1)
#define PAGE_IS_FILE	   (1 << 2)
#define PAGE_IS_PRESENT	   (1 << 3)
#define PAGE_IS_SWAPPED	   (1 << 4)
#define PAGE_IS_PFNZERO	   (1 << 5)
#define PAGE_IS_HUGE	   (1 << 6)
#define PAGE_IS_SOFT_DIRTY (1 << 7)
struct page_region {
	__u64 start;
	__u64 end;
	__u64 categories;
};
#define PM_SCAN_WP_MATCHING   (1 << 0)
#define PM_SCAN_CHECK_WPASYNC (1 << 1)
struct pm_scan_arg {
	__u64 size;
	__u64 flags;
	__u64 start;
	__u64 end;
	__u64 walk_end;
	__u64 vec;
	__u64 vec_len;
	__u64 max_pages;
	__u64 category_inverted;
	__u64 category_mask;
	__u64 category_anyof_mask;
	__u64 return_mask;
};
#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#endif

/* linux/prctl.h, 6.16 */
#ifndef PR_TIMER_CREATE_RESTORE_IDS
#define PR_TIMER_CREATE_RESTORE_IDS	77
#define PR_TIMER_CREATE_RESTORE_IDS_OFF 0
#define PR_TIMER_CREATE_RESTORE_IDS_ON	1
#endif

/* asm/unistd.h, 6.6 */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* linux/kcmp.h */
enum sys_kcmp_type {
	SYS_KCMP_FILE,
	SYS_KCMP_VM,
	SYS_KCMP_FILES,
	SYS_KCMP_FS,
	SYS_KCMP_SIGHAND,
	SYS_KCMP_IO,
	SYS_KCMP_SYSVSEM,
	SYS_KCMP_EPOLL_TFD,
};

/*
 * podrun's sentinel call: one that every filter around us allows, with an argument which no kernel
 * takes.  podrun's seccomp filter answers it with RET_TRACE, so a tracer gets exactly one
 * PTRACE_EVENT_SECCOMP stop, and without a tracer it is ENOSYS instead of EINVAL and harmless.
 * ckpt/remote ends every batch with it.
 */
#define SYS_PODRUN_SENTINEL SYS_sched_get_priority_max
#define PODRUN_SENTINEL_ARG 28528

/*
 * Asks the newest of a task's own seccomp filters for its number (ckpt/filters.h).  No kernel has
 * it either, and nobody but a tracer gets an answer.
 */
#define SYS_PODRUN_FILTER 28529

/*
 * The instruction pointer at which these filters let any call pass: in the kernel's half of all
 * addresses, where even the emulated vsyscall page is not, so that only a tracer can make such a
 * call.
 */
#define PODRUN_DOOR 0xffffffffffd00000ULL

/*
 * The sixth argument of a clone3 that ckpt injects; the kernel ignores it.  Its flags are in
 * memory, where a filter can't look, so clone3 is ENOSYS in a session, decided without asking
 * anybody: every process that makes a thread tries it once.  One with this mark goes to the
 * supervisor.
 */
#define SYS_PODRUN_CLONE3_MARK 0x706f6472

/* pidfd_open(2), pidfd_getfd(2), pidfd_send_signal(2): -1 and errno as ever. */
static inline int sys_pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int sys_pidfd_getfd(int pidfd, int fd)
{
	return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* <0 error with errno, 0 same, 1/2 an order, 3 not comparable. */
static inline int sys_kcmp(
	pid_t a, pid_t b, enum sys_kcmp_type type, unsigned long i, unsigned long j)
{
	return (int)syscall(SYS_kcmp, a, b, type, i, j);
}

static inline pid_t sys_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

#endif
