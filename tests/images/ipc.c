// SPDX-License-Identifier: GPL-2.0-or-later
/* IPC of old.c: of System V, and message queues of POSIX. */
#include <fcntl.h>
#include <sys/ipc.h>

#include "call.h"

#define SETVAL 16
#define GETVAL 12

struct message {
	long type;
	char text[8];
};

static int shm, sem, msg, queue;
static char *attached;

static void set_up(void)
{
	struct message m = {5, "one"};
	const long limits[8] = {0, 4, 16, 0};

	shm = (int)call(SYS_shmget, 77, 4096, IPC_CREAT | 0600, 0);
	attached = (char *)call(SYS_shmat, shm, 0, 0, 0);
	check((unsigned long)attached < -4096UL, "shmat");
	attached[5] = 'm';
	sem = (int)call(SYS_semget, 78, 2, IPC_CREAT | 0600, 0);
	check(call(SYS_semctl, sem, 1, SETVAL, 5) == 0, "semctl");
	msg = (int)call(SYS_msgget, 79, IPC_CREAT | 0600, 0, 0);
	check(call(SYS_msgsnd, msg, (long)&m, 4, 0) == 0, "msgsnd");
	queue = (int)call(SYS_mq_open, (long)"old", O_RDWR | O_CREAT | O_NONBLOCK, 0600, (long)limits);
	check(call6(SYS_mq_timedsend, queue, (long)pattern, 11, 7, 0, 0) == 0, "mq_send");
}

static void look(void)
{
	struct message m = {0};
	char got[16];
	int priority = 0;

	check(attached[5] == 'm' && call(SYS_shmget, 77, 4096, 0600, 0) == shm,
		"shared memory of System V");
	check(call(SYS_semget, 78, 2, 0600, 0) == sem && call(SYS_semctl, sem, 1, GETVAL, 0) == 5,
		"semaphore");
	check(call6(SYS_msgrcv, msg, (long)&m, 8, 0, 0, 0) == 4 && m.type == 5 &&
			same(m.text, "one", 4),
		"message");
	check(call6(SYS_mq_timedreceive, queue, (long)got, sizeof(got), (long)&priority, 0, 0) == 11 &&
			priority == 7 && same(got, PATTERN, 11),
		"message queue");
}

const struct part part_ipc = {set_up, look};
