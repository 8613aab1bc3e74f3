// SPDX-License-Identifier: GPL-2.0-or-later
/* Parents, groups, sessions, zombies, stopped children and orphans are what they were. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static struct shared {
	pid_t orphan, orphan_sid;
	volatile int orphan_ok, ready, check;
} *shared;

static void wait_for(volatile int *v)
{
	while (!*v)
		state_nap();
}

/* Leaves an orphan behind in a session whose leader ends. */
static void make_orphan(void)
{
	pid_t leader = fork();

	if (leader == 0) {
		setsid();
		if (fork() == 0) {
			while (getppid() != 1)
				state_nap();
			shared->orphan = getpid();
			shared->orphan_sid = getsid(0);
			setpgid(0, 0);
			wait_for(&shared->check);
			shared->orphan_ok = getppid() == 1 && getsid(0) == shared->orphan_sid &&
					    getpgid(0) == getpid() ? 1 : 2;
			pause();
		}
		_exit(0);
	}
	waitpid(leader, NULL, 0);
	while (!shared->orphan)
		state_nap();
}

static pid_t child(int status, int sig)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (sig)
			kill(getpid(), sig);
		_exit(status);
	}
	return pid;
}

int main(int argc, char **argv)
{
	pid_t exited, killed, stopped, job, member, self = getpid(), sid = getsid(0), parent;
	siginfo_t si;
	int status;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_orphan();
	exited = child(7, 0);
	killed = child(0, SIGUSR1);
	stopped = fork();
	if (stopped == 0) {
		for (;;)
			state_nap();
	}
	job = fork();
	if (job == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(job, job);
	member = fork();
	if (member == 0) {
		for (;;)
			pause();
	}
	setpgid(member, job);
	kill(stopped, SIGSTOP);
	STATE_CHECK(waitpid(stopped, &status, WUNTRACED) == stopped && WIFSTOPPED(status));
	STATE_CHECK(waitid(P_PID, exited, &si, WEXITED | WNOWAIT) == 0);
	STATE_CHECK(waitid(P_PID, killed, &si, WEXITED | WNOWAIT) == 0);
	parent = getppid();
	state_ready(argc, argv);

	STATE_CHECK(getpid() == self && getsid(0) == sid && getppid() == parent);
	STATE_CHECK(getpgid(job) == job && getpgid(member) == job && getsid(job) == sid);
	STATE_CHECK(waitpid(stopped, &status, WUNTRACED | WNOHANG) == 0);
	STATE_CHECK(waitpid(exited, &status, 0) == exited && WEXITSTATUS(status) == 7);
	STATE_CHECK(waitpid(killed, &status, 0) == killed && WTERMSIG(status) == SIGUSR1);
	STATE_CHECK(kill(-job, SIGTERM) == 0);
	STATE_CHECK(waitpid(job, &status, 0) == job && WTERMSIG(status) == SIGTERM);
	STATE_CHECK(waitpid(member, &status, 0) == member && WTERMSIG(status) == SIGTERM);
	kill(stopped, SIGCONT);
	STATE_CHECK(waitpid(stopped, &status, WCONTINUED) == stopped && WIFCONTINUED(status));
	kill(stopped, SIGKILL);
	STATE_CHECK(waitpid(stopped, &status, 0) == stopped && WTERMSIG(status) == SIGKILL);
	STATE_CHECK(waitpid(-1, &status, 0) < 0 && errno == ECHILD);
	shared->check = 1;
	wait_for(&shared->orphan_ok);
	STATE_CHECK(shared->orphan_ok == 1 && getsid(shared->orphan) == shared->orphan_sid);
	kill(shared->orphan, SIGKILL);
	return state_ok();
}
