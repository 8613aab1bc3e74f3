// SPDX-License-Identifier: GPL-2.0-or-later
/* Many tasks that are entered, run batches and are left at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <sched.h>

#include "ckpt/remote/remote.h"
#include "ckpt/remote/testtask.h"

static bool has_mapping_at(struct fixture *f, pid_t pid, uint64_t at)
{
	struct proc_maps maps;
	bool found = false;

	ok(f, proc_read_maps(f->proc, pid, false, &maps, &f->e));
	for (size_t i = 0; i < maps.n; i++)
		found |= maps.vmas[i].start <= at && maps.vmas[i].end > at;
	proc_maps_fini(&maps);
	return found;
}

#define N	 5
#define KILLED	 2
#define THREADED (N - 1) /* made another, which has its pages, too */

/* The first waits for what the last writes: it works only if they run at the same time. */
static void run_many(struct fixture *f, struct remote **r, const pid_t *pid, const int *wire)
{
	for (int i = 0; i < N; i++) {
		uint64_t at = remote_put(r[i], "x", 1);

		remote_add(r[i], SYS_getpid, 0, 0, 0, 0, 0, 0);
		if (i == 0)
			remote_add(r[i], SYS_read, (uint64_t)wire[0], at, 1, 0, 0, 0);
		else if (i == N - 1)
			remote_add(r[i], SYS_write, (uint64_t)wire[1], at, 1, 0, 0, 0);
		ok(f, remote_start(r[i], false, &f->e));
		if (i == KILLED)
			kill(pid[i], SIGKILL);
	}
	for (int i = 0; i < N; i++) {
		if (i == KILLED) {
			remote_wait(r[i], &f->e);
			continue;
		}
		ok(f, remote_wait(r[i], &f->e));
		assert_int_equal(remote_result(r[i], 0), pid[i]);
		if (i == 0 || i == N - 1)
			assert_int_equal(remote_result(r[i], 1), 1);
	}
}

static void many_at_the_same_time(void **state)
{
	struct fixture fixture = {0}, *f = &fixture;
	struct user_regs_struct before[N], after;
	struct remote *r[N + 2] = {0};
	uint64_t at[N];
	pid_t pid[N], born;
	int wire[2];

	f->proc = proc_open(&f->e);
	assert_true(f->proc >= 0);
	assert_int_equal(pipe(wire), 0);
	for (int i = 0; i < N; i++) {
		pid[i] = testtask_start(testtask_pause, NULL);
		testtask_await_sleep(f->proc, pid[i]);
		assert_int_equal(testtask_freeze(f->proc, pid[i]), 0);
		assert_false(ptrace(PTRACE_GETREGS, pid[i], 0, &before[i]));
	}
	remote_open_many(r, f->proc, pid, N);
	for (int i = 0; i < N; i++) {
		assert_non_null(r[i]);
		at[i] = remote_address(r[i]);
		assert_true(has_mapping_at(f, pid[i], at[i]));
	}
	run_many(f, r, pid, wire);
	ok(f, remote_must(r[THREADED], NULL, &f->e, SYS_clone, CLONE_VM, 0, 0, 0, 0, 0));
	born = remote_born(r[THREADED], 0);
	ok(f, remote_open_thread(&r[N], born, r[THREADED], &f->e));

	/* That the killed one is gone, and one is missing, is nothing to the others. */
	remote_close_all(r, ARRAY_SIZE(r));
	for (int i = 0; i < N; i++) {
		assert_null(r[i]);
		if (i == KILLED)
			continue;
		assert_false(has_mapping_at(f, pid[i], at[i]));
		assert_false(ptrace(PTRACE_GETREGS, pid[i], 0, &after));
		assert_memory_equal(&before[i], &after, sizeof(after));
		kill(pid[i], SIGKILL);
		testtask_end(pid[i]);
	}
	kill(born, SIGKILL);
	close_fd(f->proc);
	close(wire[0]);
	close(wire[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(many_at_the_same_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
