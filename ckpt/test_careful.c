// SPDX-License-Identifier: GPL-2.0-or-later
/* Careful steps, while who traces a task or who does the step is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/careful.h"

#define NAP_US 1000
#define LONG   50 /* naps */

static pid_t test;
static struct shared {
	_Atomic unsigned long counted; /* by the task, as long as it runs */
	_Atomic pid_t task, step;
	_Atomic bool began, killed, moved, over;
	_Atomic int times; /* the step has been begun */
} *shared;

static bool comes(_Atomic bool *what)
{
	for (int i = 0; i < 10000 && !*what; i++)
		usleep(NAP_US);
	return *what;
}

static bool counts_on(void)
{
	unsigned long then = shared->counted;

	for (int i = 0; i < LONG && shared->counted == then; i++)
		usleep(NAP_US);
	return shared->counted != then;
}

/* In the child, and once more by who waits for it, if it was killed. */
static int step(void *arg, struct err *e)
{
	struct shared *s = arg;

	s->step = getpid();
	s->times++;
	s->began = true;
	if (comes(&s->killed))
		s->moved |= counts_on();
	s->over = true;
	return s->times;
}

static pid_t start_task(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		/* also where an assertion fails */
		while (kill(test, 0) == 0)
			shared->counted++;
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	return pid;
}

static void *be_careful_beside(void *tracer)
{
	struct err e = {0};

	ckpt_careful(*(pid_t *)tracer, step, shared, &e);
	return NULL;
}

static _Noreturn void trace(bool beside)
{
	pid_t tid = gettid();
	struct err e = {0};
	pthread_t t;

	shared->task = start_task();
	if (!beside)
		_exit(ckpt_careful(tid, step, shared, &e));
	if (pthread_create(&t, NULL, be_careful_beside, &tid) == 0)
		pthread_join(t, NULL);
	_exit(0);
}

/* The task's tracer, whose step has begun. */
static pid_t start_tracer(bool beside)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid == 0)
		trace(beside);
	assert_true(pid > 0);
	assert_true(comes(&shared->began));
	return pid;
}

static void end_task(void)
{
	kill(shared->task, SIGKILL);
	waitpid(shared->task, NULL, __WALL);
}

static void who_is_killed_stays_until_the_step_is_over(void **state)
{
	for (int beside = 0; beside < 2; beside++) {
		pid_t tracer = start_tracer(beside);

		kill(tracer, SIGKILL);
		shared->killed = true;
		assert_true(comes(&shared->over));
		assert_false(shared->moved);
		assert_int_equal(waitpid(tracer, NULL, 0), tracer);
		assert_true(counts_on());
		end_task();
	}
}

static void a_signal_in_between_changes_nothing(void **state)
{
	pid_t tracer = start_tracer(false);
	int status;

	kill(tracer, SIGWINCH);
	kill(tracer, SIGCHLD);
	shared->killed = true;
	assert_true(comes(&shared->over));
	assert_false(shared->moved);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	end_task();
}

static void the_rest_of_a_killed_child_is_done(void **state)
{
	pid_t tracer = start_tracer(false);
	int status;

	kill(shared->step, SIGKILL);
	shared->killed = true;
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	assert_false(shared->moved);
	end_task();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_killed_stays_until_the_step_is_over),
		cmocka_unit_test(a_signal_in_between_changes_nothing),
		cmocka_unit_test(the_rest_of_a_killed_child_is_done),
	};

	shared = ckpt_careful_alloc(sizeof(*shared));
	if (!shared)
		return 1;
	test = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
