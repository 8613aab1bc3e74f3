// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files mapped to be shared: what is allowed later, at big offsets, behind the file's end, after it
 * was renamed, and by a name that is gone while another is left.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

#ifndef BASE
#define BASE "/tmp"
#endif
#define FAR (5LL << 30)

static char dir[] = BASE "/mem-file-XXXXXX";

static int open_in(const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags, 0600);
	STATE_CHECK(fd >= 0);
	return fd;
}

static uint8_t *map(int fd, size_t pages, int prot, int flags, off_t at)
{
	uint8_t *p = mmap(NULL, pages * PAGE, prot, flags, fd, at);

	STATE_CHECK(p != MAP_FAILED);
	return p;
}

static void rename_in(const char *from, const char *to)
{
	char a[128], b[128];

	snprintf(a, sizeof(a), "%s/%s", dir, from);
	snprintf(b, sizeof(b), "%s/%s", dir, to);
	STATE_CHECK(rename(a, b) == 0);
}

/* What a touch of @p ends with. */
static int touch(const uint8_t *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGBUS, SIG_DFL);
		*(volatile const uint8_t *)p;
		_exit(0);
	}
	STATE_CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static uint8_t *rw, *later, *never, *far, *own, *moved, *linked, *cut;

/* A file of @len bytes. */
static int make(const char *name, off_t len)
{
	int fd = open_in(name, O_CREAT | O_RDWR);

	STATE_CHECK(ftruncate(fd, len) == 0);
	return fd;
}

static void set_up(void)
{
	char path[128], other[128];
	int fd = make("file", 8 * PAGE + 100), ro = open_in("file", O_RDONLY);

	rw = map(fd, 16, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	later = map(fd, 4, PROT_NONE, MAP_SHARED, 0);
	never = map(ro, 4, PROT_READ, MAP_SHARED, 0);
	rw[0] = 1;
	rw[3 * PAGE] = 3;
	close(fd);
	close(ro);

	fd = make("far", FAR + 4 * (off_t)PAGE);
	far = map(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED, FAR);
	own = map(fd, 4, PROT_READ | PROT_WRITE, MAP_PRIVATE, FAR);
	far[PAGE] = 11;
	own[2 * PAGE] = 12;
	close(fd);

	fd = make("before", 4 * PAGE);
	moved = map(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	moved[0] = 21;
	close(fd);
	rename_in("before", "after");

	/* Private pages of one's own, behind an end that came later. */
	fd = make("cut", 8 * PAGE);
	cut = map(fd, 8, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	cut[0] = 31;
	STATE_CHECK(ftruncate(fd, 2 * PAGE) == 0);
	close(fd);

	fd = make("one", 4 * PAGE);
	linked = map(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	linked[0] = 41;
	close(fd);
	snprintf(path, sizeof(path), "%s/one", dir);
	snprintf(other, sizeof(other), "%s/two", dir);
	STATE_CHECK(link(path, other) == 0 && unlink(path) == 0);
}

static void check_file(void)
{
	struct stat st;
	uint8_t byte;
	int fd;

	STATE_CHECK(rw[0] == 1 && rw[3 * PAGE] == 3 && never[3 * PAGE] == 3);
	STATE_CHECK(mprotect(later, 4 * PAGE, PROT_READ | PROT_WRITE) == 0);
	later[PAGE] = 7;
	STATE_CHECK(rw[PAGE] == 7 && never[PAGE] == 7);
	STATE_CHECK(mprotect(never, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	STATE_CHECK(rw[8 * PAGE + 200] == 0 && touch(rw + 10 * PAGE) == SIGBUS);
	fd = open_in("file", O_RDWR);
	STATE_CHECK(pread(fd, &byte, 1, PAGE) == 1 && byte == 7);
	STATE_CHECK(pwrite(fd, "x", 1, 2 * PAGE) == 1 && rw[2 * PAGE] == 'x');
	STATE_CHECK(fstat(fd, &st) == 0 && st.st_size == 8 * PAGE + 100);
	close(fd);
}

int main(int argc, char **argv)
{
	struct stat st;
	uint8_t byte;
	int fd, two;

	STATE_CHECK(mkdtemp(dir));
	set_up();

	state_ready(argc, argv);

	check_file();
	STATE_CHECK(far[PAGE] == 11 && own[PAGE] == 11 && own[2 * PAGE] == 12 && !far[2 * PAGE]);
	fd = open_in("far", O_RDONLY);
	STATE_CHECK(fstat(fd, &st) == 0 && st.st_size == FAR + 4 * (off_t)PAGE);
	STATE_CHECK(st.st_blocks < 1000 && pread(fd, &byte, 1, FAR + (off_t)PAGE) == 1);
	STATE_CHECK(byte == 11);
	close(fd);

	moved[PAGE] = 22;
	fd = open_in("after", O_RDONLY);
	STATE_CHECK(moved[0] == 21 && pread(fd, &byte, 1, PAGE) == 1 && byte == 22);
	close(fd);

	STATE_CHECK(cut[0] == 31 && cut[1] == 0 && touch(cut + 4 * PAGE) == SIGBUS);

	linked[PAGE] = 42;
	two = open_in("two", O_RDONLY);
	STATE_CHECK(linked[0] == 41 && pread(two, &byte, 1, PAGE) == 1 && byte == 42);
	state_remove(dir);
	return state_ok();
}
