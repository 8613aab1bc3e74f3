// SPDX-License-Identifier: GPL-2.0-or-later
/* What a wait tells of a copy of memory is dealt with by nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/rewrite/hold.h"
#include "supervisor/rewrite/rewriter_state.h"

static struct rewriter w = {.rw = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1}};
static struct ckpt_names names;

/* A child that is traced and stands still; the status of that is not taken yet. */
static pid_t start(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(
		ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL), 0);
	return pid;
}

static void take_status(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, __WALL);

	assert_true(pid > 0);
	rewriter_status(&w, pid, status);
}

static bool stands(pid_t pid)
{
	return ptrace(PTRACE_PEEKUSER, pid, 0, 0) != -1 || errno != ESRCH;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, &(int){0}, __WALL) == pid)
		;
}

/* As is all that ckpt does not speak of. */
static void a_task_is_let_go(void **state)
{
	pid_t pid = start();

	take_status();
	assert_true(names.number(&w, pid) > 0);
	errno = 0;
	assert_false(stands(pid));
	end(pid);
}

static void a_copy_stands_still(void **state)
{
	pid_t first = start(), second = start();

	assert_int_equal(names.copied(&w, first), 0);
	assert_int_equal(names.copied(&w, second), 0);
	take_status();
	take_status();
	errno = 0;
	assert_true(stands(first) && stands(second));
	assert_int_equal(names.number(&w, first), 0);
	assert_int_equal(names.number(&w, second), 0);
	assert_true(names.uncopied(&w, first));
	assert_false(names.uncopied(&w, first));
	assert_true(names.uncopied(&w, second));
	end(first);
	end(second);
}

/* Its number may be a task's by then. */
static void a_copy_that_has_ended_is_none(void **state)
{
	pid_t pid = start();

	assert_int_equal(names.copied(&w, pid), 0);
	take_status();
	kill(pid, SIGKILL);
	take_status();
	assert_false(names.uncopied(&w, pid));
	assert_int_equal(waitpid(pid, NULL, __WALL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_is_let_go),
		cmocka_unit_test(a_copy_stands_still),
		cmocka_unit_test(a_copy_that_has_ended_is_none),
	};
	struct ckpt_ipc_names ipc;
	struct ckpt_paths paths;
	struct err e;

	if (numbers_create(&w.rw.tasks.numbers, &e) < 0)
		return 1;
	hold_describe(&w, &names, &paths, &ipc);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
