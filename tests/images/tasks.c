// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes of old.c - running, stopped, dead, with a terminal - and what belongs to the first one as a process. */
#include <asm/termbits.h>
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "call.h"

#define AN_HOUR 3600
#define NOFILE 7 /* RLIMIT_NOFILE */
#define RTMIN 34

static int child, stopped, dead, leader, pidfd, master, lock, posix_timer;
static volatile int *told; /* a page that all of them share */
static char alternate[8192];
static const long ignored[5] = {(long)SIG_IGN, 0, 0, 0, 0};

static int begin(void (*f)(void))
{
	int pid = (int)call(SYS_fork, 0, 0, 0, 0);

	if (pid == 0) {
		f();
		end(1);
	}
	check(pid > 0, "fork");
	return pid;
}

static void wait_for(int pid, int what)
{
	check(call6(SYS_waitid, P_PID, pid, 0, what | WNOWAIT, 0, 0) == 0, "waitid");
}

static bool ends(int pid, int status)
{
	int got = -1;

	return call(SYS_wait4, pid, (long)&got, 0, 0) == pid && got == status << 8;
}

static void runs(void)
{
	struct flock held = {.l_type = F_WRLCK};

	wait_for_go();
	check(call(SYS_getppid, 0, 0, 0, 0) == told[1], "parent");
	check(told[0] == 'm', "memory of parent and child");
	check(call(SYS_fcntl, lock, F_GETLK, (long)&held, 0) == 0 && held.l_type == F_WRLCK &&
			held.l_pid == told[1],
		"lock");
	told[0] = 'c';
	end(42);
}

static void stops(void)
{
	call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), SIGSTOP, 0, 0);
	end(43);
}

static void dies(void)
{
	end(44);
}

/* In a session of its own, whose terminal is one that its parent has made. */
static void leads(void)
{
	char name[] = "/dev/pts/0";
	struct termios mode;
	int number = -1, group = 0, me = (int)call(SYS_setsid, 0, 0, 0, 0), slave;

	call(SYS_ioctl, master, TIOCGPTN, (long)&number, 0);
	name[9] = (char)('0' + number);
	slave = open_at(name, O_RDWR);
	check(number >= 0 && number < 10 && slave >= 0 &&
			call(SYS_ioctl, slave, TCGETS, (long)&mode, 0) == 0,
		"terminal");
	mode.c_lflag &= ~(unsigned)(ECHO | ICANON);
	mode.c_cc[VMIN] = 3;
	call(SYS_ioctl, slave, TCSETS, (long)&mode, 0);
	call(SYS_write, slave, (long)pattern, 6, 0);
	told[2] = 1;
	wait_for_go();
	check(call(SYS_ioctl, slave, TIOCGPGRP, (long)&group, 0) == 0 && group == me,
		"group of a terminal");
	check(call(SYS_ioctl, slave, TIOCGSID, (long)&group, 0) == 0 && group == me,
		"session of a terminal");
	check(open_at("/dev/tty", O_RDWR) >= 0, "/dev/tty");
	mode.c_lflag = mode.c_cc[VMIN] = 0;
	check(call(SYS_ioctl, slave, TCGETS, (long)&mode, 0) == 0 && !(mode.c_lflag & (ECHO | ICANON)) &&
			mode.c_cc[VMIN] == 3,
		"mode of a terminal");
	check(reads(slave, "abc", 3), "what was typed");
	end(45);
}

static void set_up_children(void)
{
	const int zero = 0;
	struct flock whole = {.l_type = F_WRLCK};

	told = (int *)call(SYS_shmat, call(SYS_shmget, IPC_PRIVATE, 4096, IPC_CREAT | 0600, 0), 0, 0, 0);
	check((unsigned long)told < -4096UL, "shmat");
	told[0] = 'm';
	told[1] = (int)call(SYS_getpid, 0, 0, 0, 0);
	lock = open_at("/tmp/lock", O_RDWR | O_CREAT);
	check(call(SYS_fcntl, lock, F_SETLK, (long)&whole, 0) == 0, "lock");
	master = open_at("/dev/ptmx", O_RDWR | O_NOCTTY);
	check(master >= 0 && call(SYS_ioctl, master, TIOCSPTLCK, (long)&zero, 0) == 0, "ptmx");
	child = begin(runs);
	stopped = begin(stops);
	dead = begin(dies);
	leader = begin(leads);
	wait_for(stopped, WSTOPPED);
	wait_for(dead, WEXITED);
	while (!told[2])
		call(SYS_sched_yield, 0, 0, 0, 0);
	call(SYS_write, master, (long)"abc", 3, 0);
	pidfd = (int)call(SYS_pidfd_open, child, 0, 0, 0);
	check(pidfd >= 0, "pidfd");
}

/* A 32-bit program that has filters can't be suspended. */
static void install_filter(void)
{
#ifdef __x86_64__
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_rr_get_interval, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	check(call6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) == 0 &&
			call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0) == 0,
		"seccomp");
#endif
}

static void look_at_filter(void)
{
#ifdef __x86_64__
	long interval[2];

	check(call(SYS_sched_rr_get_interval, 0, (long)interval, 0, 0) == -77, "seccomp");
	check(call6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1, "no_new_privs");
#endif
}

static void set_up(void)
{
	const unsigned long long blocked = 1ULL << (SIGUSR1 - 1) | 1ULL << (RTMIN - 1);
	const unsigned long long limits[2] = {100, 200};
	const long hour[4] = {0, 0, AN_HOUR, 0};
	const stack_t altstack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	siginfo_t queued = {.si_code = SI_QUEUE, .si_value.sival_int = 77};
	int me = (int)call(SYS_getpid, 0, 0, 0, 0);

	set_up_children();
	call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&blocked, 0, 8);
	call(SYS_kill, me, SIGUSR1, 0, 0);
	check(call(SYS_rt_sigqueueinfo, me, RTMIN, (long)&queued, 0) == 0, "rt_sigqueueinfo");
	call(SYS_rt_sigaction, SIGWINCH, (long)ignored, 0, 8);
	check(call(SYS_sigaltstack, (long)&altstack, 0, 0, 0) == 0, "sigaltstack");
	check(call(SYS_prlimit64, 0, NOFILE, (long)limits, 0) == 0, "prlimit");
	check(call(SYS_setpriority, 0, 0, 5, 0) == 0, "setpriority");
	call(SYS_setitimer, 0, (long)hour, 0, 0);
	check(call(SYS_timer_create, 1, (long)&none, (long)&posix_timer, 0) == 0 &&
			call(SYS_timer_settime, posix_timer, 0, (long)hour, 0) == 0,
		"timer_create");
	check(call(SYS_prctl, PR_SET_NAME, (long)"first", 0, 0) == 0, "name");
	call(SYS_prctl, PR_SET_TIMERSLACK, 12345, 0, 0);
	call(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0);
	install_filter();
}

static void look_at_process(void)
{
	const unsigned long long wanted = 1ULL << (RTMIN - 1);
	unsigned long long limits[2] = {0}, pending = 0;
	long rest[4] = {0}, action[5] = {0}, slack;
	stack_t altstack = {0};
	siginfo_t info = {0};
	char name[16] = "";

	call(SYS_rt_sigpending, (long)&pending, 8, 0, 0);
	check(pending & 1ULL << (SIGUSR1 - 1), "pending signal");
	check(call(SYS_rt_sigtimedwait, (long)&wanted, (long)&info, 0, 8) == RTMIN &&
			info.si_value.sival_int == 77,
		"queued signal");
	check(call(SYS_rt_sigaction, SIGWINCH, 0, (long)action, 8) == 0 && action[0] == ignored[0],
		"sigaction");
	check(call(SYS_sigaltstack, 0, (long)&altstack, 0, 0) == 0 && altstack.ss_sp == alternate,
		"sigaltstack");
	check(call(SYS_prlimit64, 0, NOFILE, 0, (long)limits) == 0 && limits[0] == 100 &&
			limits[1] == 200,
		"prlimit");
	check(call(SYS_getpriority, 0, 0, 0, 0) == 20 - 5, "getpriority");
	check(call(SYS_getitimer, 0, (long)rest, 0, 0) == 0 && rest[2] > 0 && rest[2] <= AN_HOUR,
		"itimer");
	rest[2] = 0;
	check(call(SYS_timer_gettime, posix_timer, (long)rest, 0, 0) == 0 && rest[2] > 0 &&
			rest[2] <= AN_HOUR,
		"timer");
	check(call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0) == 0 && same(name, "first", 6),
		"name");
	slack = call(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0);
	check(slack == 12345, "timer slack");
	look_at_filter();
}

static void look(void)
{
	look_at_process();
	check(reads(master, PATTERN, 6), "terminal");
	check(call(SYS_pidfd_send_signal, pidfd, 0, 0, 0) == 0, "pidfd");
	check(ends(child, 42), "child");
	check(told[0] == 'c', "memory of parent and child");
	check(ends(dead, 44), "dead child");
	wait_for(stopped, WSTOPPED);
	call(SYS_kill, stopped, SIGCONT, 0, 0);
	check(ends(stopped, 43), "stopped child");
	check(ends(leader, 45), "child with a terminal");
}

const struct part part_tasks = {set_up, look};

/* Its own terminal, with a screen that belongs to it alone (xterm's private modes 1049 and 2004). */
static void set_up_terminal(void)
{
	struct termios mode;

	check(call(SYS_ioctl, 0, TCGETS, (long)&mode, 0) == 0, "own terminal");
	mode.c_cc[VTIME] = 9;
	check(call(SYS_ioctl, 0, TCSETS, (long)&mode, 0) == 0, "own terminal");
	say("\033[?1049h\033[?2004h");
}

static void look_terminal(void)
{
	struct termios mode = {0};

	check(call(SYS_ioctl, 0, TCGETS, (long)&mode, 0) == 0 && mode.c_cc[VTIME] == 9,
		"own terminal");
}

const struct part part_terminal = {set_up_terminal, look_terminal};
