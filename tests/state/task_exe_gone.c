// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that was deleted while it runs, as by an upgrade, or that never had a name, being a
 * memfd (MEMFD): what it is, and that it can be started again.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void copy_self(int fd)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t at = 0;

	STATE_CHECK(from >= 0 && fd >= 0 && fstat(from, &st) == 0);
	while (at < st.st_size)
		STATE_CHECK(sendfile(fd, from, &at, (size_t)(st.st_size - at)) > 0);
	close(from);
}

#ifdef MEMFD
static void start_copy(char **argv)
{
	int fd = memfd_create("program", MFD_CLOEXEC);

	copy_self(fd);
	fexecve(fd, (char *[]){argv[0], argv[1], "-", NULL}, environ);
	STATE_CHECK(0);
}

static void find_place(char **argv, char *ret, size_t len)
{
	snprintf(ret, len, "/memfd:program (deleted)");
}

static void leave(char **argv)
{
}
#else
static void start_copy(char **argv)
{
	char dir[] = "/tmp/state-exe-XXXXXX", path[64];
	int fd;

	STATE_CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
	copy_self(fd);
	close(fd);
	execl(path, path, argv[1], dir, NULL);
	STATE_CHECK(0);
}

static void find_place(char **argv, char *ret, size_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/program", argv[2]);
	STATE_CHECK(unlink(path) == 0);
	snprintf(ret, len, "%s (deleted)", path);
}

static void leave(char **argv)
{
	STATE_CHECK(rmdir(argv[2]) == 0);
}
#endif

int main(int argc, char **argv)
{
	char want[80], is[256] = "";
	struct stat st;
	int status, fd;
	pid_t pid;

	if (argc > 3)
		return 17;
	if (argc == 2)
		start_copy(argv);
	find_place(argv, want, sizeof(want));
	state_ready(2, argv);

	STATE_CHECK(readlink("/proc/self/exe", is, sizeof(is) - 1) > 0);
	STATE_CHECK(!strcmp(is, want));
	STATE_CHECK(stat("/proc/self/exe", &st) == 0 && st.st_nlink == 0);
	fd = open("/proc/self/exe", O_RDONLY);
	STATE_CHECK(fd >= 0 && read(fd, is, 4) == 4 && !memcmp(is, "\177ELF", 4));
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "again", "a", "b", "c", NULL);
		_exit(1);
	}
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 17 << 8);
	leave(argv);
	return state_ok();
}
