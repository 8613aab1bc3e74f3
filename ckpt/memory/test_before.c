// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unit tests of what is read of mappings before a process is stopped: taken only if it has slept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"

#define LEN (4UL << 20) /* large enough to be looked at ahead */

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static uint8_t *area;
static volatile int *woken; /* shared with the child */
static char file_name[128];
static ino_t file_ino;

static void on_signal(int sig)
{
	madvise(area, PAGE_SIZE, MADV_DONTDUMP);
	++*woken;
}

static void on_third_signal(int sig)
{
	madvise(area + LEN / 4, PAGE_SIZE, MADV_GUARD_INSTALL);
	++*woken;
}

static void on_fourth_signal(int sig)
{
	madvise(area + LEN / 4 + 9 * PAGE_SIZE, PAGE_SIZE, MADV_DONTFORK);
	++*woken;
}

/* Apart from all others. */
static void on_other_signal(int sig)
{
	mmap(area + 2 * LEN, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	++*woken;
}

static void make_file(const char *name)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	assert_int_equal(ftruncate(fd, 4 * PAGE_SIZE), 0);
	assert_int_equal(pwrite(fd, "data", 4, PAGE_SIZE), 4);
	close_fd(fd);
}

static void map_file(void)
{
	struct stat st;
	int fd;

	snprintf(file_name, sizeof(file_name), "%s/test-before-%d",
		getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
	make_file(file_name);
	fd = open(file_name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	file_ino = st.st_ino;
	assert_ptr_not_equal(mmap(NULL, PAGE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	close_fd(fd);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(area, 1, LEN);
	madvise(area + LEN / 4 + 8 * PAGE_SIZE, 3 * PAGE_SIZE, MADV_GUARD_INSTALL);
	madvise(area + LEN / 2, PAGE_SIZE, MADV_DONTFORK);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_other_signal);
	signal(SIGWINCH, on_third_signal);
	signal(SIGCONT, on_fourth_signal);
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

	/* One it was in before is not the sleep that is waited for. */
	while (*woken < times)
		sched_yield();
	while (status.state != 'S')
		assert_int_equal(proc_read_status(s->d.host_proc, s->child, &status, NULL), 0);
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	area = mmap(NULL, 3 * LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(area, LEN, PROT_READ | PROT_WRITE);
	munmap(area + LEN, 2 * LEN);
	map_file();
	woken = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->child = start_child();
	s->world.init_pid = getpid();
	s->world.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->d.world = &s->world;
	s->d.host_proc = proc_open(NULL);
	await_sleep(s, 1);
	s->before = ckpt_before_read(&s->d, true);
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
	close_fd(s->world.root_fd);
	unlink(file_name);
	munmap(area, LEN);
	munmap((void *)woken, PAGE_SIZE);
	buf_fini(&s->p.memory_guards);
	free(s);
	return 0;
}

/* As the survey has it. */
static void stop_child(struct scene *s)
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

	stop_child(s);
	ckpt_before_look_again(s->before);
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

static void find_guards(const struct scene *s, struct buf *ret)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;

	assert_int_equal(ckpt_pages_open(&pages, s->d.host_proc, s->child, NULL), 0);
	assert_int_equal(ckpt_pages_find_guards(&pages, 0, CKPT_TASK_SIZE, ret, NULL), 0);
}

static void guards_of_who_has_slept(void **state)
{
	_cleanup_buf_ struct buf now = BUF_INIT;
	struct scene *s = *state;
	struct err e = {0};

	stop_child(s);
	find_guards(s, &now);
	if (!now.len)
		skip();
	ckpt_before_look_again(s->before);
	assert_true(ckpt_before_take(&s->p));
	assert_true(s->p.guards_from_before);
	assert_int_equal(now.len, s->p.memory_guards.len);
	assert_memory_equal(now.data, s->p.memory_guards.data, now.len);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), 0);
	kill(s->child, SIGWINCH);
	assert_int_equal(ptrace(PTRACE_DETACH, s->child, 0, 0), 0);
	await_sleep(s, 2);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "was changed"));
}

/* Where a copy of his would have lost them. */
static void guards_that_no_copy_has(void **state)
{
	_cleanup_buf_ struct buf now = BUF_INIT;
	struct scene *s = *state;
	struct err e = {0};

	kill(s->child, SIGUSR1);
	await_sleep(s, 2);
	kill(s->child, SIGCONT);
	await_sleep(s, 3);
	ckpt_before_free(s->before);
	s->d.before = s->before = ckpt_before_read(&s->d, true);
	stop_child(s);
	find_guards(s, &now);
	if (!now.len)
		skip();
	ckpt_before_look_again(s->before);
	assert_true(ckpt_before_take(&s->p));
	assert_false(s->p.guards_from_before);
	assert_int_equal(s->p.memory_guards.len, 0);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), 0);
}

static void who_has_run(void **state)
{
	struct scene *s = *state;

	kill(s->child, SIGUSR1);
	await_sleep(s, 2);
	stop_child(s);
	ckpt_before_look_again(s->before);
	assert_false(ckpt_before_take(&s->p));
	assert_int_equal(s->p.maps.n, 0);
}

static void whose_memory_is_shared(void **state)
{
	struct scene *s = *state;

	stop_child(s);
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

	stop_child(s);
	ckpt_before_look_again(s->before);
	assert_true(ckpt_before_take(&s->p));
	kill(s->child, SIGUSR1);
	assert_int_equal(ptrace(PTRACE_DETACH, s->child, 0, 0), 0);
	await_sleep(s, 2);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "was changed"));
}

/* A library of his; the name of a file is told by somebody else than him. */
static void whose_file_is_renamed(void **state)
{
	struct scene *s = *state;
	char to[sizeof(file_name) + 1];

	snprintf(to, sizeof(to), "%s-", file_name);
	assert_int_equal(rename(file_name, to), 0);
	stop_child(s);
	ckpt_before_look_again(s->before);
	assert_int_equal(rename(to, file_name), 0);
	assert_false(ckpt_before_take(&s->p));
}

static void whose_file_is_replaced(void **state)
{
	struct scene *s = *state;
	char to[sizeof(file_name) + 1];
	struct ckpt_file_mark mark;

	snprintf(to, sizeof(to), "%s-", file_name);
	make_file(to);
	assert_int_equal(rename(to, file_name), 0);
	stop_child(s);
	ckpt_before_look_again(s->before);
	assert_false(ckpt_before_mark(s->before, file_name, file_ino, &mark));
	assert_false(ckpt_before_take(&s->p));
}

/* What it is recognised by is as well known as by a look at it, until it is written to. */
static void what_a_file_is_recognised_by(void **state)
{
	struct scene *s = *state;
	struct ckpt_file_mark mark, now;
	struct stat st;
	int fd = open(file_name, O_RDWR | O_APPEND | O_CLOEXEC);

	assert_return_code(fd, errno);
	assert_int_equal(fstat(fd, &st), 0);
	ckpt_file_mark(fd, &st, &now);
	assert_false(ckpt_before_mark(s->before, file_name, st.st_ino, &mark));
	ckpt_before_look_again(s->before);
	assert_true(ckpt_before_mark(s->before, file_name, st.st_ino, &mark));
	assert_int_equal(mark.sample, now.sample);
	assert_int_equal(mark.size, now.size);
	assert_false(ckpt_before_mark(s->before, file_name, st.st_ino + 1, &mark));
	assert_int_equal(write(fd, "more", 4), 4);
	ckpt_before_look_again(s->before);
	assert_false(ckpt_before_mark(s->before, file_name, st.st_ino, &mark));
	close_fd(fd);
}

/* Once nothing was taken over he may map what he likes; afterwards he may not have. */
static void who_maps_something_afterwards(void **state)
{
	struct scene *s = *state;
	struct err e = {0};

	stop_child(s);
	ckpt_before_look_again(s->before);
	assert_true(ckpt_before_take(&s->p));
	kill(s->child, SIGUSR2);
	assert_int_equal(ptrace(PTRACE_DETACH, s->child, 0, 0), 0);
	await_sleep(s, 2);
	assert_int_equal(ckpt_before_check(&s->p, s->child, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "was changed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_slept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(guards_of_who_has_slept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(guards_that_no_copy_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_memory_is_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_changes_flags_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_maps_something_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_file_is_renamed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_file_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_file_is_recognised_by, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
