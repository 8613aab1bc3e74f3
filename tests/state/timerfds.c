// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many timerfds that go off all the time: none stands still after it was frozen, and none tells of
 * a moment twice.
 */
#include <poll.h>
#include <stdint.h>
#include <sys/timerfd.h>

#include "tests/state/state.h"

#define N      200
#define PERIOD 1000000L /* ns */
#define SPREAD 2000000L /* of those that go off once, ns from one to the next */

static int arm(clockid_t clock, long first, long every)
{
	struct itimerspec t = {
		.it_value = {first / 1000000000, first % 1000000000}, .it_interval = {0, every}};
	int fd = timerfd_create(clock, TFD_NONBLOCK);

	STATE_CHECK(fd >= 0 && timerfd_settime(fd, 0, &t, NULL) == 0);
	return fd;
}

static uint64_t ticks(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t v;

	STATE_CHECK(poll(&p, 1, -1) == 1 && read(fd, &v, sizeof(v)) == sizeof(v));
	return v;
}

int main(int argc, char **argv)
{
	static int periodic[N], once[N], idle[N];
	uint64_t v;

	for (int i = 0; i < N; i++) {
		once[i] = arm(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, SPREAD * (i + 1), 0);
		periodic[i] =
			arm(i % 2 ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, PERIOD + i, PERIOD + 7 * i);
		idle[i] = arm(CLOCK_MONOTONIC, i % 2, 0);
		if (i % 2)
			STATE_CHECK(ticks(idle[i]) == 1);
	}
	state_ready(argc, argv);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < 3; k++)
			STATE_CHECK(ticks(periodic[i]) >= 1);
	for (int i = 0; i < N; i++)
		STATE_CHECK(ticks(once[i]) == 1);
	for (int i = 0; i < N; i++) {
		STATE_CHECK(read(once[i], &v, sizeof(v)) == -1 && errno == EAGAIN);
		STATE_CHECK(read(idle[i], &v, sizeof(v)) == -1 && errno == EAGAIN);
	}
	return state_ok();
}
