// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calls SEED ROUNDS DIR - inside a session, every system call there is with whatever arguments
 * come, from 64-bit code, by int 0x80 and with the numbers of x32; calls32 is the same as a 32-bit
 * program.
 *
 * Workers make calls and count them in memory that all share; what blocks is interrupted by a
 * timer, and who stands still all the same, or has died of it, is replaced.  Arguments are drawn
 * from what gets far into the kernel: addresses of memory that can be read, written, or neither,
 * descriptors, numbers of tasks, signals, lengths.  Only one thing is never said: a signal for
 * the first process, which counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define HIGHEST 480
#define X32	0x40000000
#define MEMORY	(64 << 10)
#define PAGE	4096
#ifdef __i386__
#define NARROW	  true
#define CLOBBERED "memory"
#else
#define NARROW	  false
#define CLOBBERED "memory", "r8", "r9", "r10", "r11"
#endif
#define PATIENCE 20 /* looks, of 5 ms each, at one that does not get on */

static struct {
	_Atomic uint64_t rounds, died, stood;
	_Atomic uint64_t of[WORKERS];
} * shared;
static unsigned char *memory;
static pid_t first, parent;

/*
 * ---- what comes -----------------------------------------------------------------------------
 */

static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The first few where the files are the host's. */
static const char *const paths[] = {"a", "b/c", ".", "", "./b/../a", "/proc/self/mem",
	"/proc/1/mem", "/proc/self/fd/9", "/proc/self/task", "/", "/tmp/a", "/tmp/b", "/dev/shm/a",
	"/run/a", "/tmp/../tmp/./b", "/proc/./1/../self", "/proc/2/fd"};
#define HOSTS_PATHS 10
static size_t n_paths;

/*
 * Memory that calls read their structures and paths from: half words that mean something, half
 * noise.
 */
static void fill(void)
{
	uint64_t *w = (uint64_t *)(memory + (draw() % (MEMORY / PAGE)) * PAGE);

	for (int i = 0; i < 16; i++)
		w[i] = draw() & 1   ? draw() % 64
		       : draw() & 1 ? (uintptr_t)memory + draw() % MEMORY
				    : draw();
	if (draw() & 1)
		strcpy((char *)w, paths[draw() % n_paths]);
}

static uint64_t argument(void)
{
	switch (draw() % 12) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)-1;
	case 2:
		return draw() % 32; /* a descriptor, a signal, an operation */
	case 3:
		return 3 + draw() % 64; /* a task */
	case 4:
		return -(3 + draw() % 64); /* a group */
	case 5:
	case 6:
	case 7:
		return (uintptr_t)memory + (draw() % (MEMORY / PAGE)) * PAGE;
	case 8:
		return (uintptr_t)memory + draw() % (MEMORY + PAGE); /* up to where nothing is */
	case 9:
		return 1ULL << draw() % 64;
	case 10:
		return draw() % PAGE;
	default:
		return draw();
	}
}

/* The session's own command, whoever started us, and us. */
static bool counts(uint64_t number)
{
	int n = (int)number;

	n = n < 0 ? -n : n;
	return n == 1 || n == 2 || n == first || n == parent;
}

/*
 * A signal to everybody, or to one of these: would end the count, and be within the session's
 * rights.
 */
static bool is_suicide_32(long nr, const uint64_t *a)
{
	switch (nr) {
	case 37: /* kill; rt_sigqueueinfo, tkill, tgkill, rt_tgsigqueueinfo, prlimit64, process_vm_writev */
	case 178:
	case 238:
	case 270:
	case 335:
	case 340:
	case 348:
		return counts(a[0]);
	case 69: /* ssetmask, sigsuspend: have their mask in a register, and hardly ever come back */
	case 72:
		return true;
	case 55: /* fcntl, fcntl64 */
	case 221:
		return (int)a[1] == F_SETOWN && counts(a[2]);
	default:
		return false;
	}
}

static bool is_suicide(long nr, const uint64_t *a)
{
	if (NARROW)
		return is_suicide_32(nr, a);
	switch (nr) {
	case SYS_kill:
	case SYS_rt_sigqueueinfo:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_tgsigqueueinfo:
	case SYS_prlimit64:
	case SYS_process_vm_writev:
		return counts(a[0]);
	case SYS_fcntl: /* whose signal may be any */
		return (int)a[1] == F_SETOWN && counts(a[2]);
	default:
		return false;
	}
}

/*
 * ---- making it ------------------------------------------------------------------------------
 */

static void by_interrupt(long nr, const uint64_t *a)
{
	long r;

	if (is_suicide_32(nr, a))
		return;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"((long)a[0]), "c"((long)a[1]), "d"((long)a[2]),
			 "S"((long)a[3]), "D"((long)a[4])
			 : CLOBBERED);
}

static void call_something(void)
{
	long nr = (long)(draw() % HIGHEST);
	uint64_t a[6];
	unsigned way = draw() % 8;

	for (int i = 0; i < 6; i++)
		a[i] = argument();
	if (is_suicide(nr, a))
		return;
	fill();
	if (way == 0)
		by_interrupt(nr, a);
	else
		syscall(nr + (way == 1 ? X32 : 0), (long)a[0], (long)a[1], (long)a[2], (long)a[3],
			(long)a[4], (long)a[5]);
}

static void on_alarm(int sig)
{
}

/* Some of everything to be found by number. */
static void open_some(void)
{
	sigset_t none;
	int pair[2];

	sigemptyset(&none);
	if (pipe(pair) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
		socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0) {
		epoll_create1(0);
		eventfd(0, EFD_NONBLOCK);
		signalfd(-1, &none, SFD_NONBLOCK);
		memfd_create("calls", 0);
		syscall(SYS_pidfd_open, getpid(), 0);
		posix_openpt(O_RDWR | O_NOCTTY);
		socket(AF_INET, SOCK_DGRAM, 0);
		open(".", O_RDONLY | O_DIRECTORY);
	}
}

static _Noreturn void work(int number, uint64_t seed)
{
	struct rlimit most = {1UL << 30, 1UL << 30}, none = {0, 0};
	struct sigaction a = {.sa_handler = on_alarm};
	struct itimerval often = {{.tv_usec = 3000}, {.tv_usec = 3000}};

	state = seed | 1;
	setsid();
	setrlimit(RLIMIT_AS, &most);
	setrlimit(RLIMIT_FSIZE, &most);
	setrlimit(RLIMIT_CORE, &none);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	open_some();
	/* Also those that are born of it go on here. */
	for (;;) {
		call_something();
		atomic_fetch_add(&shared->rounds, 1);
		atomic_fetch_add(&shared->of[number], 1);
	}
}

/*
 * ---- who counts -----------------------------------------------------------------------------
 */

static pid_t begin(int number, uint64_t seed)
{
	pid_t pid = fork();

	if (pid == 0)
		work(number, seed);
	return pid;
}

static void nap(void)
{
	struct timespec ts = {.tv_nsec = 5000000};

	nanosleep(&ts, NULL);
}

static void watch(uint64_t seed, uint64_t rounds)
{
	pid_t pids[WORKERS] = {0};
	uint64_t before[WORKERS] = {0};
	int still[WORKERS] = {0};
	uint64_t begun = 0;

	while (shared->rounds < rounds) {
		for (int i = 0; i < WORKERS; i++) {
			uint64_t now = shared->of[i];

			if (pids[i] > 0 &&
				(waitpid(pids[i], NULL, WNOHANG) != 0 || kill(pids[i], 0) < 0)) {
				shared->died++;
				pids[i] = 0;
			}
			still[i] = now == before[i] ? still[i] + 1 : 0;
			before[i] = now;
			if (pids[i] > 0 && still[i] > PATIENCE) {
				kill(pids[i], SIGKILL);
				waitpid(pids[i], NULL, 0);
				shared->stood++;
				pids[i] = 0;
			}
			if (pids[i] <= 0) {
				/* Not as before, which may have begun with its end. */
				pids[i] = begin(i, seed * 0x9e3779b97f4a7c15ULL + now +
							   1000003ULL * i + 7919 * begun++);
				still[i] = 0;
			}
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nap();
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	n_paths = strcmp(argv[3], "/tmp") == 0 ? sizeof(paths) / sizeof(paths[0]) : HOSTS_PATHS;
	first = getpid();
	parent = getppid();
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A page behind it is nobody's. */
	memory = mmap(
		NULL, MEMORY + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (shared == MAP_FAILED || memory == MAP_FAILED ||
		mprotect(memory, MEMORY, PROT_READ | PROT_WRITE) < 0 || chdir(argv[3]) < 0)
		return 1;
	mkdir("b", 0700);
	watch(strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
	printf("done: %lu rounds, %lu died, %lu stood still\n", (unsigned long)shared->rounds,
		(unsigned long)shared->died, (unsigned long)shared->stood);
	fflush(stdout);
	for (pid_t p = 3; p < 32768; p++)
		if (!counts((uint64_t)p))
			kill(p, SIGKILL);
	return 0;
}
