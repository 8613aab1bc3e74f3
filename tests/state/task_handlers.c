// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two handlers of signals run, one on a stack of its own that has interrupted the other on the
 * thread's: each returns to the registers that it has interrupted.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

#ifdef __x86_64__
#define KILL "syscall"
#define PID  "D"
#define SIG  "S"
#define LOST "rcx", "r11", "xmm6",
#else /* whose compiler uses no vector registers */
#define KILL "int $0x80"
#define PID  "b"
#define SIG  "c"
#define LOST
#endif

static int my_argc, seen;
static char **my_argv;

/* Sends itself @sig; is a vector register as it was when the handlers are through? */
static int kept_through(int sig, uint64_t seed)
{
	uint64_t before[4], after[4] = {0};
	long nr = SYS_kill;

	for (unsigned i = 0; i < 4; i++)
		before[i] = seed * (i + 1);
	if (!__builtin_cpu_supports("avx")) {
		raise(sig);
		return 1;
	}
	__asm__ volatile("vmovdqu %[before], %%ymm6\n\t"
			 KILL "\n\t"
			 "vmovdqu %%ymm6, %[after]"
			 : "+a"(nr), [after] "=m"(after)
			 : [before] "m"(before), PID(getpid()), SIG(sig)
			 : LOST "memory");
	return nr == 0 && !memcmp(before, after, sizeof(before));
}

static void inner(int sig, siginfo_t *info, void *context)
{
	STATE_CHECK(info->si_pid == getpid());
	state_ready(my_argc, my_argv);
	seen++;
}

static void outer(int sig, siginfo_t *info, void *context)
{
	STATE_CHECK(kept_through(SIGUSR2, 0xfedcba9876543211));
	STATE_CHECK(seen == 1 && info->si_pid == getpid());
	seen++;
}

int main(int argc, char **argv)
{
	static unsigned char own[65536];
	const stack_t stack = {.ss_sp = own, .ss_size = sizeof(own)};
	struct sigaction act = {.sa_sigaction = outer, .sa_flags = SA_SIGINFO};

	my_argc = argc;
	my_argv = argv;
	STATE_CHECK(sigaltstack(&stack, NULL) == 0);
	STATE_CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
	act.sa_sigaction = inner;
	act.sa_flags |= SA_ONSTACK;
	STATE_CHECK(sigaction(SIGUSR2, &act, NULL) == 0);
	STATE_CHECK(kept_through(SIGUSR1, 0x0123456789abcdef));
	STATE_CHECK(seen == 2);
	return state_ok();
}
