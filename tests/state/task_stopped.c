// SPDX-License-Identifier: GPL-2.0-or-later
/* Stopped processes: with threads, with signals waiting, and one whose parent does not know yet. */
#include <pthread.h>
#include <signal.h>
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

int main(int argc, char **argv)
{
	pid_t counting, dying, unknown;
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
