// SPDX-License-Identifier: GPL-2.0-or-later
/* Unit tests of what is read of mappings before a process is stopped: taken only if it has slept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey.h"

#define LEN (4UL << 20) /* large enough to be looked at ahead */

static uint8_t *area;
static volatile int *woken; /* shared with the child */

static void on_signal(int sig)
{
	madvise(area, PAGE_SIZE, MADV_DONTDUMP);
	++*woken;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(area, 1, LEN);
	madvise(area + LEN / 2, PAGE_SIZE, MADV_DONTFORK);
	signal(SIGUSR1, on_signal);
	++*woken;
	for (;;)
		pause();
}

struct scene {
	pid_t child;
	struct ckpt_world world;
	struct ckpt_dump d;
	struct ckpt_proc p, other;
	struct ckpt_proc *procs[2];
	struct ckpt_thread t, *threads[1];
	struct ckpt_before *before;
};

static void await_sleep(const struct scene *s, int times)
{
	struct proc_status status = {0};

	while (*woken < times || status.state != 'S')
		assert_int_equal(proc_read_status(s->d.host_proc, s->child, &status, NULL), 0);
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	area = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	woken = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->child = start_child();
	s->world.init_pid = getpid();
	s->d.world = &s->world;
	s->d.host_proc = proc_open(NULL);
	await_sleep(s, 1);
	s->before = ckpt_before_read(&s->d);
	s->d.before = s->before;
	*state = s;
	return s->before ? 0 : -1;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	kill(s->child, SIGKILL);
	waitpid(s->child, NULL, 0);
	ckpt_before_free(s->before);
	proc_maps_fini(&s->p.maps);
	close_fd(s->d.host_proc);
	munmap(area, LEN);
	munmap((void *)woken, PAGE_SIZE);
	free(s);
	return 0;
}

/* As the survey has it. */
static void stop(struct scene *s)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, s->child, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, s->child, 0, 0), 0);
	assert_int_equal(waitpid(s->child, &status, 0), s->child);
	assert_true(WIFSTOPPED(status));
	s->p = (struct ckpt_proc){.dump = &s->d,
		.pid = s->child,
		.look = s->child,
		.vpid = 2,
		.mm = 2,
		.threads = s->threads,
		.n_threads = 1};
	s->t = (struct ckpt_thread){.proc = &s->p, .tid = s->child, .vtid = 2};
	assert_int_equal(ptrace(PTRACE_GETREGS, s->child, 0, &s->t.regs), 0);
	assert_int_equal(proc_read_status(s->d.host_proc, s->child, &s->t.status, NULL), 0);
	s->p.status = s->t.status;
	s->threads[0] = &s->t;
	s->procs[0] = &s->p;
	s->d.procs = s->procs;
	s->d.n_procs = 1;
	if (!ckpt_pages_scanned(&s->p))
		skip();
}

static void who_has_slept(void **state)
{
	struct scene *s = *state;
	struct proc_maps now;
	struct err e = {0};

	stop(s);
	assert_true(ckpt_before_take(&s->p));
	assert_int_equal(proc_read_maps(s->d.host_proc, s->child, true, &now, NULL), 0);
	assert_int_equal(now.n, s->p.maps.n);
	for (size_t i = 0; i < now.n; i++) {
		assert_int_equal(now.vmas[i].start, s->p.maps.vmas[i].start);
		assert_string_equal(now.vmas[i].path, s->p.maps.vmas[i].path);
		assert_string_equal(now.vmas[i].vm_flags, s->p.maps.vmas[i].vm_flags);
		assert_int_equal(now.vmas[i].anonymous_kb, s->p.maps.vmas[i].anonymous_kb);
	}
	proc_maps_fini(&now);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), 0);
}

static void who_has_run(void **state)
{
	struct scene *s = *state;

	kill(s->child, SIGUSR1);
	await_sleep(s, 2);
	stop(s);
	assert_false(ckpt_before_take(&s->p));
	assert_int_equal(s->p.maps.n, 0);
}

static void whose_memory_is_shared(void **state)
{
	struct scene *s = *state;

	stop(s);
	s->other = (struct ckpt_proc){.dump = &s->d, .vpid = 3, .mm = 2};
	s->procs[1] = &s->other;
	s->d.n_procs = 2;
	assert_false(ckpt_before_take(&s->p));
}

/* What was taken over was true, and is no more. */
static void who_changes_flags_afterwards(void **state)
{
	struct scene *s = *state;
	struct err e = {0};

	stop(s);
	assert_true(ckpt_before_take(&s->p));
	kill(s->child, SIGUSR1);
	assert_int_equal(ptrace(PTRACE_DETACH, s->child, 0, 0), 0);
	await_sleep(s, 2);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "was changed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_slept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_memory_is_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_changes_flags_afterwards, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
