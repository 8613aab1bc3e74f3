// SPDX-License-Identifier: GPL-2.0-or-later
/* The vDSO's functions, called without a pause at the addresses known from the start. */
#include <sys/time.h>

#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	struct timespec last = {0}, now;
	struct timeval tv;

	STATE_CHECK(argc >= 2);
	printf("ready\n");
	fflush(stdout);
	for (unsigned i = 0; i % 100000 || access(argv[1], F_OK) != 0; i++) {
		STATE_CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
		STATE_CHECK(now.tv_sec > last.tv_sec ||
			    (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec));
		last = now;
	}
	STATE_CHECK(gettimeofday(&tv, NULL) == 0 && time(NULL) - tv.tv_sec < 2);
	STATE_CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec - tv.tv_sec < 2);
	STATE_CHECK(clock_getres(CLOCK_MONOTONIC, &now) == 0);
	return state_ok();
}
