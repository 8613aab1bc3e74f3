// SPDX-License-Identifier: GPL-2.0-or-later
/* Descriptor tables: numbers, gaps, close-on-exec, and open files shared within and between. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static off_t at(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/fds-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), again, go[2];
	pid_t pid;
	int status, flags[1000];

	STATE_CHECK(fd >= 3 && write(fd, "0123456789", 10) == 10 && pipe(go) == 0);
	STATE_CHECK(dup2(fd, 20) == 20 && dup3(fd, 700, O_CLOEXEC) == 700);
	again = open(path, O_RDONLY);
	lseek(fd, 3, SEEK_SET);
	pid = fork();
	if (pid == 0) {
		char byte;

		close(go[1]);
		close(20);
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		/* the parent has moved the shared position to 7 */
		_exit(at(fd) == 7 && at(700) == 7 && at(again) == 1 && fcntl(20, F_GETFD) < 0 ? 0 : 1);
	}
	close(go[0]);
	for (int i = 0; i < 1000; i++)
		flags[i] = fcntl(i, F_GETFD);
	state_ready(argc, argv);
	STATE_CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(20, F_GETFD) == 0 &&
		    fcntl(700, F_GETFD) == FD_CLOEXEC && fcntl(again, F_GETFD) == 0);
	for (int i = 0; i < 1000; i++)
		STATE_CHECK(fcntl(i, F_GETFD) == flags[i]);
	STATE_CHECK(at(fd) == 3 && at(20) == 3 && at(again) == 0);
	lseek(20, 7, SEEK_SET);
	lseek(again, 1, SEEK_SET);
	STATE_CHECK(at(fd) == 7);
	STATE_CHECK(write(go[1], "x", 1) == 1);
	STATE_CHECK(waitpid(pid, &status, 0) == pid);
	STATE_CHECK(status == 0);
	unlink(path);
	return state_ok();
}
