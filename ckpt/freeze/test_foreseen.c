// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks that are met while they run: what is still believed of them when they are to be stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/freeze/foreseen.h"

/* A child that sleeps, and makes a thread at SIGUSR1, which sleeps as well. */
struct scene {
	int proc;
	pid_t child;
	struct ckpt_foreseen *f;
};

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void __attribute__((noreturn)) body(void)
{
	sigset_t usr;
	pthread_t t;
	int sig;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	for (;;)
		if (sigwait(&usr, &sig) == 0)
			pthread_create(&t, NULL, sleeper, NULL);
}

/* And goes on doing so: between two looks it has not given up its CPU. */
static void wait_until_it_sleeps(const struct scene *s, int threads)
{
	struct proc_status st = {0};
	uint64_t before;

	do {
		before = st.switches + st.forced_switches;
		usleep(5000);
		assert_int_equal(proc_read_status(s->proc, s->child, &st, NULL), 0);
	} while (st.threads != threads || st.state != 'S' ||
		 st.switches + st.forced_switches != before);
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	sigset_t usr;

	s->proc = proc_open(NULL);
	assert_true(s->proc >= 0);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, NULL);
	s->child = fork();
	if (s->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
	}
	wait_until_it_sleeps(s, 1);
	*state = s;
	return 0;
}

static void end_child(struct scene *s)
{
	if (s->child) {
		kill(s->child, SIGKILL);
		waitpid(s->child, NULL, 0);
	}
	s->child = 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	ckpt_foreseen_free(s->f);
	end_child(s);
	close_fd(s->proc);
	free(s);
	return 0;
}

/* As the freeze does. */
static void meet(struct scene *s)
{
	s->f = ckpt_foreseen_look(s->proc, getpid());
	assert_non_null(s->f);
}

static bool tells_how_long_it_ran(void)
{
	return access("/proc/self/schedstat", R_OK) == 0;
}

static void who_sleeps(void **state)
{
	struct scene *s = *state;
	struct proc_status st = {0};
	bool all = false;
	uint64_t ns = 1;
	pid_t number = 0;

	if (!tells_how_long_it_ran())
		skip();
	meet(s);
	ckpt_foreseen_refresh(s->f);
	assert_int_equal(ckpt_foreseen_process(s->f, 0), s->child);
	assert_int_equal(ckpt_foreseen_process(s->f, 1), 0);
	assert_true(ckpt_foreseen_asleep(s->f, s->child, &ns, &all));
	assert_true(all);
	assert_int_equal(ckpt_foreseen_status(s->f, s->child, &st), 0);
	assert_int_equal(st.state, 'S');
	assert_int_equal(ckpt_foreseen_count(s->f, s->child, 0, &number), 1);
	assert_int_equal(number, s->child);
}

static void who_has_run(void **state)
{
	struct scene *s = *state;
	bool all = true;
	uint64_t ns;

	if (!tells_how_long_it_ran())
		skip();
	meet(s);
	kill(s->child, SIGUSR1);
	wait_until_it_sleeps(s, 2);
	assert_false(ckpt_foreseen_asleep(s->f, s->child, &ns, &all));
	/* it sleeps again, but has not all the time */
	ckpt_foreseen_refresh(s->f);
	assert_true(ckpt_foreseen_asleep(s->f, s->child, &ns, &all));
	assert_false(all);
	kill(s->child, SIGUSR1);
	wait_until_it_sleeps(s, 3);
	assert_false(ckpt_foreseen_asleep(s->f, s->child, &ns, &all));
}

/* It is listed, and nothing is said of it. */
static void a_thread_that_came_afterwards(void **state)
{
	struct scene *s = *state;
	_cleanup_free_ int *tids = NULL;
	struct proc_status st;
	pid_t number;
	uint64_t ns;
	size_t n = 0;
	bool all;

	meet(s);
	kill(s->child, SIGUSR1);
	wait_until_it_sleeps(s, 2);
	assert_int_equal(ckpt_foreseen_count(s->f, s->child, 0, &number), 2);
	assert_int_equal(ckpt_foreseen_list(s->f, s->child, &tids, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(tids[0], s->child);
	assert_false(ckpt_foreseen_asleep(s->f, tids[1], &ns, &all));
	assert_true(ckpt_foreseen_status(s->f, tids[1], &st) < 0);
}

/* Whoever has its number now. */
static void who_has_gone(void **state)
{
	struct scene *s = *state;
	_cleanup_free_ int *tids = NULL;
	pid_t was = s->child, number;
	struct proc_status st;
	uint64_t ns;
	size_t n = 0;
	bool all;

	meet(s);
	end_child(s);
	assert_false(ckpt_foreseen_asleep(s->f, was, &ns, &all));
	assert_true(ckpt_foreseen_status(s->f, was, &st) < 0);
	assert_true(ckpt_foreseen_count(s->f, was, 0, &number) <= 0);
	assert_true(ckpt_foreseen_list(s->f, was, &tids, &n) < 0 || n == 0);
}

static void nobody_was_met(void **state)
{
	struct scene *s = *state;
	struct proc_status st;
	pid_t number;
	uint64_t ns;
	bool all;

	meet(s);
	for (int i = 0; i < 2; i++) {
		const struct ckpt_foreseen *f = i ? NULL : s->f;

		assert_false(ckpt_foreseen_asleep(f, getpid(), &ns, &all));
		assert_true(ckpt_foreseen_status(f, getpid(), &st) < 0);
		assert_true(ckpt_foreseen_count(f, getpid(), 0, &number) < 0);
	}
	assert_int_equal(ckpt_foreseen_process(NULL, 0), 0);
}

/* A quarter of them is what may be opened: too few for a thread. */
static void few_descriptors(void **state)
{
	struct scene *s = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit few = {12, 12};
		struct ckpt_foreseen *f;
		uint64_t ns;
		bool all;

		setrlimit(RLIMIT_NOFILE, &few);
		f = ckpt_foreseen_look(s->proc, getppid());
		_exit(!f || ckpt_foreseen_asleep(f, s->child, &ns, &all));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_sleeps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_thread_that_came_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_was_met, set_up, tear_down),
		cmocka_unit_test_setup_teardown(few_descriptors, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
