// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/filter/filter_programs.h"
#include "supervisor/policy/policy.h"

static uint32_t compare(const struct sock_filter *i, uint32_t a)
{
	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return a == i->k ? i->jt : i->jf;
	case BPF_JGE:
		return a >= i->k ? i->jt : i->jf;
	case BPF_JGT:
		return a > i->k ? i->jt : i->jf;
	default:
		return a & i->k ? i->jt : i->jf;
	}
}

/*
 * As the kernel finds out which calls it need not run the program for (seccomp_is_const_allow of
 * kernel/seccomp.c): what allows them may look at the number and the architecture only.
 */
static bool allows_by_number(const struct filter_program *p, uint32_t arch, uint32_t nr)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *i = &p->code[pc];

		if (i->code == (BPF_RET | BPF_K))
			return i->k == SECCOMP_RET_ALLOW;
		if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (i->k != offsetof(struct seccomp_data, nr) &&
				i->k != offsetof(struct seccomp_data, arch))
				return false;
			a = i->k == offsetof(struct seccomp_data, nr) ? nr : arch;
		} else if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
			a &= i->k;
		} else {
			assert_int_equal(BPF_CLASS(i->code), BPF_JMP);
			pc += compare(i, a);
		}
	}
	fail_msg("a filter has no end");
	return false;
}

static bool looks_at_arguments(int nr, unsigned translated)
{
	for (size_t i = 0; i < policy_n_rules; i++)
		if (policy_rule_is_about(&policy_rules[i], nr, translated))
			return true;
	return false;
}

static void what_is_allowed_costs_no_program(void **state)
{
	for (size_t k = 0; k < filter_n_programs; k++) {
		const struct filter_program *p = &filter_programs[k];

		for (size_t i = 0; i < policy_n_calls; i++) {
			const struct policy_call *c = &policy_calls[i];
			bool wanted = c->action == POLICY_ALLOW && !(c->names & p->translated) &&
				      !policy_find_translated(c->nr, p->translated) &&
				      !looks_at_arguments(c->nr, p->translated);

			if (allows_by_number(p, AUDIT_ARCH_X86_64, (uint32_t)c->nr) != wanted)
				fail_msg("%s", c->name);
		}
	}
}

/* Of i386, what the tables say of @nr, rules aside. */
static enum policy_action wanted_32(int nr, unsigned translated)
{
	const struct policy_translated *t = policy_find_translated32(nr, translated);
	const struct policy_call32 *own = policy_find32(nr);
	int like = policy_number64(nr);

	if (t)
		return t->action;
	if (like < 0)
		return own ? own->action : POLICY_ENOSYS;
	if (policy_find(like)->names & translated)
		return POLICY_NOTIFY;
	t = policy_find_translated(like, translated);
	return t ? t->action : policy_find(like)->action;
}

static bool has_rule_32(int nr, unsigned translated)
{
	for (size_t i = 0; i < policy_n_rules32; i++)
		if (policy_rule_is_about(&policy_rules32[i], nr, translated))
			return true;
	return policy_number64(nr) >= 0 && policy_number64(nr) != SYS_PODRUN_SENTINEL &&
	       looks_at_arguments(policy_number64(nr), translated);
}

static void of_i386_likewise(void **state)
{
	for (size_t k = 0; k < filter_n_programs; k++) {
		const struct filter_program *p = &filter_programs[k];
		unsigned translated = policy_classes32(p->translated);

		for (int nr = 0; nr < 1100; nr++) {
			bool wanted = wanted_32(nr, translated) == POLICY_ALLOW &&
				      !has_rule_32(nr, translated);

			if (allows_by_number(p, AUDIT_ARCH_I386, (uint32_t)nr) != wanted)
				fail_msg("program %zu, i386 %d", k, nr);
		}
	}
}

/* As the kernel runs it, for a call with @arg as its first argument. */
static uint32_t run(const struct filter_program *p, uint32_t arch, uint32_t nr, uint32_t arg)
{
	struct seccomp_data data = {.nr = (int)nr, .arch = arch, .args = {arg}};
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *i = &p->code[pc];

		if (i->code == (BPF_RET | BPF_K))
			return i->k;
		if (i->code == (BPF_LD | BPF_W | BPF_ABS))
			memcpy(&a, (const char *)&data + i->k, sizeof(a));
		else if (i->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= i->k;
		else
			pc += compare(i, a);
	}
	fail_msg("a filter has no end");
	return 0;
}

static void each_architecture_has_its_own_numbers(void **state)
{
	const uint32_t enosys = SECCOMP_RET_ERRNO | ENOSYS;

	for (size_t k = 0; k < filter_n_programs; k++) {
		const struct filter_program *p = &filter_programs[k];
		bool pids = p->translated & NAMES_BIT(NAMES_PID);
		uint32_t told = pids ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
		uint32_t traced = pids ? SECCOMP_RET_TRACE : SECCOMP_RET_ALLOW;

		/* getpid, writev; close_range, waitpid; socket by socketcall, listen. */
		assert_int_equal(run(p, AUDIT_ARCH_I386, 20, 0), told);
		assert_int_equal(run(p, AUDIT_ARCH_X86_64, 20, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(run(p, AUDIT_ARCH_X86_64, 39, 0), told);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 436, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 7, 0), traced);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 102, 1), traced);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 102, 4), SECCOMP_RET_ALLOW);
		/*
		 * clone with new mounts, with a new user; mount; what no i386 has; x32, another
		 * architecture.
		 */
		assert_int_equal(
			run(p, AUDIT_ARCH_I386, 120, 0x00020000), SECCOMP_RET_ERRNO | EPERM);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 120, 0x10000000) == (SECCOMP_RET_ERRNO | EPERM), pids);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 21, 0), SECCOMP_RET_ERRNO | EPERM);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 222, 0), enosys);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 9999, 0), enosys);
		assert_int_equal(run(p, AUDIT_ARCH_I386, 0x40000014, 0), enosys);
		assert_int_equal(run(p, AUDIT_ARCH_X86_64, 0x40000027, 0), enosys);
		assert_int_equal(run(p, AUDIT_ARCH_AARCH64, 20, 0), enosys);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_allowed_costs_no_program),
		cmocka_unit_test(of_i386_likewise),
		cmocka_unit_test(each_architecture_has_its_own_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
