// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * XCB polls without a timeout and goes on after signals, so nothing but the connection's end gets
 * it out of there: a timer's signal shuts the socket down, which a handler may do
 * (signal-safety(7)). As with SIGBUS (framebuffer.c) a handler has nothing but variables of the
 * file.
 */
#include "display/x/patience.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

static volatile sig_atomic_t watched = -1, over;

static void on_alarm(int sig)
{
	int before = errno;

	if (watched >= 0) {
		shutdown(watched, SHUT_RDWR);
		over = 1;
	}
	errno = before;
}

void display_x_patience_begin(int fd, unsigned ms)
{
	const struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	const struct itimerval then = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000}};

	over = 0;
	watched = fd;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &then, NULL);
}

bool display_x_patience_end(void)
{
	const struct itimerval never = {0};

	setitimer(ITIMER_REAL, &never, NULL);
	watched = -1;
	return over;
}
