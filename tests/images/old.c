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

#include "call.h"

char pattern[sizeof(PATTERN)] = PATTERN;

#ifdef __x86_64__
long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

long begin_thread(void (*f)(void), char *top)
{
	register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
	void **sp = (void **)top - 1;
	long r;

	*sp = (void *)f;
	__asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\tpopq %%rax\n\tcall *%%rax\n\thlt\n1:"
			 : "=a"(r)
			 : "0"(SYS_clone), "D"(0x10f00L), "S"(sp), "d"(0L), "r"(r10), "r"(r8) /* VM, FS, FILES, SIGHAND, THREAD */
			 : "rcx", "r11", "memory");
	return r;
}
#else
/* All registers are taken: the sixth comes from a place that has an address of its own. */
static volatile long sixth;

long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	long r;

	if (f)
		sixth = f;
	__asm__ volatile("pushl %%ebp\n\tmovl %[sixth], %%ebp\n\tint $0x80\n\tpopl %%ebp"
			 : "=a"(r)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), [sixth] "m"(sixth)
			 : "memory");
	return r;
}

long begin_thread(void (*f)(void), char *top)
{
	void **sp = (void **)top - 1;
	long r;

	*sp = (void *)f;
	__asm__ volatile("int $0x80\n\ttest %%eax, %%eax\n\tjnz 1f\n\tpopl %%eax\n\tcall *%%eax\n\thlt\n1:"
			 : "=a"(r)
			 : "0"(SYS_clone), "b"(0x10f00L), "c"(sp), "d"(0L), "S"(0L), "D"(0L)
			 : "memory");
	return r;
}
#endif

void say(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	call(SYS_write, 1, (long)text, n, 0);
}

void end(int status)
{
	call(SYS_exit_group, status, 0, 0, 0);
	__builtin_unreachable();
}

void check(bool right, const char *what)
{
	if (right)
		return;
	say("FAIL ");
	say(what);
	say("\n");
	end(1);
}

bool same(const char *a, const char *b, long n)
{
	while (n && a[n - 1] == b[n - 1])
		n--;
	return n == 0;
}

bool reads(int fd, const char *text, long n)
{
	char got[64];

	return call(SYS_read, fd, (long)got, sizeof(got), 0) == n && same(got, text, n);
}

bool begins(int fd, const char *text, long n)
{
	char got[64];

	return call(SYS_pread64, fd, (long)got, n, 0) == n && same(got, text, n);
}

int open_at(const char *path, int flags)
{
	return (int)call(SYS_open, (long)path, flags, 0600, 0);
}

void wait_for_go(void)
{
	const long nap[2] = {0, 10000000};

	while (call(SYS_access, (long)"/tmp/go", 0, 0, 0) != 0)
		call(SYS_nanosleep, (long)nap, 0, 0, 0);
}

/* Processes have all that was made before them, and signals that the first one blocks reach no thread. */
static const struct part *const parts[] = {
	&part_memory,
	&part_files,
	&part_descriptors,
	&part_sockets,
#ifdef WITH_NETWORK
	&part_network,
#endif
#ifdef WITH_TERMINAL
	&part_terminal,
#endif
	&part_ipc,
	&part_tasks,
	&part_thread,
#ifdef WITH_ROOT
	&part_root,
#endif
};

__attribute__((force_align_arg_pointer)) void _start(void)
{
	const unsigned n = sizeof(parts) / sizeof(parts[0]);

	for (unsigned i = 0; i < n; i++)
		parts[i]->set_up();
	say("ready\n");
	wait_for_go();
	for (unsigned i = 0; i < n; i++)
		parts[i]->look();
	say("ok\n");
	end(0);
}
