// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pidfds: of a thread, that don't wait, several of one process, that was opened by another, with a
 * child's exit status.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef PIDFD_NONBLOCK
#define PIDFD_NONBLOCK O_NONBLOCK
#endif

static volatile int end_thread;

static void *thread(void *arg)
{
	*(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
	while (!end_thread)
		state_nap();
	return NULL;
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

int main(int argc, char **argv)
{
	int of_thread, of_leader, lazy, again, gone[2], status, p[2];
	volatile pid_t tid = 0;
	pid_t child = fork(), dead;
	struct stat a, b;
	siginfo_t info;
	pthread_t t;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	STATE_CHECK(pipe(p) == 0 && pthread_create(&t, NULL, thread, (void *)&tid) == 0);
	while (!tid)
		state_nap();
	of_thread = pidfd_open(tid, PIDFD_THREAD); /* Linux 6.9 */
	of_leader = pidfd_open(getpid(), PIDFD_THREAD);
	lazy = pidfd_open(child, PIDFD_NONBLOCK);
	again = pidfd_open(child, 0);
	dead = fork();
	if (dead == 0)
		_exit(0);
	gone[0] = pidfd_open(dead, 0);
	gone[1] = pidfd_open(dead, 0);
	STATE_CHECK(lazy >= 0 && again >= 0 && gone[0] >= 0 && gone[1] >= 0);
	STATE_CHECK((of_thread >= 0) == (of_leader >= 0));
	STATE_CHECK(waitpid(dead, &status, 0) == dead);

	state_ready(argc, argv);

	if (of_thread >= 0) {
		STATE_CHECK(!readable(of_thread) && !readable(of_leader));
		STATE_CHECK(fcntl(of_thread, F_GETFL) & PIDFD_THREAD);
		STATE_CHECK(pidfd_send_signal(of_thread, 0, NULL, 0) == 0);
		end_thread = 1;
		STATE_CHECK(pthread_join(t, NULL) == 0);
		while (!readable(of_thread))
			state_nap();
		STATE_CHECK(!readable(of_leader));
	}
	STATE_CHECK(fcntl(lazy, F_GETFL) & O_NONBLOCK && !(fcntl(again, F_GETFL) & O_NONBLOCK));
	STATE_CHECK(waitid(P_PIDFD, (id_t)lazy, &info, WEXITED) == -1 && errno == EAGAIN);
	STATE_CHECK(readable(gone[0]) && readable(gone[1]));
	STATE_CHECK(pidfd_send_signal(gone[1], 0, NULL, 0) == -1 && errno == ESRCH);
	STATE_CHECK(fstat(lazy, &a) == 0 && fstat(again, &b) == 0);
	STATE_CHECK(pidfd_send_signal(again, SIGKILL, NULL, 0) == 0);
	while (!readable(lazy))
		state_nap();
	STATE_CHECK(waitid(P_PIDFD, (id_t)lazy, &info, WEXITED) == 0);
	STATE_CHECK(info.si_pid == child && info.si_status == SIGKILL);
	return state_ok();
}
