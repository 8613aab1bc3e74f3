// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Thousands of signals a second, with a handler that lets calls be made again and with one that
 * does not: who waits is interrupted exactly as signal(7) says, and who does not wait never is.
 *
 * The handler asks for the next one.  A timer that goes on by itself leaves no time for anything
 * between two signals where one takes longer than that, as it may where a tracer is asked about it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define INTERVAL 100 /* microseconds */
#define QUICK	1000 /* calls that do not wait */
#define ROUNDS	3    /* of those that do, some 10 ms each */
#define PATIENT 300  /* of them, where what they wait for may be there before they wait */

static volatile sig_atomic_t handled, stormy;
static volatile bool stop;
static pid_t parent;

static void handle(int sig)
{
	static const struct itimerval soon = {.it_value.tv_usec = INTERVAL};

	handled++;
	if (stormy)
		setitimer(ITIMER_REAL, &soon, NULL);
}

static void storm(bool restart, bool on)
{
	struct sigaction act = {.sa_handler = handle, .sa_flags = restart ? SA_RESTART : 0};
	struct itimerval first = {.it_value.tv_usec = on};

	STATE_CHECK(sigaction(SIGALRM, &act, NULL) == 0);
	stormy = on;
	STATE_CHECK(setitimer(ITIMER_REAL, &first, NULL) == 0);
}

/* Which keeps its parent's handler, not its timer. */
static pid_t child(void)
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0)
		state_nap();
	return pid;
}

/* ---- who does not wait ---------------------------------------------------------------------- */

static void quick(void)
{
	pid_t group = getpgrp();

	for (int i = 0; i < QUICK; i++) {
		STATE_CHECK(getppid() == parent);
		STATE_CHECK(getpgid(0) == group);
		STATE_CHECK(kill(getpid(), 0) == 0);
		STATE_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	}
}

/* A signal is sent once, however often the sender is interrupted meanwhile. */
static volatile sig_atomic_t sent;

static void count(int sig)
{
	sent++;
}

static void send_once(void)
{
	STATE_CHECK(signal(SIGUSR2, count) != SIG_ERR);
	sent = 0;
	for (int i = 1; i <= QUICK; i++)
		STATE_CHECK(raise(SIGUSR2) == 0 && sent == i);
}

/* ---- who waits: how often it was interrupted ------------------------------------------------ */

static int wait_child(void)
{
	pid_t pid = child();
	int n = 0, status;

	if (pid == 0)
		_exit(7);
	while (waitpid(pid, &status, 0) != pid) {
		STATE_CHECK(errno == EINTR);
		n++;
	}
	STATE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return n;
}

static int wait_info(void)
{
	pid_t pid = child();
	siginfo_t info;
	int n = 0;

	if (pid == 0)
		_exit(7);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0) {
		STATE_CHECK(errno == EINTR);
		n++;
	}
	STATE_CHECK(info.si_pid == pid && info.si_status == 7);
	return n;
}

static int receive(void)
{
	char data = 0, control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec v = {&data, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
	struct ucred from;
	int s[2], one = 1, n = 0;
	pid_t pid;

	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
	STATE_CHECK(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) == 0);
	pid = child();
	if (pid == 0)
		_exit(write(s[1], "x", 1) != 1);
	while (m.msg_controllen = sizeof(control), recvmsg(s[0], &m, 0) < 0) {
		STATE_CHECK(errno == EINTR);
		n++;
	}
	memcpy(&from, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(from));
	STATE_CHECK(data == 'x' && from.pid == pid);
	while (waitpid(pid, NULL, 0) < 0)
		STATE_CHECK(errno == EINTR);
	close(s[0]);
	close(s[1]);
	return n;
}

static int wait_signal(void)
{
	const struct timespec patience = {30, 0};
	siginfo_t info;
	sigset_t set;
	int n = 0;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = child();
	if (pid == 0)
		_exit(kill(getppid(), SIGUSR1) != 0);
	while (sigtimedwait(&set, &info, &patience) < 0) {
		STATE_CHECK(errno == EINTR);
		n++;
	}
	STATE_CHECK(info.si_pid == pid && info.si_code == SI_USER);
	while (waitpid(pid, NULL, 0) < 0)
		STATE_CHECK(errno == EINTR);
	return n;
}

static void *burn(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!stop)
		;
	return NULL;
}

/* By the CPU time of the process; what is left is slept next. */
static int sleep_by_cpu(void)
{
	struct timespec left = {.tv_nsec = 10000000}, before, after;
	clockid_t clock;
	int64_t took;
	pthread_t t;
	int r, n = 0;

	STATE_CHECK(clock_getcpuclockid(getpid(), &clock) == 0);
	stop = false;
	STATE_CHECK(pthread_create(&t, NULL, burn, NULL) == 0);
	STATE_CHECK(clock_gettime(clock, &before) == 0);
	while ((r = clock_nanosleep(clock, 0, &left, &left)) != 0) {
		STATE_CHECK(r == EINTR);
		n++;
	}
	STATE_CHECK(clock_gettime(clock, &after) == 0);
	/* seconds of it where the machine is busy: more nanoseconds than 32 bits hold */
	took = (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec -
	       before.tv_nsec;
	if (took < 10000000) {
		printf("FAIL: %d times interrupted, slept %lld ns\n", n, (long long)took);
		fflush(stdout);
		_exit(1);
	}
	stop = true;
	STATE_CHECK(pthread_join(t, NULL) == 0);
	return n;
}

static int wait_semaphore(void)
{
	struct sembuf down = {0, -1, 0}, up = {0, 1, 0};
	int id = semget(IPC_PRIVATE, 1, 0600), n = 0;
	pid_t pid;

	STATE_CHECK(id >= 0);
	pid = child();
	if (pid == 0)
		_exit(semop(id, &up, 1) != 0);
	while (semop(id, &down, 1) < 0) {
		STATE_CHECK(errno == EINTR);
		n++;
	}
	while (waitpid(pid, NULL, 0) < 0)
		STATE_CHECK(errno == EINTR);
	STATE_CHECK(semctl(id, 0, IPC_RMID) == 0);
	return n;
}

static pthread_mutex_t mutex;

static void *hold(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	STATE_CHECK(pthread_mutex_lock(&mutex) == 0);
	stop = true;
	state_nap();
	STATE_CHECK(pthread_mutex_unlock(&mutex) == 0);
	return NULL;
}

static int wait_mutex(void)
{
	pthread_mutexattr_t a;
	pthread_t t;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	STATE_CHECK(pthread_mutex_init(&mutex, &a) == 0);
	stop = false;
	STATE_CHECK(pthread_create(&t, NULL, hold, NULL) == 0);
	while (!stop)
		;
	STATE_CHECK(pthread_mutex_lock(&mutex) == 0);
	STATE_CHECK(pthread_mutex_unlock(&mutex) == 0);
	STATE_CHECK(pthread_join(t, NULL) == 0);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

enum { NEVER, WITHOUT_RESTART, ALWAYS };

static const struct {
	int (*wait)(void);
	int interrupted;
} waits[] = {
	{wait_child, WITHOUT_RESTART},
	{wait_info, WITHOUT_RESTART},
	{receive, WITHOUT_RESTART},
	{wait_signal, ALWAYS},
	{sleep_by_cpu, ALWAYS},
	{wait_semaphore, ALWAYS},
	{wait_mutex, NEVER},
};

static void check_waits(bool restart)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		bool expected = waits[i].interrupted == ALWAYS ||
				(waits[i].interrupted == WITHOUT_RESTART && !restart);
		int n = 0, before = handled;

		for (int k = 0; k < ROUNDS || (k < PATIENT && expected && !n); k++)
			n += waits[i].wait();
		if (!!n != expected || handled == before) {
			printf("FAIL: %zu: %s: %d times, %d signals\n", i,
				restart ? "restart" : "no restart", n, handled - before);
			fflush(stdout);
			_exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	parent = getppid();
	storm(true, true);
	state_ready(argc, argv);
	for (int restart = 0; restart < 2; restart++) {
		storm(restart, true);
		quick();
		send_once();
		check_waits(restart);
		storm(restart, false);
	}
	return state_ok();
}
