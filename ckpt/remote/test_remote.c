// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "ckpt/remote/remote.h"
#include "ckpt/remote/testtask.h"
#include "ckpt/remote/trace.h"

#define BIRTHS 2000

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->proc = proc_open(&f->e);
	*state = f;
	return f->proc < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_fd(f->proc);
	free(f);
	return 0;
}

static void thaw(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
}

/* Computes without a system call until *arg changes, with every register in use. */
static int body_spin(void *arg)
{
	volatile int *go = arg;
	uint64_t a = 1, b = 2, c = 3, d = 5, x = 7;
	double y = 1.0;

	while (!*go) {
		a = a * 6364136223846793005ULL + b;
		b ^= a >> 17;
		c += a ^ b;
		d = d * 31 + c;
		x ^= d;
		y = y * 0.5 + 1.0;
	}
	/* The same again, without having been stopped, from the count of rounds. */
	return y > 1.9 && (a | b | c | d | x) ? 7 : 8;
}

static void calls_with_references(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct remote *r;
	uint64_t path, addr;
	struct stat *st;
	long v;
	int fd, i;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	assert_int_equal(v, pid);

	path = remote_put_str(r, "/etc/passwd");
	fd = remote_add(r, SYS_openat, (uint64_t)AT_FDCWD, path, O_RDONLY, 0, 0, 0);
	st = remote_data(r, sizeof(*st), &addr);
	i = remote_add_args(
		r, SYS_fstat, (struct remote_arg[6]){REMOTE_RESULT(fd), REMOTE_ARG(addr)});
	remote_add_args(r, SYS_close, (struct remote_arg[6]){REMOTE_RESULT(fd)});
	ok(f, remote_run(r, true, &f->e));
	assert_true(remote_result(r, fd) >= 0);
	assert_int_equal(remote_result(r, i), 0);
	assert_true(S_ISREG(st->st_mode) && st->st_size > 0);
	assert_int_equal(remote_result(r, 2), 0);
	assert_int_equal(remote_result(r, 3), -ECANCELED);

	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	assert_int_equal(testtask_end(pid), -1);
}

static void a_full_table_and_an_early_end(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct remote *r;
	int n = 0;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0x10000000, &f->e));
	assert_int_equal(remote_address(r), 0x10000000);
	while (remote_add(r, n == 300 ? SYS_close : SYS_getppid, 9999, 0, 0, 0, 0, 0) >= 0)
		n++;
	assert_int_equal(n, REMOTE_MAX_CALLS);
	ok(f, remote_run(r, true, &f->e));
	assert_int_equal(remote_result(r, 299), getpid());
	assert_int_equal(remote_result(r, 300), -EBADF);
	assert_int_equal(remote_result(r, 301), -ECANCELED);
	remote_add(r, SYS_close, 9999, 0, 0, 0, 0, 0);
	remote_add(r, SYS_getppid, 0, 0, 0, 0, 0, 0);
	ok(f, remote_run(r, false, &f->e));
	assert_int_equal(remote_result(r, 0), -EBADF);
	assert_int_equal(remote_result(r, 1), getpid());
	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	testtask_end(pid);
}

/* The area is gone and the registers are the same after every round. */
static void a_computing_task_notices_nothing(void **state)
{
	struct fixture *f = *state;
	volatile int *go =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = testtask_start(body_spin, (void *)go);
	struct user_regs_struct before, after;
	long v;

	usleep(20000);
	for (int i = 0; i < 20; i++) {
		struct remote *r;

		assert_int_equal(testtask_freeze(f->proc, pid), 0);
		ptrace(PTRACE_GETREGS, pid, 0, &before);
		ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
		ok(f, remote_must(r, &v, &f->e, SYS_gettid, 0, 0, 0, 0, 0, 0));
		ok(f, remote_close(r, &f->e));
		ptrace(PTRACE_GETREGS, pid, 0, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		thaw(pid);
		usleep(500);
	}
	*go = 1;
	assert_int_equal(testtask_end(pid), 7);
	munmap((void *)go, 4096);
}

static void children_by_clone3(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct clone_args args = {.exit_signal = SIGCHLD};
	struct remote *r, *child;
	long v, in_child;
	int i;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	i = remote_add(r, SYS_clone3, remote_put(r, &args, sizeof(args)), sizeof(args), 0, 0, 0, 0);
	remote_add(r, SYS_getpid, 0, 0, 0, 0, 0, 0);
	ok(f, remote_run(r, true, &f->e));
	v = remote_result(r, i);
	assert_true(v > 0);
	assert_int_equal(remote_result(r, 1), pid);
	assert_int_equal(remote_born(r, 0), v);
	assert_int_equal(remote_born(r, 1), 0);

	ok(f, remote_open_child(&child, (pid_t)v, r, &f->e));
	ok(f, remote_must(child, &in_child, &f->e, SYS_getppid, 0, 0, 0, 0, 0, 0));
	assert_int_equal(in_child, pid);
	/* Parent and child have tables of their own. */
	remote_add(r, SYS_getpid, 0, 0, 0, 0, 0, 0);
	remote_add(child, SYS_getpid, 0, 0, 0, 0, 0, 0);
	ok(f, remote_run(child, true, &f->e));
	ok(f, remote_run(r, true, &f->e));
	assert_int_equal(remote_result(r, 0), pid);
	assert_int_equal(remote_result(child, 0), v);

	/* The child gets a life: it returns from the parent's pause() as if from a fork. */
	*remote_regs(child) = *remote_regs(r);
	remote_regs(child)->rax = 0;
	remote_regs(child)->orig_rax = (unsigned long)-1;
	*remote_sigmask(child) = 0;
	ok(f, remote_close(child, &f->e));
	thaw((pid_t)v);
	i = (int)v;
	ok(f, remote_must(r, &v, &f->e, SYS_wait4, (uint64_t)i, 0, 0, 0, 0, 0));
	assert_int_equal(v, i);
	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	testtask_end(pid);
}

/* Or whoever waits for any child would find it later, and let it go on. */
static void the_first_stop_is_left_to_nobody(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct remote *r, *child;
	int status, left = 0;
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	for (int i = 0; i < BIRTHS; i++) {
		ok(f, remote_must(r, &v, &f->e, SYS_clone, 0, 0, 0, 0, 0, 0));
		ok(f, remote_open_child(&child, (pid_t)v, r, &f->e));
		left += waitpid((pid_t)v, &status, __WALL | WNOHANG) != 0;
		trace_kill((pid_t)v);
		assert_int_equal(waitpid((pid_t)v, &status, __WALL), v);
		remote_forget(child);
		ok(f, remote_must(r, NULL, &f->e, SYS_wait4, (uint64_t)v, 0, __WALL, 0, 0, 0));
	}
	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	testtask_end(pid);
	assert_int_equal(left, 0);
}

static void threads_by_clone3(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			 CLONE_SYSVSEM,
	};
	struct remote *r, *threads[10];
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	for (int i = 0; i < 10; i++)
		remote_add(r, SYS_clone3, remote_put(r, &args, sizeof(args)), sizeof(args), 0, 0, 0,
			0);
	ok(f, remote_run(r, true, &f->e));
	for (int i = 0; i < 10; i++)
		ok(f, remote_open_thread(&threads[i], remote_born(r, i), r, &f->e));
	for (int i = 9; i >= 0; i--) {
		ok(f, remote_must(threads[i], &v, &f->e, SYS_gettid, 0, 0, 0, 0, 0, 0));
		assert_int_equal(v, remote_tid(threads[i]));
		ok(f, remote_must(threads[i], &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
		assert_int_equal(v, pid);
	}
	/* The leader goes first: the last thread to close takes the pages away. */
	ok(f, remote_close(r, &f->e));
	for (int i = 0; i < 10; i++)
		ok(f, remote_close(threads[i], &f->e));
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

static void remote_roundtrip(struct fixture *f, struct remote *r, int from, int to)
{
	uint64_t in, out;
	uint8_t *a = remote_data(r, 60000, &out), *b = remote_data(r, 60000, &in);

	for (int i = 0; i < 60000; i++)
		a[i] = (uint8_t)(i * 7);
	remote_add(r, SYS_sendto, (uint64_t)from, out, 60000, 0, 0, 0);
	remote_add(r, SYS_recvfrom, (uint64_t)to, in, 60000, MSG_WAITALL, 0, 0);
	ok(f, remote_run(r, true, &f->e));
	assert_int_equal(remote_result(r, 1), 60000);
	assert_memory_equal(a, b, 60000);
}

static void much_data(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	uint64_t in, out, small, pair;
	struct remote *r;
	uint8_t *a, *b;
	int *fds;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	/* Into a socket and out again. */
	fds = remote_data(r, 2 * sizeof(int), &pair);
	a = remote_data(r, 60000, &out);
	b = remote_data(r, 60000, &in);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(remote_data(r, 60000, &small));
	memset(a, 0xa5, 60000);
	remote_add(r, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair, 0, 0);
	ok(f, remote_run(r, true, &f->e));
	assert_int_equal(a[59999], 0xa5);
	assert_int_equal(remote_result(r, 0), 0);
	remote_roundtrip(f, r, fds[0], fds[1]);
	assert_non_null(remote_data(r, 2000, &small));
	assert_non_null(remote_data(r, 120000, &out));
	assert_null(remote_data(r, 10000, &in));
	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	testtask_end(pid);
}

/* The session has a filter of its own that answers getppid with SIGSYS, getpgrp with RET_TRACE. */
static int body_own_filter(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* nr */),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgrp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_SIZE(code), code};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return 1;
	pause();
	return 0;
}

static void calls_under_a_filter_of_its_own(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(body_own_filter, NULL);
	struct remote *r;

	testtask_await_sleep(f->proc, pid);
	usleep(5000);
	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	remote_add(r, SYS_getpid, 0, 0, 0, 0, 0, 0);
	remote_add(r, SYS_getppid, 0, 0, 0, 0, 0, 0);
	remote_add(r, SYS_getpgrp, 0, 0, 0, 0, 0, 0);
	remote_add(r, SYS_getpid, 0, 0, 0, 0, 0, 0);
	ok(f, remote_run(r, false, &f->e));
	assert_int_equal(remote_result(r, 0), pid);
	assert_int_equal(remote_result(r, 1), -ENOSYS);
	assert_int_equal(remote_result(r, 2), -ENOSYS);
	assert_int_equal(remote_result(r, 3), pid);
	ok(f, remote_close(r, &f->e));
	kill(pid, SIGKILL);
	testtask_end(pid);
}

/* ---- interrupted calls -------------------------------------------------------------------- */

static int body_nanosleep(void *arg)
{
	struct timespec t = {0, 300 * 1000 * 1000};
	uint64_t before = io_now_ns(), took;

	if (syscall(SYS_nanosleep, &t, NULL) < 0)
		return 2;
	took = io_now_ns() - before;
	return took >= 300000000ULL ? 0 : 3;
}

static int body_poll(void *arg)
{
	struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};
	uint64_t before = io_now_ns();

	if (poll(&p, 1, 300) != 0)
		return 2;
	return io_now_ns() - before >= 299000000ULL ? 0 : 3;
}

static int body_read(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 && c == 'x' ? 0 : 2;
}

static int body_sigwait(void *arg)
{
	sigset_t none;

	sigemptyset(&none);
	/* Interrupted by nothing we may see: ends by the alarm's default action only. */
	alarm(1);
	sigsuspend(&none);
	return 2;
}

static void interrupted_calls_go_on(void **state)
{
	struct fixture *f = *state;
	static int (*const bodies[])(void *) = {body_nanosleep, body_poll, body_read};
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	for (size_t k = 0; k < ARRAY_SIZE(bodies); k++) {
		pid_t pid = testtask_start(bodies[k], &sv[1]);
		struct remote *r;

		testtask_await_sleep(f->proc, pid);
		for (int i = 0; i < 10; i++) {
			long v;

			assert_int_equal(testtask_freeze(f->proc, pid), 0);
			ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
			ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
			ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
			ok(f, remote_close(r, &f->e));
			thaw(pid);
			usleep(3000);
		}
		if (bodies[k] == body_read)
			assert_int_equal(write(sv[0], "x", 1), 1);
		assert_int_equal(testtask_end(pid), 0);
	}
	close(sv[0]);
	close(sv[1]);
}

static void a_signal_waits_for_the_end(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(body_sigwait, NULL);
	struct remote *r;
	int status;
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	kill(pid, SIGALRM);
	for (int i = 0; i < 3; i++)
		ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	ok(f, remote_close(r, &f->e));
	thaw(pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void a_stopped_task_stays_stopped(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct proc_status s;
	struct remote *r;
	int status;
	long v;

	testtask_await_sleep(f->proc, pid);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	assert_int_equal(v, pid);
	ok(f, remote_close(r, &f->e));
	thaw(pid);
	usleep(20000);
	ok(f, proc_read_status(f->proc, pid, &s, &f->e));
	assert_int_equal(s.state, 'T');

	/* One that is told to stop while it is ours. */
	kill(pid, SIGCONT);
	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	kill(pid, SIGSTOP);
	ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	ok(f, remote_close(r, &f->e));
	thaw(pid);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	kill(pid, SIGKILL);
	testtask_end(pid);
}

static void death_is_an_error(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	struct remote *r;
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	kill(pid, SIGKILL);
	usleep(1000);
	assert_int_equal(remote_call(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0), -ESRCH);
	assert_int_equal(remote_call(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0), -ESRCH);
	assert_int_equal(remote_close(r, &f->e), -ESRCH);

	/* It ends itself in the middle. */
	pid = testtask_start(testtask_pause, NULL);
	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	assert_int_equal(remote_call(r, &v, &f->e, SYS_exit_group, 3, 0, 0, 0, 0, 0), -ESRCH);
	remote_forget(r);
}

/* ---- the tracer is killed ----------------------------------------------------------------- */

enum killed_at { KILLED_BETWEEN, KILLED_DURING, KILLED_HALTED, KILLED_MAX };

/* Runs in a process of its own, which ends without a word in the middle of things. */
static void trace_and_die(pid_t pid, enum killed_at when)
{
	struct remote *r;
	struct err e;
	int proc = proc_open(&e);
	long v;

	if (testtask_freeze(proc, pid) < 0 || remote_open(&r, proc, pid, 0, &e) < 0 ||
		remote_must(r, &v, &e, SYS_getpid, 0, 0, 0, 0, 0, 0) < 0)
		_exit(9);
	if (when == KILLED_BETWEEN)
		raise(SIGKILL);
	if (when == KILLED_DURING) {
		/* The tracer dies while the task sleeps in the batch. */
		remote_add(r, SYS_kill, (uint64_t)getpid(), SIGKILL, 0, 0, 0, 0);
		remote_add(r, SYS_poll, 0, 0, 50, 0, 0, 0);
		remote_run(r, false, &e);
	}
	if (when == KILLED_HALTED) {
		remote_close(r, &e);
		raise(SIGKILL);
	}
	_exit(8);
}

static void heal(struct fixture *f, int (*body)(void *), void *arg, enum killed_at when, int code)
{
	pid_t pid = testtask_start(body, arg), tracer;
	volatile int *go = arg;
	int status;

	if (body == body_spin)
		usleep(10000);
	else
		testtask_await_sleep(f->proc, pid);
	tracer = fork();
	if (tracer == 0)
		trace_and_die(pid, when);
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFSIGNALED(status));
	usleep(20000);
	if (body == body_spin)
		*go = 1;
	else if (body == body_read)
		assert_int_equal(write(((int *)arg)[-1], "x", 1), 1);
	assert_int_equal(testtask_end(pid), code);
	if (body == body_spin)
		*go = 0;
}

static void tasks_heal_when_the_tracer_dies(void **state)
{
	struct fixture *f = *state;
	int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	for (int when = 0; when < KILLED_MAX; when++) {
		heal(f, body_spin, go, when, 7);
		heal(f, body_nanosleep, NULL, when, 0);
		heal(f, body_read, &sv[1], when, 0);
	}
	close(sv[0]);
	close(sv[1]);
	munmap(go, 4096);
}

/* ---- a batch that has its memory for itself -------------------------------------------------- */

struct counting {
	_Atomic uint64_t count, stop;
	uint64_t before, after; /* the count, as a batch has seen it */
	_Atomic pid_t tid;
};

static void *count_on(void *arg)
{
	struct counting *c = arg;

	c->tid = sys_gettid();
	while (!c->stop)
		c->count++;
	return NULL;
}

static int body_counts(void *arg)
{
	struct counting *c = arg;
	pthread_t t;

	if (pthread_create(&t, NULL, count_on, c))
		return 1;
	pthread_join(t, NULL);
	return 7;
}

static void add_look(struct remote *r, pid_t pid, const void *from, void *to)
{
	struct iovec local = {to, 8}, there = {(void *)from, 8};

	remote_add(r, SYS_process_vm_readv, (uint64_t)pid, remote_put(r, &local, sizeof(local)), 1,
		remote_put(r, &there, sizeof(there)), 1, 0);
}

/* Runs a batch that looks at the count twice; with @die it also ends the tracer. */
static void run_gated(struct fixture *f, pid_t pid, struct counting *c, bool die)
{
	pid_t tid = c->tid;
	struct remote_gate *g;
	struct remote *r;

	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	assert_int_equal(testtask_freeze(f->proc, tid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	ok(f, remote_gate_open(&g, r, &tid, 1, &f->e));
	if (die)
		remote_add(r, SYS_kill, (uint64_t)getpid(), SIGKILL, 0, 0, 0, 0);
	remote_add(r, SYS_poll, 0, 0, 50, 0, 0, 0);
	add_look(r, pid, &c->count, &c->before);
	remote_add(r, SYS_poll, 0, 0, 50, 0, 0, 0);
	add_look(r, pid, &c->count, &c->after);
	ok(f, remote_gate_run(g, &f->e));
	ok(f, remote_gate_close(g, &f->e));
	ok(f, remote_close(r, &f->e));
	thaw(tid);
	thaw(pid);
}

static void others_wait_at_the_gate(void **state)
{
	struct fixture *f = *state;
	struct counting *c =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int die = 0; die < 2; die++) {
		pid_t pid, tracer;
		uint64_t then;
		int status;

		memset(c, 0, sizeof(*c));
		pid = testtask_start(body_counts, c);
		while (c->count < 1000)
			usleep(100);
		tracer = fork();
		if (tracer == 0) {
			run_gated(f, pid, c, die);
			_exit(0);
		}
		assert_int_equal(waitpid(tracer, &status, 0), tracer);
		assert_true(die ? WIFSIGNALED(status) : status == 0);
		for (then = c->count; c->count < then + 1000 || !c->after;)
			usleep(100);
		assert_true(c->before >= 1000);
		assert_int_equal(c->before, c->after);
		c->stop = 1;
		assert_int_equal(testtask_end(pid), 7);
	}
	munmap(c, 4096);
}

static int body_left(void *arg)
{
	pause();
	return 0;
}

static void pages_that_were_left_are_used_again(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(body_left, NULL);
	uint64_t address;
	struct remote *r;
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	address = remote_address(r);
	remote_leave(r, true);
	ok(f, remote_close(r, &f->e));
	ok(f, remote_open_left(&r, f->proc, pid, address, NULL, 0, &f->e));
	ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	assert_int_equal(v, pid);
	remote_leave(r, false);
	ok(f, remote_close(r, &f->e));
	assert_int_equal(remote_open_left(&r, f->proc, pid, address, NULL, 0, &f->e), -ENOENT);
	thaw(pid);
	kill(pid, SIGKILL);
	testtask_end(pid);
}

static void cost_of_a_batch(void **state)
{
	struct fixture *f = *state;
	pid_t pid = testtask_start(testtask_pause, NULL);
	uint64_t t0, t1, t2, t3;
	struct remote *r;
	long v;

	testtask_await_sleep(f->proc, pid);
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	t0 = io_now_ns();
	ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
	t1 = io_now_ns();
	for (int i = 0; i < 100; i++)
		ok(f, remote_call(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
	t2 = io_now_ns();
	ok(f, remote_close(r, &f->e));
	t3 = io_now_ns();
	print_message("open %lu us, batch %lu ns, close %lu us\n", (t1 - t0) / 1000,
		(t2 - t1) / 100, (t3 - t2) / 1000);
	kill(pid, SIGKILL);
	testtask_end(pid);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(calls_with_references),
		T(a_full_table_and_an_early_end),
		T(a_computing_task_notices_nothing),
		T(children_by_clone3),
		T(the_first_stop_is_left_to_nobody),
		T(threads_by_clone3),
		T(much_data),
		T(calls_under_a_filter_of_its_own),
		T(interrupted_calls_go_on),
		T(a_signal_waits_for_the_end),
		T(a_stopped_task_stays_stopped),
		T(death_is_an_error),
		T(tasks_heal_when_the_tracer_dies),
		T(others_wait_at_the_gate),
		T(pages_that_were_left_are_used_again),
		T(cost_of_a_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
