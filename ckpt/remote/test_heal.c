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

/* ---- the same in 32-bit code ----------------------------------------------------------------- */

/*
 * Both end by exit(2): 7 and 0 if all registers are as they were.  ebx: what it looks at, or reads
 * from.
 */
__asm__(".pushsection .rodata\n"
	".code32\n"
	"code_32_begin:\n"
	"	jmp	4f\n"
	"	.balign	16\n"
	"spin_32:\n"
	"	call	3f\n"
	"1:	cmpl	$0, (%ebx)\n"
	"	je	1b\n"
	"	mov	$7, %ebx\n"
	"	jmp	2f\n"
	"4:	call	3f\n"
	"	mov	$3, %eax\n"
	"	lea	-64(%esp), %ecx\n"
	"	mov	$1, %edx\n"
	"	int	$0x80\n"
	"	cmp	$1, %eax\n"
	"	jne	5f\n"
	"	cmpb	$'x', -64(%esp)\n"
	"	jne	5f\n"
	"	mov	$0, %ebx\n"
	"2:	xor	%eax, %eax\n"
	"	.byte	0x48, 0x90\n" /* dec %eax; nop: in 64-bit code another nop */
	"	cmp	$-1, %eax\n"
	"	jne	5f\n"
	"	cmp	$0x81111111, %esi\n"
	"	jne	5f\n"
	"	cmp	$0x82222222, %edi\n"
	"	jne	5f\n"
	"	sub	%esp, %ebp\n"
	"	cmp	$0x83333333, %ebp\n"
	"	jne	5f\n"
	"6:	mov	$1, %eax\n"
	"	int	$0x80\n"
	"5:	mov	$9, %ebx\n"
	"	jmp	6b\n"
	"3:	mov	$0x2b, %eax\n"
	"	mov	%eax, %ds\n"
	"	mov	$0x81111111, %esi\n"
	"	mov	$0x82222222, %edi\n"
	"	lea	4 + 0x83333333(%esp), %ebp\n"
	"	ret\n"
	"code_32_end:\n"
	".code64\n"
	".popsection\n");
extern const uint8_t code_32_begin[], spin_32[], code_32_end[];

/* From @from on, in a page below 4 GiB; @ebx may be an address there. */
static void run_32(const uint8_t *from, const void *ebx)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	memcpy(page, code_32_begin, (size_t)(code_32_end - code_32_begin));
	__asm__ volatile("mov	%[stack], %%rsp\n"
			 "push	$0x23\n"
			 "push	%[to]\n"
			 "lretq\n"
			 :
			 : [stack] "r"(page + 4096), [to] "r"(page + (from - code_32_begin)), "b"(ebx)
			 : "memory");
	__builtin_unreachable();
}

static int body_spin_32(void *arg)
{
	run_32(spin_32, arg);
	return 9;
}

static int body_read_32(void *arg)
{
	run_32(code_32_begin, (void *)(intptr_t) * (int *)arg);
	return 9;
}

static int body_try_32(void *arg)
{
	long ret = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(ret) : : "memory");
	return ret > 0 ? 0 : 1;
}

/* ---- killing the tracer ---------------------------------------------------------------------- */

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
static void heal_at_any_moment(int (*read_one)(void *), int (*spin_on)(void *))
{
	struct fixture fixture = {.proc = proc_open(NULL)}, *f = &fixture;
	int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT,
		-1, 0);
	struct proc_status s;
	bool killed = true;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	for (long n = 0; killed; n++) {
		pid_t spin, reader = testtask_start(read_one, &sv[1]);

		*go = 0;
		spin = testtask_start(spin_on, go);
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

static void tasks_heal_at_any_moment(void **state)
{
	heal_at_any_moment(body_read, body_spin);
}

static void and_those_that_run_32_bit_code(void **state)
{
	if (testtask_end(testtask_start(body_try_32, NULL)) != 0)
		skip();
	heal_at_any_moment(body_read_32, body_spin_32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_heal_at_any_moment),
		cmocka_unit_test(and_those_that_run_32_bit_code)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
