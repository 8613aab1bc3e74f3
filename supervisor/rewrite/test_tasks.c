// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "supervisor/rewrite/tasks.h"

/* Numbers of hosts that nobody has here: above any pid_max. */
#define HOST(i) (4100000 + (i))

static struct tasks *make(void)
{
	struct tasks *t = calloc(1, sizeof(*t));
	struct err e = {0};

	assert_non_null(t);
	assert_int_equal(numbers_create(&t->numbers, &e), 0);
	return t;
}

static void drop(struct tasks *t)
{
	for (int i = 1; i < NUMBERS_MAX; i++)
		free(t->all[i]);
	numbers_free(t->numbers);
	free(t);
}

static struct task *born(struct tasks *t, int i)
{
	struct task *task = tasks_born(t, HOST(i));

	assert_non_null(task);
	task->told = true;
	return task;
}

static void live_and_be_reaped(struct tasks *t, int i)
{
	struct task *task = born(t, i);

	tasks_end(t, task);
	tasks_reaped(t, task->number);
}

/* Whoever has been waited for can be named for a while, and is forgotten then. */
static void reaped_and_forgotten(void **state)
{
	struct tasks *t = make();

	live_and_be_reaped(t, 0);
	assert_int_equal(numbers_virtual(t->numbers, HOST(0)), 1);
	assert_int_equal(t->n_gone, 0);
	for (int i = 1; i < TASKS_REAPED; i++)
		live_and_be_reaped(t, i);
	assert_int_equal(numbers_virtual(t->numbers, HOST(0)), 1);
	assert_int_equal(t->n, TASKS_REAPED);
	live_and_be_reaped(t, TASKS_REAPED);
	assert_int_equal(numbers_virtual(t->numbers, HOST(0)), 0);
	assert_int_equal(t->n, TASKS_REAPED);
	drop(t);
}

/* Nobody else is: who lives, names a group, or has not been told of. */
static void not_yet(void **state)
{
	struct tasks *t = make();
	struct task *lives = born(t, 0), *leads = born(t, 1), *untold = born(t, 2);

	tasks_reaped(t, lives->number);
	assert_false(lives->reaped);
	leads->leads = true;
	tasks_end(t, leads);
	tasks_reaped(t, leads->number);
	assert_false(leads->reaped);
	untold->told = false;
	tasks_end(t, untold);
	tasks_reaped(t, untold->number);
	assert_false(untold->reaped);
	tasks_reaped(t, 0);
	tasks_reaped(t, -1);
	tasks_reaped(t, 500);
	tasks_reaped(t, NUMBERS_MAX);
	assert_int_equal(t->n_gone, 2);
	drop(t);
}

/* The host gives a number away again before the one who had it is forgotten. */
static void a_number_comes_back(void **state)
{
	struct tasks *t = make();
	struct task *again;

	live_and_be_reaped(t, 0);
	again = born(t, 0);
	assert_int_equal(again->number, 2);
	assert_int_equal(t->n, 1);
	for (int i = 1; i <= TASKS_REAPED; i++)
		live_and_be_reaped(t, i);
	assert_ptr_equal(tasks_find(t, HOST(0)), again);
	drop(t);
}

/* Threads have no number left once they have ended; who is dead can be
 * waited for, not signalled. */
static void ends(void **state)
{
	struct tasks *t = make();
	struct task *process = born(t, 0), *thread = born(t, 1);
	pid_t number = process->number;

	thread->tgid = process->host;
	tasks_end(t, thread);
	assert_int_equal(numbers_virtual(t->numbers, HOST(1)), 0);
	assert_int_equal(tasks_host_task(t, number), HOST(0));
	tasks_end(t, process);
	assert_int_equal(tasks_host_task(t, number), 0);
	assert_int_equal(tasks_host_waited(t, number), HOST(0));
	drop(t);
}

/* Of a thread whose exec nobody has told, for it was killed in that moment, only its
 * process' end is heard. */
static void ends_with_its_threads(void **state)
{
	struct tasks *t = make();
	struct task *process = born(t, 0), *thread = born(t, 1), *other = born(t, 2);

	thread->tgid = process->host;
	process->threaded = true;
	tasks_end(t, process);
	assert_int_equal(numbers_virtual(t->numbers, HOST(1)), 0);
	assert_true(process->gone && !other->gone);
	drop(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reaped_and_forgotten),
		cmocka_unit_test(not_yet),
		cmocka_unit_test(a_number_comes_back),
		cmocka_unit_test(ends),
		cmocka_unit_test(ends_with_its_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
