// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers of tasks as arguments and results. */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/*
 * ---- who ------------------------------------------------------------------------------------
 */

static void who(void)
{
	ROW_CHECK(syscall(SYS_getpid) == row_self && row_self > 1 && row_self < 1000);
	ROW_CHECK(syscall(SYS_gettid) == row_self && row_child == row_self + 1);
	ROW_CHECK(syscall(SYS_getppid) == 2);
	ROW_CHECK(syscall(SYS_getpgrp) == getpgid(row_child) && getpgid(0) == 2);
	ROW_CHECK(getsid(row_child) == 2 && getsid(0) == 2);
	ROW_FAILS(getpgid(ROW_NOBODY), ESRCH);
	ROW_FAILS(getsid(ROW_NOBODY), ESRCH);
}

static void groups(void)
{
	int status;
	pid_t other;

	ROW_CHECK(setpgid(row_child, row_child) == 0 && getpgid(row_child) == row_child);
	ROW_FAILS(setpgid(ROW_NOBODY, 0), ESRCH);
	ROW_FAILS(setpgid(0, ROW_NOBODY), EPERM);
	ROW_FAILS(setpgid(0, -5), EINVAL);
	other = fork();
	if (other == 0)
		_exit(setsid() != getpid() || getsid(0) != getpid() || setsid() != -1);
	ROW_CHECK(waitpid(other, &status, 0) == other && status == 0);
}

static void tid_address(void)
{
	static pid_t word;

	ROW_CHECK(syscall(SYS_set_tid_address, &word) == row_self);
}

/*
 * ---- signals --------------------------------------------------------------------------------
 */

/* The next one that is pending comes from @sender with @code. */
static void expect_signal(int sig, pid_t sender, int code)
{
	uint64_t set = 1ULL << (sig - 1);
	siginfo_t info;

	/* The C library would make SI_USER of SI_TKILL. */
	ROW_CHECK(syscall(SYS_rt_sigtimedwait, &set, &info, NULL, sizeof(set)) == sig);
	ROW_CHECK(info.si_pid == sender && info.si_code == code);
}

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static siginfo_t queued(int sig, int code)
{
	siginfo_t info = {.si_signo = sig, .si_code = code};

	info.si_pid = row_self;
	return info;
}

static void signals(void)
{
	siginfo_t own = queued(SIGUSR1, SI_QUEUE), kernels = queued(SIGUSR1, SI_KERNEL);

	block(SIGUSR1);
	ROW_CHECK(kill(row_child, 0) == 0 && kill(row_self, SIGUSR1) == 0);
	expect_signal(SIGUSR1, row_self, SI_USER);
	ROW_CHECK(syscall(SYS_tkill, row_self, SIGUSR1) == 0);
	expect_signal(SIGUSR1, row_self, SI_TKILL);
	ROW_CHECK(syscall(SYS_tgkill, row_self, row_self, SIGUSR1) == 0);
	expect_signal(SIGUSR1, row_self, SI_TKILL);
	ROW_CHECK(syscall(SYS_rt_sigqueueinfo, row_self, SIGUSR1, &own) == 0);
	expect_signal(SIGUSR1, row_self, SI_QUEUE);
	ROW_CHECK(syscall(SYS_rt_tgsigqueueinfo, row_self, row_self, SIGUSR1, &own) == 0);
	expect_signal(SIGUSR1, row_self, SI_QUEUE);
	/* To oneself one may say anything. */
	ROW_CHECK(syscall(SYS_rt_sigqueueinfo, row_self, SIGUSR1, &kernels) == 0);
	expect_signal(SIGUSR1, row_self, SI_KERNEL);
	ROW_FAILS(syscall(SYS_rt_sigqueueinfo, row_child, SIGUSR1, &kernels), EPERM);
	ROW_FAILS(kill(ROW_NOBODY, 0), ESRCH);
	ROW_FAILS(kill(-ROW_NOBODY, 0), ESRCH);
	ROW_FAILS(syscall(SYS_tkill, ROW_NOBODY, 0), ESRCH);
	ROW_FAILS(syscall(SYS_tgkill, row_child, row_self, 0), ESRCH);
	ROW_FAILS(syscall(SYS_rt_sigqueueinfo, ROW_NOBODY, SIGUSR1, &own), ESRCH);
}

static void by_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, row_self, 0),
	    child = (int)syscall(SYS_pidfd_open, row_child, 0);
	siginfo_t own = queued(SIGUSR1, SI_QUEUE), info;
	int got;

	block(SIGUSR1);
	ROW_CHECK(fd >= 0 && child >= 0);
	ROW_FAILS(syscall(SYS_pidfd_open, ROW_NOBODY, 0), ESRCH);
	ROW_FAILS(syscall(SYS_pidfd_open, -1, 0), EINVAL);
	ROW_CHECK(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0) == 0);
	expect_signal(SIGUSR1, row_self, SI_USER);
	ROW_CHECK(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, &own, 0) == 0);
	expect_signal(SIGUSR1, row_self, SI_QUEUE);
	ROW_CHECK(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 1 /* PIDFD_SIGNAL_THREAD */) ==
		  0);
	expect_signal(SIGUSR1, row_self, SI_TKILL);
	ROW_FAILS(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 3), EINVAL);
	ROW_FAILS(syscall(SYS_pidfd_send_signal, 0, SIGUSR1, NULL, 0), EBADF);
	got = (int)syscall(SYS_pidfd_getfd, child, 1, 0);
	ROW_CHECK(got >= 0 || errno == EPERM); /* in a container */
	ROW_CHECK(syscall(SYS_pidfd_send_signal, child, SIGKILL, NULL, 0) == 0);
	ROW_CHECK(waitid(P_PIDFD, (id_t)child, &info, WEXITED) == 0 && info.si_pid == row_child);
	ROW_FAILS(syscall(SYS_pidfd_send_signal, child, 0, NULL, 0), ESRCH);
}

/*
 * ---- waiting --------------------------------------------------------------------------------
 */

static pid_t ends(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	return pid;
}

static void waits(void)
{
	pid_t a = ends(), b = ends(), c = ends();
	siginfo_t info;
	int status;

	ROW_CHECK(waitpid(b, &status, 0) == b && WEXITSTATUS(status) == 7);
	ROW_CHECK(waitid(P_PID, (id_t)c, &info, WEXITED) == 0 && info.si_pid == c);
	ROW_CHECK(waitid(P_PGID, 0, &info, WEXITED) == 0 && info.si_pid == a);
	a = ends();
	ROW_CHECK(waitpid(-2, &status, 0) == a);
	ROW_FAILS(waitpid(ROW_NOBODY, NULL, 0), ECHILD);
	ROW_FAILS(waitpid(-ROW_NOBODY, NULL, 0), ECHILD);
	ROW_FAILS(waitid(P_PID, ROW_NOBODY, &info, WEXITED), ECHILD);
	ROW_CHECK(waitpid(row_child, NULL, WNOHANG) == 0);
}

/*
 * ---- scheduling, limits ---------------------------------------------------------------------
 */

static void scheduling(void)
{
	struct sched_param param = {0};
	struct {
		uint32_t size, policy;
		uint64_t rest[6];
	} attr = {.size = sizeof(attr)}; /* sched_attr of linux/sched/types.h */
	struct timespec ts;
	cpu_set_t cpus;

	for (int i = 0; i < 2; i++) {
		pid_t p = i ? row_child : 0;

		ROW_CHECK(sched_getparam(p, &param) == 0 && sched_setparam(p, &param) == 0);
		ROW_CHECK(sched_getscheduler(p) == 0 &&
			  sched_setscheduler(p, SCHED_BATCH, &param) == 0);
		ROW_CHECK(
			sched_getscheduler(p) == SCHED_BATCH && sched_rr_get_interval(p, &ts) == 0);
		ROW_CHECK(sched_getaffinity(p, sizeof(cpus), &cpus) == 0);
		ROW_CHECK(sched_setaffinity(p, sizeof(cpus), &cpus) == 0);
		ROW_CHECK(syscall(SYS_sched_getattr, p, &attr, sizeof(attr), 0) == 0);
		ROW_CHECK(syscall(SYS_sched_setattr, p, &attr, 0) == 0);
	}
	ROW_FAILS(sched_getscheduler(ROW_NOBODY), ESRCH);
	ROW_FAILS(sched_getscheduler(-1), EINVAL);
	ROW_FAILS(sched_setaffinity(1, sizeof(cpus), &cpus), EPERM);
}

static void priorities(void)
{
	ROW_CHECK(setpriority(PRIO_PROCESS, (id_t)row_child, 3) == 0);
	ROW_CHECK(getpriority(PRIO_PROCESS, (id_t)row_child) == 3 &&
		  getpriority(PRIO_PROCESS, 0) == 0);
	ROW_CHECK(setpgid(row_child, 0) == 0 && setpriority(PRIO_PGRP, (id_t)row_child, 4) == 0);
	ROW_CHECK(getpriority(PRIO_PGRP, (id_t)row_child) == 4);
	ROW_CHECK(getpriority(PRIO_USER, 0) == 0 && setpriority(PRIO_USER, getuid(), 0) == -1);
	ROW_CHECK(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, row_child, 3 << 13) == 0);
	ROW_CHECK(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, row_child) == 3 << 13);
	ROW_CHECK(syscall(SYS_ioprio_set, IOPRIO_WHO_PGRP, row_child, 3 << 13) == 0);
	ROW_CHECK(syscall(SYS_ioprio_get, IOPRIO_WHO_PGRP, row_child) == 3 << 13);
	ROW_FAILS(setpriority(PRIO_PROCESS, ROW_NOBODY, 3), ESRCH);
	ROW_FAILS(setpriority(PRIO_USER, 4711, 3), ESRCH);
	ROW_FAILS(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, ROW_NOBODY), ESRCH);
}

/* Last: it stays. */
static void of_the_user(void)
{
	int nice = getpriority(PRIO_PROCESS, 0) + 1;

	ROW_CHECK(syscall(SYS_ioprio_set, IOPRIO_WHO_USER, 0, 2 << 13 | 6) == 0);
	ROW_CHECK(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, row_child) == (2 << 13 | 6));
	ROW_CHECK(syscall(SYS_ioprio_get, IOPRIO_WHO_USER, 0) == (2 << 13 | 6));
	ROW_CHECK(setpriority(PRIO_USER, 0, nice) == 0);
	ROW_CHECK(getpriority(PRIO_PROCESS, (id_t)row_child) == nice &&
		  getpriority(PRIO_USER, 0) == nice);
}

static void limits(void)
{
	struct rlimit r = {10, 20}, now;

	ROW_CHECK(prlimit(row_child, RLIMIT_NOFILE, &r, NULL) == 0);
	ROW_CHECK(prlimit(row_child, RLIMIT_NOFILE, NULL, &now) == 0 && now.rlim_cur == 10);
	ROW_CHECK(prlimit(0, RLIMIT_NOFILE, NULL, &now) == 0 && now.rlim_cur != 10);
	ROW_FAILS(prlimit(ROW_NOBODY, RLIMIT_NOFILE, NULL, &now), ESRCH);
	ROW_FAILS(prlimit(1, RLIMIT_NOFILE, &r, NULL), EPERM);
}

/*
 * ---- others' memory and attributes ----------------------------------------------------------
 */

static void memory(void)
{
	uint64_t word = 1, there = 5, list, len;
	struct iovec local = {&word, sizeof(word)}, remote = {&there, sizeof(there)};

	ROW_CHECK(process_vm_readv(row_child, &local, 1, &remote, 1, 0) == sizeof(word));
	ROW_CHECK(process_vm_writev(row_child, &local, 1, &remote, 1, 0) == sizeof(word));
	ROW_FAILS(process_vm_readv(ROW_NOBODY, &local, 1, &remote, 1, 0), ESRCH);
	ROW_FAILS(process_vm_writev(1, &local, 1, &remote, 1, 0), EPERM);
	ROW_CHECK(syscall(SYS_get_robust_list, row_child, &list, &len) == 0);
	ROW_FAILS(syscall(SYS_get_robust_list, ROW_NOBODY, &list, &len), ESRCH);
	ROW_CHECK(syscall(SYS_kcmp, row_self, row_child, 0, 1, 1) >= 0 || errno == EPERM);
	ROW_CHECK(syscall(SYS_kcmp, row_self, ROW_NOBODY, 0, 1, 1) == -1);
	ROW_CHECK(
		syscall(SYS_move_pages, row_child, 0L, NULL, NULL, NULL, 0) == 0 || errno == EPERM);
	ROW_CHECK(syscall(SYS_move_pages, ROW_NOBODY, 0L, NULL, NULL, NULL, 0) == -1);
	ROW_CHECK(syscall(SYS_migrate_pages, row_child, 1L, &word, &word) >= 0 || errno == EPERM ||
		  errno == EINVAL);
	ROW_CHECK(syscall(SYS_migrate_pages, ROW_NOBODY, 1L, &word, &word) == -1);
}

static void capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, row_child};
	struct __user_cap_data_struct caps[2];

	ROW_CHECK(syscall(SYS_capget, &head, caps) == 0 && head.pid == row_child);
	head.pid = ROW_NOBODY;
	ROW_FAILS(syscall(SYS_capget, &head, caps), ESRCH);
	head.pid = 0;
	ROW_CHECK(syscall(SYS_capset, &head, caps) == 0);
}

static void clocks(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	struct timespec ts = {0};
	clockid_t clock = (clockid_t)((unsigned)~row_child << 3 | 2),
		  none = (clockid_t)((unsigned)~ROW_NOBODY << 3 | 2);
	timer_t timer;

	ev._sigev_un._tid = row_self;
	ROW_CHECK(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0 && ev._sigev_un._tid == row_self);
	ev._sigev_un._tid = row_child;
	ROW_FAILS(timer_create(CLOCK_MONOTONIC, &ev, &timer), EINVAL);
	ROW_CHECK(clock_gettime(clock, &ts) == 0 && clock_getres(clock, &ts) == 0);
	ROW_FAILS(clock_gettime(none, &ts), EINVAL);
	ts = (struct timespec){0};
	ROW_CHECK(syscall(SYS_clock_nanosleep, clock, TIMER_ABSTIME, &ts, NULL) == 0);
	ROW_FAILS(syscall(SYS_clock_nanosleep, none, 0, &ts, NULL), EINVAL);
}

/*
 * ---- what is refused ------------------------------------------------------------------------
 */

static void refused(void)
{
	ROW_FAILS(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM);
	ROW_FAILS(ptrace(PTRACE_SEIZE, row_child, 0, 0), EPERM);
	ROW_CHECK(syscall(SYS_perf_event_open, NULL, row_child, -1, -1, 0L) == -1);
	ROW_FAILS(syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, NULL, NULL, 0), EPERM);
}

static void namespaces(void)
{
	static const int sorts[] = {
		CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};

	for (size_t i = 0; i < N(sorts); i++) {
		ROW_FAILS(syscall(SYS_clone, sorts[i] | SIGCHLD, 0, NULL, NULL, 0), EPERM);
		ROW_FAILS(syscall(SYS_clone, sorts[i] | CLONE_NEWUSER | SIGCHLD, 0, NULL, NULL, 0),
			EPERM);
		ROW_FAILS(unshare(sorts[i]), EPERM);
		ROW_FAILS(unshare(sorts[i] | CLONE_NEWUSER), EPERM);
	}
}

/*
 * ---- memory with numbers in it --------------------------------------------------------------
 */

static void mutexes(void)
{
	static const int ops[][2] = {{FUTEX_LOCK_PI, FUTEX_UNLOCK_PI},
		{FUTEX_LOCK_PI2, FUTEX_UNLOCK_PI}, {FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI}};
	uint32_t *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct timespec soon = {.tv_nsec = 1000};

	ROW_CHECK(word != MAP_FAILED);
	for (size_t i = 0; i < N(ops); i++) {
		*word = 0;
		ROW_CHECK(syscall(SYS_futex, word, ops[i][0], 0, NULL, NULL, 0) == 0);
		ROW_CHECK((*word & FUTEX_TID_MASK) == (uint32_t)row_self);
		ROW_CHECK(syscall(SYS_futex, word, ops[i][1], 0, NULL, NULL, 0) == 0 && *word == 0);
	}
	word[1] = 0;
	ROW_CHECK(syscall(SYS_futex, word, FUTEX_WAIT_REQUEUE_PI, 1, &soon, word + 1, 0) == -1);
	ROW_CHECK(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PI, 1, 0L, word + 1, 0) <= 0);
}

/*
 * ---- attributes -----------------------------------------------------------------------------
 */

static void attributes(void)
{
	int status;
	pid_t pid;

	ROW_CHECK(prctl(PR_GET_DUMPABLE) == 1 && prctl(PR_SET_DUMPABLE, 0) == 0);
	ROW_CHECK(prctl(PR_GET_DUMPABLE) == 0);
	ROW_FAILS(prctl(PR_SET_DUMPABLE, 2), EINVAL);
	pid = fork();
	if (pid == 0)
		_exit(prctl(PR_GET_DUMPABLE));
	ROW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	ROW_CHECK(prctl(PR_SET_PTRACER, row_child) == 0 && prctl(PR_SET_PTRACER, -1L) == 0);
	ROW_FAILS(prctl(PR_SET_PTRACER, ROW_NOBODY), EINVAL);
	ROW_FAILS(prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, row_child, 0, 0), EINVAL);
}

static void filters(void)
{
	for (int way = 0; way < 2; way++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			long r = way ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)
				     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);

			syscall(r == 0 ? SYS_getuid : SYS_exit, 0);
			syscall(SYS_exit, 0);
		}
		ROW_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	}
	ROW_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) ==
			  -1 &&
		  errno == EFAULT);
}

#define NEGATIVE 0x80000000U

const struct row number_rows[] = {
	{SYS_getpid, CALL, who},
	{SYS_gettid, CALL, who},
	{SYS_getppid, CALL, who},
	{SYS_getpgrp, CALL, who},
	{SYS_getpgid, CALL, who},
	{SYS_getsid, CALL, who},
	{SYS_setsid, CALL, groups},
	{SYS_setpgid, CALL, groups},
	{SYS_set_tid_address, CALL, tid_address},
	{SYS_kill, CALL, signals},
	{SYS_tkill, CALL, signals},
	{SYS_tgkill, CALL, signals},
	{SYS_rt_sigqueueinfo, CALL, signals},
	{SYS_rt_tgsigqueueinfo, CALL, signals},
	{SYS_rt_sigtimedwait, CALL, signals},
	{SYS_pidfd_send_signal, CALL, by_descriptor},
	{SYS_pidfd_getfd, CALL, by_descriptor},
	{SYS_pidfd_open, CALL, by_descriptor},
	{SYS_wait4, CALL, waits},
	{SYS_waitid, CALL, waits},
	{SYS_sched_setparam, CALL, scheduling},
	{SYS_sched_getparam, CALL, scheduling},
	{SYS_sched_setscheduler, CALL, scheduling},
	{SYS_sched_getscheduler, CALL, scheduling},
	{SYS_sched_rr_get_interval, CALL, scheduling},
	{SYS_sched_setaffinity, CALL, scheduling},
	{SYS_sched_getaffinity, CALL, scheduling},
	{SYS_sched_setattr, CALL, scheduling},
	{SYS_sched_getattr, CALL, scheduling},
	{SYS_getpriority, CALL, priorities},
	{SYS_setpriority, CALL, priorities},
	{SYS_ioprio_get, CALL, priorities},
	{SYS_ioprio_set, CALL, priorities},
	{SYS_prlimit64, CALL, limits},
	{SYS_process_vm_readv, CALL, memory},
	{SYS_process_vm_writev, CALL, memory},
	{SYS_kcmp, CALL, memory},
	{SYS_get_robust_list, CALL, memory},
	{SYS_migrate_pages, CALL, memory},
	{SYS_move_pages, CALL, memory},
	{SYS_capget, CALL, capabilities},
	{SYS_capset, CALL, capabilities},
	{SYS_timer_create, CALL, clocks},
	{SYS_clock_gettime, NEGATIVE, clocks},
	{SYS_clock_getres, NEGATIVE, clocks},
	{SYS_clock_nanosleep, NEGATIVE, clocks},
	{SYS_ptrace, CALL, refused},
	{SYS_perf_event_open, CALL, refused},
	{SYS_clone, CLONE_UNTRACED, refused},
	{SYS_clone, CLONE_NEWUTS, namespaces},
	{SYS_clone, CLONE_NEWIPC, namespaces},
	{SYS_clone, CLONE_NEWUSER, namespaces},
	{SYS_clone, CLONE_NEWPID, namespaces},
	{SYS_clone, CLONE_NEWNET, namespaces},
	{SYS_unshare, CLONE_NEWUTS, namespaces},
	{SYS_unshare, CLONE_NEWIPC, namespaces},
	{SYS_unshare, CLONE_NEWUSER, namespaces},
	{SYS_unshare, CLONE_NEWPID, namespaces},
	{SYS_unshare, CLONE_NEWNET, namespaces},
#ifdef __i386__
	{SYS_mmap2, MAP_SHARED, mutexes},
#else
	{SYS_mmap, MAP_SHARED, mutexes},
#endif
	{SYS_futex, FUTEX_LOCK_PI, mutexes},
	{SYS_futex, FUTEX_LOCK_PI2, mutexes},
	{SYS_futex, FUTEX_TRYLOCK_PI, mutexes},
	{SYS_futex, FUTEX_UNLOCK_PI, mutexes},
	{SYS_futex, FUTEX_WAIT_REQUEUE_PI, mutexes},
	{SYS_futex, FUTEX_CMP_REQUEUE_PI, mutexes},
	{SYS_prctl, PR_SET_DUMPABLE, attributes},
	{SYS_prctl, PR_GET_DUMPABLE, attributes},
	{SYS_prctl, PR_SET_PTRACER, attributes},
	{SYS_prctl, PR_SCHED_CORE, attributes},
	{SYS_prctl, PR_SET_SECCOMP, filters},
	{SYS_seccomp, SECCOMP_SET_MODE_STRICT, filters},
	{SYS_seccomp, SECCOMP_SET_MODE_FILTER, filters},
	{SYS_setpriority, PRIO_USER, of_the_user},
	{SYS_getpriority, PRIO_USER, of_the_user},
	{SYS_ioprio_set, IOPRIO_WHO_USER, of_the_user},
	{SYS_ioprio_get, IOPRIO_WHO_USER, of_the_user},
};
const size_t n_number_rows = N(number_rows);
