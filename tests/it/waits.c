// SPDX-License-Identifier: GPL-2.0-or-later
/* Waits of a second that the kernel restarts by itself, each in a thread: none may be cut short. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_int waiting;

static void *in_nanosleep(void *arg)
{
	const struct timespec t = {2, 0};

	waiting++;
	return nanosleep(&t, NULL) ? "nanosleep" : NULL;
}

static void *in_clock_nanosleep(void *arg)
{
	const struct timespec t = {2, 0};

	waiting++;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) ? "clock_nanosleep" : NULL;
}

static void *in_poll(void *arg)
{
	waiting++;
	return poll(NULL, 0, 2000) ? "poll" : NULL;
}

int main(void)
{
	void *(*const bodies[])(void *) = {in_nanosleep, in_clock_nanosleep, in_poll};
	const struct timespec nap = {.tv_nsec = 100000000};
	pthread_t threads[3];
	void *failed;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, bodies[i], NULL))
			abort();
	while (waiting < 3)
		;
	nanosleep(&nap, NULL);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &failed);
		if (failed)
			printf("%s was cut short\n", (char *)failed);
	}
	puts("over");
	return 0;
}
