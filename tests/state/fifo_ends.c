// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FIFOs of which one end is there: a writer whose readers are gone, bytes whose writer is; one that
 * was deleted when only one end was open; and one of two names.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp"
#endif

static char dir[] = BASE "/state-ends-XXXXXX", path[128], other[128];

static const char *in(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int end_of(const char *name, int flags)
{
	int fd = open(in(name), flags | O_NONBLOCK);

	STATE_CHECK(fd >= 0);
	return fd;
}

static void make(const char *name)
{
	STATE_CHECK(mkfifo(in(name), 0600) == 0);
}

static void expect(int fd, const char *s)
{
	char buf[64] = "";
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	STATE_CHECK(n == (ssize_t)strlen(s) && !strcmp(buf, s));
}

int main(int argc, char **argv)
{
	int alone, left, gone, two, fd, keep;
	struct stat a, b;

	signal(SIGPIPE, SIG_IGN);
	STATE_CHECK(mkdtemp(dir));
	make("alone");
	keep = end_of("alone", O_RDONLY);
	alone = end_of("alone", O_WRONLY);
	STATE_CHECK(close(keep) == 0); /* a writer that nobody reads */
	make("left");
	left = end_of("left", O_RDONLY);
	fd = end_of("left", O_WRONLY);
	STATE_CHECK(write(fd, "left", 4) == 4 && close(fd) == 0); /* bytes that nobody writes on to */
	make("gone");
	gone = end_of("gone", O_RDONLY);
	STATE_CHECK(unlink(in("gone")) == 0);
	make("one");
	two = end_of("one", O_RDWR);
	snprintf(other, sizeof(other), "%s/two", dir);
	STATE_CHECK(link(in("one"), other) == 0 && unlink(in("one")) == 0);
	STATE_CHECK(write(two, "two", 3) == 3);

	state_ready(argc, argv);

	STATE_CHECK(write(alone, "x", 1) == -1 && errno == EPIPE);
	fd = end_of("alone", O_RDONLY);
	STATE_CHECK(write(alone, "again", 5) == 5);
	expect(fd, "again");
	expect(left, "left");
	expect(left, "");
	expect(gone, "");
	STATE_CHECK(fstat(gone, &a) == 0 && S_ISFIFO(a.st_mode));
	fd = end_of("two", O_RDONLY);
	STATE_CHECK(fstat(fd, &a) == 0 && fstat(two, &b) == 0 && a.st_ino == b.st_ino);
	expect(fd, "two");
	state_remove(dir);
	return state_ok();
}
