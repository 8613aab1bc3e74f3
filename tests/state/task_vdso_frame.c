// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A handler runs that has interrupted a function of the vDSO, in its middle: when it returns that
 * function goes on, also where the kernel's is another one by then.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "tests/state/state.h"

#define VDSO_SIZE 4096 /* at least */
#define TRAP_FLAG 0x100
#define STEPS	  12 /* from its beginning */

static int n_args;
static char **args;
static uintptr_t vdso;
static int steps;

/* After every instruction. */
static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	uintptr_t at = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];

	if (at < vdso || at >= vdso + VDSO_SIZE || ++steps < STEPS)
		return;
	c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	state_ready(n_args, args);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct timespec before, now = {0}, after;

	n_args = argc;
	args = argv;
	vdso = getauxval(AT_SYSINFO_EHDR);
	STATE_CHECK(vdso && sigaction(SIGTRAP, &sa, NULL) == 0);
	STATE_CHECK(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
	STATE_CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	STATE_CHECK(steps == STEPS);
	STATE_CHECK(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
	STATE_CHECK(now.tv_sec >= before.tv_sec && now.tv_sec <= after.tv_sec);
	return state_ok();
}
