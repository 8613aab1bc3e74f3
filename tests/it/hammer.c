// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a program can do at the wrong moment to whoever traces it: stop itself, call exec from a
 * thread while others are in the middle of calls, end, kill, be killed, in fork, vfork, clone, wait
 * and mutexes, all at once for a few seconds.  Right if all of it comes to its end.
 *
 *      hammer SECONDS
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                                           \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			printf("FAIL: line %d: %s (%s)\n", __LINE__, #cond, strerror(errno)); \
			fflush(stdout);                                                       \
			kill(0, SIGKILL);                                                     \
		}                                                                             \
	} while (0)

static const char *self;
static unsigned seed;

static unsigned any(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void nap_us(unsigned us)
{
	struct timespec ts = {.tv_nsec = us * 1000L};

	nanosleep(&ts, NULL);
}

static void run_nothing(void)
{
	execl(self, self, "nothing", NULL);
	_exit(1);
}

/* Its status. */
static int reap(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* ---- threads that are in the middle of something --------------------------------------------- */

static pthread_mutex_t *mutex;
static int pair[2];

static _Noreturn void *in_births(void *arg)
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void *no_thread(void *arg)
{
	return NULL;
}

static _Noreturn void *in_clone(void *arg)
{
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, NULL, no_thread, NULL) == 0)
			pthread_join(t, NULL);
	}
}

static _Noreturn void *in_vfork(void *arg)
{
	for (;;) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static _Noreturn void *in_wait(void *arg)
{
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			getppid();
}

static _Noreturn void *in_mutex(void *arg)
{
	for (;;) {
		int r = pthread_mutex_lock(mutex);

		if (r == EOWNERDEAD)
			pthread_mutex_consistent(mutex);
		if (r == 0 || r == EOWNERDEAD)
			pthread_mutex_unlock(mutex);
	}
}

static _Noreturn void *in_receive(void *arg)
{
	char control[CMSG_SPACE(sizeof(struct ucred))], data;
	struct iovec v = {&data, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};

	for (;;) {
		m.msg_controllen = sizeof(control);
		recvmsg(pair[0], &m, 0);
	}
}

static void *(*const middles[])(void *) = {
	in_births, in_clone, in_vfork, in_wait, in_mutex, in_receive};

static void begin_threads(unsigned n)
{
	pthread_t t;

	for (unsigned i = 0; i < n; i++)
		pthread_create(&t, NULL, middles[any(6)], NULL);
}

/* ---- one process each ------------------------------------------------------------------------ */

/* From any thread; the others are in the middle of something. */
static void *exec_later(void *arg)
{
	nap_us(any(3000));
	run_nothing();
	return NULL;
}

static void exec_from_a_thread(void)
{
	pthread_t t;

	begin_threads(3);
	pthread_create(&t, NULL, exec_later, NULL);
	pause();
}

static void *exit_later(void *arg)
{
	nap_us(any(3000));
	_exit(0);
}

static void exit_from_a_thread(void)
{
	pthread_t t;

	begin_threads(3);
	pthread_create(&t, NULL, exit_later, NULL);
	if (any(2))
		pthread_exit(NULL); /* its first thread is no more */
	in_births(NULL);
}

static void wait_to_be_killed(void)
{
	begin_threads(2);
	middles[any(6)](NULL);
}

static void stop_itself(void)
{
	begin_threads(any(2));
	raise(SIGSTOP);
	run_nothing();
}

/* ---- what is done to them -------------------------------------------------------------------- */

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		seed = (unsigned)getpid() * 2654435761U;
		run();
		_exit(0);
	}
	return pid;
}

static void check_end(void (*run)(void))
{
	int status = reap(start(run));

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void hit_exec(void)
{
	check_end(exec_from_a_thread);
}

static void hit_exit(void)
{
	check_end(exit_from_a_thread);
}

static void hit_kill(void)
{
	pid_t pid = start(wait_to_be_killed);
	int status;

	nap_us(any(3000));
	CHECK(kill(pid, SIGKILL) == 0);
	status = reap(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void hit_stop(void)
{
	pid_t pid = start(stop_itself);
	int status;

	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(kill(pid, SIGCONT) == 0);
	if (any(3) == 0)
		kill(pid, SIGKILL);
	reap(pid);
}

/* Stops and goes on, any number of times, at any moment. */
static void hit_group_stops(void)
{
	pid_t pid = start(wait_to_be_killed);

	for (unsigned i = any(8); i > 0; i--) {
		CHECK(kill(pid, any(2) ? SIGSTOP : SIGTSTP) == 0);
		nap_us(any(500));
		CHECK(kill(pid, SIGCONT) == 0);
		nap_us(any(500));
	}
	CHECK(kill(pid, SIGKILL) == 0);
	reap(pid);
}

/* The child of a vfork stops; its parent, who can't, is told to stop, too. */
static volatile pid_t *stopped;

static void vfork_and_stop(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		*stopped = getpid();
		kill(getpid(), SIGSTOP);
		execl(self, self, "nothing", NULL);
		_exit(0);
	}
	_exit(reap(pid) != 0);
}

static void hit_vfork(void)
{
	pid_t pid;

	*stopped = 0;
	pid = start(vfork_and_stop);
	while (!*stopped)
		sched_yield();
	if (any(2)) {
		kill(pid, SIGSTOP);
		nap_us(any(300));
		kill(pid, SIGCONT);
	}
	if (any(4) == 0)
		kill(pid, SIGKILL);
	/* Perhaps before it has stopped. */
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		kill(*stopped, SIGCONT);
		nap_us(200);
	}
	kill(*stopped, SIGKILL); /* an orphan, if it is still there */
}

static void hit_mutex(void)
{
	pid_t pid[2] = {start(wait_to_be_killed), start(wait_to_be_killed)};

	for (int i = 0; i < 2; i++) {
		int r = pthread_mutex_lock(mutex);

		CHECK(r == 0 || r == EOWNERDEAD);
		if (r == EOWNERDEAD)
			CHECK(pthread_mutex_consistent(mutex) == 0);
		nap_us(any(500));
		CHECK(pthread_mutex_unlock(mutex) == 0);
		CHECK(kill(pid[i], SIGKILL) == 0);
		reap(pid[i]);
	}
}

static void (*const hits[])(void) = {
	hit_exec, hit_exit, hit_kill, hit_stop, hit_group_stops, hit_vfork, hit_mutex};

/* ---- all at once ----------------------------------------------------------------------------- */

static void share(void)
{
	pthread_mutexattr_t a;
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(shared != MAP_FAILED);
	mutex = (pthread_mutex_t *)shared;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	CHECK(pthread_mutex_init(mutex, &a) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
}

static void hammer(unsigned which, time_t end)
{
	unsigned n = 0;

	stopped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK((void *)stopped != MAP_FAILED);
	for (; time(NULL) < end; n++)
		hits[which]();
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	_exit(n == 0);
}

int main(int argc, char **argv)
{
	const unsigned n = sizeof(hits) / sizeof(hits[0]);
	pid_t pids[sizeof(hits) / sizeof(hits[0])];
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);

	if (argc > 1 && !strcmp(argv[1], "nothing"))
		return 0;
	self = argv[0];
	share();
	for (unsigned i = 0; i < n; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		seed = (unsigned)time(NULL) + i;
		if (pids[i] == 0)
			hammer(i, end);
	}
	for (unsigned i = 0; i < n; i++)
		CHECK(reap(pids[i]) == 0);
	printf("right\n");
	return 0;
}
