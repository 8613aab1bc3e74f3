// SPDX-License-Identifier: GPL-2.0-or-later
/* Robust mutexes whose owners are killed, or leave their thread, after a move. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

struct shared {
	pthread_mutex_t process, thread;
	volatile int held, release;
};

static struct shared *s;

static void init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	STATE_CHECK(pthread_mutex_init(m, &a) == 0);
}

static void *hold(void *m)
{
	pthread_mutex_lock(m);
	__atomic_add_fetch(&s->held, 1, __ATOMIC_SEQ_CST);
	while (!s->release)
		state_nap();
	return NULL;
}

static void check_dead(pthread_mutex_t *m)
{
	STATE_CHECK(pthread_mutex_lock(m) == EOWNERDEAD);
	STATE_CHECK(pthread_mutex_consistent(m) == 0 && pthread_mutex_unlock(m) == 0);
	STATE_CHECK(pthread_mutex_lock(m) == 0 && pthread_mutex_unlock(m) == 0);
}

int main(int argc, char **argv)
{
	pthread_t t;
	pid_t pid;

	s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	init(&s->process);
	init(&s->thread);
	pid = fork();
	if (pid == 0) {
		hold(&s->process);
		_exit(1);
	}
	STATE_CHECK(pthread_create(&t, NULL, hold, &s->thread) == 0);
	while (s->held < 2)
		state_nap();
	state_ready(argc, argv);
	STATE_CHECK(pthread_mutex_trylock(&s->process) == EBUSY);
	STATE_CHECK(kill(pid, SIGKILL) == 0);
	check_dead(&s->process);
	s->release = 1;
	check_dead(&s->thread);
	STATE_CHECK(pthread_join(t, NULL) == 0 && waitpid(pid, NULL, 0) == pid);
	return state_ok();
}
