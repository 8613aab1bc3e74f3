// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seccomp filters that look at arguments which are numbers of processes, that trap calls with such
 * arguments, that hand calls to a tracer who is not there, and that let one of two ways to install
 * another filter pass.  Each is asked before the move, and behind it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "tests/state/state.h"

#define LOAD(field)	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(what, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(what), yes, no)
#define RETURN(value)	  BPF_STMT(BPF_RET | BPF_K, value)
#define N(a)		  (sizeof(a) / sizeof((a)[0]))

static int install(struct sock_filter *code, size_t n)
{
	struct sock_fprog program = {(unsigned short)n, code};

	STATE_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int error_of(long r)
{
	return r == -1 ? errno : 0;
}

static pid_t make_child(void)
{
	pid_t child = fork();

	STATE_CHECK(child >= 0);
	while (child == 0)
		pause();
	return child;
}

/* ---- numbers as arguments ------------------------------------------------------------------- */

static pid_t child;

/* Deadly: any of these calls about anybody but @child; wait4 also of anybody. */
static void only_about_the_child(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_sched_getscheduler, 5, 0),
		IF(SYS_getpgid, 4, 0),
		IF(SYS_setpgid, 3, 0),
		IF(SYS_kill, 2, 0),
		IF(SYS_wait4, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		LOAD(args[0]),
		IF(child, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};

	STATE_CHECK(install(code, N(code)) == 0);
}

static void ask_about_the_child(void)
{
	STATE_CHECK(sched_getscheduler(child) == SCHED_OTHER);
	STATE_CHECK(getpgid(child) == child);
	STATE_CHECK(kill(child, 0) == 0);
	STATE_CHECK(waitpid(child, NULL, WNOHANG) == 0);
}

/* ---- no tracer ------------------------------------------------------------------------------ */

static void ask_a_tracer(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_getppid, 4, 0),
		IF(SYS_sched_getparam, 3, 0),
		IF(SYS_uname, 2, 0),
		IF(SYS_getpgrp, 2, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_TRACE),
		/* computed */
		LOAD(args[1]),
		BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};

	STATE_CHECK(install(code, N(code)) == 0);
}

static void nobody_traces(void)
{
	struct sched_param p;
	struct utsname u;

	STATE_CHECK(error_of(syscall(SYS_getppid)) == ENOSYS);
	STATE_CHECK(error_of(sched_getparam(child, &p)) == ENOSYS);
	STATE_CHECK(error_of(uname(&u)) == ENOSYS);
	STATE_CHECK(error_of(syscall(SYS_getpgrp, 0, 3)) == ENOSYS);
}

/* ---- traps ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t trapped, with;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *c = context;

	if (si->si_call_addr == (void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP])
		trapped = si->si_syscall;
	with = (sig_atomic_t)c->uc_mcontext.gregs[REG_RDI];
}

static void trap(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_sched_rr_get_interval, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_TRAP),
	};
	struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	STATE_CHECK(sigaction(SIGSYS, &a, NULL) == 0);
	STATE_CHECK(install(code, N(code)) == 0);
}

static void it_is_trapped(void)
{
	struct timespec t;

	trapped = with = 0;
	syscall(SYS_sched_rr_get_interval, child, &t);
	STATE_CHECK(trapped == SYS_sched_rr_get_interval && with == child);
}

/* ---- prctl(2), but not seccomp(2) ------------------------------------------------------------ */

static void no_seccomp_call(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_seccomp, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};

	STATE_CHECK(install(code, N(code)) == 0);
}

static void one_more(uint32_t nr, uint32_t error)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(nr, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | error),
		RETURN(SECCOMP_RET_LOG),
	};

	STATE_CHECK(install(code, N(code)) == 0);
	STATE_CHECK(error_of(syscall((long)nr)) == (int)error);
}

int main(int argc, char **argv)
{
	struct sched_param p;
	int status;

	child = make_child();
	STATE_CHECK(setpgid(child, child) == 0);
	only_about_the_child();
	ask_about_the_child();
	STATE_CHECK(setpgid(child, child) == 0);
	ask_a_tracer();
	nobody_traces();
	trap();
	it_is_trapped();
	no_seccomp_call();
	one_more(SYS_getuid, EXFULL);
	state_ready(argc, argv);
	ask_about_the_child();
	nobody_traces();
	it_is_trapped();
	one_more(SYS_getgid, EBADE);
	STATE_CHECK(error_of(syscall(SYS_getuid)) == EXFULL);
	STATE_CHECK(error_of(sched_getparam(0, &p)) == ENOSYS);
	STATE_CHECK(kill(child, SIGKILL) == 0);
	STATE_CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
	return state_ok();
}
