// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that wait in calls which take or tell numbers of tasks: they wait on, for the same. */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define CHILDREN 3

static pid_t children[CHILDREN];
static int told[2], pair[2];
static pthread_mutex_t mutex;

/* Until the other end of @told is closed. */
static void child(int i)
{
	char c;

	close(told[1]);
	STATE_CHECK(read(told[0], &c, 1) == 0);
	if (i == 2)
		STATE_CHECK(write(pair[1], "x", 1) == 1);
	_exit(i);
}

static void *in_wait4(void *arg)
{
	int status;

	STATE_CHECK(waitpid(children[0], &status, 0) == children[0]);
	STATE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return NULL;
}

static void *in_waitid(void *arg)
{
	siginfo_t info;

	STATE_CHECK(waitid(P_PID, (id_t)children[1], &info, WEXITED) == 0);
	STATE_CHECK(info.si_pid == children[1] && info.si_status == 1);
	return NULL;
}

static void *in_recvmsg(void *arg)
{
	char data, control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec v = {&data, 1};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct ucred from;

	STATE_CHECK(recvmsg(pair[0], &m, 0) == 1 && data == 'x');
	memcpy(&from, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(from));
	STATE_CHECK(from.pid == children[2]);
	STATE_CHECK(waitpid(children[2], NULL, 0) == children[2]);
	return NULL;
}

static void *in_mutex(void *arg)
{
	STATE_CHECK(pthread_mutex_lock(&mutex) == 0);
	STATE_CHECK(pthread_mutex_unlock(&mutex) == 0);
	return NULL;
}

static void init(void)
{
	pthread_mutexattr_t a;
	int one = 1;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	STATE_CHECK(pthread_mutex_init(&mutex, &a) == 0 && pthread_mutex_lock(&mutex) == 0);
	STATE_CHECK(pipe(told) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	STATE_CHECK(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) == 0);
}

int main(int argc, char **argv)
{
	void *(*const waits[])(void *) = {in_wait4, in_waitid, in_recvmsg, in_mutex};
	pthread_t threads[sizeof(waits) / sizeof(waits[0])];
	const int n = sizeof(waits) / sizeof(waits[0]);

	init();
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		STATE_CHECK(children[i] >= 0);
		if (children[i] == 0)
			child(i);
	}
	for (int i = 0; i < n; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, waits[i], NULL) == 0);
	state_nap();
	state_ready(argc, argv);
	close(told[1]);
	STATE_CHECK(pthread_mutex_unlock(&mutex) == 0);
	for (int i = 0; i < n; i++)
		STATE_CHECK(pthread_join(threads[i], NULL) == 0);
	return state_ok();
}
