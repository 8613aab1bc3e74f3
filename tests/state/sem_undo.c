// SPDX-License-Identifier: GPL-2.0-or-later
/* What a process with threads has promised to undo of semaphores, and when it does. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define N    200
#define MOST 32767

static int set, line[2], go[2];

/* What each semaphore was, and what has been done to it. */
static const struct {
	int number, before, change;
} steps[] = {
	{0, 0, 5},
	{1, 7, -3},
	{2, 0, MOST},
	{3, MOST, -MOST},
	{150, 1, -1},
	{199, 100, 1},
};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static void promise(int number, int change)
{
	struct sembuf op = {
		.sem_num = (unsigned short)number, .sem_op = (short)change, .sem_flg = SEM_UNDO};

	STATE_CHECK(semop(set, &op, 1) == 0);
}

static void *thread(void *arg)
{
	char c;

	for (size_t i = 0; i < 4; i++)
		promise(steps[i].number, steps[i].change);
	STATE_CHECK(write(line[1], "x", 1) == 1);
	/* Its end is not the process's. */
	STATE_CHECK(read(go[0], &c, 1) == 1);
	return NULL;
}

static void be_holder(void)
{
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	STATE_CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
	/* Undone by itself: nothing is left of it. */
	promise(10, 3);
	promise(10, -3);
	for (size_t i = 4; i < N_STEPS; i++)
		promise(steps[i].number, steps[i].change);
	STATE_CHECK(pthread_join(t, NULL) == 0);
	STATE_CHECK(write(line[1], "y", 1) == 1);
	for (;;)
		pause();
}

static void *idle(void *arg)
{
	while (pause() < 0)
		;
	return NULL;
}

static void check(bool changed)
{
	for (size_t i = 0; i < N_STEPS; i++)
		STATE_CHECK(semctl(set, steps[i].number, GETVAL) ==
			    steps[i].before + (changed ? steps[i].change : 0));
	STATE_CHECK(semctl(set, 10, GETVAL) == 0 && semctl(set, 11, GETVAL) == 0);
}

int main(int argc, char **argv)
{
	struct semid_ds before, after;
	pthread_t t;
	pid_t holder;
	int status;
	char c;

	set = semget(IPC_PRIVATE, N, 0600);
	STATE_CHECK(set >= 0 && pipe(line) == 0 && pipe(go) == 0);
	for (size_t i = 0; i < N_STEPS; i++)
		STATE_CHECK(semctl(set, steps[i].number, SETVAL, steps[i].before) == 0);
	holder = fork();
	if (holder == 0)
		be_holder();
	STATE_CHECK(holder > 0 && read(line[0], &c, 1) == 1 && c == 'x');
	/* This one has threads, too, and has promised nothing. */
	STATE_CHECK(pthread_create(&t, NULL, idle, NULL) == 0);
	while (semctl(set, 199, GETVAL) != 101)
		state_nap();
	STATE_CHECK(semctl(set, 0, IPC_STAT, &before) == 0);

	state_ready(argc, argv);

	STATE_CHECK(semctl(set, 0, IPC_STAT, &after) == 0 && after.sem_otime != 0);
	check(true);
	STATE_CHECK(write(go[1], "x", 1) == 1 && read(line[0], &c, 1) == 1 && c == 'y');
	check(true);
	STATE_CHECK(kill(holder, SIGKILL) == 0 && waitpid(holder, &status, 0) == holder);
	check(false);
	STATE_CHECK(semctl(set, 0, IPC_RMID) == 0);
	return state_ok();
}
