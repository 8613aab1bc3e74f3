// SPDX-License-Identifier: GPL-2.0-or-later
/* Robust and priority-inheritance mutexes held across a move: the kernel still knows the owner. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

struct shared {
	pthread_mutex_t robust, pi;
	volatile int held, release;
};

static void init(pthread_mutex_t *m, int protocol)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&a, protocol);
	STATE_CHECK(pthread_mutex_init(m, &a) == 0);
}

int main(int argc, char **argv)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		0);
	pid_t pid;

	init(&s->robust, PTHREAD_PRIO_NONE);
	init(&s->pi, PTHREAD_PRIO_INHERIT);
	pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(&s->robust);
		pthread_mutex_lock(&s->pi);
		s->held = 1;
		while (!s->release)
			state_nap();
		_exit(0); /* without unlocking: the kernel walks the robust list */
	}
	while (!s->held)
		state_nap();
	state_ready(argc, argv);
	STATE_CHECK(pthread_mutex_trylock(&s->robust) == EBUSY);
	STATE_CHECK(pthread_mutex_trylock(&s->pi) == EBUSY);
	s->release = 1;
	STATE_CHECK(pthread_mutex_lock(&s->robust) == EOWNERDEAD);
	STATE_CHECK(pthread_mutex_lock(&s->pi) == EOWNERDEAD);
	STATE_CHECK(waitpid(pid, NULL, 0) == pid);
	return state_ok();
}
