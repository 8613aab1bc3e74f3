// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What single operations cost, in ns, as one JSON object: the best of several rounds each, since
 * anything else that runs on the machine can only add.  Run natively and in a session, in turns;
 * with --filter, under a seccomp filter of one instruction that allows everything; with --anywhere,
 * on any CPU instead of the one it begins on.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void op_getpid(void)
{
	syscall(SYS_getpid);
}

static void op_stat(void)
{
	struct stat st;

	if (stat("/usr/bin/env", &st) < 0)
		abort();
}

static void op_open_close(void)
{
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		abort();
	close(fd);
}

static void op_shm(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	if (id < 0 || shmctl(id, IPC_RMID, NULL) < 0)
		abort();
}

static void op_sem(void)
{
	int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

	if (id < 0 || semctl(id, 0, IPC_RMID) < 0)
		abort();
}

static void op_semop(void)
{
	static int id = -1;
	struct sembuf up = {0, 1, 0}, down = {0, -1, 0};

	if (id < 0)
		id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	if (semop(id, &up, 1) < 0 || semop(id, &down, 1) < 0)
		abort();
}

static void op_fork_exit(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

static void run(char *const argv[])
{
	pid_t pid = fork();

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(1);
	}
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

static void op_fork_exec(void)
{
	run((char *[]){"/bin/true", NULL});
}

static void op_shell(void)
{
	run((char *[]){"/bin/sh", "-c", ":", NULL});
}

static void *nothing(void *arg)
{
	return NULL;
}

static void op_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		abort();
}

static int ping[2], pong[2];

static void op_pipe_round_trip(void)
{
	char c = 0;

	if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
		abort();
}

static pid_t echo_start(void)
{
	pid_t pid;

	if (pipe(ping) < 0 || pipe(pong) < 0)
		abort();
	pid = fork();
	if (pid == 0) {
		char c;

		close(ping[1]);
		while (read(ping[0], &c, 1) == 1 && write(pong[1], &c, 1) == 1)
			;
		_exit(0);
	}
	return pid;
}

static const struct {
	const char *name;
	void (*op)(void);
	unsigned count;
} ops[] = {
	{"getpid", op_getpid, 20000},
	{"stat", op_stat, 4000},
	{"open_close", op_open_close, 2000},
	{"pipe_round_trip", op_pipe_round_trip, 2000},
	{"shmget_rmid", op_shm, 1000},
	{"semget_rmid", op_sem, 2000},
	{"semop", op_semop, 5000},
	{"fork_exit", op_fork_exit, 60},
	{"fork_exec", op_fork_exec, 20},
	{"shell", op_shell, 20},
	{"thread", op_thread, 100},
};

static void filter_nothing(void)
{
	struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		abort();
}

static void stay_on_this_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--filter"))
		filter_nothing();
	if (argc < 2 || strcmp(argv[1], "--anywhere") != 0)
		stay_on_this_cpu();
	echo_start();
	printf("{");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		double best = 1e18;

		for (int round = 0; round < 12; round++) {
			uint64_t t = now();

			for (unsigned k = 0; k < ops[i].count; k++)
				ops[i].op();
			t = now() - t;
			if ((double)t / ops[i].count < best)
				best = (double)t / ops[i].count;
		}
		printf("%s\"%s\": %.1f", i ? ", " : "", ops[i].name, best);
	}
	printf("}\n");
	return 0;
}
