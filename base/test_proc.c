// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"

static int open_proc(void)
{
	struct err e = {0};
	int fd = proc_open(&e);

	assert_true(fd >= 0);
	return fd;
}

/* A child that waits until it is killed, as itself. */
static pid_t child_with_name(const char *name)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_NAME, name);
		setpgid(0, 0);
		umask(0137);
		close(ready[1]);
		close(ready[0]);
		for (;;)
			pause();
	}
	close(ready[1]);
	/* The end of the pipe comes when the child is set up. */
	assert_int_equal(read(ready[0], &c, 1), 0);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void status_of_self(void **state)
{
	_cleanup_close_ int proc = open_proc();
	struct proc_status s;
	struct err e = {0};

	assert_int_equal(proc_read_status(proc, getpid(), &s, &e), 0);
	assert_int_equal(s.pid, getpid());
	assert_int_equal(s.tgid, getpid());
	assert_int_equal(s.ppid, getppid());
	assert_int_equal(s.pgid, getpgrp());
	assert_int_equal(s.sid, getsid(0));
	assert_int_equal(s.state, 'R');
	assert_int_equal(s.uid[0], getuid());
	assert_int_equal(s.gid[1], getegid());
	assert_int_equal(s.threads, 1);
	assert_true(s.ns_depth >= 1);
	assert_int_equal(s.ns_pid[0], getpid());
	assert_true(s.start_stack > s.start_code);
	assert_true(s.vm_rss_kb > 0);
	assert_true(s.start_time > 0);
	assert_string_equal(s.comm, "test_proc");
}

static void status_of_a_child_with_an_odd_name(void **state)
{
	_cleanup_close_ int proc = open_proc();
	struct proc_status s;
	struct err e = {0};
	pid_t pid = child_with_name(") R 1 (\n2)");

	assert_int_equal(proc_read_task_status(proc, pid, pid, &s, &e), 0);
	assert_string_equal(s.comm, ") R 1 (\n2)");
	assert_int_equal(s.ppid, getpid());
	assert_int_equal(s.pgid, pid);
	assert_int_equal(s.umask, 0137);
	assert_int_equal(s.exit_signal, SIGCHLD);
	assert_true(s.arg_start != 0 && s.env_end >= s.env_start);
	end_child(pid);
	assert_int_equal(proc_read_status(proc, pid, &s, &e), -ENOENT);
}

static void zombie_keeps_its_exit_code(void **state)
{
	_cleanup_close_ int proc = open_proc();
	struct proc_status s;
	struct err e = {0};
	siginfo_t si;
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_read_status(proc, pid, &s, &e), 0);
	assert_int_equal(s.state, 'Z');
	assert_int_equal(s.exit_code, 7 << 8);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static const struct proc_vma *find_vma(const struct proc_maps *m, const void *addr)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->vmas[i].start <= (uintptr_t)addr && (uintptr_t)addr < m->vmas[i].end)
			return &m->vmas[i];
	return NULL;
}

static void maps_tell_kinds_apart(void **state)
{
	_cleanup_close_ int proc = open_proc();
	char name[] = "/tmp/podrun-test\nXXXXXX";
	_cleanup_close_ int fd = mkstemp(name);
	struct proc_maps m;
	struct err e = {0};
	const struct proc_vma *v;
	char *anon, *file;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	assert_int_equal(unlink(name), 0);
	anon = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(madvise(anon, 5 * 4096, MADV_DONTDUMP), 0);
	memset(anon, 1, 2 * 4096);
	file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);

	assert_int_equal(proc_read_maps(proc, getpid(), true, &m, &e), 0);
	v = find_vma(&m, anon);
	assert_non_null(v);
	assert_true(proc_vma_has(v, "dd"));
	assert_false(proc_vma_has(v, "d "));
	assert_false(proc_vma_has(v, "wf"));
	assert_int_equal(v->anonymous_kb, 8);
	assert_int_equal(v->prot, PROT_READ | PROT_WRITE);
	v = find_vma(&m, file);
	assert_non_null(v);
	assert_string_equal(v->path, name);
	assert_true(v->deleted && v->shared);
	assert_int_equal(v->offset, 4096);
	v = find_vma(&m, &state);
	assert_string_equal(v->path, "[stack]");
	proc_maps_fini(&m);

	assert_int_equal(proc_read_maps(proc, getpid(), false, &m, &e), 0);
	assert_string_equal(find_vma(&m, file)->vm_flags, "");
	proc_maps_fini(&m);
	munmap(anon, 5 * 4096);
	munmap(file, 4096);
}

static void children_and_numbers(void **state)
{
	_cleanup_close_ int proc = open_proc();
	pid_t a = child_with_name("a"), b = child_with_name("b");
	_cleanup_free_ int *list = NULL, *children = NULL;
	struct err e = {0};
	size_t n;

	assert_int_equal(proc_read_children(proc, getpid(), getpid(), &children, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(children[0], a);
	assert_int_equal(children[1], b);
	assert_int_equal(proc_list_numbers(proc, "self/fd", &list, &n, &e), 0);
	assert_true(n >= 4);
	for (size_t i = 1; i < n; i++)
		assert_true(list[i - 1] < list[i]);
	end_child(a);
	end_child(b);
}

/* The child's, so that this program keeps its own. */
static void title_of_a_child(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		proc_set_title("short");
		_exit(io_read_file(AT_FDCWD, "/proc/self/cmdline", 4096, &text) < 0 ||
			!buf_cstr(&text) || strcmp(buf_cstr(&text), "short"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_of_self),
		cmocka_unit_test(status_of_a_child_with_an_odd_name),
		cmocka_unit_test(zombie_keeps_its_exit_code),
		cmocka_unit_test(maps_tell_kinds_apart),
		cmocka_unit_test(children_and_numbers),
		cmocka_unit_test(title_of_a_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
