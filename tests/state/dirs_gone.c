// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Directories that are gone: the one a process works in, with its parents; one that is read half; a
 * socket's and a file's.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp"
#endif

static char dir[] = BASE "/state-gone-XXXXXX", path[128];

static const char *in(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

int main(int argc, char **argv)
{
	int fd, file, again, status;
	char cwd[256], name[32];
	struct stat a, b;
	pid_t pid;
	DIR *d;

	STATE_CHECK(mkdtemp(dir));
	STATE_CHECK(mkdir(in("a"), 0700) == 0 && mkdir(in("a/b"), 0751) == 0);
	STATE_CHECK(mkdir(in("a/b/c"), 0700) == 0);
	STATE_CHECK(chdir(in("a/b/c")) == 0);
	fd = open(in("a/b"), O_RDONLY | O_DIRECTORY);
	again = open(in("a/b"), O_PATH | O_DIRECTORY);
	file = open(in("a/b/c/file"), O_CREAT | O_RDWR, 0600);
	STATE_CHECK(fd >= 0 && again >= 0 && file >= 0 && write(file, "file", 4) == 4);
	STATE_CHECK(unlink(in("a/b/c/file")) == 0 && rmdir(in("a/b/c")) == 0);
	STATE_CHECK(rmdir(in("a/b")) == 0 && rmdir(in("a")) == 0);
	STATE_CHECK(mkdir(in("list"), 0700) == 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "list/%d", i);
		STATE_CHECK(mkdir(in(name), 0700) == 0);
	}
	d = opendir(in("list"));
	STATE_CHECK(d && readdir(d) && readdir(d) && readdir(d));
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "list/%d", i);
		STATE_CHECK(rmdir(in(name)) == 0);
	}
	STATE_CHECK(rmdir(in("list")) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (access(argv[1], F_OK) != 0)
			state_nap();
		_exit(!getcwd(cwd, sizeof(cwd)) && errno == ENOENT ? 0 : 1);
	}

	state_ready(argc, argv);

	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	STATE_CHECK(!getcwd(cwd, sizeof(cwd)) && errno == ENOENT);
	STATE_CHECK(stat(".", &a) == 0 && a.st_nlink == 0 && a.st_uid == geteuid());
	STATE_CHECK(open("new", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);
	STATE_CHECK(fstat(fd, &a) == 0 && S_ISDIR(a.st_mode) && (a.st_mode & 07777) == 0751);
	STATE_CHECK(fstat(again, &b) == 0 && a.st_ino == b.st_ino && a.st_nlink == 0);
	STATE_CHECK(pread(file, cwd, sizeof(cwd), 0) == 4 && !memcmp(cwd, "file", 4));
	while (readdir(d))
		;
	STATE_CHECK(fchdir(fd) == 0 && !getcwd(cwd, sizeof(cwd)));
	STATE_CHECK(chdir("/") == 0);
	state_remove(dir);
	return state_ok();
}
