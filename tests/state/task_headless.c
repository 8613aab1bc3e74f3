// SPDX-License-Identifier: GPL-2.0-or-later
/* A process whose first thread has ended while two others go on, with a child and files. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static int argc_;
static char **argv_;
static int pair[2], fds[2], lines[2];
static pid_t child;
static char *pattern;

/* Lives until it is told to end; a signal because its parent died would end it too soon. */
static void be_child(void)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write(lines[1], "x", 1);
	_exit(read(fds[0], &c, 1) == 1 ? 7 : 8);
}

/* The first thread's state, with the name it had: Z. */
static bool head_is_dead(void)
{
	char text[256] = "", want[64];
	int fd = open("/proc/self/stat", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	snprintf(want, sizeof(want), "%d (head) Z", getpid());
	close(fd);
	return n > 0 && !strncmp(text, want, strlen(want));
}

static void *second(void *arg)
{
	char buf[8];

	/* Answers what the third asks. */
	while (read(pair[1], buf, sizeof(buf)) > 0)
		STATE_CHECK(write(pair[1], buf, 4) == 4);
	return (void *)(intptr_t)gettid();
}

static void *third(void *arg)
{
	pthread_t other = *(pthread_t *)arg;
	char buf[8];
	int status;
	void *ret;
	pid_t tid = gettid(), pid = getpid();

	while (!head_is_dead())
		state_nap();
	child = fork();
	if (child == 0)
		be_child();
	STATE_CHECK(child > 0 && read(lines[0], buf, 1) == 1);

	state_ready(argc_, argv_);

	STATE_CHECK(gettid() == tid && getpid() == pid && tid != pid && head_is_dead());
	for (int i = 0; i < 16 << 20; i++)
		STATE_CHECK(pattern[i] == (char)(i * 31));
	STATE_CHECK(write(pair[0], "ping", 4) == 4 && read(pair[0], buf, 8) == 4);
	STATE_CHECK(waitpid(child, &status, WNOHANG) == 0);
	STATE_CHECK(write(fds[1], "x", 1) == 1 && waitpid(child, &status, 0) == child);
	STATE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	shutdown(pair[0], SHUT_RDWR);
	STATE_CHECK(pthread_join(other, &ret) == 0 && (pid_t)(intptr_t)ret != pid);
	/* What is sent to the process somebody takes. */
	STATE_CHECK(kill(pid, SIGUSR1) == 0);
	exit(state_ok());
}

int main(int argc, char **argv)
{
	static pthread_t a, b;
	sigset_t set;

	argc_ = argc;
	argv_ = argv;
	signal(SIGUSR1, SIG_IGN);
	sigemptyset(&set);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(fds) == 0 &&
		    pipe(lines) == 0);
	pattern = malloc(16 << 20);
	for (int i = 0; i < 16 << 20; i++)
		pattern[i] = (char)(i * 31);
	prctl(PR_SET_NAME, "head");
	STATE_CHECK(pthread_create(&a, NULL, second, NULL) == 0);
	STATE_CHECK(pthread_create(&b, NULL, third, &a) == 0);
	pthread_exit(NULL);
}
