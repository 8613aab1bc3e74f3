// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of old.c that have a path, or had one, and what is known of them: offsets, locks, directories half read. */
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/file.h>

#include "call.h"

static int file, copy, deleted, directory, fifo, self, old_umask;
static long entries;

static int full(const char *path, int flags)
{
	int fd = open_at(path, O_RDWR | O_CREAT | flags);

	check(call(SYS_write, fd, (long)pattern, sizeof(pattern), 0) == sizeof(pattern), path);
	return fd;
}

/* How many entries of a directory there are from here; a few of them only if @some. */
static long count_entries(int fd, bool some)
{
	char got[some ? 64 : 1024];
	long n = 0, r;

	while ((r = call(SYS_getdents64, fd, (long)got, sizeof(got), 0)) > 0) {
		for (long i = 0; i < r; i += *(unsigned short *)(got + i + 16)) /* d_reclen */
			n++;
		if (some)
			break;
	}
	check(r >= 0, "getdents");
	return n;
}

static void set_up(void)
{
	old_umask = (int)call(SYS_umask, 027, 0, 0, 0);
	file = full("/tmp/file", O_APPEND);
	check(call(SYS_lseek, file, 3, SEEK_SET, 0) == 3, "file");
	copy = (int)call(SYS_dup, file, 0, 0, 0);
	deleted = full("/tmp/deleted", 0);
	check(call(SYS_link, (long)"/tmp/file", (long)"/tmp/second", 0, 0) == 0, "link");
	check(call(SYS_symlink, (long)"nowhere", (long)"/tmp/symlink", 0, 0) == 0, "symlink");
	check(call(SYS_mkdir, (long)"/tmp/some", 0700, 0, 0) == 0, "directory");
	for (char name[] = "/tmp/some/a"; name[10] <= 'h'; name[10]++)
		open_at(name, O_RDWR | O_CREAT | O_CLOEXEC);
	directory = open_at("/tmp/some", O_RDONLY | O_DIRECTORY);
	entries = count_entries(directory, true);
	check(entries > 0 && entries < 10, "directory");
	check(call(SYS_mknod, (long)"/tmp/fifo", 0010600, 0, 0) == 0, "fifo");
	fifo = open_at("/tmp/fifo", O_RDWR);
	call(SYS_write, fifo, (long)pattern, 11, 0);
	self = open_at("/proc/self/status", O_RDONLY);
	check(call(SYS_flock, file, LOCK_EX, 0, 0) == 0, "flock");
	call(SYS_unlink, (long)"/tmp/deleted", 0, 0, 0);
	full("/dev/shm/old", 0);
	call(SYS_chdir, (long)"/tmp/some", 0, 0, 0);
}

static void look(void)
{
	struct statx status = {0};
	char got[64];

	check(call(SYS_fcntl, copy, F_GETFL, 0, 0) & O_APPEND, "flags of a file");
	check(reads(file, PATTERN + 3, sizeof(PATTERN) - 3), "file");
	check(call(SYS_lseek, copy, 0, SEEK_CUR, 0) == sizeof(PATTERN), "offset that is shared");
	check(begins(deleted, PATTERN, sizeof(PATTERN)), "deleted file");
	check(call6(SYS_statx, deleted, (long)"", AT_EMPTY_PATH, STATX_NLINK, (long)&status, 0) == 0 &&
			status.stx_nlink == 0,
		"links of a deleted file");
	check(call6(SYS_statx, AT_FDCWD, (long)"/tmp/second", 0, STATX_NLINK | STATX_MODE, (long)&status, 0) == 0 &&
			status.stx_nlink == 2 && status.stx_mode == 0100600,
		"link");
	check(call(SYS_readlink, (long)"/tmp/symlink", (long)got, sizeof(got), 0) == 7 &&
			same(got, "nowhere", 7),
		"symlink");
	check(count_entries(directory, false) + entries == 10, "directory half read");
	check(reads(fifo, PATTERN, 11), "fifo");
	check(begins(self, "Name:\t", 6), "file of /proc");
	check(call(SYS_flock, open_at("/tmp/file", O_RDWR), LOCK_SH | LOCK_NB, 0, 0) < 0, "flock");
	check(begins(open_at("/dev/shm/old", O_RDONLY), PATTERN, sizeof(PATTERN)),
		"file in memory");
	check(call(SYS_getcwd, (long)got, sizeof(got), 0, 0) == 10 && same(got, "/tmp/some", 10),
		"working directory");
	check(call(SYS_umask, old_umask, 0, 0, 0) == 027, "umask");
}

const struct part part_files = {set_up, look};
