// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * old - what the images beside this are of: a program without a C library, so that they are small
 * and need nothing of the machine that they are resumed on.  It has some of everything, says
 * "ready", waits for /tmp/go, looks at all of it, and says "ok".
 *
 * One that was made by an older podrun stays what it is: what is added here is in new images only
 * (docs/adding.md).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#define PATTERN "an old image is read for ever"

static char memory[3 * 4096] __attribute__((aligned(4096)));
static char pattern[] = PATTERN;

static long call(long nr, long a, long b, long c, long d)
{
	long r;

#ifdef __x86_64__
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80" : "=a"(r) : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
#endif
	return r;
}

static void say(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	call(SYS_write, 1, (long)text, n, 0);
}

static void check(int right, const char *what)
{
	if (right)
		return;
	say("FAIL ");
	say(what);
	say("\n");
	call(SYS_exit_group, 1, 0, 0, 0);
}

static int same(const char *a, const char *b, long n)
{
	while (n && a[n - 1] == b[n - 1])
		n--;
	return n == 0;
}

static void wait_for_go(void)
{
	const long nap[2] = {0, 10000000};

	while (call(SYS_access, (long)"/tmp/go", 0, 0, 0) != 0)
		call(SYS_nanosleep, (long)nap, 0, 0, 0);
}

static int pipe_ends[2], pair[2], file, event, memfd, child;

static void set_up(void)
{
	const unsigned long usr1[2] = {1UL << (SIGUSR1 - 1)};
	const unsigned long long seven = 7;

	for (unsigned i = 0; i < sizeof(memory); i += 4096)
		memory[i] = (char)('a' + i / 4096);
	check(call(SYS_pipe, (long)pipe_ends, 0, 0, 0) == 0, "pipe");
	call(SYS_write, pipe_ends[1], (long)pattern, 11, 0);
	check(call(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, (long)pair) == 0, "socketpair");
	call(SYS_write, pair[0], (long)pattern, 5, 0);
	call(SYS_write, pair[0], (long)pattern + 5, 6, 0);
	file = (int)call(SYS_open, (long)"/tmp/file", O_RDWR | O_CREAT, 0600, 0);
	call(SYS_write, file, (long)pattern, sizeof(pattern), 0);
	check(call(SYS_lseek, file, 3, 0, 0) == 3, "file");
	event = (int)call(SYS_eventfd2, 0, 0, 0, 0);
	call(SYS_write, event, (long)&seven, 8, 0);
	memfd = (int)call(SYS_memfd_create, (long)"memfd", 0, 0, 0);
	check(call(SYS_write, memfd, (long)pattern, sizeof(pattern), 0) == sizeof(pattern), "memfd");
	call(SYS_rt_sigprocmask, SIG_BLOCK, (long)usr1, 0, 8);
	call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), SIGUSR1, 0, 0);
}

static void look(void)
{
	unsigned long pending[2] = {0};
	unsigned long long count = 0;
	char got[64];

	for (unsigned i = 0; i < sizeof(memory); i++)
		check(memory[i] == (i % 4096 ? 0 : (char)('a' + i / 4096)), "memory");
	check(same(pattern, PATTERN, sizeof(pattern)), "data");
	check(call(SYS_read, pipe_ends[0], (long)got, 64, 0) == 11 && same(got, PATTERN, 11), "pipe");
	check(call(SYS_read, pair[1], (long)got, 64, 0) == 5 && same(got, PATTERN, 5), "first datagram");
	check(call(SYS_read, pair[1], (long)got, 64, 0) == 6 && same(got, PATTERN + 5, 6), "second datagram");
	check(call(SYS_read, file, (long)got, 64, 0) == sizeof(pattern) - 3 && same(got, PATTERN + 3, sizeof(pattern) - 3),
		"file");
	check(call(SYS_read, event, (long)&count, 8, 0) == 8 && count == 7, "eventfd");
	check(call(SYS_lseek, memfd, 0, 0, 0) == 0 &&
			call(SYS_read, memfd, (long)got, 64, 0) == sizeof(pattern) && same(got, PATTERN, sizeof(pattern)),
		"memfd");
	call(SYS_rt_sigpending, (long)pending, 8, 0, 0);
	check(pending[0] == 1UL << (SIGUSR1 - 1), "pending signal");
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	int status = -1;

	set_up();
	child = (int)call(SYS_fork, 0, 0, 0, 0);
	if (child == 0) {
		wait_for_go();
		call(SYS_exit_group, call(SYS_getppid, 0, 0, 0, 0) == 2 ? 42 : 1, 0, 0, 0);
	}
	say("ready\n");
	wait_for_go();
	look();
	check(call(SYS_wait4, child, (long)&status, 0, 0) == child && status == 42 << 8, "child");
	say("ok\n");
	call(SYS_exit_group, 0, 0, 0, 0);
}
