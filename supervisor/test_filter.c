// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/base.h"
#include "supervisor/filter_programs.h"
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
static bool allows_by_number(const struct filter_program *p, uint32_t nr)
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
			a = i->k == offsetof(struct seccomp_data, nr) ? nr : AUDIT_ARCH_X86_64;
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
		if (policy_rules[i].nr == nr &&
			(!policy_rules[i].names || policy_rules[i].names & translated))
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

			if (allows_by_number(p, (uint32_t)c->nr) != wanted)
				fail_msg("%s", c->name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_allowed_costs_no_program)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
