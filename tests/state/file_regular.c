// SPDX-License-Identifier: GPL-2.0-or-later
/* Files by path: offsets shared and not, O_APPEND, O_PATH, directories read half, locks, owners. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp" /* bound from the host; elsewhere is an overlay */
#endif

static char dir[64];

static int at(const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags, 0640);
	STATE_CHECK(fd >= 0);
	return fd;
}

static void make_many(void)
{
	char name[32];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "entry%d", i);
		close(at(name, O_CREAT | O_WRONLY));
	}
}

static int count(DIR *d, int most)
{
	int n = 0;

	while (n < most && readdir(d))
		n++;
	return n;
}

/* null, zero, full, random, urandom */
static void open_devices(int ret[5])
{
	static const char *const paths[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

	for (int i = 0; i < 5; i++) {
		ret[i] = open(paths[i], i < 3 ? O_RDWR : O_RDONLY);
		STATE_CHECK(ret[i] >= 0);
	}
}

static void check_devices(const int fds[5])
{
	static const unsigned minors[] = {3, 5, 7, 8, 9};
	struct stat st;
	char buf[64];

	for (int i = 0; i < 5; i++)
		STATE_CHECK(fstat(fds[i], &st) == 0 && st.st_rdev == makedev(1, minors[i]));
	STATE_CHECK(write(fds[0], "x", 1) == 1 && read(fds[0], buf, 1) == 0);
	STATE_CHECK(read(fds[1], buf, 2) == 2 && buf[0] == 0);
	STATE_CHECK(write(fds[2], "x", 1) == -1 && errno == ENOSPC);
	STATE_CHECK(read(fds[2], buf, 2) == 2 && buf[0] == 0);
	for (int i = 3; i < 5; i++) {
		memset(buf, 0, sizeof(buf));
		STATE_CHECK(read(fds[i], buf, 32) == 32 && memcmp(buf, buf + 32, 32) != 0);
	}
}

int main(int argc, char **argv)
{
	struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = getpid()}, got;
	struct flock range = {.l_type = F_WRLCK, .l_start = 10, .l_len = 5}, probe = range;
	struct f_owner_ex group = {.type = F_OWNER_PGRP, .pid = getpgrp()};
	int a, shared, append, path, own, devices[5], locked, second, cwd, closed;
	char buf[64], link[128], want[128];
	struct stat st;
	int status;
	pid_t child;
	DIR *d;

	snprintf(dir, sizeof(dir), BASE "/state-files-XXXXXX");
	STATE_CHECK(mkdtemp(dir) && chdir(dir) == 0);
	a = at("a", O_CREAT | O_RDWR);
	STATE_CHECK(write(a, "0123456789", 10) == 10 && lseek(a, 3, SEEK_SET) == 3);
	shared = dup(a);
	append = at("a", O_WRONLY | O_APPEND | O_NONBLOCK);
	path = at("a", O_PATH);
	own = at("a", O_RDONLY | O_CLOEXEC);
	STATE_CHECK(lseek(own, 7, SEEK_SET) == 7);
	closed = fcntl(a, F_DUPFD, 700);
	STATE_CHECK(closed == 700);
	open_devices(devices);
	cwd = open(".", O_RDONLY | O_DIRECTORY);
	STATE_CHECK(cwd >= 0);
	locked = at("lock", O_CREAT | O_RDWR);
	second = at("lock", O_RDWR);
	STATE_CHECK(flock(locked, LOCK_EX) == 0);
	STATE_CHECK(fcntl(second, F_OFD_SETLK, &range) == 0);
	STATE_CHECK(fcntl(own, F_SETOWN_EX, &owner) == 0 && fcntl(own, F_SETSIG, SIGUSR2) == 0);
	STATE_CHECK(fcntl(append, F_SETOWN_EX, &group) == 0);
	make_many();
	d = opendir(dir);
	STATE_CHECK(d && count(d, 60) == 60);
	/* The child's table is a copy, its offsets are ours. */
	child = fork();
	if (child == 0) {
		while (access(argv[1], F_OK) != 0)
			state_nap();
		_exit(lseek(a, 0, SEEK_CUR) == 3 ? 0 : 1);
	}

	state_ready(argc, argv);

	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	STATE_CHECK(read(a, buf, 2) == 2 && !memcmp(buf, "34", 2));
	STATE_CHECK(lseek(shared, 0, SEEK_CUR) == 5 && lseek(closed, 0, SEEK_CUR) == 5);
	STATE_CHECK(lseek(own, 0, SEEK_CUR) == 7 && fcntl(own, F_GETFD) == FD_CLOEXEC);
	STATE_CHECK(fcntl(a, F_GETFD) == 0);
	STATE_CHECK((fcntl(append, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)) ==
		(O_WRONLY | O_APPEND | O_NONBLOCK));
	STATE_CHECK(write(append, "end", 3) == 3 && fstat(a, &st) == 0 && st.st_size == 13);
	STATE_CHECK(fcntl(path, F_GETFL) & O_PATH);
	STATE_CHECK(read(path, buf, 1) == -1 && errno == EBADF);
	check_devices(devices);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", own);
	snprintf(want, sizeof(want), "%s/a", dir);
	STATE_CHECK(readlink(link, buf, sizeof(buf)) == (ssize_t)strlen(want) &&
		!memcmp(buf, want, strlen(want)));

	STATE_CHECK(flock(second, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	probe.l_pid = 0;
	STATE_CHECK(fcntl(locked, F_OFD_GETLK, &probe) == 0 && probe.l_type == F_WRLCK &&
		probe.l_start == 10 && probe.l_len == 5);
	STATE_CHECK(fcntl(own, F_GETOWN_EX, &got) == 0 && got.type == owner.type &&
		got.pid == owner.pid && fcntl(own, F_GETSIG) == SIGUSR2);

	STATE_CHECK(fcntl(append, F_GETOWN_EX, &got) == 0 && got.type == group.type &&
		got.pid == group.pid);
	STATE_CHECK(count(d, 1000) == 204 - 60); /* with a, lock, "." and ".." */
	STATE_CHECK(openat(cwd, "a", O_RDONLY) >= 0);
	state_remove(dir);
	return state_ok();
}
