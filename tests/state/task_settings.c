// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is said of a process in /proc, oom_score_adj and coredump_filter, and how its threads are
 * scheduled.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

#define FILTER 0x15

static long read_number(const char *path, int base)
{
	FILE *f = fopen(path, "re");
	char line[64];

	STATE_CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	return strtol(line, NULL, base);
}

static void write_number(const char *path, long value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	STATE_CHECK(fd >= 0 && dprintf(fd, "%ld", value) > 0 && close(fd) == 0);
}

struct thread {
	int pipe[2];
	pid_t tid;
};

/* Its policy is the usual one, but for children. */
static void *work(void *arg)
{
	struct sched_param none = {0};
	struct thread *t = arg;
	char c;

	STATE_CHECK(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) == 0);
	__atomic_store_n(&t->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	STATE_CHECK(read(t->pipe[0], &c, 1) == 1);
	STATE_CHECK(sched_getscheduler(0) == (SCHED_OTHER | SCHED_RESET_ON_FORK));
	return NULL;
}

int main(int argc, char **argv)
{
	/* Everybody may make himself a better victim. */
	long oom = read_number("/proc/self/oom_score_adj", 10);
	struct sched_param none = {0};
	struct thread t = {0};
	pthread_t thread;

	oom = oom < 950 ? oom + 50 : 1000;
	write_number("/proc/self/oom_score_adj", oom);
	write_number("/proc/self/coredump_filter", FILTER);
	STATE_CHECK(pipe(t.pipe) == 0 && pthread_create(&thread, NULL, work, &t) == 0);
	STATE_CHECK(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
	while (!__atomic_load_n(&t.tid, __ATOMIC_ACQUIRE))
		state_nap();

	state_ready(argc, argv);

	STATE_CHECK(read_number("/proc/self/oom_score_adj", 10) == oom);
	STATE_CHECK(read_number("/proc/self/coredump_filter", 16) == FILTER);
	STATE_CHECK(sched_getscheduler(0) == SCHED_BATCH);
	STATE_CHECK(sched_getscheduler(t.tid) == (SCHED_OTHER | SCHED_RESET_ON_FORK));
	STATE_CHECK(write(t.pipe[1], "g", 1) == 1 && pthread_join(thread, NULL) == 0);
	return state_ok();
}
