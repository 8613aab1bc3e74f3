// SPDX-License-Identifier: GPL-2.0-or-later
/* Who waits in open for the other end of a FIFO: a reader and a writer. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static char dir[] = "/tmp/state-opens-XXXXXX";

static int open_in(const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (flags < 0)
		return mkfifo(path, 0600);
	return open(path, flags);
}

static pid_t opener(const char *name, int flags)
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		char byte = 0;
		int fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open_in(name, flags);
		if (fd < 0)
			_exit(2);
		if (flags == O_WRONLY)
			_exit(write(fd, "w", 1) == 1 ? 0 : 3);
		_exit(read(fd, &byte, 1) == 1 && byte == 'r' ? 0 : 4);
	}
	return pid;
}

int main(int argc, char **argv)
{
	pid_t writer, reader;
	int status, fd;
	char byte;

	STATE_CHECK(mkdtemp(dir));
	STATE_CHECK(open_in("read-me", -1) == 0 && open_in("write-me", -1) == 0);
	writer = opener("read-me", O_WRONLY);
	reader = opener("write-me", O_RDONLY);

	state_ready(argc, argv);

	STATE_CHECK(waitpid(writer, &status, WNOHANG) == 0);
	fd = open_in("read-me", O_RDONLY);
	STATE_CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 'w');
	STATE_CHECK(waitpid(writer, &status, 0) == writer && status == 0);
	STATE_CHECK(waitpid(reader, &status, WNOHANG) == 0);
	fd = open_in("write-me", O_WRONLY);
	STATE_CHECK(fd >= 0 && write(fd, "r", 1) == 1);
	STATE_CHECK(waitpid(reader, &status, 0) == reader && status == 0);
	state_remove(dir);
	return state_ok();
}
