// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads go on with their numbers, names, storage, masks, stacks and rseq areas; joining them
 * works.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

#define N 8

static __thread int number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t ready;
static int go;

/*
 * A thread has one rseq area, mostly the C library's: who asks for another, of the same size, is
 * told so, in the same way each time.  0: it had none, and has it now.
 */
static int ask_rseq(void)
{
	static __thread char area[32] __attribute__((aligned(32)));

	return syscall(SYS_rseq, area, sizeof(area), 0, 0x53053053) == 0 ? 0 : errno;
}

static void check_rseq(int before)
{
	STATE_CHECK(ask_rseq() == (before ? before : EBUSY));
}

static void *work(void *arg)
{
	int n = (int)(intptr_t)arg, rseq = ask_rseq();
	pid_t tid = (pid_t)syscall(SYS_gettid);
	sigset_t mask, now;
	char name[16], seen[16];

	number = n;
	snprintf(name, sizeof(name), "worker-%d", n);
	prctl(PR_SET_NAME, name);
	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN + n);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_barrier_wait(&ready);
	pthread_mutex_lock(&lock);
	while (!go)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);

	check_rseq(rseq);
	STATE_CHECK(number == n && tid == (pid_t)syscall(SYS_gettid));
	STATE_CHECK(prctl(PR_GET_NAME, seen) == 0 && !strcmp(name, seen));
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (int i = 0; i < N; i++)
		STATE_CHECK(sigismember(&now, SIGRTMIN + i) == (i == n));
	return (void *)(intptr_t)(n * n);
}

int main(int argc, char **argv)
{
	int rseq = ask_rseq();
	pthread_t threads[N];

	pthread_barrier_init(&ready, NULL, N + 1);
	for (int i = 0; i < N; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
	pthread_barrier_wait(&ready);
	state_ready(argc, argv);
	check_rseq(rseq);
	pthread_mutex_lock(&lock);
	go = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < N; i++) {
		void *ret;

		STATE_CHECK(pthread_join(threads[i], &ret) == 0);
		STATE_CHECK((intptr_t)ret == i * i);
	}
	return state_ok();
}
