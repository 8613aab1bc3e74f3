// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A call changes three registers, whoever has stopped the task at it: rax, rcx and r11.  Arguments
 * that are ints have more in their registers here than the kernel looks at.
 */
#include "tests/rows/rows.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define UPPER 0x1234567800000000ULL
#define MARK  0x5a5a000000000000ULL

/* Of an int: with something in the upper half. */
static uint64_t wide(int value)
{
	return (uint32_t)value | UPPER;
}

static uint64_t at(const void *p)
{
	return (uintptr_t)p;
}

static long call(int nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	register uint64_t rbx __asm__("rbx") = MARK + 1;
	register uint64_t r8 __asm__("r8") = MARK + 8;
	register uint64_t r9 __asm__("r9") = MARK + 9;
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r12 __asm__("r12") = MARK + 12;
	register uint64_t r13 __asm__("r13") = MARK + 13;
	register uint64_t r14 __asm__("r14") = MARK + 14;
	register uint64_t r15 __asm__("r15") = MARK + 15;
	const uint64_t was[] = {a, b, c, d, MARK + 1, MARK + 8, MARK + 9, MARK + 12, MARK + 13,
		MARK + 14, MARK + 15};
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(rbx), "+r"(r8),
			 "+r"(r9), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
			 : "a"((uint64_t)nr)
			 : "memory", "rcx", "r11");
	{
		const uint64_t is[] = {a, b, c, r10, rbx, r8, r9, r12, r13, r14, r15};

		ROW_CHECK(memcmp(was, is, sizeof(was)) == 0);
	}
	return r;
}

/* Answered, stopped at and let go on, refused at the entry, made with other arguments. */
static void of_calls(void)
{
	struct timespec now = {0};
	struct rlimit limit;
	struct utsname name;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	ROW_CHECK(call(SYS_getpid, UPPER, UPPER, UPPER, UPPER) == row_self);
	ROW_CHECK(call(SYS_getpgid, wide(row_child), 0, 0, 0) == getpgid(0));
	ROW_CHECK(call(SYS_wait4, wide(ROW_NOBODY), 0, 0, 0) == -ECHILD);
	ROW_CHECK(call(SYS_wait4, wide(row_child), 0, wide(WNOHANG), 0) == 0);
	ROW_CHECK(call(SYS_wait4, wide(-1), 0, wide(WNOHANG), 0) == 0);
	ROW_CHECK(call(SYS_waitid, wide(P_PID), wide(ROW_NOBODY), 0, wide(WEXITED)) == -ECHILD);
	ROW_CHECK(call(SYS_setpgid, wide(row_child), wide(ROW_NOBODY), 0, 0) == -EPERM);
	ROW_CHECK(call(SYS_setpgid, wide(row_child), wide(row_child), 0, 0) == 0);
	ROW_CHECK(call(SYS_prlimit64, wide(row_child), wide(RLIMIT_NOFILE), 0, at(&limit)) == 0);
	ROW_CHECK(call(SYS_rt_sigtimedwait, at(&usr1), 0, at(&now), 8) == -EAGAIN);
	ROW_CHECK(call(SYS_uname, at(&name), UPPER, UPPER, UPPER) == 0);
	ROW_CHECK(call(SYS_unlink, at("/tmp/not/there"), UPPER, UPPER, UPPER) == -ENOENT);
	ROW_CHECK(call(SYS_execve, at("/tmp/not/there"), 0, 0, UPPER) == -ENOENT);
}

static void of_births(int nr, uint64_t flags)
{
	int status = 0, word = 0;
	long pid = call(nr, flags, 0, flags & CLONE_PARENT_SETTID ? at(&word) : UPPER, UPPER);

	if (pid == 0)
		_exit(9);
	ROW_CHECK(pid > row_child);
	ROW_CHECK(word == (flags & CLONE_PARENT_SETTID ? pid : 0));
	ROW_CHECK(call(SYS_wait4, wide((int)pid), at(&status), 0, 0) == pid);
	ROW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

void row_registers(void)
{
	of_calls();
	of_births(SYS_fork, UPPER);
	of_births(SYS_clone, SIGCHLD);
	of_births(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID);
}
