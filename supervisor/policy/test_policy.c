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
	static const int ranges[][2] = {{0, 336}, {424, 472 /* fchroot, Linux 7.3 */}};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (int nr = ranges[i][0]; nr <= ranges[i][1]; nr++)
			if (!policy_find(nr))
				fail_msg("%d is not in the table", nr);
}

static void numbers_of_i386_ascend(void **state)
{
	for (size_t i = 0; i < policy_n_calls32; i++) {
		const struct policy_call32 *c = &policy_calls32[i];

		if (i && c->nr <= c[-1].nr)
			fail_msg("%s is not above %s", c->name, c[-1].name);
		assert_true(c->nr < POLICY_SAME_FROM);
		assert_true(c->like >= 0 ? policy_find(c->like) != NULL : strlen(c->why) > 4);
	}
}

/* The numbers that i386 has given to nobody. */
static bool is_nobodys_32(int nr)
{
	return nr == 222 || nr == 223 || nr == 251 || nr == 285 || (nr >= 387 && nr <= 392) ||
	       nr == 415;
}

/* As far as this libseccomp knows them names and numbers agree; none is left out. */
static void every_call_of_i386_is_there(void **state)
{
	for (int nr = 0; nr < POLICY_SAME_FROM; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, nr);
		const struct policy_call32 *c = policy_find32(nr);

		if (!c != is_nobodys_32(nr))
			fail_msg("i386 %d is%s in the table", nr, c ? "" : " not");
		if (name && c)
			assert_string_equal(name, c->name);
		free(name);
	}
	/* From there on it is x86-64's. */
	for (int nr = POLICY_SAME_FROM; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, nr);

		if (name)
			assert_string_equal(name, policy_find(nr)->name);
		free(name);
	}
}

/* What is called the same is like it; a newer generation is like the one without its suffix. */
static void calls_of_i386_are_like_their_namesakes(void **state)
{
	for (size_t i = 0; i < policy_n_calls32; i++) {
		const struct policy_call32 *c = &policy_calls32[i];
		int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, c->name);

		if (nr >= 0 && c->like >= 0)
			assert_int_equal(nr, c->like);
		if (c->like >= 0)
			assert_int_equal(policy_number64(policy_number32(c->like)), c->like);
	}
	assert_int_equal(policy_number64(20), SYS_getpid);
	assert_int_equal(policy_number64(434), 434);
	assert_int_equal(policy_number64(102), -1);
	assert_int_equal(policy_number64(999), -1);
}

static void every_call_has_a_reason(void **state)
{
	for (size_t i = 0; i < policy_n_calls; i++)
		assert_true(strlen(policy_calls[i].why) > 4);
	for (size_t i = 0; i < policy_n_rules; i++)
		assert_non_null(policy_find(policy_rules[i].nr));
	for (size_t i = 0; i < policy_n_rules32; i++)
		assert_non_null(policy_find32(policy_rules32[i].nr));
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
	assert_null(policy_find(473));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_ascend),
		cmocka_unit_test(every_call_is_there),
		cmocka_unit_test(no_number_is_left_out),
		cmocka_unit_test(numbers_of_i386_ascend),
		cmocka_unit_test(every_call_of_i386_is_there),
		cmocka_unit_test(calls_of_i386_are_like_their_namesakes),
		cmocka_unit_test(every_call_has_a_reason),
		cmocka_unit_test(injected_calls_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
