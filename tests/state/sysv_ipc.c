// SPDX-License-Identifier: GPL-2.0-or-later
/* System V objects: ids, keys, owners, contents; segments nobody is attached to; SEM_UNDO. */
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <signal.h>

#include "tests/state/state.h"

#define PAGE  4096
#define LARGE (64 << 20)

struct message {
	long type;
	char text[16];
};

/* A set that nobody may use any more. */
static int closed_set(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf up = {.sem_op = 1};
	struct semid_ds sd;

	STATE_CHECK(id >= 0 && semop(id, &up, 1) == 0 && semctl(id, 0, IPC_STAT, &sd) == 0);
	sd.sem_perm.mode = 0;
	STATE_CHECK(semctl(id, 0, IPC_SET, &sd) == 0);
	return id;
}

static void check_closed_set(int id)
{
	struct semid_ds sd = {.sem_perm = {.uid = getuid(), .gid = getgid(), .mode = 0600}};

	STATE_CHECK(semctl(id, 0, GETVAL) == -1 && errno == EACCES);
	STATE_CHECK(semctl(id, 0, IPC_SET, &sd) == 0 && semctl(id, 0, GETVAL) == 1);
	STATE_CHECK(semctl(id, 0, IPC_RMID) == 0);
}

static void check_queue(int queue)
{
	struct msqid_ds md;
	struct message got;

	STATE_CHECK(msgctl(queue, IPC_STAT, &md) == 0);
	STATE_CHECK(md.msg_qnum == 3);
	STATE_CHECK(msgrcv(queue, &got, 16, 2, IPC_NOWAIT) == 0);
	STATE_CHECK(msgrcv(queue, &got, 16, 5, IPC_NOWAIT) == 4 && !memcmp(got.text, "five", 4));
	STATE_CHECK(msgrcv(queue, &got, 16, 0, IPC_NOWAIT) == 16 && got.text[8] == 'x');
}

int main(int argc, char **argv)
{
	key_t key = 0x12340000 + getpid(); /* natively, hosts are shared */
	int gap = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	int a = shmget(key, 3 * PAGE + 5, IPC_CREAT | 0640);
	int sparse = shmget(IPC_PRIVATE, LARGE, IPC_CREAT | 0600);
	int sems = semget(key, 3, IPC_CREAT | 0660), queue = msgget(key, IPC_CREAT | 0600);
	int fresh = semget(IPC_PRIVATE, 1, 0600), closed;
	int p[2], status, last;
	struct sembuf take = {.sem_num = 1, .sem_op = -2, .sem_flg = SEM_UNDO}, op;
	struct message m = {.type = 5, .text = "five"};
	struct semid_ds sd;
	struct shmid_ds ds;
	pid_t holder;
	char *at;

	STATE_CHECK(gap >= 0 && a >= 0 && sparse >= 0 && sems >= 0 && queue >= 0 && fresh >= 0);
	STATE_CHECK(shmctl(gap, IPC_RMID, NULL) == 0);
	at = shmat(a, NULL, 0);
	strcpy(at + 2 * PAGE, "detached");
	STATE_CHECK(shmdt(at) == 0);
	at = shmat(sparse, NULL, 0);
	strcpy(at + LARGE / 2, "middle");
	STATE_CHECK(shmdt(at) == 0);

	STATE_CHECK(semctl(sems, 0, SETVAL, 3) == 0 && semctl(sems, 1, SETVAL, 7) == 0);
	STATE_CHECK(semop(sems, &take, 1) == 0);
	closed = closed_set();
	STATE_CHECK(pipe(p) == 0);
	holder = fork();
	STATE_CHECK(holder >= 0);
	if (holder == 0) {
		struct sembuf give = {.sem_num = 0, .sem_op = 1, .sem_flg = SEM_UNDO};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		STATE_CHECK(semop(sems, &give, 1) == 0);
		STATE_CHECK(write(p[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	STATE_CHECK(read(p[0], m.text + 8, 1) == 1);

	STATE_CHECK(msgsnd(queue, &m, 4, 0) == 0);
	m.type = 2;
	STATE_CHECK(msgsnd(queue, &m, 0, 0) == 0);
	m.type = 5;
	STATE_CHECK(msgsnd(queue, &m, 16, 0) == 0);

	state_ready(argc, argv);

	STATE_CHECK(shmget(key, 0, 0) == a && shmctl(a, IPC_STAT, &ds) == 0);
	STATE_CHECK(ds.shm_segsz == 3 * PAGE + 5 && (ds.shm_perm.mode & 0777) == 0640);
	STATE_CHECK(ds.shm_nattch == 0 && ds.shm_perm.uid == getuid());
	at = shmat(a, NULL, 0);
	STATE_CHECK(!strcmp(at + 2 * PAGE, "detached") && !at[0]);
	at = shmat(sparse, NULL, 0);
	STATE_CHECK(!strcmp(at + LARGE / 2, "middle") && !at[LARGE - 1]);

	STATE_CHECK(semget(key, 0, 0) == sems && semctl(sems, 0, IPC_STAT, &sd) == 0);
	STATE_CHECK(sd.sem_nsems == 3 && sd.sem_otime != 0 && (sd.sem_perm.mode & 0777) == 0660);
	STATE_CHECK(semctl(sems, 0, GETVAL) == 4 && semctl(sems, 1, GETVAL) == 5);
	STATE_CHECK(semctl(fresh, 0, IPC_STAT, &sd) == 0 && sd.sem_otime == 0);
	check_closed_set(closed);
	/* The end of who has promised: */
	STATE_CHECK(kill(holder, SIGKILL) == 0 && waitpid(holder, &status, 0) == holder);
	STATE_CHECK(semctl(sems, 0, GETVAL) == 3);
	op = (struct sembuf){.sem_num = 1, .sem_op = 2, .sem_flg = SEM_UNDO};
	STATE_CHECK(semop(sems, &op, 1) == 0 && semctl(sems, 1, GETVAL) == 7);

	STATE_CHECK(msgget(key, 0) == queue);
	check_queue(queue);
	last = shmget(~key, PAGE, IPC_CREAT | 0600);
	STATE_CHECK(last >= 0 && shmctl(last, IPC_RMID, NULL) == 0);
	STATE_CHECK(shmctl(a, IPC_RMID, NULL) == 0 && shmctl(sparse, IPC_RMID, NULL) == 0);
	STATE_CHECK(semctl(sems, 0, IPC_RMID) == 0 && semctl(fresh, 0, IPC_RMID) == 0);
	STATE_CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
	return state_ok();
}
