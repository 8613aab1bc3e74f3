// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A descriptor that stands for the name of a file (O_PATH) which has been deleted: it can be opened
 * by it.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	char name[] = "/tmp/state-gone-path-XXXXXX", link[64], buf[8] = "";
	int fd = mkstemp(name), path, again;
	struct stat st;

	STATE_CHECK(fd >= 0 && write(fd, "gone", 4) == 4);
	path = open(name, O_PATH | O_CLOEXEC);
	STATE_CHECK(path >= 0 && unlink(name) == 0 && close(fd) == 0);

	state_ready(argc, argv);

	STATE_CHECK(fstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0);
	STATE_CHECK(fcntl(path, F_GETFL) & O_PATH && read(path, buf, 1) == -1 && errno == EBADF);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
	again = open(link, O_RDONLY);
	STATE_CHECK(again >= 0 && read(again, buf, sizeof(buf)) == 4 && !strcmp(buf, "gone"));
	return state_ok();
}
