// SPDX-License-Identifier: GPL-2.0-or-later
/* Who waits for a semaphore, a message or room goes on waiting; strange promises of SEM_UNDO. */
#include <mqueue.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static int sems, queue, full;
static mqd_t posix;

struct message {
	long type;
	char text[1000];
};

static void wait_for_semaphore(void)
{
	struct sembuf down = {.sem_num = 0, .sem_op = -1, .sem_flg = SEM_UNDO};

	STATE_CHECK(semop(sems, &down, 1) == 0);
}

static void wait_for_zero(void)
{
	struct sembuf zero = {.sem_num = 1, .sem_op = 0};
	struct timespec long_enough = {.tv_sec = 1000};

	STATE_CHECK(semtimedop(sems, &zero, 1, &long_enough) == 0);
}

static void wait_for_message(void)
{
	struct message m;

	STATE_CHECK(msgrcv(queue, &m, sizeof(m.text), 7, 0) == 5 && !strcmp(m.text, "here"));
}

static void wait_for_room(void)
{
	struct message m = {.type = 1};

	STATE_CHECK(msgsnd(full, &m, sizeof(m.text), 0) == 0);
}

static void wait_for_posix(void)
{
	char text[16];

	STATE_CHECK(mq_receive(posix, text, sizeof(text), NULL) == 6 && !strcmp(text, "there"));
}

static void (*const waits[])(void) = {
	wait_for_semaphore, wait_for_zero, wait_for_message, wait_for_room, wait_for_posix};
#define N (int)(sizeof(waits) / sizeof(waits[0]))

static pid_t start(void (*wait)(void))
{
	pid_t child = fork();

	STATE_CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait();
		_exit(0);
	}
	return child;
}

/* Two have promised the same, each for itself. */
static void hold_one(void)
{
	struct sembuf down = {.sem_num = 2, .sem_op = -1, .sem_flg = SEM_UNDO};

	STATE_CHECK(semop(sems, &down, 1) == 0);
	for (;;)
		pause();
}

/*
 * Nothing keeps others from changing what one has promised to undo: the end brings it as far as it
 * can go.
 */
static void promise_much(void)
{
	struct sembuf ops[] = {{.sem_num = 3, .sem_op = 5, .sem_flg = SEM_UNDO},
		{.sem_num = 4, .sem_op = -3, .sem_flg = SEM_UNDO},
		{.sem_num = 5, .sem_op = 32767, .sem_flg = SEM_UNDO},
		{.sem_num = 5, .sem_op = -32767}, {.sem_num = 5, .sem_op = 1, .sem_flg = SEM_UNDO}};

	STATE_CHECK(semop(sems, ops, 5) == 0);
	for (;;)
		pause();
}

static pid_t promise_in_vain(void)
{
	struct sembuf ops[] = {{.sem_num = 3, .sem_op = -5}, {.sem_num = 4, .sem_op = 32767}};
	pid_t child;

	STATE_CHECK(semctl(sems, 4, SETVAL, 3) == 0);
	child = start(promise_much);
	while (semctl(sems, 5, GETVAL) != 1)
		state_nap();
	STATE_CHECK(semop(sems, ops, 2) == 0);
	return child;
}

static void check_in_vain(pid_t child)
{
	struct sembuf ops[] = {{.sem_num = 3, .sem_op = 7}, {.sem_num = 4, .sem_op = -10},
		{.sem_num = 5, .sem_op = 32766}};

	STATE_CHECK(semctl(sems, 3, GETVAL) == 0 && semctl(sems, 4, GETVAL) == 32767);
	STATE_CHECK(semctl(sems, 5, GETVAL) == 1 && semop(sems, ops, 3) == 0);
	STATE_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	STATE_CHECK(semctl(sems, 3, GETVAL) == 2 && semctl(sems, 4, GETVAL) == 32760);
	STATE_CHECK(semctl(sems, 5, GETVAL) == 0);
}

static void check_holders(const pid_t *holders)
{
	for (int i = 0; i < 2; i++) {
		STATE_CHECK(semctl(sems, 2, GETVAL) == 5 + i);
		STATE_CHECK(kill(holders[i], SIGKILL) == 0);
		STATE_CHECK(waitpid(holders[i], NULL, 0) == holders[i]);
	}
	STATE_CHECK(semctl(sems, 2, GETVAL) == 7);
}

static int fill(void)
{
	struct message m = {.type = 1};
	int n = 0;

	while (msgsnd(full, &m, sizeof(m.text), IPC_NOWAIT) == 0)
		n++;
	STATE_CHECK(errno == EAGAIN);
	return n;
}

int main(int argc, char **argv)
{
	struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 16};
	struct sembuf up = {.sem_num = 0, .sem_op = 1}, down = {.sem_num = 1, .sem_op = -1};
	struct message m = {.type = 7, .text = "here"};
	pid_t children[N], holders[2], vain;
	char name[32];
	int status, n;

	snprintf(name, sizeof(name), "/waits-%d", getpid());
	sems = semget(IPC_PRIVATE, 6, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	full = msgget(IPC_PRIVATE, 0600);
	posix = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	STATE_CHECK(sems >= 0 && queue >= 0 && full >= 0 && posix >= 0);
	STATE_CHECK(semctl(sems, 1, SETVAL, 1) == 0 && semctl(sems, 2, SETVAL, 7) == 0);
	holders[0] = start(hold_one);
	holders[1] = start(hold_one);
	vain = promise_in_vain();
	n = fill();
	for (int i = 0; i < N; i++)
		children[i] = start(waits[i]);
	while (semctl(sems, 0, GETNCNT) != 1 || semctl(sems, 1, GETZCNT) != 1 ||
		semctl(sems, 2, GETVAL) != 5)
		state_nap();

	state_ready(argc, argv);

	for (int i = 0; i < N; i++)
		STATE_CHECK(waitpid(children[i], &status, WNOHANG) == 0);
	STATE_CHECK(semop(sems, &up, 1) == 0 && semop(sems, &down, 1) == 0);
	STATE_CHECK(msgsnd(queue, &m, 5, 0) == 0 && mq_send(posix, "there", 6, 1) == 0);
	STATE_CHECK(msgrcv(full, &m, sizeof(m.text), 0, IPC_NOWAIT) == sizeof(m.text));
	for (int i = 0; i < N; i++)
		STATE_CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
	check_holders(holders);
	check_in_vain(vain);
	/* what was promised has been undone */
	STATE_CHECK(semctl(sems, 0, GETVAL) == 1 && fill() == 0 && n > 1);
	STATE_CHECK(semctl(sems, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
	STATE_CHECK(msgctl(full, IPC_RMID, NULL) == 0 && mq_unlink(name) == 0);
	return state_ok();
}
