// SPDX-License-Identifier: GPL-2.0-or-later
/* What is open though its mode closes it to its owner: files, a FIFO, a directory. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/state/state.h"

static const struct {
	const char *name;
	mode_t sort, mode;
	int flags;
} made[] = {
	{"read-only", S_IFREG, 0444, O_RDWR | O_CREAT | O_EXCL},
	{"nobody's", S_IFREG, 0, O_RDWR | O_CREAT | O_EXCL},
	{"appended-to", S_IFREG, 0400, O_WRONLY | O_APPEND | O_CREAT | O_EXCL},
	{"fifo", S_IFIFO, 0, O_RDWR},
	{"fifo-to-read", S_IFIFO, 0444, O_RDWR},
	{"directory", S_IFDIR, 0100, O_RDONLY | O_DIRECTORY},
};
#define N (sizeof(made) / sizeof(made[0]))

static char dir[64];

static void name_of(size_t i, char path[128])
{
	snprintf(path, 128, "%s/%s", dir, made[i].name);
}

int main(int argc, char **argv)
{
	int fd[N];
	char path[128], got[16];
	struct stat st, named;

	snprintf(dir, sizeof(dir), "/tmp/file_closed.%d", getpid());
	STATE_CHECK(mkdir(dir, 0700) == 0);
	for (size_t i = 0; i < N; i++) {
		name_of(i, path);
		if (made[i].sort == S_IFDIR)
			STATE_CHECK(mkdir(path, 0700) == 0);
		else if (made[i].sort == S_IFIFO)
			STATE_CHECK(mkfifo(path, 0600) == 0);
		fd[i] = open(path, made[i].flags, 0600);
		STATE_CHECK(fd[i] >= 0);
		STATE_CHECK(made[i].sort == S_IFDIR || write(fd[i], "before", 6) == 6);
		STATE_CHECK(fchmod(fd[i], made[i].mode) == 0);
	}
	state_ready(argc, argv);

	for (size_t i = 0; i < N; i++) {
		name_of(i, path);
		STATE_CHECK(fstat(fd[i], &st) == 0 && stat(path, &named) == 0);
		STATE_CHECK(st.st_ino == named.st_ino && st.st_mode == (made[i].sort | made[i].mode));
		STATE_CHECK(fcntl(fd[i], F_GETFL) & O_APPEND ? i == 2 : i != 2);
		if (made[i].sort == S_IFDIR)
			continue;
		STATE_CHECK(write(fd[i], "after", 5) == 5);
		if (i == 2)
			continue;
		STATE_CHECK(made[i].sort == S_IFIFO || lseek(fd[i], 0, SEEK_SET) == 0);
		STATE_CHECK(read(fd[i], got, sizeof(got)) == 11 && !memcmp(got, "beforeafter", 11));
	}
	STATE_CHECK(fstat(fd[2], &st) == 0 && st.st_size == 11);
	for (size_t i = 0; i < N; i++) {
		name_of(i, path);
		STATE_CHECK(made[i].sort == S_IFDIR ? rmdir(path) == 0 : unlink(path) == 0);
	}
	rmdir(dir);
	return state_ok();
}
