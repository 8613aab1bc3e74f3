// SPDX-License-Identifier: GPL-2.0-or-later
/* An open file of /proc about a process or a descriptor that is gone: nothing more can be read in it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static int open_closed(void)
{
	int closed = fcntl(0, F_DUPFD, 400), fd;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", closed);
	fd = open(path, O_RDONLY);
	close(closed);
	STATE_CHECK(fd >= 0 && access(path, F_OK) < 0); /* and its name shows it from now on */
	return fd;
}

int main(int argc, char **argv)
{
	char path[64], buf[16];
	pid_t dead = fork();
	int gone, closed = open_closed();

	if (dead == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/proc/%d/stat", dead);
	gone = open(path, O_RDONLY);
	STATE_CHECK(gone >= 0);
	kill(dead, 9);
	waitpid(dead, NULL, 0);

	state_ready(argc, argv);

	STATE_CHECK(read(gone, buf, 1) == -1 && errno == ESRCH);
	STATE_CHECK(read(closed, buf, 1) == -1 && (errno == ENOENT || errno == ESRCH));
	return state_ok();
}
