// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What needs no race and no child: calls that take a number, or a descriptor that stands for one.
 */
#include "tests/attack/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int failures;

void reached(long r, const char *what)
{
	if (r < 0)
		return;
	printf("reached: %s (%ld)\n", what, r);
	failures++;
}

#define TRY(call) reached((long)(call), #call)

/*
 * ---- signals --------------------------------------------------------------------------------
 */

static int proc_dir(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return open(path, O_RDONLY | O_DIRECTORY);
}

static siginfo_t queued(int code)
{
	siginfo_t info = {.si_signo = SIGKILL, .si_code = code};

	info.si_pid = getpid();
	return info;
}

static void signals(const struct victim *v)
{
	siginfo_t info = queued(SI_QUEUE), kernel = queued(SI_KERNEL);
	pid_t p = v->pid;
	int fd;

	TRY(kill(p, SIGKILL));
	TRY(kill(-p, SIGKILL));
	TRY(kill(p, 0));
	TRY(syscall(SYS_tkill, p, SIGKILL));
	TRY(syscall(SYS_tgkill, p, p, SIGKILL));
	TRY(syscall(SYS_tgkill, getpid(), p, SIGKILL));
	TRY(syscall(SYS_rt_sigqueueinfo, p, SIGKILL, &info));
	TRY(syscall(SYS_rt_sigqueueinfo, p, SIGKILL, &kernel));
	TRY(syscall(SYS_rt_tgsigqueueinfo, p, p, SIGKILL, &info));
	TRY(syscall(SYS_pidfd_open, p, 0));
	kill(-1, SIGUSR1);
	fd = proc_dir(p);
	if (fd >= 0)
		for (unsigned flags = 0; flags < 8; flags++) /* pid 1 only looks as if it took it */
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, flags);
}

/*
 * ---- memory, descriptors, being traced ------------------------------------------------------
 */

static void open_and_read(pid_t pid, const char *file, uint64_t at)
{
	char path[64];
	uint64_t word;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDWR);
	if (fd >= 0 && pread(fd, &word, sizeof(word), (off_t)at) == sizeof(word))
		reached(0, path);
}

static void inspects(const struct victim *v)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)},
		     there = {(void *)(uintptr_t)v->secret, sizeof(word)};
	pid_t p = v->pid;
	int fd;

	TRY(ptrace(PTRACE_SEIZE, p, 0, 0));
	TRY(ptrace(PTRACE_ATTACH, p, 0, 0));
	TRY(ptrace(PTRACE_TRACEME, 0, 0, 0));
	TRY(process_vm_readv(p, &local, 1, &there, 1, 0));
	TRY(process_vm_writev(p, &local, 1, &there, 1, 0));
	TRY(syscall(SYS_kcmp, getpid(), p, 0, 0, 0));
	TRY(syscall(SYS_move_pages, p, 0L, NULL, NULL, NULL, 0));
	TRY(syscall(SYS_get_robust_list, p, &word, &word));
	open_and_read(p, "mem", v->secret);
	fd = proc_dir(p);
	if (fd >= 0) {
		TRY(syscall(SYS_pidfd_getfd, fd, 0, 0));
		TRY(syscall(SYS_process_madvise, fd, &there, 1L, 20 /* MADV_COLD */, 0));
	}
}

/*
 * ---- attributes -----------------------------------------------------------------------------
 */

static void attributes(const struct victim *v)
{
	struct __user_cap_header_struct cap = {_LINUX_CAPABILITY_VERSION_3, v->pid};
	struct __user_cap_data_struct caps[2] = {{0}};
	struct sched_param param = {0};
	struct rlimit none = {0};
	unsigned long node = 1;
	cpu_set_t one;
	pid_t p = v->pid;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	TRY(prlimit(p, RLIMIT_CORE, &none, NULL));
	/* They may hold a session's virtual users. */
	TRY(prlimit(p, RLIMIT_LOCKS, &none, NULL));
	TRY(prlimit(p, RLIMIT_RSS, &none, NULL));
	TRY(setpriority(PRIO_PROCESS, (id_t)p, 19));
	TRY(setpriority(PRIO_PGRP, (id_t)p, 19));
	setpriority(PRIO_USER, 0, 7);
	setpriority(PRIO_USER, getuid(), 7);
	TRY(sched_setaffinity(p, sizeof(one), &one));
	TRY(sched_setscheduler(p, SCHED_IDLE, &param));
	TRY(sched_setparam(p, &param));
	TRY(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, p, IOPRIO_CLASS_IDLE << 13));
	TRY(syscall(SYS_ioprio_set, IOPRIO_WHO_PGRP, p, IOPRIO_CLASS_IDLE << 13));
	syscall(SYS_ioprio_set, IOPRIO_WHO_USER, getuid(), IOPRIO_CLASS_IDLE << 13);
	TRY(syscall(SYS_migrate_pages, p, 1L, &node, &node));
	TRY(syscall(SYS_capget, &cap, caps));
	TRY(syscall(SYS_capset, &cap, caps));
	TRY(prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, p, 0, 0));
	TRY(prctl(PR_SCHED_CORE, PR_SCHED_CORE_SHARE_FROM, p, 0, 0));
	TRY(setpgid(p, p));
	TRY(setpgid(0, p));
}

static void looks(const struct victim *v)
{
	struct perf_event_attr perf = {.size = sizeof(perf), .type = PERF_TYPE_SOFTWARE};
	struct timespec ts;
	struct rlimit now;
	cpu_set_t cpus;
	clockid_t clock;
	siginfo_t info;
	pid_t p = v->pid;

	TRY(getpgid(p));
	TRY(getsid(p));
	TRY(getpriority(PRIO_PROCESS, (id_t)p));
	TRY(sched_getscheduler(p));
	TRY(sched_getaffinity(p, sizeof(cpus), &cpus));
	TRY(prlimit(p, RLIMIT_CORE, NULL, &now));
	TRY(syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, p));
	TRY(-clock_getcpuclockid(p, &clock));
	clock = (clockid_t)((unsigned)~p << 3 | 2);
	TRY(clock_gettime(clock, &ts));
	TRY(syscall(SYS_perf_event_open, &perf, p, -1, -1, 0L));
	TRY(waitid(P_PID, (id_t)p, &info, WEXITED | WNOHANG));
	TRY(waitpid(p, NULL, WNOHANG));
	TRY(socket(AF_NETLINK, SOCK_DGRAM, 11 /* NETLINK_CONNECTOR */));
}

/*
 * ---- whoever owns a descriptor --------------------------------------------------------------
 */

/* Tells the owner of @fd, if there is one, that something has come. */
static void poke_owner(int fd, int other)
{
	fcntl(fd, F_SETSIG, SIGKILL);
	fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
	(void)!write(other, "x", 1);
}

static void owners(const struct victim *v)
{
	const struct f_owner_ex ex[] = {{F_OWNER_TID, v->pid}, {F_OWNER_PID, v->pid},
		{F_OWNER_PGRP, v->pid}, {3, v->pid}, {F_OWNER_PID, 1}, {F_OWNER_TID, 1},
		{F_OWNER_PGRP, 1}};
	int pair[2], owner[] = {v->pid, -v->pid, 1, -1};

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return;
	for (size_t i = 0; i < N(owner); i++) {
		TRY(fcntl(pair[0], F_SETOWN, owner[i]));
		TRY(ioctl(pair[0], FIOSETOWN, &owner[i]));
		TRY(ioctl(pair[0], SIOCSPGRP, &owner[i]));
		poke_owner(pair[0], pair[1]);
	}
	for (size_t i = 0; i < N(ex); i++) {
		TRY(fcntl(pair[0], F_SETOWN_EX, &ex[i]));
		poke_owner(pair[0], pair[1]);
	}
}

/* The other side of a connection is told by a descriptor. */
static void peers(const struct victim *v)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), pidfd = -1;
	socklen_t len = sizeof(pidfd);

	memcpy(a.sun_path, v->socket, sizeof(a.sun_path));
	if (connect(fd, (void *)&a, sizeof(a)) < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
		return;
	for (unsigned flags = 0; flags < 8; flags++)
		TRY(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, flags));
	TRY(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
	TRY(syscall(SYS_setns, pidfd, 0));
}

static void shared(const struct victim *v)
{
	TRY(shmget(SHM_KEY, 0, 0));
	TRY(shmat(v->shm, NULL, 0) == (void *)-1 ? -1 : 0);
	TRY(shmctl(v->shm, IPC_RMID, NULL));
}

/*
 * ---- pid 1 is visible -----------------------------------------------------------------------
 */

static void first(const struct victim *v)
{
	siginfo_t info = queued(SI_QUEUE);
	struct sched_param param = {0};
	struct rlimit none = {0};
	cpu_set_t one;
	uint64_t word;
	struct iovec io = {&word, sizeof(word)};
	int fd = (int)syscall(SYS_pidfd_open, 1, 0);

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	/* These say that all went well, as for init in a pid namespace. */
	kill(1, SIGKILL);
	kill(1, SIGSTOP);
	syscall(SYS_tgkill, 1, 1, SIGKILL);
	syscall(SYS_rt_sigqueueinfo, 1, SIGKILL, &info);
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	TRY(ptrace(PTRACE_SEIZE, 1, 0, 0));
	TRY(process_vm_readv(1, &io, 1, &io, 1, 0));
	TRY(process_vm_writev(1, &io, 1, &io, 1, 0));
	TRY(syscall(SYS_pidfd_getfd, fd, 3, 0));
	TRY(prlimit(1, RLIMIT_NOFILE, &none, NULL));
	TRY(setpriority(PRIO_PROCESS, 1, 19));
	TRY(setpriority(PRIO_PGRP, 1, 19));
	TRY(sched_setaffinity(1, sizeof(one), &one));
	TRY(sched_setscheduler(1, SCHED_IDLE, &param));
	TRY(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 1, IOPRIO_CLASS_IDLE << 13));
	TRY(setpgid(1, 0));
	open_and_read(1, "mem", 4096);
}

static void terminal(const struct victim *v)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	TRY(ioctl(master, TIOCSTI, "x"));
	TRY(ioctl(0, TIOCSTI, "x"));
	TRY(ioctl(0, 0x541c /* TIOCLINUX */, "x"));
}

/*
 * ---- all of them ----------------------------------------------------------------------------
 */

static const struct attack attacks[] = {
	{"signals", signals},
	{"inspects", inspects},
	{"attributes", attributes},
	{"looks", looks},
	{"owners", owners},
	{"peers", peers},
	{"shared", shared},
	{"first", first},
	{"terminal", terminal},
};

static volatile uint64_t secret = SECRET;

/* Ends with 3 if somebody has changed its memory, by a signal if somebody has sent one. */
static int be_victim(const char *file)
{
	struct victim v = {.pid = getpid(),
		.secret = (uintptr_t)&secret,
		.shm = shmget(SHM_KEY, 4096, IPC_CREAT | 0600)};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), fd;
	char part[256];

	snprintf(v.socket, sizeof(v.socket), "%s.socket", file);
	memcpy(a.sun_path, v.socket, sizeof(a.sun_path));
	if (bind(s, (void *)&a, sizeof(a)) < 0 || listen(s, 100) < 0)
		return 1;
	snprintf(part, sizeof(part), "%s.part", file);
	fd = open(part, O_CREAT | O_WRONLY, 0600);
	if (write(fd, &v, sizeof(v)) != sizeof(v) || rename(part, file) < 0)
		return 1;
	for (;;) {
		if (secret != SECRET)
			return 3;
		usleep(10000);
	}
}

static const struct attack *find(const struct attack *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct attack *a;
	struct victim v = {0};
	int fd;

	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "victim") == 0)
		return be_victim(argv[2]);
	fd = open(argv[2], O_RDONLY);
	if (fd < 0 || read(fd, &v, sizeof(v)) != sizeof(v))
		return 2;
	close(fd);
	/* Another process of podrun's as the target. */
	if (argc > 3)
		v.pid = atoi(argv[3]);
	signal(SIGUSR1, SIG_IGN);
	a = find(attacks, N(attacks), argv[1]);
	if (!a)
		a = find(race_attacks, n_race_attacks, argv[1]);
	if (!a)
		a = find(birth_attacks, n_birth_attacks, argv[1]);
	if (!a)
		return 2;
	a->run(&v);
	printf("%s done\n", a->name);
	return failures != 0;
}
