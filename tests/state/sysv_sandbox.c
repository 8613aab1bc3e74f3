// SPDX-License-Identifier: GPL-2.0-or-later
/* A set of semaphores with something to undo, and a sandbox with an IPC namespace of its own beside it. */
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	struct sembuf up = {.sem_op = 2, .sem_flg = SEM_UNDO}, down = {.sem_op = -2, .sem_flg = SEM_UNDO};
	int set = semget(IPC_PRIVATE, 1, 0600), ready[2], status;
	pid_t pid;
	char c;

	STATE_CHECK(set >= 0 && semop(set, &up, 1) == 0 && pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		STATE_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWIPC) == 0 && write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	STATE_CHECK(pid > 0 && read(ready[0], &c, 1) == 1);
	state_ready(argc, argv);
	STATE_CHECK(semctl(set, 0, GETVAL) == 2 && semop(set, &down, 1) == 0);
	STATE_CHECK(waitpid(pid, &status, WNOHANG) == 0);
	STATE_CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	STATE_CHECK(semctl(set, 0, IPC_RMID) == 0);
	return state_ok();
}
