// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a filter does with the calls that take or return names, where no namespace holds those.  Calls
 * of which only some arguments matter are in policy_rules.
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
	/* supervisor/rewrite/ipc_sysv.c, ipc_queues.c */
	{SYS_shmget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_shmctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_semget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_semctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_msgget, NAMES_IPC, POLICY_NOTIFY},
	{SYS_msgctl, NAMES_IPC, POLICY_NOTIFY},
	{SYS_mq_open, NAMES_IPC, POLICY_NOTIFY},
	{SYS_mq_unlink, NAMES_IPC, POLICY_NOTIFY},
	/* supervisor/rewrite/ipc_calls.c */
	{SYS_shmat, NAMES_IPC, POLICY_TRACE},
	{SYS_semop, NAMES_IPC, POLICY_TRACE},
	{SYS_semtimedop, NAMES_IPC, POLICY_TRACE},
	{SYS_msgsnd, NAMES_IPC, POLICY_TRACE},
	{SYS_msgrcv, NAMES_IPC, POLICY_TRACE},
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
