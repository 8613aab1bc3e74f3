// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that shares its maker's memory is stopped within a function of the vDSO, which is about
 * to write where nobody has written before.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "tests/state/state.h"

#define STACK	  (256 * 1024)
#define VDSO_SIZE 4096 /* at least */
#define TRAP_FLAG 0x100

static uintptr_t vdso;

/* After every instruction.  SIGTSTP waits for the end of the handler: who is stopped by it stands
 * where the step ended. */
static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	uintptr_t at = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];

	if (at < vdso || at >= vdso + VDSO_SIZE)
		return;
	c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	syscall(SYS_kill, syscall(SYS_getpid), SIGTSTP);
}

static int ask(void *arg)
{
	/* SIGTSTP stops nobody whose group has no parent in the session. */
	syscall(SYS_setpgid, 0, 0);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
	clock_gettime(CLOCK_REALTIME, arg);
	syscall(SYS_exit, 9);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct timespec *fresh = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	STATE_CHECK(fresh != MAP_FAILED && stack != MAP_FAILED);
	vdso = getauxval(AT_SYSINFO_EHDR);
	STATE_CHECK(vdso);
	sigaddset(&sa.sa_mask, SIGTSTP);
	STATE_CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
	pid = clone(ask, stack + STACK, CLONE_VM | SIGCHLD, fresh);
	STATE_CHECK(pid > 0);
	STATE_CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
		    WSTOPSIG(status) == SIGTSTP);

	state_ready(argc, argv);

	STATE_CHECK(kill(pid, SIGCONT) == 0);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 9);
	STATE_CHECK(fresh->tv_sec > 0);
	return state_ok();
}
