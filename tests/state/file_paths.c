// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names that change below what is open: renamed files and directories, links, a FIFO with several
 * names, and descriptors that stand for a name alone (O_PATH) - of a symlink, a FIFO, a socket, a
 * device, a directory that is gone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <stdbool.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp"
#endif

static char dir[64], path[192], other[192];

static const char *in(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *in_too(const char *name)
{
	snprintf(other, sizeof(other), "%s/%s", dir, name);
	return other;
}

static int make(const char *name, const char *text)
{
	int fd = open(in(name), O_CREAT | O_RDWR, 0600);

	STATE_CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

static int only_path(const char *name, int flags)
{
	int fd = open(in(name), O_PATH | O_CLOEXEC | flags);

	STATE_CHECK(fd >= 0);
	return fd;
}

static mode_t type_of(int fd)
{
	struct stat st;

	STATE_CHECK(fstat(fd, &st) == 0);
	return st.st_mode & S_IFMT;
}

static bool holds(int fd, const char *text)
{
	char buf[64] = "";

	return pread(fd, buf, sizeof(buf) - 1, 0) == (ssize_t)strlen(text) && !strcmp(buf, text);
}

static bool opens(int path_fd, const char *text)
{
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY);
	STATE_CHECK(fd >= 0);
	bool ok = holds(fd, text);
	close(fd);
	return ok;
}

static bool is_named(int fd, const char *want)
{
	char link[64], is[256] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	STATE_CHECK(readlink(link, is, sizeof(is) - 1) > 0);
	return !strcmp(is, want);
}

/* It is opened by the one in the middle, however a directory is read. */
static int open_one_of_many(void)
{
	static const char *const names[] = {"name-1", "name-2", "name-3", "name-4", "name-5"};
	int fd;

	STATE_CHECK(mkfifo(in(names[0]), 0600) == 0);
	for (int i = 1; i < 5; i++)
		STATE_CHECK(link(path, in_too(names[i])) == 0);
	fd = open(in(names[2]), O_RDWR);
	STATE_CHECK(fd >= 0 && is_named(fd, path));
	return fd;
}

int main(int argc, char **argv)
{
	int moved, below, deep, top, second, soft, fifo, sock, dev, file, gone_dir, elsewhere, one_of_many;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char target[32] = "", cwd[128];
	int listens = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat a, b;

	snprintf(dir, sizeof(dir), BASE "/state-paths-XXXXXX");
	STATE_CHECK(mkdtemp(dir));

	moved = make("before", "moved");
	STATE_CHECK(rename(path, in_too("after")) == 0);
	STATE_CHECK(mkdir(in("old"), 0700) == 0 && mkdir(in("old/sub"), 0700) == 0);
	below = make("old/sub/file", "below");
	deep = open(in("old/sub"), O_RDONLY | O_DIRECTORY);
	STATE_CHECK(deep >= 0 && chdir(in("old/sub")) == 0);
	STATE_CHECK(rename(in("old"), in_too("new")) == 0);
	top = open(dir, O_RDONLY | O_DIRECTORY);
	/* The name it was opened by is another file's now, and it has a second one. */
	second = make("one", "second");
	STATE_CHECK(link(path, in_too("two")) == 0 && unlink(path) == 0);
	close(make("one", "another"));
	/* The same, and the second one is in another directory. */
	elsewhere = make("here", "elsewhere");
	STATE_CHECK(link(path, in_too("new/sub/there")) == 0 && unlink(path) == 0);

	one_of_many = open_one_of_many();

	file = only_path("after", 0);
	STATE_CHECK(symlink("after", in("soft")) == 0);
	soft = only_path("soft", O_NOFOLLOW);
	STATE_CHECK(mkfifo(in("fifo"), 0600) == 0);
	fifo = only_path("fifo", 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.60s/sock", dir);
	STATE_CHECK(bind(listens, (void *)&addr, sizeof(addr)) == 0 && listen(listens, 1) == 0);
	sock = only_path("sock", 0);
	dev = open("/dev/null", O_PATH);
	STATE_CHECK(mkdir(in("gone-dir"), 0700) == 0);
	gone_dir = only_path("gone-dir", O_DIRECTORY);
	STATE_CHECK(rmdir(in("gone-dir")) == 0);
	STATE_CHECK(top >= 0 && dev >= 0);

	state_ready(argc, argv);

	STATE_CHECK(holds(moved, "moved") && is_named(moved, in("after")));
	STATE_CHECK(holds(below, "below") && is_named(below, in("new/sub/file")));
	STATE_CHECK(is_named(deep, in("new/sub")) && faccessat(deep, "file", R_OK, 0) == 0);
	STATE_CHECK(getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, in("new/sub")));
	STATE_CHECK(faccessat(top, "new/sub/file", R_OK, 0) == 0);
	STATE_CHECK(holds(second, "second") && stat(in("two"), &a) == 0);
	STATE_CHECK(fstat(second, &b) == 0 && a.st_ino == b.st_ino && b.st_nlink == 1);

	STATE_CHECK(holds(elsewhere, "elsewhere") && stat(in("new/sub/there"), &a) == 0);
	STATE_CHECK(fstat(elsewhere, &b) == 0 && a.st_ino == b.st_ino);

	STATE_CHECK(is_named(one_of_many, in("name-3")));
	STATE_CHECK(type_of(file) == S_IFREG && opens(file, "moved"));
	STATE_CHECK(type_of(soft) == S_IFLNK);
	STATE_CHECK(readlinkat(soft, "", target, sizeof(target)) == 5 && !strcmp(target, "after"));
	STATE_CHECK(type_of(fifo) == S_IFIFO && type_of(sock) == S_IFSOCK && type_of(dev) == S_IFCHR);
	STATE_CHECK(type_of(gone_dir) == S_IFDIR);
	STATE_CHECK(openat(gone_dir, "x", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);
	state_remove(dir);
	return state_ok();
}
