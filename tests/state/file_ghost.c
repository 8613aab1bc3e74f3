// SPDX-License-Identifier: GPL-2.0-or-later
/* Files without a name: deleted, O_TMPFILE, a removed directory, one that was renamed over. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp" /* bound from the host; elsewhere is an overlay */
#endif

#define BIG (3 << 20)

static char dir[64], path[128], other[128], link_path[64], buf[256];
static int a, b, reader, hole, tmp, gone, over, linked;
static int attributed;

static void make_deleted(void)
{
	struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000001, .tv_nsec = 5}};

	snprintf(path, sizeof(path), "%s/deleted", dir);
	a = open(path, O_CREAT | O_RDWR, 0604);
	b = open(path, O_WRONLY | O_APPEND);
	reader = open(path, O_RDONLY);
	STATE_CHECK(a >= 0 && b >= 0 && reader >= 0);
	STATE_CHECK(write(a, "contents", 8) == 8 && lseek(reader, 2, SEEK_SET) == 2);
	STATE_CHECK(ftruncate(a, BIG) == 0 && pwrite(a, "end", 3, BIG - 3) == 3);
	STATE_CHECK(fchmod(a, 0604) == 0);
	attributed = fsetxattr(a, "user.state", "value", 5, 0) == 0;
	STATE_CHECK(unlink(path) == 0 && futimens(a, times) == 0);
}

static void make_others(void)
{
	int fd;

	snprintf(path, sizeof(path), "%s/hole", dir);
	hole = open(path, O_CREAT | O_RDWR, 0600);
	STATE_CHECK(hole >= 0 && ftruncate(hole, 1LL << 33) == 0 && unlink(path) == 0);

	tmp = open(dir, O_TMPFILE | O_RDWR, 0600);
	STATE_CHECK(tmp >= 0 && write(tmp, "temporary", 9) == 9);

	snprintf(path, sizeof(path), "%s/sub", dir);
	STATE_CHECK(mkdir(path, 0700) == 0);
	gone = open(path, O_RDONLY | O_DIRECTORY);
	STATE_CHECK(gone >= 0 && rmdir(path) == 0);

	snprintf(path, sizeof(path), "%s/over", dir);
	snprintf(other, sizeof(other), "%s/new", dir);
	over = open(path, O_CREAT | O_RDWR, 0600);
	STATE_CHECK(over >= 0 && write(over, "old", 3) == 3);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	STATE_CHECK(fd >= 0 && write(fd, "newer", 5) == 5 && close(fd) == 0);
	STATE_CHECK(rename(other, path) == 0);

	/* One of two names is gone: the file is still the other name's. */
	snprintf(path, sizeof(path), "%s/one", dir);
	snprintf(other, sizeof(other), "%s/two", dir);
	linked = open(path, O_CREAT | O_RDWR, 0600);
	STATE_CHECK(linked >= 0 && write(linked, "linked", 6) == 6);
	STATE_CHECK(linkat(AT_FDCWD, path, AT_FDCWD, other, 0) == 0 && unlink(path) == 0);
}

static void check_deleted(void)
{
	struct stat x, y;
	ssize_t n;

	STATE_CHECK(fstat(a, &x) == 0 && x.st_size == BIG && x.st_nlink == 0);
	STATE_CHECK((x.st_mode & 07777) == 0604);
	STATE_CHECK(x.st_mtim.tv_sec == 1000000001 && x.st_mtim.tv_nsec == 5);
	/* unless the file system here has none */
	if (attributed && fsetxattr(a, "user.other", "", 0, 0) == 0)
		STATE_CHECK(fgetxattr(a, "user.state", buf, 20) == 5 && !memcmp(buf, "value", 5));
	STATE_CHECK(lseek(a, 0, SEEK_CUR) == 8);
	STATE_CHECK(pread(a, buf, 8, 0) == 8 && !memcmp(buf, "contents", 8));
	STATE_CHECK(pread(a, buf, 4, BIG - 4) == 4 && !memcmp(buf, "\0end", 4));
	STATE_CHECK(read(reader, buf, 6) == 6 && !memcmp(buf, "ntents", 6));
	STATE_CHECK(write(b, "more", 4) == 4 && fstat(reader, &y) == 0 && y.st_size == BIG + 4);
	STATE_CHECK(y.st_ino == x.st_ino && x.st_blocks < 100);
	snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", a);
	snprintf(other, sizeof(other), "%s/deleted (deleted)", dir);
	n = readlink(link_path, buf, sizeof(buf));
	STATE_CHECK(n == (ssize_t)strlen(other) && !memcmp(buf, other, (size_t)n));
}

static void check_others(void)
{
	struct stat x, y;

	STATE_CHECK(fstat(hole, &x) == 0 && x.st_size == 1LL << 33 && x.st_blocks < 100);

	STATE_CHECK(pread(tmp, buf, 20, 0) == 9 && !memcmp(buf, "temporary", 9));
	snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", tmp);
	snprintf(path, sizeof(path), "%s/named", dir);
	STATE_CHECK(linkat(AT_FDCWD, link_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0);
	STATE_CHECK(stat(path, &x) == 0 && x.st_size == 9);

	STATE_CHECK(fstat(gone, &x) == 0 && S_ISDIR(x.st_mode));
	STATE_CHECK(openat(gone, "x", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);

	STATE_CHECK(pread(over, buf, 20, 0) == 3 && !memcmp(buf, "old", 3));
	snprintf(path, sizeof(path), "%s/over", dir);
	STATE_CHECK(stat(path, &x) == 0 && x.st_size == 5);

	snprintf(path, sizeof(path), "%s/two", dir);
	STATE_CHECK(write(linked, "!", 1) == 1 && stat(path, &x) == 0 && x.st_size == 7);
	STATE_CHECK(fstat(linked, &y) == 0 && x.st_ino == y.st_ino);
}

int main(int argc, char **argv)
{
	snprintf(dir, sizeof(dir), BASE "/state-ghost-XXXXXX");
	STATE_CHECK(mkdtemp(dir));
	make_deleted();
	make_others();
	state_ready(argc, argv);
	check_deleted();
	check_others();
	state_remove(dir);
	return state_ok();
}
