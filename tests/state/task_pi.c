// SPDX-License-Identifier: GPL-2.0-or-later
/* A priority-inheritance mutex that several threads fight for, all the time. */
#include <pthread.h>

#include "tests/state/state.h"

#define THREADS 3
#define ROUNDS	300

static pthread_mutex_t fought;
static volatile int stop, inside;
static long count;

static void init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	STATE_CHECK(pthread_mutex_init(m, &a) == 0);
}

static void *fight(void *arg)
{
	long *rounds = arg;

	while (!stop || *rounds < ROUNDS) {
		STATE_CHECK(pthread_mutex_lock(&fought) == 0);
		STATE_CHECK(inside++ == 0);
		count++;
		++*rounds;
		inside--;
		STATE_CHECK(pthread_mutex_unlock(&fought) == 0);
		if (*rounds % 16 == 0)
			state_nap();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long rounds[THREADS] = {0}, all = 0;
	pthread_t threads[THREADS];

	init(&fought);
	for (int i = 0; i < THREADS; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, fight, &rounds[i]) == 0);
	state_nap();
	state_ready(argc, argv);
	stop = 1;
	for (int i = 0; i < THREADS; i++) {
		STATE_CHECK(pthread_join(threads[i], NULL) == 0);
		all += rounds[i];
	}
	STATE_CHECK(count == all);
	return state_ok();
}
