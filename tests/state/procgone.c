// SPDX-License-Identifier: GPL-2.0-or-later
/* An open file of /proc about a process that is gone: there is nothing more to be read in it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	char path[64], buf[16];
	pid_t dead = fork();
	int gone;

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
	return state_ok();
}
