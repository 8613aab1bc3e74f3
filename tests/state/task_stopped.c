// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stopped processes: with threads, with signals waiting, and one whose parent does not know yet.
 * Some that were continued, which their parent has not asked for yet.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static volatile long *ticks;

static void *tick(void *arg)
{
	for (;;) {
		ticks[(long)arg]++;
		state_nap();
	}
	return NULL;
}

static void handler(int sig)
{
	ticks[3] = sig;
}

/* A process of three threads which count, once they do. */
static pid_t start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t t;

		signal(SIGUSR1, handler);
		for (long i = 1; i < 3; i++)
			pthread_create(&t, NULL, tick, (void *)i);
		tick((void *)0);
	}
	while (!ticks[0] || !ticks[1] || !ticks[2])
		state_nap();
	return pid;
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	STATE_CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

static void continued(int sig)
{
	ticks[4]++;
}

/* A process of @n threads that was stopped, and continued once. */
static pid_t go_on(int n)
{
	long before = ticks[4];
	pid_t pid;

	ticks[5] = 0;
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		signal(SIGCONT, continued);
		for (long i = 1; i < n; i++)
			pthread_create(&t, NULL, tick, (void *)6);
		ticks[5] = 1;
		for (;;)
			pause();
	}
	while (!ticks[5])
		state_nap();
	stop(pid);
	kill(pid, SIGCONT);
	while (ticks[4] == before)
		state_nap();
	return pid;
}

static bool told(pid_t pid)
{
	siginfo_t si = {0};

	STATE_CHECK(waitid(P_PID, (id_t)pid, &si, WCONTINUED | WNOHANG) == 0);
	STATE_CHECK(!si.si_pid || (si.si_pid == pid && si.si_code == CLD_CONTINUED));
	return si.si_pid;
}

int main(int argc, char **argv)
{
	pid_t counting, dying, unknown, known, going[2];
	long before[3];
	siginfo_t si;
	int status;

	ticks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	counting = start();
	stop(counting);
	kill(counting, SIGUSR1);
	dying = fork();
	if (dying == 0)
		for (;;)
			pause();
	stop(dying);
	kill(dying, SIGTERM);
	unknown = fork();
	if (unknown == 0)
		for (;;)
			pause();
	kill(unknown, SIGSTOP);
	STATE_CHECK(waitid(P_PID, unknown, &si, WSTOPPED | WNOWAIT) == 0);
	known = go_on(1);
	STATE_CHECK(told(known));
	for (int i = 0; i < 2; i++)
		going[i] = go_on(1 + 2 * i);
	for (int i = 0; i < 3; i++)
		before[i] = ticks[i];
	state_ready(argc, argv);

	for (int i = 0; i < 10; i++)
		state_nap();
	STATE_CHECK(waitpid(counting, &status, WUNTRACED | WNOHANG) == 0);
	STATE_CHECK(waitpid(dying, &status, WUNTRACED | WNOHANG) == 0);
	for (int i = 0; i < 3; i++)
		STATE_CHECK(ticks[i] == before[i]);
	STATE_CHECK(!ticks[3]);
	STATE_CHECK(!told(known));
	for (int i = 0; i < 2; i++) {
		STATE_CHECK(told(going[i]) && !told(going[i]));
		kill(going[i], SIGKILL);
	}
	kill(known, SIGKILL);
	STATE_CHECK(ticks[4] == 3);
	STATE_CHECK(waitpid(unknown, &status, WUNTRACED) == unknown && WIFSTOPPED(status));
	kill(dying, SIGCONT);
	STATE_CHECK(waitpid(dying, &status, 0) == dying && WTERMSIG(status) == SIGTERM);
	kill(counting, SIGCONT);
	for (int i = 0; i < 3; i++)
		while (ticks[i] == before[i])
			state_nap();
	STATE_CHECK(ticks[3] == SIGUSR1);
	kill(counting, SIGKILL);
	kill(unknown, SIGKILL);
	return state_ok();
}
