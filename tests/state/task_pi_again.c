// SPDX-License-Identifier: GPL-2.0-or-later
/* A recursive priority-inheritance mutex that its owner locks again while somebody waits for it. */
#include <pthread.h>

#include "tests/state/state.h"

static pthread_mutex_t held;

static void *take(void *arg)
{
	STATE_CHECK(pthread_mutex_lock(&held) == 0);
	STATE_CHECK(pthread_mutex_unlock(&held) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t a;
	pthread_t waiter;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	STATE_CHECK(pthread_mutex_init(&held, &a) == 0);
	STATE_CHECK(pthread_mutex_lock(&held) == 0 && pthread_mutex_lock(&held) == 0);
	STATE_CHECK(pthread_create(&waiter, NULL, take, NULL) == 0);
	state_nap();
	state_ready(argc, argv);
	STATE_CHECK(pthread_mutex_lock(&held) == 0 && pthread_mutex_unlock(&held) == 0);
	STATE_CHECK(pthread_mutex_unlock(&held) == 0 && pthread_mutex_unlock(&held) == 0);
	STATE_CHECK(pthread_join(waiter, NULL) == 0);
	return state_ok();
}
