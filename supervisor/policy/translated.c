// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a filter does with the calls that take or return names, where no namespace holds those.
 * Calls of which only some arguments matter are in policy_rules.
 */
#include "supervisor/policy/policy.h"

#include <sys/syscall.h>

#include "base/base.h"

const struct policy_translated policy_translated[] = {
	/* supervisor/rewrite/answers.c */
	{SYS_getpid, NAMES_PID, POLICY_NOTIFY},
	{SYS_gettid, NAMES_PID, POLICY_NOTIFY},
	{SYS_getppid, NAMES_PID, POLICY_NOTIFY},
	{SYS_getpgrp, NAMES_PID, POLICY_NOTIFY},
	{SYS_getpgid, NAMES_PID, POLICY_NOTIFY},
	{SYS_getsid, NAMES_PID, POLICY_NOTIFY},
	{SYS_kill, NAMES_PID, POLICY_NOTIFY},
	{SYS_tkill, NAMES_PID, POLICY_NOTIFY},
	{SYS_tgkill, NAMES_PID, POLICY_NOTIFY},
	{SYS_rt_sigqueueinfo, NAMES_PID, POLICY_NOTIFY},
	{SYS_rt_tgsigqueueinfo, NAMES_PID, POLICY_NOTIFY},
	/* supervisor/rewrite/pidfds.c */
	{SYS_pidfd_send_signal, NAMES_PID, POLICY_NOTIFY},
	{SYS_pidfd_getfd, NAMES_PID, POLICY_NOTIFY},
	/* supervisor/rewrite/calls.c */
	{SYS_set_tid_address, NAMES_PID, POLICY_TRACE},
	{SYS_setsid, NAMES_PID, POLICY_TRACE},
	{SYS_setpgid, NAMES_PID, POLICY_TRACE},
	{SYS_wait4, NAMES_PID, POLICY_TRACE},
	{SYS_waitid, NAMES_PID, POLICY_TRACE},
	{SYS_rt_sigtimedwait, NAMES_PID, POLICY_TRACE},
	{SYS_sched_setparam, NAMES_PID, POLICY_TRACE},
	{SYS_sched_getparam, NAMES_PID, POLICY_TRACE},
	{SYS_sched_setscheduler, NAMES_PID, POLICY_TRACE},
	{SYS_sched_getscheduler, NAMES_PID, POLICY_TRACE},
	{SYS_sched_rr_get_interval, NAMES_PID, POLICY_TRACE},
	{SYS_sched_setaffinity, NAMES_PID, POLICY_TRACE},
	{SYS_sched_getaffinity, NAMES_PID, POLICY_TRACE},
	{SYS_sched_setattr, NAMES_PID, POLICY_TRACE},
	{SYS_sched_getattr, NAMES_PID, POLICY_TRACE},
	{SYS_getpriority, NAMES_PID, POLICY_TRACE},
	{SYS_setpriority, NAMES_PID, POLICY_TRACE},
	{SYS_ioprio_get, NAMES_PID, POLICY_TRACE},
	{SYS_ioprio_set, NAMES_PID, POLICY_TRACE},
	{SYS_prlimit64, NAMES_PID, POLICY_TRACE},
	{SYS_process_vm_readv, NAMES_PID, POLICY_TRACE},
	{SYS_process_vm_writev, NAMES_PID, POLICY_TRACE},
	{SYS_kcmp, NAMES_PID, POLICY_TRACE},
	{SYS_get_robust_list, NAMES_PID, POLICY_TRACE},
	{SYS_migrate_pages, NAMES_PID, POLICY_TRACE},
	{SYS_move_pages, NAMES_PID, POLICY_TRACE},
	{SYS_pidfd_open, NAMES_PID, POLICY_TRACE},
	{SYS_capget, NAMES_PID, POLICY_TRACE},
	{SYS_capset, NAMES_PID, POLICY_TRACE},
	{SYS_timer_create, NAMES_PID, POLICY_TRACE},
	{SYS_sendmsg, NAMES_PID, POLICY_TRACE},
	{SYS_sendmmsg, NAMES_PID, POLICY_TRACE},
	{SYS_recvmsg, NAMES_PID, POLICY_TRACE},
	{SYS_recvmmsg, NAMES_PID, POLICY_TRACE},
	/* supervisor/rewrite/clock_calls.c; deadlines are in policy_rules */
	{SYS_sysinfo, NAMES_TIME, POLICY_NOTIFY},
	/* supervisor/rewrite/ipc/sysv.c, ipc/queues.c */
	{SYS_shmget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_shmctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_semget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_semctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_msgget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_msgctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_mq_open, NAMES_IPC, POLICY_NOTIFY},
	{SYS_mq_unlink, NAMES_IPC, POLICY_NOTIFY},
	/* supervisor/rewrite/ipc/calls.c */
	{SYS_shmat, NAMES_IPC, POLICY_TRACE},
	{SYS_semop, NAMES_IPC, POLICY_TRACE},
	{SYS_semtimedop, NAMES_IPC, POLICY_TRACE},
	{SYS_msgsnd, NAMES_IPC, POLICY_TRACE},
	{SYS_msgrcv, NAMES_IPC, POLICY_TRACE},
	/* supervisor/rewrite/view/answers.c */
	{SYS_open, NAMES_FILE, POLICY_NOTIFY},
	{SYS_openat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_stat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_lstat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_newfstatat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_statx, NAMES_FILE, POLICY_NOTIFY},
	{SYS_access, NAMES_FILE, POLICY_NOTIFY},
	{SYS_faccessat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_faccessat2, NAMES_FILE, POLICY_NOTIFY},
	{SYS_readlink, NAMES_FILE, POLICY_NOTIFY},
	{SYS_readlinkat, NAMES_FILE, POLICY_NOTIFY},
	{SYS_getcwd, NAMES_FILE, POLICY_NOTIFY},
	/* supervisor/rewrite/view/calls.c */
	{SYS_openat2, NAMES_FILE, POLICY_TRACE},
	{SYS_creat, NAMES_FILE, POLICY_TRACE},
	{SYS_truncate, NAMES_FILE, POLICY_TRACE},
	{SYS_mkdir, NAMES_FILE, POLICY_TRACE},
	{SYS_mkdirat, NAMES_FILE, POLICY_TRACE},
	{SYS_mknod, NAMES_FILE, POLICY_TRACE},
	{SYS_mknodat, NAMES_FILE, POLICY_TRACE},
	{SYS_rmdir, NAMES_FILE, POLICY_TRACE},
	{SYS_unlink, NAMES_FILE, POLICY_TRACE},
	{SYS_unlinkat, NAMES_FILE, POLICY_TRACE},
	{SYS_rename, NAMES_FILE, POLICY_TRACE},
	{SYS_renameat, NAMES_FILE, POLICY_TRACE},
	{SYS_renameat2, NAMES_FILE, POLICY_TRACE},
	{SYS_link, NAMES_FILE, POLICY_TRACE},
	{SYS_linkat, NAMES_FILE, POLICY_TRACE},
	{SYS_symlink, NAMES_FILE, POLICY_TRACE},
	{SYS_symlinkat, NAMES_FILE, POLICY_TRACE},
	{SYS_chmod, NAMES_FILE, POLICY_TRACE},
	{SYS_fchmodat, NAMES_FILE, POLICY_TRACE},
	{SYS_fchmodat2, NAMES_FILE, POLICY_TRACE},
	{SYS_chown, NAMES_FILE, POLICY_TRACE},
	{SYS_lchown, NAMES_FILE, POLICY_TRACE},
	{SYS_fchownat, NAMES_FILE, POLICY_TRACE},
	{SYS_utime, NAMES_FILE, POLICY_TRACE},
	{SYS_utimes, NAMES_FILE, POLICY_TRACE},
	{SYS_futimesat, NAMES_FILE, POLICY_TRACE},
	{SYS_utimensat, NAMES_FILE, POLICY_TRACE},
	{SYS_statfs, NAMES_FILE, POLICY_TRACE},
	{SYS_setxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_lsetxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_getxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_lgetxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_listxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_llistxattr, NAMES_FILE, POLICY_TRACE},
	{SYS_removexattr, NAMES_FILE, POLICY_TRACE},
	{SYS_lremovexattr, NAMES_FILE, POLICY_TRACE},
	{SYS_inotify_add_watch, NAMES_FILE, POLICY_TRACE},
	{SYS_name_to_handle_at, NAMES_FILE, POLICY_TRACE},
	{SYS_chdir, NAMES_FILE, POLICY_TRACE},
	{463 /* setxattrat */, NAMES_FILE, POLICY_TRACE},
	{464 /* getxattrat */, NAMES_FILE, POLICY_TRACE},
	{465 /* listxattrat */, NAMES_FILE, POLICY_TRACE},
	{466 /* removexattrat */, NAMES_FILE, POLICY_TRACE},
	{468 /* file_getattr */, NAMES_FILE, POLICY_TRACE},
	{469 /* file_setattr */, NAMES_FILE, POLICY_TRACE},
	{SYS_fchdir, NAMES_FILE, POLICY_TRACE},
	{SYS_execve, NAMES_FILE, POLICY_TRACE},
	{SYS_execveat, NAMES_FILE, POLICY_TRACE},
	{SYS_bind, NAMES_FILE, POLICY_TRACE},
	{SYS_connect, NAMES_FILE, POLICY_TRACE},
	{SYS_sendto, NAMES_FILE, POLICY_TRACE},
	{SYS_getsockname, NAMES_FILE, POLICY_TRACE},
	{SYS_getpeername, NAMES_FILE, POLICY_TRACE},
	/* supervisor/rewrite/host_calls.c */
	{SYS_uname, NAMES_HOST, POLICY_TRACE},
	{SYS_sethostname, NAMES_HOST, POLICY_NOTIFY},
	{SYS_setdomainname, NAMES_HOST, POLICY_NOTIFY},
	/* All tasks are traced already. */
	{SYS_ptrace, NAMES_PID, POLICY_EPERM},
	{SYS_perf_event_open, NAMES_PID, POLICY_ENOSYS},
};
const size_t policy_n_translated = ARRAY_SIZE(policy_translated);

const struct policy_translated *policy_find_translated(int nr, unsigned translated)
{
	for (size_t i = 0; i < policy_n_translated; i++)
		if (policy_translated[i].nr == nr &&
			translated & NAMES_BIT(policy_translated[i].class))
			return &policy_translated[i];
	return NULL;
}
