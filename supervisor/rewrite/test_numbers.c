// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "supervisor/policy/policy.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/compat/compat.h"
#include "supervisor/rewrite/numbers.h"

static void given_in_order(void **state)
{
	struct numbers *n;
	struct err e = {0};

	assert_int_equal(numbers_create(&n, &e), 0);
	assert_int_equal(numbers_add(n, 4000), 1);
	assert_int_equal(numbers_add(n, 17), 2);
	assert_int_equal(numbers_host(n, 1), 4000);
	assert_int_equal(numbers_virtual(n, 17), 2);
	assert_int_equal(numbers_virtual(n, 18), 0);
	assert_int_equal(numbers_host(n, 3), 0);
	numbers_remove(n, 2);
	assert_int_equal(numbers_virtual(n, 17), 0);
	/* Not at once again, as in the kernel. */
	assert_int_equal(numbers_add(n, 18), 3);
	numbers_free(n);
}

static void beginning_again(void **state)
{
	struct numbers *n;
	struct err e = {0};
	pid_t host = 1000;

	assert_int_equal(numbers_create(&n, &e), 0);
	for (pid_t i = 1; i < NUMBERS_MAX; i++)
		assert_int_equal(numbers_add(n, host++), i);
	assert_int_equal(numbers_add(n, host), -EAGAIN);
	numbers_remove(n, 400);
	numbers_remove(n, 5);
	/* The low ones are not given twice. */
	assert_int_equal(numbers_add(n, host), 400);
	assert_int_equal(numbers_add(n, host + 1), -EAGAIN);
	numbers_free(n);
}

static void strange_numbers(void **state)
{
	struct numbers *n;
	struct err e = {0};

	assert_int_equal(numbers_create(&n, &e), 0);
	assert_int_equal(numbers_host(n, -1), 0);
	assert_int_equal(numbers_host(n, NUMBERS_MAX), 0);
	assert_int_equal(numbers_virtual(n, -5), 0);
	assert_int_equal(numbers_virtual(n, 5 << 20), 0);
	numbers_remove(n, 12);
	/* An exec by a thread. */
	assert_int_equal(numbers_add(n, 70), 1);
	numbers_set(n, 1, 71);
	assert_int_equal(numbers_virtual(n, 70), 0);
	assert_int_equal(numbers_virtual(n, 71), 1);
	numbers_free(n);
}

static void others_called_by_it(void **state)
{
	struct numbers *n;
	struct err e = {0};

	assert_int_equal(numbers_create(&n, &e), 0);
	assert_int_equal(numbers_add(n, 70), 1);
	numbers_alias(n, 1, 90);
	assert_int_equal(numbers_virtual(n, 90), 1);
	assert_int_equal(numbers_host(n, 1), 70);
	/* Who has one of his own keeps it; who gets one is no other's alias any more. */
	assert_int_equal(numbers_add(n, 71), 2);
	numbers_alias(n, 1, 71);
	assert_int_equal(numbers_virtual(n, 71), 2);
	assert_int_equal(numbers_add(n, 90), 3);
	assert_int_equal(numbers_virtual(n, 90), 3);
	numbers_alias(n, -1, 91);
	numbers_alias(n, 1, -1);
	assert_int_equal(numbers_virtual(n, 91), 0);
	numbers_free(n);
}

/* What the filter hands over is known, and what is known is handed over. */
static bool handed_over(int nr, enum policy_action action)
{
	const unsigned all = NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_HOST) |
			     NAMES_BIT(NAMES_FILE) | NAMES_BIT(NAMES_TIME);
	const struct policy_translated *t = policy_find_translated(nr, all);

	if (t && t->action == action)
		return true;
	for (size_t i = 0; i < policy_n_rules; i++)
		if (policy_rules[i].nr == nr && policy_rules[i].names & all &&
			policy_rules[i].action == action)
			return true;
	return false;
}

/* Births stop only where they are counted (supervisor/filter/filter.c). */
static bool counted(int nr)
{
	return nr == SYS_clone || nr == SYS_fork || nr == SYS_vfork;
}

static void tables_agree(void **state)
{
	for (int nr = 0; nr < 512; nr++) {
		if ((handed_over(nr, POLICY_TRACE) || counted(nr)) != !!rewrite_call_find(nr))
			fail_msg("call %d stops, or has a row, but not both", nr);
		if (handed_over(nr, POLICY_NOTIFY) && !answers_has(nr))
			fail_msg("nobody answers call %d", nr);
	}
}

/* Numbers of i386 that are like none of x86-64: those that stop have a row, or become others. */
static void tables_of_i386_agree(void **state)
{
	for (size_t i = 0; i < policy_n_calls32; i++) {
		const struct policy_call32 *c = &policy_calls32[i];
		const struct policy_translated *t = policy_find_translated32(c->nr, POLICY_CLASSES32);

		if (c->like >= 0)
			assert_null(t);
		else if ((t && t->action == POLICY_TRACE) !=
			 !!rewrite_call_find(COMPAT_OWN | c->nr))
			fail_msg("%s stops, or has a row, but not both", c->name);
		assert_true(!t || t->action != POLICY_NOTIFY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_in_order),
		cmocka_unit_test(beginning_again),
		cmocka_unit_test(strange_numbers),
		cmocka_unit_test(others_called_by_it),
		cmocka_unit_test(tables_agree),
		cmocka_unit_test(tables_of_i386_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
