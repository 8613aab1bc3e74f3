// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * narrow - what 32-bit programs do every day: a C library of their own, the vDSO's way into the
 * kernel, signals, threads, programs that start each other.  Inside a session with a private view;
 * says "right".
 *
 *      narrow                  all of it
 *      narrow births           how many children it can have
 *      narrow exec FILE NAME   was started as FILE, by the name NAME
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                                 \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("FAIL: %s:%d: %s (%s)\n", __FILE__, __LINE__, #cond, \
				strerror(errno));                                   \
			fflush(stdout);                                             \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

static pid_t child(void (*run)(void *), void *arg)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		run(arg);
		_exit(0);
	}
	return pid;
}

static int reap(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* ---- ways into the kernel -------------------------------------------------------------------- */

static long by_interrupt(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

static long by_vdso(long nr, long a, long b, long c)
{
	unsigned long entry = getauxval(AT_SYSINFO);
	long r;

	CHECK(entry);
	__asm__ volatile("call *%%edi"
			 : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "D"(entry)
			 : "memory");
	return r;
}

static void ways(void)
{
	pid_t pid = getpid(), born = fork();

	if (born == 0)
		_exit(4);
	CHECK(pid > 1 && pid < 1000 && born == pid + 1);
	CHECK(by_interrupt(SYS_getpid, 0, 0, 0) == pid && by_vdso(SYS_getpid, 0, 0, 0) == pid);
	CHECK(by_vdso(SYS_setpgid, born, born, 0) == 0 &&
		by_interrupt(SYS_getpgid, born, 0, 0) == born);
	CHECK(by_vdso(SYS_waitpid, born, 0, 0) == born);
	CHECK(by_vdso(SYS_waitpid, born, 0, 0) == -ECHILD);
	born = (pid_t)by_vdso(SYS_fork, 0, 0, 0);
	if (born == 0)
		_exit(getpid() != pid + 2);
	CHECK(born == pid + 2 && reap(born) == 0);
	/* Six arguments, of which the last is on the stack there. */
	CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
		MAP_FAILED);
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile siginfo_t got;
static volatile int n_got;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	got = *info;
	n_got++;
}

static void handle(int sig, int flags)
{
	struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};

	CHECK(sigaction(sig, &a, NULL) == 0);
	n_got = 0;
}

static void kill_parent(void *arg)
{
	kill(getppid(), SIGUSR1);
}

static void senders(void)
{
	union sigval value = {.sival_int = 4711};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
	timer_t timer;
	pid_t pid;

	handle(SIGUSR1, SA_RESTART);
	handle(SIGCHLD, SA_RESTART);
	pid = child(kill_parent, NULL);
	CHECK(reap(pid) == 0);
	while (n_got < 2)
		sched_yield();
	CHECK(got.si_pid == pid);
	signal(SIGCHLD, SIG_DFL);
	handle(SIGUSR1, 0);
	CHECK(sigqueue(getpid(), SIGUSR1, value) == 0 && n_got == 1);
	CHECK(got.si_pid == getpid() && got.si_code == SI_QUEUE && got.si_int == 4711);
	CHECK(raise(SIGUSR1) == 0 && n_got == 2 && got.si_pid == getpid() &&
		got.si_code == SI_TKILL);
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	ev.sigev_value.sival_int = 5;
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0 &&
		timer_settime(timer, 0, &soon, NULL) == 0);
	while (n_got < 3)
		sched_yield();
	CHECK(got.si_code == SI_TIMER && got.si_int == 5 && timer_delete(timer) == 0);
}

/* Ends when what it reads from does. */
static void wait_for(void *arg)
{
	int *pair = arg;
	char byte;

	close(pair[1]);
	while (read(pair[0], &byte, 1) > 0)
		;
}

static void every_millisecond(int on)
{
	struct itimerval often = {{.tv_usec = 1000 * on}, {.tv_usec = 1000 * on}};

	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void *hold_and_let_go(void *arg)
{
	while (n_got < 5)
		sched_yield();
	close(*(int *)arg);
	return NULL;
}

static void *send_later(void *arg)
{
	while (n_got < 5)
		sched_yield();
	CHECK(write(*(int *)arg, "x", 1) == 1);
	return NULL;
}

/* The same of a call that others are made of: it is made again by its own number. */
static void restarted_sockets(void)
{
	char byte;
	struct iovec io = {&byte, 1};
	/* With room for credentials: without, nobody is interested in it. */
	char control[64];
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	long args[3];
	pthread_t t;
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	args[0] = pair[0];
	args[1] = (long)&m;
	args[2] = 0;
	handle(SIGALRM, SA_RESTART);
	CHECK(pthread_create(&t, NULL, send_later, &pair[1]) == 0);
	every_millisecond(1);
	CHECK(syscall(SYS_socketcall, 17 /* SYS_RECVMSG */, args) == 1 && byte == 'x' &&
		n_got >= 5);
	every_millisecond(0);
	CHECK(pthread_join(t, NULL) == 0);
}

/* A wait that signals interrupt goes on, or says so. */
static void restarts(void)
{
	int pair[2], id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	struct sembuf down = {0, -1, 0};
	pthread_t t;
	pid_t pid;

	CHECK(pipe(pair) == 0);
	pid = child(wait_for, pair);
	handle(SIGALRM, 0);
	every_millisecond(1);
	CHECK(waitpid(pid, NULL, 0) == -1 && errno == EINTR);
	CHECK(semop(id, &down, 1) == -1 && errno == EINTR);
	handle(SIGALRM, SA_RESTART);
	CHECK(pthread_create(&t, NULL, hold_and_let_go, &pair[1]) == 0);
	CHECK(reap(pid) == 0 && n_got >= 5);
	every_millisecond(0);
	CHECK(pthread_join(t, NULL) == 0 && semctl(id, 0, IPC_RMID) == 0);
	close(pair[0]);
}

/* ---- threads, mutexes ------------------------------------------------------------------------ */

static void *number(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	return NULL;
}

static void threads(void)
{
	pthread_t t[8];
	pid_t numbers[8];

	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], NULL, number, &numbers[i]) == 0);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(t[i], NULL) == 0 && numbers[i] > getpid() && numbers[i] < 1000);
}

static void lock(void *mutex)
{
	CHECK(pthread_mutex_lock(mutex) == 0);
}

static void *lock_as_thread(void *mutex)
{
	lock(mutex);
	return NULL;
}

/* Their owners die: a process, a thread. */
static void mutexes(void)
{
	pthread_mutex_t *m =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;
	pthread_t t;

	for (int inherit = 0; inherit < 2; inherit++) {
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setprotocol(
			&a, inherit ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		CHECK(pthread_mutex_init(m, &a) == 0);
		CHECK(reap(child(lock, m)) == 0);
		CHECK(pthread_mutex_lock(m) == EOWNERDEAD && pthread_mutex_consistent(m) == 0);
		CHECK(pthread_mutex_unlock(m) == 0);
		CHECK(pthread_create(&t, NULL, lock_as_thread, m) == 0 &&
			pthread_join(t, NULL) == 0);
		CHECK(pthread_mutex_lock(m) == EOWNERDEAD && pthread_mutex_consistent(m) == 0);
		CHECK(pthread_mutex_unlock(m) == 0 && pthread_mutex_destroy(m) == 0);
	}
}

static struct {
	pthread_mutex_t mutex;
	volatile long n;
} counted;

static void *count(void *unused)
{
	for (int i = 0; i < 300; i++) {
		long n;

		CHECK(pthread_mutex_lock(&counted.mutex) == 0);
		n = counted.n;
		if (i % 10 == 0)
			usleep(10);
		counted.n = n + 1;
		CHECK(pthread_mutex_unlock(&counted.mutex) == 0);
	}
	return NULL;
}

/* Several want one at a time; who has it says so by its number, also in a child. */
static void contention(void)
{
	pthread_mutexattr_t a;
	pthread_t t[4];
	pid_t pid;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	CHECK(pthread_mutex_init(&counted.mutex, &a) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, count, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(counted.n == 4 * 300);
	pid = fork();
	if (pid == 0)
		_exit(pthread_mutex_lock(&counted.mutex) ||
			counted.mutex.__data.__owner != getpid());
	CHECK(reap(pid) == 0);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void is_started_as(const char *file, const char *name, const char *argv0)
{
	const char *said = (const char *)getauxval(AT_EXECFN);

	CHECK(said && strcmp(said, file) == 0 && strcmp(argv0, name) == 0);
}

static void write_script(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static int start(const char *file, char *const argv[])
{
	extern char **environ;
	pid_t pid;

	CHECK(posix_spawn(&pid, file, NULL, NULL, argv, environ) == 0);
	return reap(pid);
}

/* To 64 bits and back, in the view, by scripts whose interpreters are in it, too. */
static void programs(void)
{
	char *again[] = {"me", "exec", "/tmp/narrow", "me", NULL},
	     *script[] = {"x", "one", "two", NULL};
	char *inner[] = {"/tmp/inner", "/tmp/inner", "/tmp/narrow", NULL};
	char link[64] = "";

	CHECK(system("cp /proc/self/exe /tmp/cp-is-64; cp \"$NARROW\" /tmp/narrow") == 0);
	CHECK(start("/tmp/narrow", again) == 0);
	write_script("/tmp/script",
		"#!/bin/sh\n[ \"$0 $1 $2\" = '/tmp/script one two' ] && exec /tmp/narrow exec "
		"/tmp/narrow /tmp/narrow\n");
	CHECK(start("/tmp/script", script) == 0);
	/* Its interpreter gets: exec (the argument), the script's path, what it was called with. */
	write_script("/tmp/inner", "#!/tmp/narrow script\n");
	CHECK(start("/tmp/inner", inner) == 0);
	CHECK(readlink("/proc/self/exe", link, sizeof(link)) > 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files(void)
{
	int fd = open("/tmp/large", O_CREAT | O_RDWR, 0600), n = 0;
	struct dirent *one;
	struct stat st;
	char path[64];
	DIR *d;

	/* More than 32 bits of length. */
	CHECK(fd >= 0 && ftruncate(fd, 5LL << 30) == 0 && stat("/tmp/large", &st) == 0);
	CHECK(st.st_size == 5LL << 30 && fstat(fd, &st) == 0 && st.st_size == 5LL << 30);
	CHECK(unlink("/tmp/large") == 0 && stat("/tmp/large", &st) == -1 && errno == ENOENT);
	CHECK(chdir("/tmp") == 0 && getcwd(path, sizeof(path)) && strcmp(path, "/tmp") == 0);
	d = opendir("/proc");
	while (d && (one = readdir(d)))
		n += one->d_name[0] >= '0' && one->d_name[0] <= '9';
	CHECK(d && n >= 2 && n < 20 && closedir(d) == 0);
	snprintf(path, sizeof(path), "/proc/%d/status", getpid());
	CHECK(access(path, R_OK) == 0 && access("/proc/31000", F_OK) == -1);
}

static int births(void)
{
	int n = 0;
	pid_t pid;

	while ((pid = fork()) > 0)
		n++;
	if (pid == 0)
		for (;;)
			pause();
	printf("%d\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "births") == 0)
		return births();
	if (argc == 4 && strcmp(argv[1], "exec") == 0) {
		is_started_as(argv[2], argv[3], argv[0]);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "script") == 0) {
		CHECK(strcmp(argv[0], "/tmp/narrow") == 0 && strcmp(argv[2], "/tmp/inner") == 0);
		CHECK(argc == 5 && strcmp(argv[4], "/tmp/narrow") == 0);
		return 0;
	}
	alarm(60);
	setenv("NARROW", argv[0], 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	ways();
	senders();
	restarts();
	restarted_sockets();
	threads();
	mutexes();
	contention();
	programs();
	files();
	printf("right\n");
	return 0;
}
