// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a filter does with the calls that take or return numbers of tasks, where no pid namespace
 * holds those.  Calls of which only some arguments matter are in policy_rules.
 */
#include "supervisor/policy/policy.h"

#include <sys/syscall.h>

#include "base/base.h"

const struct policy_translated policy_pid_calls[] = {
	/* supervisor/rewrite/answers.c */
	{SYS_getpid, POLICY_NOTIFY},
	{SYS_gettid, POLICY_NOTIFY},
	{SYS_getppid, POLICY_NOTIFY},
	{SYS_getpgrp, POLICY_NOTIFY},
	{SYS_getpgid, POLICY_NOTIFY},
	{SYS_getsid, POLICY_NOTIFY},
	{SYS_kill, POLICY_NOTIFY},
	{SYS_tkill, POLICY_NOTIFY},
	{SYS_tgkill, POLICY_NOTIFY},
	{SYS_rt_sigqueueinfo, POLICY_NOTIFY},
	{SYS_rt_tgsigqueueinfo, POLICY_NOTIFY},
	/* supervisor/rewrite/calls.c */
	{SYS_clone, POLICY_TRACE},
	{SYS_fork, POLICY_TRACE},
	{SYS_vfork, POLICY_TRACE},
	{SYS_set_tid_address, POLICY_TRACE},
	{SYS_setsid, POLICY_TRACE},
	{SYS_setpgid, POLICY_TRACE},
	{SYS_wait4, POLICY_TRACE},
	{SYS_waitid, POLICY_TRACE},
	{SYS_rt_sigtimedwait, POLICY_TRACE},
	{SYS_sched_setparam, POLICY_TRACE},
	{SYS_sched_getparam, POLICY_TRACE},
	{SYS_sched_setscheduler, POLICY_TRACE},
	{SYS_sched_getscheduler, POLICY_TRACE},
	{SYS_sched_rr_get_interval, POLICY_TRACE},
	{SYS_sched_setaffinity, POLICY_TRACE},
	{SYS_sched_getaffinity, POLICY_TRACE},
	{SYS_sched_setattr, POLICY_TRACE},
	{SYS_sched_getattr, POLICY_TRACE},
	{SYS_getpriority, POLICY_TRACE},
	{SYS_setpriority, POLICY_TRACE},
	{SYS_ioprio_get, POLICY_TRACE},
	{SYS_ioprio_set, POLICY_TRACE},
	{SYS_prlimit64, POLICY_TRACE},
	{SYS_process_vm_readv, POLICY_TRACE},
	{SYS_process_vm_writev, POLICY_TRACE},
	{SYS_kcmp, POLICY_TRACE},
	{SYS_get_robust_list, POLICY_TRACE},
	{SYS_migrate_pages, POLICY_TRACE},
	{SYS_move_pages, POLICY_TRACE},
	{SYS_pidfd_open, POLICY_TRACE},
	{SYS_capget, POLICY_TRACE},
	{SYS_capset, POLICY_TRACE},
	{SYS_timer_create, POLICY_TRACE},
	{SYS_sendmsg, POLICY_TRACE},
	{SYS_sendmmsg, POLICY_TRACE},
	{SYS_recvmsg, POLICY_TRACE},
	{SYS_recvmmsg, POLICY_TRACE},
	/* All tasks are traced already. */
	{SYS_ptrace, POLICY_EPERM},
	{SYS_perf_event_open, POLICY_ENOSYS},
};
const size_t policy_n_pid_calls = ARRAY_SIZE(policy_pid_calls);
