// SPDX-License-Identifier: GPL-2.0-or-later
/* The tracer is killed before each of its requests in turn (boot.c, and all the rest). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "ckpt/remote/remote.h"
#include "ckpt/remote/testtask.h"

struct fixture {
	int proc;
	struct err e;
};

#define ok(f, call)                                                                                \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, (f)->e.msg);                                     \
	} while (0)

/* Computes without a system call until *arg changes: the same by steps as at once? */
static int body_spin(void *arg)
{
	volatile int *go = arg;
	uint64_t a = 1, n = 0;

	while (!*go) {
		a = a * 6364136223846793005ULL + 1442695040888963407ULL;
		n++;
	}
	for (uint64_t b = 1; n; n--) {
		b = b * 6364136223846793005ULL + 1442695040888963407ULL;
		if (n == 1)
			return a == b ? 7 : 8;
	}
	return 7;
}

static int body_read(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) == 1 && c == 'x' ? 0 : 2;
}

/* How many requests the tracer may still make; it is killed before the next.  -1: any number. */
static long requests_left = -1;

/* Instead of libc's. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	pid_t pid;
	void *addr, *data;
	unsigned long word;
	long r;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (requests_left >= 0 && requests_left-- == 0)
		raise(SIGKILL);
	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
		return syscall(SYS_ptrace, request, pid, addr, data);
	r = syscall(SYS_ptrace, request, pid, addr, &word);
	if (r < 0)
		return r;
	errno = 0;
	return (long)word;
}

/* False once it was not killed any more. */
static bool killed_before(struct fixture *f, pid_t pid, long n)
{
	pid_t tracer = fork();
	int status;

	if (tracer == 0) {
		struct remote *r;
		long v;

		if (testtask_freeze(f->proc, pid) < 0)
			_exit(9);
		requests_left = n;
		ok(f, remote_open(&r, f->proc, pid, 0, &f->e));
		ok(f, remote_must(r, &v, &f->e, SYS_getpid, 0, 0, 0, 0, 0, 0));
		ok(f, remote_close(r, &f->e));
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFSIGNALED(status) || status == 0);
	return WIFSIGNALED(status);
}

/* What the tracer left behind the vDSO is found, and wiped out, by another. */
static void wipe(struct fixture *f, pid_t pid)
{
	uint64_t at = remote_boot_left(f->proc, pid);

	if (!at)
		return;
	assert_int_equal(testtask_freeze(f->proc, pid), 0);
	remote_boot_remove(f->proc, pid, at);
	assert_int_equal(remote_boot_left(f->proc, pid), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
}

/* Whichever of its requests the tracer does not come to: the task is none the worse. */
static void tasks_heal_at_any_moment(void **state)
{
	struct fixture fixture = {.proc = proc_open(NULL)}, *f = &fixture;
	int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct proc_status s;
	bool killed = true;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	for (long n = 0; killed; n++) {
		pid_t spin, reader = testtask_start(body_read, &sv[1]);

		*go = 0;
		spin = testtask_start(body_spin, go);
		testtask_await_sleep(f->proc, reader);
		killed = killed_before(f, spin, n);
		assert_int_equal(killed_before(f, reader, n), killed);
		testtask_await_sleep(f->proc, reader);
		wipe(f, reader);
		testtask_await_sleep(f->proc, reader);
		ok(f, proc_read_status(f->proc, reader, &s, &f->e));
		assert_int_equal(s.sig_blocked, 0);
		assert_int_equal(write(sv[0], "x", 1), 1);
		assert_int_equal(testtask_end(reader), 0);
		*go = 1;
		assert_int_equal(testtask_end(spin), 7);
	}
	close(sv[0]);
	close(sv[1]);
	munmap(go, 4096);
	close(f->proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_heal_at_any_moment)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
