// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "vnet/gateway/busy.h"
#include "vnet/gateway/pump.h"

#define MUCH 1000u

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct gateway_busy));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct gateway_ends ends_with(uint16_t port)
{
	return (struct gateway_ends){{1, 2}, {port, 80}, AF_INET};
}

static bool count(void **state, const struct gateway_ends *e, uint32_t bytes)
{
	static uint64_t now; /* with pauses */

	now += GATEWAY_PUMP_SOON_NS;
	return gateway_busy_count(*state, e, bytes, now, MUCH);
}

static void short_messages_without_pauses_are_much(void **state)
{
	const struct gateway_ends e = ends_with(5);
	uint64_t now = GATEWAY_PUMP_SOON_NS;
	uint32_t n = 1;

	while (n < 2 * MUCH && !gateway_busy_count(*state, &e, 1, now, MUCH)) {
		now += GATEWAY_PUMP_SOON_NS - 1;
		n++;
	}
	/* The first of them follows nothing. */
	assert_int_equal(n, (MUCH - 1 + GATEWAY_PUMP_MESSAGE - 1) / GATEWAY_PUMP_MESSAGE + 1);
	for (uint32_t i = 0; i < n; i++)
		assert_false(count(state, &e, 1));
}

static void what_is_much_is_counted_anew(void **state)
{
	const struct gateway_ends e = ends_with(5);

	for (int i = 0; i < 3; i++) {
		for (int n = 0; n < 9; n++)
			assert_false(count(state, &e, 100));
		assert_true(count(state, &e, 100));
	}
	assert_true(count(state, &e, 5 * MUCH));
}

/* What differs in any of its ends is another one. */
static void each_has_its_own(void **state)
{
	const struct gateway_ends all[] = {ends_with(5), ends_with(6), {{1, 2}, {80, 5}, AF_INET},
		{{1, 3}, {5, 80}, AF_INET}, {{0, 2}, {5, 80}, AF_INET},
		{{1, 2}, {5, 80}, AF_INET6}};
	const size_t n = sizeof(all) / sizeof(all[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			assert_int_equal(gateway_ends_equal(&all[i], &all[k]), i == k);
	for (size_t i = 0; i < n; i++)
		assert_false(count(state, &all[i], MUCH - 1));
	for (size_t i = 0; i < n; i++)
		assert_true(count(state, &all[i], 1));
}

/* There are more connections than slots, so one of them takes from what the first has counted. */
static struct gateway_ends find_rival(void **state, const struct gateway_ends *first)
{
	struct gateway_ends e = ends_with(0);

	for (uint16_t port = 100; port < 60000; port++) {
		struct gateway_busy *b = *state;

		*b = (struct gateway_busy){0};
		e = ends_with(port);
		assert_false(count(state, first, MUCH - 1));
		assert_false(count(state, &e, 2));
		if (!count(state, first, 1))
			break;
	}
	*(struct gateway_busy *)*state = (struct gateway_busy){0};
	return e;
}

static void of_two_with_one_slot_who_carries_most_has_it(void **state)
{
	const struct gateway_ends most = ends_with(5), other = find_rival(state, &most);
	bool is_much = false;

	for (int i = 0; i < 20; i++) {
		is_much |= count(state, &most, 100);
		assert_false(count(state, &other, 40));
	}
	assert_true(is_much);
}

static void one_that_has_ended_is_forgotten(void **state)
{
	const struct gateway_ends ended = ends_with(5), next = find_rival(state, &ended);

	assert_false(count(state, &ended, MUCH - 1));
	for (int i = 0; i < 3; i++)
		assert_false(count(state, &next, MUCH - 2));
	assert_false(count(state, &next, 1));
	assert_true(count(state, &next, 1));
}

static void of_two_who_take_turns_one_has_it(void **state)
{
	const struct gateway_ends one = ends_with(5), other = find_rival(state, &one);
	bool is_much = false;

	for (int i = 0; i < 40; i++) {
		is_much |= count(state, &one, 100);
		is_much |= count(state, &other, 100);
	}
	assert_true(is_much);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_much_is_counted_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_two_with_one_slot_who_carries_most_has_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_has_ended_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_two_who_take_turns_one_has_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			short_messages_without_pauses_are_much, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
