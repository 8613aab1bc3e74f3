// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <seccomp.h>

#include "base/base.h"
#include "supervisor/policy/policy.h"

static void numbers_ascend(void **state)
{
	for (size_t i = 1; i < policy_n_calls; i++)
		if (policy_calls[i].nr <= policy_calls[i - 1].nr)
			fail_msg("%s is not above %s", policy_calls[i].name,
				policy_calls[i - 1].name);
}

/* As far as this libseccomp knows them: names and numbers agree, and none is missing. */
static void every_call_is_there(void **state)
{
	for (int nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);
		const struct policy_call *c = policy_find(nr);

		if (name && !c)
			fail_msg("%s (%d) is not in the table", name, nr);
		if (name && c)
			assert_string_equal(name, c->name);
		free(name);
	}
}

/* Also those that this libseccomp does not know: numbers are given one after the other. */
static void no_number_is_left_out(void **state)
{
	static const int ranges[][2] = {{0, 336}, {424, 469 /* file_setattr, Linux 6.17 */}};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (int nr = ranges[i][0]; nr <= ranges[i][1]; nr++)
			if (!policy_find(nr))
				fail_msg("%d is not in the table", nr);
}

/* What i386 has lost, or never had. */
static bool is_gone_32(const char *name)
{
	static const char *const gone[] = {"break", "stty", "gtty", "ftime", "prof", "lock", "mpx",
		"ulimit", "profil", "idle", "bdflush", "vm86old", "vm86", "setup", "oldolduname"};

	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		if (strcmp(gone[i], name) == 0)
			return true;
	return false;
}

static bool is_known_32(const char *name)
{
	for (size_t i = 0; i < policy_n_calls; i++)
		if (strcmp(policy_calls[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < policy_n_calls32; i++)
		if (strcmp(policy_calls32[i].name, name) == 0)
			return true;
	return is_gone_32(name);
}

static void every_call_of_i386_is_there(void **state)
{
	bool all = true;

	for (int nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, nr);

		if (name && !is_known_32(name)) {
			print_error("i386 %s (%d) is in no table\n", name, nr);
			all = false;
		}
		free(name);
	}
	assert_true(all);
}

static void every_call_has_a_reason(void **state)
{
	for (size_t i = 0; i < policy_n_calls; i++)
		assert_true(strlen(policy_calls[i].why) > 4);
	for (size_t i = 0; i < policy_n_rules; i++)
		assert_non_null(policy_find(policy_rules[i].nr));
}

/* What ckpt/remote makes tasks call must never be an error of ours. */
static void injected_calls_pass(void **state)
{
	static const int calls[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise,
		SYS_prctl, SYS_arch_prctl, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
		SYS_sigaltstack, SYS_set_robust_list, SYS_rseq, SYS_timer_create, SYS_timer_settime,
		SYS_timer_gettime, SYS_timer_delete, SYS_setitimer, SYS_getitimer,
		SYS_set_tid_address, SYS_pidfd_getfd, SYS_pidfd_open, SYS_fcntl, SYS_dup3,
		SYS_close_range, SYS_epoll_ctl, SYS_setsid, SYS_setpgid, SYS_prlimit64, SYS_chdir,
		SYS_fchdir, SYS_umask, SYS_shmat, SYS_shmdt, SYS_ioctl, SYS_personality,
		SYS_sched_setattr, SYS_sched_setaffinity, SYS_exit, SYS_exit_group, SYS_kill,
		SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_futex, SYS_wait4,
		SYS_clone, SYS_capset, SYS_sendmsg, SYS_recvmsg, SYS_socketpair, SYS_userfaultfd,
		SYS_process_vm_readv, SYS_mlock2, SYS_chroot, SYS_open, SYS_openat, SYS_semop,
		SYS_flock};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct policy_call *c = policy_find(calls[i]);

		assert_non_null(c);
		if (c->action != POLICY_ALLOW && c->action != POLICY_NOTIFY)
			fail_msg("%s is refused", c->name);
	}
	assert_null(policy_find(470));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_ascend),
		cmocka_unit_test(every_call_is_there),
		cmocka_unit_test(no_number_is_left_out),
		cmocka_unit_test(every_call_of_i386_is_there),
		cmocka_unit_test(every_call_has_a_reason),
		cmocka_unit_test(injected_calls_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
