// SPDX-License-Identifier: GPL-2.0-or-later
/* /dev/shm: contents, holes, modes, times, links, directories; and a mapping of a file in it. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/state/maps.h"

static const char *const names[] = {"sub", "file", "link", "soft", "fifo", "secret", "setuid"};

int main(int argc, char **argv)
{
	char dir[] = "/dev/shm/mem_devshm.XXXXXX";
	struct timespec times[2] = {{1000000001, 5}, {1000000002, 6}};
	char target[16] = "";
	struct stat st, other;
	uint8_t *p, page[PAGE];
	int fd;

	umask(0);
	STATE_CHECK(mkdtemp(dir) && chdir(dir) == 0);
	STATE_CHECK(chmod(dir, 0751) == 0 && mkdir("sub", 0500) == 0);
	fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0640);
	STATE_CHECK(fd >= 0 && ftruncate(fd, 1000 * PAGE + 17) == 0);
	STATE_CHECK(pwrite(fd, "middle", 6, 500 * PAGE) == 6);
	p = mmap(NULL, 1000 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	STATE_CHECK(p != MAP_FAILED);
	p[3 * PAGE] = 33;
	STATE_CHECK(link("file", "link") == 0 && symlink("file", "soft") == 0);
	STATE_CHECK(mkfifo("fifo", 0604) == 0);
	close(fd);
	fd = open("secret", O_WRONLY | O_CREAT, 0);
	STATE_CHECK(fd >= 0 && write(fd, "mode 0", 6) == 6);
	close(fd);
	fd = open("setuid", O_WRONLY | O_CREAT, 0600);
	STATE_CHECK(fd >= 0 && write(fd, "x", 1) == 1 && fchmod(fd, 06755) == 0);
	close(fd);
	STATE_CHECK(utimensat(AT_FDCWD, "secret", times, 0) == 0);
	STATE_CHECK(utimensat(AT_FDCWD, dir, times, 0) == 0);
	state_ready(argc, argv);
	STATE_CHECK(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0751);
	STATE_CHECK(st.st_mtim.tv_sec == 1000000002 && st.st_mtim.tv_nsec == 6);
	STATE_CHECK(stat("sub", &st) == 0 && (st.st_mode & 07777) == 0500);
	STATE_CHECK(stat("file", &st) == 0 && st.st_size == 1000 * PAGE + 17);
	STATE_CHECK((st.st_mode & 07777) == 0640 && st.st_blocks < 8 * 32);
	STATE_CHECK(stat("link", &other) == 0 && other.st_ino == st.st_ino);
	STATE_CHECK(readlink("soft", target, sizeof(target)) == 4 && !strcmp(target, "file"));
	STATE_CHECK(stat("fifo", &st) == 0 && S_ISFIFO(st.st_mode));
	STATE_CHECK(stat("secret", &st) == 0 && (st.st_mode & 07777) == 0);
	STATE_CHECK(st.st_size == 6 && st.st_mtim.tv_sec == 1000000002);
	STATE_CHECK(stat("setuid", &st) == 0 && (st.st_mode & 07777) == 06755);
	STATE_CHECK(p[3 * PAGE] == 33 && !memcmp(p + 500 * PAGE, "middle", 6));
	/* the mapping and the file are one */
	p[4 * PAGE] = 44;
	fd = open("link", O_RDONLY);
	STATE_CHECK(fd >= 0 && pread(fd, page, PAGE, 4 * PAGE) == (ssize_t)PAGE && page[0] == 44);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		STATE_CHECK(remove(names[i]) == 0);
	STATE_CHECK(rmdir(dir) == 0);
	return state_ok();
}
