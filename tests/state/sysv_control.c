// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What System V calls say of objects: errors, owners, who used them last, lists; a wait that ends.
 */
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define PAGE 4096

static key_t key;

/* What @what does in a child, which it returns; the child has ended. */
static pid_t in_child(void (*what)(int id), int id)
{
	int status;
	pid_t child = fork();

	STATE_CHECK(child >= 0);
	if (child == 0) {
		what(id);
		_exit(0);
	}
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	return child;
}

static void check_keys(void)
{
	int shm = shmget(key, 2 * PAGE, IPC_CREAT | IPC_EXCL | 0440);

	STATE_CHECK(shm >= 0 && shmget(key, PAGE, 0) == shm && shmget(key, 0, 0400) == shm);
	STATE_CHECK(shmget(key, PAGE, IPC_CREAT | IPC_EXCL | 0600) == -1 && errno == EEXIST);
	STATE_CHECK(shmget(key, 2 * PAGE + 1, 0) == -1 && errno == EINVAL);
	STATE_CHECK(shmget(key, PAGE, 0600) == -1 && errno == EACCES);
	STATE_CHECK(shmget(~key, PAGE, 0600) == -1 && errno == ENOENT);
	STATE_CHECK(shmget(~key, 0, IPC_CREAT | 0600) == -1 && errno == EINVAL);
	STATE_CHECK(semget(~key, 0, IPC_CREAT | 0600) == -1 && errno == EINVAL);
	STATE_CHECK(semget(key, -1, IPC_CREAT | 0600) == -1 && errno == EINVAL);
	STATE_CHECK(msgget(key, 0600) == -1 && errno == ENOENT);
	STATE_CHECK(shmctl(shm, IPC_RMID, NULL) == 0);
	STATE_CHECK(shmctl(shm, IPC_RMID, NULL) == -1 && errno == EINVAL);
	STATE_CHECK(shmctl(-1, IPC_STAT, NULL) == -1 && errno == EINVAL);
	STATE_CHECK(shmget(key, 0, 0) == -1 && errno == ENOENT);
	STATE_CHECK(shmat(shm, NULL, 0) == (void *)-1 && errno == EINVAL);
}

static void attach(int id)
{
	STATE_CHECK(shmat(id, NULL, 0) != (void *)-1);
}

static void check_segment(int shm)
{
	struct shmid_ds ds;
	pid_t child;

	STATE_CHECK(shmctl(shm, IPC_STAT, &ds) == 0 && ds.shm_cpid == getpid() && !ds.shm_lpid);
	STATE_CHECK(ds.shm_perm.__key == key && ds.shm_nattch == 0);
	child = in_child(attach, shm);
	STATE_CHECK(shmctl(shm, IPC_STAT, &ds) == 0 && ds.shm_lpid == child);
	STATE_CHECK(shmctl(shm, IPC_STAT, (void *)8) == -1 && errno == EFAULT);
	STATE_CHECK(shmctl(shm, IPC_SET, (void *)8) == -1 && errno == EFAULT);
	STATE_CHECK(shmctl(shm, 99, &ds) == -1 && errno == EINVAL);
	ds.shm_perm.mode = 0640;
	STATE_CHECK(shmctl(shm, IPC_SET, &ds) == 0 && shmctl(shm, SHM_LOCK, NULL) == 0);
	STATE_CHECK(shmctl(shm, IPC_STAT, &ds) == 0);
	STATE_CHECK(ds.shm_perm.mode == (0640 | SHM_LOCKED) && shmctl(shm, SHM_UNLOCK, NULL) == 0);
}

/* It goes with the last who is attached, and has no key any more. */
static void check_removed(void)
{
	int shm = shmget(~key, PAGE, IPC_CREAT | 0600);
	char *at = shmat(shm, NULL, 0), *again;
	struct shmid_ds ds;

	STATE_CHECK(at != (void *)-1 && shmctl(shm, IPC_RMID, NULL) == 0);
	STATE_CHECK(shmget(~key, 0, 0) == -1 && errno == ENOENT);
	STATE_CHECK(shmctl(shm, IPC_STAT, &ds) == 0 && ds.shm_perm.__key == IPC_PRIVATE);
	STATE_CHECK(ds.shm_perm.mode & SHM_DEST);
	again = shmat(shm, NULL, 0);
	STATE_CHECK(again != (void *)-1 && shmctl(shm, IPC_RMID, NULL) == 0);
	STATE_CHECK(shmdt(again) == 0 && shmdt(at) == 0);
	STATE_CHECK(shmctl(shm, IPC_STAT, &ds) == -1 && errno == EINVAL);
}

static void raise_both(int id)
{
	struct sembuf up[] = {{.sem_num = 0, .sem_op = 1}, {.sem_num = 1, .sem_op = 2}};

	STATE_CHECK(semop(id, up, 2) == 0);
}

static void check_set(int sems)
{
	unsigned short values[3] = {5, 6, 7}, got[3];
	pid_t child;

	STATE_CHECK(
		semctl(sems, 0, GETPID) == 0 && semctl(sems, 3, GETVAL) == -1 && errno == EINVAL);
	STATE_CHECK(semctl(sems, 0, SETALL, values) == 0 && semctl(sems, 0, GETPID) == getpid());
	child = in_child(raise_both, sems);
	STATE_CHECK(semctl(sems, 0, GETPID) == child && semctl(sems, 2, GETPID) == getpid());
	STATE_CHECK(semctl(sems, 0, GETALL, got) == 0 && got[0] == 6 && got[1] == 8 && got[2] == 7);
	STATE_CHECK(semctl(sems, 1, SETVAL, 40000) == -1 && errno == ERANGE);
	STATE_CHECK(semctl(sems, 0, GETALL, (void *)8) == -1 && errno == EFAULT);
	STATE_CHECK(semctl(sems, 0, SETALL, (void *)8) == -1 && errno == EFAULT);
}

static void send_one(int id)
{
	struct msgbuf m = {.mtype = 3, .mtext = {'x'}};

	STATE_CHECK(msgsnd(id, &m, 1, 0) == 0);
}

static void check_queue(int queue)
{
	struct msqid_ds ds;
	struct msgbuf m;
	pid_t child = in_child(send_one, queue);

	STATE_CHECK(msgrcv(queue, &m, 1, 3, 0) == 1);
	STATE_CHECK(msgctl(queue, IPC_STAT, &ds) == 0);
	STATE_CHECK(ds.msg_lspid == child && ds.msg_lrpid == getpid() && ds.msg_qnum == 0);
	STATE_CHECK(msgrcv(queue, &m, 1, 3, IPC_NOWAIT) == -1 && errno == ENOMSG);
}

/* Somebody waits for a set that is removed. */
static void check_wait(void)
{
	int sems = semget(IPC_PRIVATE, 1, 0600), status;
	pid_t child = fork();

	STATE_CHECK(sems >= 0 && child >= 0);
	if (child == 0) {
		struct sembuf down = {.sem_op = -1};

		STATE_CHECK(semop(sems, &down, 1) == -1);
		_exit(errno == EIDRM ? 0 : 1);
	}
	while (semctl(sems, 0, GETNCNT) != 1)
		state_nap();
	STATE_CHECK(semctl(sems, 0, IPC_RMID) == 0);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* As ipcs(1) looks for them. */
static void check_lists(int shm, int sems, int queue)
{
	struct shm_info info;
	struct seminfo sem;
	struct msginfo msg;
	struct shmid_ds ds;
	struct semid_ds sd;
	struct msqid_ds qd;
	int max = shmctl(0, SHM_INFO, (void *)&info), found = 0;

	STATE_CHECK(max >= 0 && info.used_ids >= 1 && info.shm_tot >= 1);
	for (int i = 0; i <= max; i++)
		found += shmctl(i, SHM_STAT, &ds) == shm && ds.shm_perm.__key == key;
	STATE_CHECK(found == 1 && shmctl(shm, SHM_STAT_ANY, &ds) == shm);
	max = semctl(0, 0, SEM_INFO, &sem);
	STATE_CHECK(max >= 0 && sem.semusz >= 1 && sem.semaem >= 3);
	for (int i = 0; i <= max; i++)
		found += semctl(i, 0, SEM_STAT, &sd) == sems && sd.sem_perm.__key == key;
	STATE_CHECK(found == 2);
	max = msgctl(0, MSG_INFO, (void *)&msg);
	STATE_CHECK(max >= 0 && msg.msgpool >= 1);
	for (int i = 0; i <= max; i++)
		found += msgctl(i, MSG_STAT, &qd) == queue && qd.msg_perm.__key == key;
	STATE_CHECK(found == 3);
	STATE_CHECK(msgctl(0, IPC_INFO, (void *)&msg) == max && msg.msgmax > 0);
}

int main(int argc, char **argv)
{
	int shm, sems, queue;

	key = 0x55110000 + getpid(); /* natively, hosts are shared */
	check_keys();
	shm = shmget(key, PAGE, IPC_CREAT | 0600);
	sems = semget(key, 3, IPC_CREAT | 0600);
	queue = msgget(key, IPC_CREAT | 0600);
	STATE_CHECK(shm >= 0 && sems >= 0 && queue >= 0);
	check_segment(shm);
	check_removed();
	check_set(sems);
	check_queue(queue);
	check_wait();
	check_lists(shm, sems, queue);

	state_ready(argc, argv);

	STATE_CHECK(shmget(key, PAGE, 0440) == shm && semget(key, 3, 0) == sems);
	STATE_CHECK(msgget(key, 0) == queue && semctl(sems, 1, GETVAL) == 8);
	check_lists(shm, sems, queue);
	check_removed();
	check_wait();
	STATE_CHECK(shmctl(shm, IPC_RMID, NULL) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
	STATE_CHECK(semctl(sems, 0, IPC_RMID) == 0 && semget(key, 3, 0) == -1);
	check_keys();
	return state_ok();
}
