// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open files of /proc and /sys: of oneself, of another process, of descriptors, namespaces.  procgone.c
 * has one that is gone.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

/* fdinfo of a descriptor of one's own and of another process. */
static void open_fdinfo(pid_t other, int told, int ret[2])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", told);
	ret[0] = open(path, O_RDONLY);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%d", other, other, told);
	ret[1] = open(path, O_RDONLY);
	STATE_CHECK(ret[0] >= 0 && ret[1] >= 0);
}

int main(int argc, char **argv)
{
	int status = open("/proc/self/status", O_RDONLY), maps = open("/proc/self/maps", O_RDONLY);
	int uptime = open("/proc/uptime", O_RDONLY), dir = open("/proc", O_RDONLY | O_DIRECTORY);
	int net = open("/proc/self/ns/net", O_RDONLY), other, fds, told[2];
	char path[64], buf[4096], want[64];
	struct stat a, b;
	ssize_t n;
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	other = open(path, O_RDONLY);
	fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	STATE_CHECK(status >= 0 && maps >= 0 && uptime >= 0 && dir >= 0 && net >= 0);
	STATE_CHECK(other >= 0 && fds >= 0);
	open_fdinfo(child, uptime, told);
	STATE_CHECK(read(status, buf, 6) == 6 && !memcmp(buf, "Name:\t", 6));

	state_ready(argc, argv);

	n = read(status, buf, sizeof(buf) - 1);
	STATE_CHECK(n > 0);
	buf[n] = '\0';
	snprintf(want, sizeof(want), "\nPid:\t%d\n", getpid());
	STATE_CHECK(strstr(buf, want));
	n = read(maps, buf, sizeof(buf) - 1);
	STATE_CHECK(n > 0);
	buf[n] = '\0';
	STATE_CHECK(strstr(buf, "procfiles"));
	STATE_CHECK(read(uptime, buf, sizeof(buf)) > 0);
	n = read(other, buf, sizeof(buf) - 1);
	STATE_CHECK(n > 0);
	buf[n] = '\0';
	snprintf(want, sizeof(want), "%d (procfiles)", child);
	STATE_CHECK(!strncmp(buf, want, strlen(want)));
	for (int i = 0; i < 2; i++) {
		n = read(told[i], buf, sizeof(buf) - 1);
		STATE_CHECK(n > 0);
		buf[n] = '\0';
		STATE_CHECK(strstr(buf, "pos:\t") && strstr(buf, "mnt_id:\t"));
	}
	snprintf(path, sizeof(path), "%d", net);
	STATE_CHECK(faccessat(fds, path, F_OK, 0) == 0 || errno == EACCES);
	STATE_CHECK(fstatat(dir, "self/ns/net", &a, 0) == 0 && fstat(net, &b) == 0);
	STATE_CHECK(a.st_ino == b.st_ino);
	kill(child, 9);
	waitpid(child, NULL, 0);
	return state_ok();
}
