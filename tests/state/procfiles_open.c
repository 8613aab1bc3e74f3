// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of /proc and /sys as programs keep them open: the table of mounts that is polled for
 * changes, one's own memory and maps, a thread's, lists that are read half, statistics that are
 * read again and again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

static char own[32] = "as it was";

static void *sleeps(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "a thread");
	for (;;)
		pause();
	return NULL;
}

static int open_it(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		printf("%s\n", path);
	STATE_CHECK(fd >= 0);
	return fd;
}

static int holds(int fd, const char *text)
{
	static char buf[1 << 16];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	STATE_CHECK(n > 0);
	buf[n] = '\0';
	return strstr(buf, text) != NULL;
}

int main(int argc, char **argv)
{
	int mounts = open_it("/proc/self/mountinfo", O_RDONLY), ep = epoll_create1(0);
	int mem = open_it("/proc/self/mem", O_RDWR), page = open_it("/proc/self/pagemap", O_RDONLY);
	int stat = open_it("/proc/stat", O_RDONLY), load = open_it("/proc/meminfo", O_RDONLY);
	int cpus = open_it("/sys/devices/system/cpu/online", O_RDONLY);
	int devices = open_it("/sys/devices/system/cpu", O_RDONLY | O_DIRECTORY);
	int limit = open_it("/proc/sys/kernel/pid_max", O_RDONLY);
	int comm = open_it("/proc/self/comm", O_RDWR), thread_comm, tasks;
	struct epoll_event ev = {.events = EPOLLPRI | EPOLLERR, .data.u64 = 7};
	struct pollfd p = {.fd = mounts, .events = POLLPRI};
	char path[64], byte;
	volatile pid_t tid = 0;
	uint64_t entry;
	struct stat st;
	pthread_t t;
	int n = 0;
	DIR *d;

	STATE_CHECK(pthread_create(&t, NULL, sleeps, (void *)&tid) == 0);
	while (!tid)
		state_nap();
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	do
		thread_comm = open_it(path, O_RDONLY);
	while (!holds(thread_comm, "a thread") && close(thread_comm) == 0);
	tasks = open_it("/proc/self/task", O_RDONLY | O_DIRECTORY);
	d = fdopendir(dup(tasks));
	STATE_CHECK(d && readdir(d) && readdir(d) && readdir(d)); /* ".", ".." and one of two */
	STATE_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, mounts, &ev) == 0);
	poll(&p, 1, 0);
	epoll_wait(ep, &ev, 1, 0);
	STATE_CHECK(read(stat, path, 4) == 4);

	state_ready(argc, argv);

	STATE_CHECK(lseek(stat, 0, SEEK_CUR) == 4 && holds(stat, "cpu "));
	STATE_CHECK(holds(mounts, " /proc ") && holds(load, "MemTotal:") && holds(cpus, "0"));
	STATE_CHECK(epoll_wait(ep, &ev, 1, 0) >= 0);
	STATE_CHECK(pwrite(mem, "changed", 8, (off_t)(uintptr_t)own) == 8 && !strcmp(own, "changed"));
	STATE_CHECK(pread(page, &entry, 8, (off_t)((uintptr_t)own / 4096 * 8)) == 8 && entry >> 62);
	STATE_CHECK(holds(limit, "\n") && faccessat(devices, "online", R_OK, 0) == 0);
	STATE_CHECK(write(comm, "renamed", 7) == 7 && holds(comm, "renamed"));
	STATE_CHECK(holds(thread_comm, "a thread"));
	while (readdir(d))
		n++;
	STATE_CHECK(n == 1 && fstat(tasks, &st) == 0 && S_ISDIR(st.st_mode));
	snprintf(path, sizeof(path), "%d/comm", tid);
	STATE_CHECK(faccessat(tasks, path, R_OK, 0) == 0);
	STATE_CHECK(pread(mem, &byte, 1, 0) == -1);
	return state_ok();
}
