// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "ckpt/filters.h"
#include "ckpt/remote/remote.h"
#include "ckpt/remote/testtask.h"

#define LOAD_NR	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(v) BPF_STMT(BPF_RET | BPF_K, v)
#define FIRST	  5000 /* calls that no kernel has */
#define CALLS	  48

/* ---- the same verdicts ---------------------------------------------------------------------- */

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* One that lets everything but our strange calls pass, and is right about jumps. */
static size_t make_program(uint32_t seed, struct sock_filter *p)
{
	size_t n = 4 + next(&seed) % 60, i = 0;

	p[i++] = (struct sock_filter)LOAD_NR;
	p[i++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST, 1, 0);
	p[i++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	while (i < n) {
		uint8_t left = (uint8_t)(n - i);

		switch (next(&seed) % 7) {
		case 0:
			p[i++] = (struct sock_filter)BPF_STMT(
				BPF_LD | BPF_W | BPF_ABS, (next(&seed) % 3) * 8);
			break;
		case 1:
			p[i++] = (struct sock_filter)BPF_STMT(
				BPF_ALU | BPF_AND | BPF_K, next(&seed) % 64);
			break;
		case 2:
			p[i++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | next(&seed) % 64);
			break;
		case 3:
			p[i++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
			break;
		case 4: /* nobody traces: ENOSYS */
			p[i++] = (struct sock_filter)RETURN(SECCOMP_RET_TRACE | next(&seed) % 64);
			break;
		default:
			p[i++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
				next(&seed) % 64 + (next(&seed) % 2 ? FIRST : 0),
				(uint8_t)(next(&seed) % left), (uint8_t)(next(&seed) % left));
		}
	}
	/* Computed: an errno from 1 to 63, or a tracer is asked. */
	p[i++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 63);
	p[i++] = (struct sock_filter)BPF_STMT(
		BPF_ALU | BPF_OR | BPF_K, next(&seed) % 4 ? SECCOMP_RET_ERRNO : SECCOMP_RET_TRACE);
	p[i++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	return i;
}

struct verdicts {
	int installed;
	int error[CALLS];
};

static void try_all(const struct sock_filter *code, size_t n, struct verdicts *ret)
{
	struct sock_fprog program = {(unsigned short)n, (struct sock_filter *)code};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		ret->installed =
			syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? errno : 0;
		for (int i = 0; i < CALLS; i++) {
			errno = 0;
			syscall(FIRST + i % 32, i, i / 3);
			ret->error[i] = errno;
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_door_changes_no_verdict(void **state)
{
	struct verdicts *v = mmap(
		NULL, sizeof(*v) * 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sock_filter p[128];

	for (uint32_t seed = 1; seed <= 200; seed++) {
		size_t n = make_program(seed, p);
		struct buf guarded = BUF_INIT;

		memset(v, 0, 2 * sizeof(*v));
		assert_int_equal(ckpt_filter_guard(p, n, seed, seed % 2, &guarded), 0);
		try_all(p, n, &v[0]);
		try_all((struct sock_filter *)guarded.data, guarded.len / sizeof(*p), &v[1]);
		assert_int_equal(v[0].installed, 0);
		assert_memory_equal(&v[0], &v[1], sizeof(*v));
		buf_fini(&guarded);
	}
	munmap(v, sizeof(*v) * 2);
}

/* What the kernel refuses is refused; nothing that would jump into our own part gets there. */
static void crooked_programs(void **state)
{
	static const struct {
		struct sock_filter code[3];
		size_t n;
	} bad[] = {
		{{{0}}, 0},
		{{LOAD_NR}, 1},
		{{BPF_STMT(BPF_JMP | BPF_JA, 1), RETURN(0)}, 2},
		{{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), RETURN(0)}, 2},
		{{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 9), RETURN(0)}, 2},
		{{RETURN(0), LOAD_NR}, 2},
	};
	struct sock_filter *p = calloc(BPF_MAXINSNS + 1, sizeof(*p));

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ckpt_filters_try(bad[i].code, bad[i].n), -EINVAL);
	for (size_t i = 0; i <= BPF_MAXINSNS; i++)
		p[i] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	assert_int_equal(ckpt_filters_try(p, BPF_MAXINSNS + 1), -EINVAL);
	assert_int_equal(ckpt_filters_try(p, BPF_MAXINSNS), -E2BIG);
	assert_int_equal(ckpt_filters_try(p, BPF_MAXINSNS - 15), 0);
	for (size_t i = 0; i < BPF_MAXINSNS / 2; i++)
		p[i].k = SECCOMP_RET_ERRNO | (uint32_t)i;
	assert_int_equal(ckpt_filters_try(p, BPF_MAXINSNS / 2), -E2BIG);
	free(p);
}

static void the_table(void **state)
{
	static const struct sock_filter a[] = {RETURN(SECCOMP_RET_ALLOW)};
	static const struct sock_filter b[] = {LOAD_NR, RETURN(SECCOMP_RET_ALLOW)};
	struct ckpt_filters *f = ckpt_filters_new();
	struct ckpt_filter got;
	uint32_t one = ckpt_filters_add(f, 0, 0, a, 1), two = ckpt_filters_add(f, one, 0, b, 2);

	assert_true(one && two && one != two);
	assert_int_equal(ckpt_filters_add(f, 0, 0, a, 1), one);
	assert_int_equal(ckpt_filters_add(f, one, 0, b, 2), two);
	assert_int_not_equal(ckpt_filters_add(f, one, SECCOMP_FILTER_FLAG_LOG, b, 2), two);
	assert_int_equal(ckpt_filters_depth(f, two), 2);
	assert_int_equal(ckpt_filters_depth(f, 99), 0);
	assert_true(ckpt_filters_read(f, two, &got) && got.parent == one && got.n == 2);
	assert_int_equal(ckpt_filters_put(f, two, 0, 0, a, 1), -EEXIST);
	assert_int_equal(ckpt_filters_put(f, 50, 49, 0, a, 1), -EINVAL);
	assert_int_equal(ckpt_filters_put(f, ~0u, 0, 0, a, 1), -ENOSPC);
	assert_int_equal(ckpt_filters_put(f, 5000, one, 0, a, 1), 0);
	assert_int_equal(ckpt_filters_depth(f, 5000), 2);
	assert_false(ckpt_filters_read(f, 4999, &got));
	ckpt_filters_free(f);
}

/* ---- through the door ----------------------------------------------------------------------- */

static const struct sock_filter only_pause[] = {
	LOAD_NR,
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pause, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	RETURN(SECCOMP_RET_ALLOW),
};

static int install_guarded(const struct sock_filter *code, size_t n, uint32_t number)
{
	struct buf b = BUF_INIT;
	struct sock_fprog program;

	if (ckpt_filter_guard(code, n, number, false, &b) < 0)
		return -1;
	program.len = (unsigned short)(b.len / sizeof(*code));
	program.filter = (struct sock_filter *)b.data;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Killed for any call but pause and exit. */
static int body_strict(void *arg)
{
	static const struct sock_filter trap[] = {RETURN(SECCOMP_RET_ALLOW)};

	signal(SIGUSR1, SIG_IGN);
	if (install_guarded(trap, 1, 7) < 0 ||
		install_guarded(only_pause, ARRAY_SIZE(only_pause), 0x123456) < 0)
		return 1;
	pause();
	return 0;
}

static void calls_through_the_door(void **state)
{
	pid_t pid = testtask_start(body_strict, NULL), born;
	struct remote *r, *child;
	struct proc_status s;
	struct err e = {0};
	uint32_t number;
	long v;
	int proc = proc_open(&e);

	do {
		testtask_await_sleep(proc, pid);
		assert_int_equal(proc_read_status(proc, pid, &s, &e), 0);
	} while (s.seccomp_filters < 3);
	testtask_await_sleep(proc, pid);
	assert_int_equal(testtask_freeze(proc, pid), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(remote_open_guarded(&r, proc, pid, 0, &e), 0);
		assert_int_equal(remote_must(r, &v, &e, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
		assert_int_equal(v, pid);
		assert_int_equal(ckpt_filter_ask(r, &number, &e), 0);
		assert_int_equal(number, 0x123456);
		for (int i = 0; i < 20; i++)
			remote_add(r, SYS_getppid, 0, 0, 0, 0, 0, 0);
		assert_int_equal(remote_run(r, true, &e), 0);
		assert_int_equal(remote_result(r, 19), getpid());
		assert_int_equal(remote_must(r, &v, &e, SYS_fork, 0, 0, 0, 0, 0, 0), 0);
		born = remote_born(r, 0);
		assert_int_equal(remote_open_child(&child, born, r, &e), 0);
		assert_int_equal(remote_must(child, &v, &e, SYS_getppid, 0, 0, 0, 0, 0, 0), 0);
		assert_int_equal(v, pid);
		remote_forget(child);
		kill(born, SIGKILL);
		assert_int_equal(waitpid(born, NULL, __WALL), born);
		assert_int_equal(remote_close(r, &e), 0);
	}
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	testtask_await_sleep(proc, pid);
	/* It lives, and is as confined as before. */
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(testtask_freeze(proc, pid), 0);
	assert_int_equal(remote_open_guarded(&r, proc, pid, 0, &e), 0);
	remote_regs(r)->orig_rax = (unsigned long)-1;
	remote_regs(r)->rax = SYS_getpid;
	remote_regs(r)->rip -= 2;
	assert_int_equal(remote_close(r, &e), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	assert_int_equal(testtask_end(pid), -1);
	close(proc);
}

/* The tracer dies between two batches: the task goes on. */
static void the_tracer_dies(void **state)
{
	pid_t pid = testtask_start(body_strict, NULL), tracer;
	struct proc_status s;
	struct err e = {0};
	int proc = proc_open(&e), status;

	do {
		testtask_await_sleep(proc, pid);
		assert_int_equal(proc_read_status(proc, pid, &s, &e), 0);
	} while (s.seccomp_filters < 3);
	testtask_await_sleep(proc, pid);
	tracer = fork();
	if (tracer == 0) {
		struct remote *r;
		long v;

		_exit(testtask_freeze(proc, pid) < 0 ||
			remote_open_guarded(&r, proc, pid, 0, &e) < 0 ||
			remote_call(r, &v, &e, SYS_getpid, 0, 0, 0, 0, 0, 0) < 0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_int_equal(status, 0);
	testtask_await_sleep(proc, pid);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	testtask_end(pid);
	close(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_door_changes_no_verdict),
		cmocka_unit_test(crooked_programs),
		cmocka_unit_test(the_table),
		cmocka_unit_test(calls_through_the_door),
		cmocka_unit_test(the_tracer_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
