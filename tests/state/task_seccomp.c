// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs that have confined themselves with seccomp: strict mode, lists of what is allowed with
 * everything else failing, trapping or deadly, filters on top of others, threads.  Each is a child
 * that answers bytes from a pipe with bytes, and at the end does something it must not.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define LOAD(field)	   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_NR(nr, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, yes, no)
#define RETURN(value)	   BPF_STMT(BPF_RET | BPF_K, value)
#define ERROR(n)	   RETURN(SECCOMP_RET_ERRNO | (n))
#define N(a)		   (sizeof(a) / sizeof((a)[0]))

static long install(struct sock_filter *code, size_t n, unsigned flags)
{
	struct sock_fprog program = {(unsigned short)n, code};

	STATE_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* What is not allowed ends like @otherwise; call @also is allowed as well. */
static void allow_also(uint32_t also, uint32_t otherwise)
{
	struct sock_filter code[] = {
		LOAD(arch),
		IF_NR(AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IF_NR(also, 6, 0),
		IF_NR(SYS_read, 5, 0),
		IF_NR(SYS_write, 4, 0),
		IF_NR(SYS_poll, 3, 0),
		IF_NR(SYS_rt_sigreturn, 2, 0),
		IF_NR(SYS_exit_group, 1, 0),
		RETURN(otherwise),
		RETURN(SECCOMP_RET_ALLOW),
	};

	STATE_CHECK(install(code, N(code), 0) == 0);
}

static void allow_little(uint32_t otherwise)
{
	allow_also(SYS_read, otherwise);
}

/* The next byte for us; waits as browsers do, in a call which a freeze interrupts. */
static char next(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	char c = 0;

	if (poll(&p, 1, 3600 * 1000) != 1 || read(fd, &c, 1) != 1)
		return 0;
	return c;
}

static void answer(int fd, char c)
{
	STATE_CHECK(write(fd, &c, 1) == 1);
}

/* ---- the children -------------------------------------------------------------------------- */

static void strict(int in, int out)
{
	char c;

	STATE_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	while (read(in, &c, 1) == 1 && c != '!')
		if (write(out, &c, 1) != 1)
			syscall(SYS_exit, 1);
	syscall(SYS_getpid);
	syscall(SYS_exit, 1);
}

static void answer_until_killed(int in, int out)
{
	char c;

	while ((c = next(in)) != '!')
		answer(out, c);
	syscall(SYS_getpid);
	_exit(1);
}

static void deadly(int in, int out)
{
	allow_little(SECCOMP_RET_KILL_PROCESS);
	answer_until_killed(in, out);
}

/* A stopped poll goes on by restart_syscall when it is continued, sessions or not. */
static void stoppable(int in, int out)
{
	allow_also(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS);
	answer_until_killed(in, out);
}

static void failing(int in, int out)
{
	char c;

	allow_little(SECCOMP_RET_ERRNO | EXFULL);
	while ((c = next(in)) != '!') {
		STATE_CHECK(syscall(SYS_getpid) == -1 && errno == EXFULL);
		STATE_CHECK(syscall(SYS_mmap, NULL, 4096, 0, 0, -1, 0) == -1 && errno == EXFULL);
		answer(out, c);
	}
	_exit(42);
}

static volatile sig_atomic_t trapped;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	trapped = si->si_syscall;
}

static void trapping(int in, int out)
{
	struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	char c;

	STATE_CHECK(sigaction(SIGSYS, &a, NULL) == 0);
	allow_little(SECCOMP_RET_TRAP);
	while ((c = next(in)) != '!') {
		trapped = 0;
		syscall(SYS_getppid);
		answer(out, trapped == SYS_getppid ? c : '?');
	}
	_exit(42);
}

static int filters_of(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256];
	int n = -1;

	STATE_CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Seccomp_filters: %d", &n);
	fclose(f);
	return n;
}

/* The newest of two that say the same decides; what is on top goes with its own process only. */
static void nested(int in, int out)
{
	struct sock_filter first[] = {
		LOAD(nr),
		IF_NR(SYS_getppid, 0, 1),
		ERROR(11),
		IF_NR(SYS_getpgrp, 0, 3),
		LOAD(args[1]),
		IF_NR(5, 0, 1),
		ERROR(55),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_filter second[] = {
		LOAD(nr),
		IF_NR(SYS_getppid, 0, 1),
		ERROR(22),
		RETURN(SECCOMP_RET_ALLOW),
	};
	char c, path[32], without[32]; /* a process that has none of its own */
	int pair[2], own = 2;
	pid_t child;

	snprintf(without, sizeof(without), "/proc/%d/status", getppid());
	STATE_CHECK(install(first, N(first), 0) == 0 && pipe(pair) == 0);
	child = fork();
	if (child == 0) {
		close(pair[1]);
		_exit(next(pair[0]) == '!' && syscall(SYS_getppid) == -1 && errno == 11 ? 42 : 1);
	}
	snprintf(path, sizeof(path), "/proc/%d/status", child);
	STATE_CHECK(install(second, N(second), SECCOMP_FILTER_FLAG_LOG) == 0);
	while ((c = next(in)) != '!') {
		int status;

		STATE_CHECK(filters_of("/proc/self/status") == filters_of(without) + own);
		STATE_CHECK(syscall(SYS_getppid) == -1 && errno == 22);
		STATE_CHECK(syscall(SYS_getpgrp, 0, 5) == -1 && errno == 55);
		STATE_CHECK(syscall(SYS_getpgrp, 0, 4) > 0);
		if (c == '2') {
			STATE_CHECK(filters_of(path) == filters_of(without) + 1);
			answer(pair[1], '!');
			STATE_CHECK(waitpid(child, &status, 0) == child && status == 42 << 8);
			STATE_CHECK(install(second, N(second), 0) == 0);
			own++;
			STATE_CHECK(filters_of("/proc/self/status") == filters_of(without) + own);
		}
		answer(out, c);
	}
	/* What the kernel would not take is not taken, and which flags it knows can be asked. */
	STATE_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, NULL) ==
			    -1 &&
		    errno == EFAULT);
	STATE_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1u << 31, NULL) == -1 &&
		    errno == EINVAL);
	STATE_CHECK(install(second, 2, 0) == -1 && errno == EINVAL);
	STATE_CHECK(install((void *)4096, 2, 0) == -1 && errno == EFAULT);
	STATE_CHECK(install(second, N(second), 1u << 31) == -1 && errno == EINVAL);
	_exit(42);
}

/* ---- threads ------------------------------------------------------------------------------- */

static pthread_barrier_t barrier, last; /* of all three, of two */
static pid_t special;

static int error_of(long nr)
{
	errno = 0;
	return syscall(nr) == -1 ? errno : 0;
}

static void meet(void)
{
	pthread_barrier_wait(&barrier);
}

static void *plain_thread(void *arg)
{
	meet();
	STATE_CHECK(error_of(SYS_getppid) == 33 && error_of(SYS_getpgrp) == 0);
	meet();
	meet();
	STATE_CHECK(error_of(SYS_getppid) == 33 && error_of(SYS_getpgrp) == 0);
	meet();
	pthread_barrier_wait(&last);
	STATE_CHECK(error_of(SYS_getuid) == 77);
	return NULL;
}

static void *special_thread(void *arg)
{
	struct sock_filter own[] = {
		LOAD(nr), IF_NR(SYS_getpgrp, 0, 1), ERROR(44), RETURN(SECCOMP_RET_ALLOW)};

	special = (pid_t)syscall(SYS_gettid);
	meet();
	STATE_CHECK(install(own, N(own), 0) == 0);
	STATE_CHECK(error_of(SYS_getppid) == 33 && error_of(SYS_getpgrp) == 44);
	meet();
	meet();
	STATE_CHECK(error_of(SYS_getppid) == 33 && error_of(SYS_getpgrp) == 44);
	meet();
	return NULL;
}

static void threaded(int in, int out)
{
	struct sock_filter all[] = {
		LOAD(nr), IF_NR(SYS_getppid, 0, 1), ERROR(33), RETURN(SECCOMP_RET_ALLOW)};
	struct sock_filter later[] = {
		LOAD(nr), IF_NR(SYS_getuid, 0, 1), ERROR(77), RETURN(SECCOMP_RET_ALLOW)};
	pthread_t a, b;
	char c;

	pthread_barrier_init(&barrier, NULL, 3);
	pthread_barrier_init(&last, NULL, 2);
	STATE_CHECK(pthread_create(&a, NULL, plain_thread, NULL) == 0);
	STATE_CHECK(pthread_create(&b, NULL, special_thread, NULL) == 0);
	STATE_CHECK(install(all, N(all), SECCOMP_FILTER_FLAG_TSYNC) == 0);
	meet();
	meet();
	while ((c = next(in)) != '!')
		answer(out, c);
	/* One that is not like the others is named; once it is gone the rest can follow. */
	STATE_CHECK(install(later, N(later), SECCOMP_FILTER_FLAG_TSYNC) == special);
	meet();
	meet();
	STATE_CHECK(pthread_join(b, NULL) == 0);
	STATE_CHECK(install(later, N(later), SECCOMP_FILTER_FLAG_TSYNC) == 0);
	pthread_barrier_wait(&last);
	STATE_CHECK(pthread_join(a, NULL) == 0);
	_exit(42);
}

/* Who has a filter can't have strict mode as well. */
static void filtered(int in, int out)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	char c;

	STATE_CHECK(install(code, N(code), 0) == 0);
	while ((c = next(in)) != '!') {
		STATE_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == -1 && errno == EINVAL);
		STATE_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == -1 &&
			    errno == EINVAL);
		answer(out, c);
	}
	_exit(42);
}

/* ---- all of them --------------------------------------------------------------------------- */

static struct {
	const char *name;
	void (*run)(int in, int out);
	int end; /* wait status, or -1: killed by SIGSYS or SIGKILL */
	pid_t pid;
	int in, out; /* of the child */
} children[] = {
	{"strict", strict, -1},
	{"deadly", deadly, -1},
	{"failing", failing, 42 << 8},
	{"trapping", trapping, 42 << 8},
	{"nested", nested, 42 << 8},
	{"filtered", filtered, 42 << 8},
	{"threaded", threaded, 42 << 8},
	{"stopped", stoppable, -1},
};

static void start(size_t i)
{
	int in[2], out[2];

	STATE_CHECK(pipe(in) == 0 && pipe(out) == 0);
	children[i].pid = fork();
	if (children[i].pid == 0) {
		close(in[1]);
		close(out[0]);
		children[i].run(in[0], out[1]);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	children[i].in = in[1];
	children[i].out = out[0];
}

static void talk(size_t i, char say)
{
	char c = 0;

	STATE_CHECK(write(children[i].in, &say, 1) == 1);
	if (read(children[i].out, &c, 1) != 1 || c != say) {
		printf("FAIL: %s\n", children[i].name);
		fflush(stdout);
		_exit(1);
	}
}

static void check_end(size_t i)
{
	int status = 0;

	STATE_CHECK(write(children[i].in, "!", 1) == 1);
	STATE_CHECK(waitpid(children[i].pid, &status, 0) == children[i].pid);
	if (children[i].end < 0 ? !WIFSIGNALED(status) || (WTERMSIG(status) != SIGSYS &&
								  WTERMSIG(status) != SIGKILL)
				: status != children[i].end) {
		printf("FAIL: %s ended with status %#x\n", children[i].name, status);
		fflush(stdout);
		_exit(1);
	}
}

int main(int argc, char **argv)
{
	const size_t stopped = N(children) - 1;
	int status;

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < N(children); i++) {
		start(i);
		talk(i, '1');
	}
	kill(children[stopped].pid, SIGSTOP);
	STATE_CHECK(waitpid(children[stopped].pid, &status, WUNTRACED) == children[stopped].pid);
	state_ready(argc, argv);
	STATE_CHECK(kill(children[stopped].pid, SIGCONT) == 0);
	for (size_t i = 0; i < N(children); i++) {
		talk(i, '2');
		talk(i, '3');
		check_end(i);
	}
	return state_ok();
}
