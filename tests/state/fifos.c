// SPDX-License-Identifier: GPL-2.0-or-later
/* FIFOs: bytes in flight, a deleted one, one opened for both, one that no writer ever opened. */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp" /* bound from the host; elsewhere is an overlay */
#endif

static void expect(int fd, const char *s)
{
	char buf[64];
	ssize_t n = read(fd, buf, sizeof(buf));

	STATE_CHECK(n == (ssize_t)strlen(s) && !memcmp(buf, s, strlen(s)));
}

static char dir[] = BASE "/state-fifo-XXXXXX";

static void make(const char *name, char path[64])
{
	snprintf(path, 64, "%s/%s", dir, name);
	STATE_CHECK(mkfifo(path, 0600) == 0);
}

int main(int argc, char **argv)
{
	char path[64], gone_path[64], both_path[64], quiet_path[64], c;
	int reader, writer, gone_reader, gone_writer, both, quiet, late;
	struct pollfd p;

	STATE_CHECK(mkdtemp(dir));
	make("a", path);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	writer = open(path, O_WRONLY);
	STATE_CHECK(reader >= 0 && writer >= 0 && write(writer, "in flight", 9) == 9);
	make("gone", gone_path);
	gone_reader = open(gone_path, O_RDONLY | O_NONBLOCK);
	gone_writer = open(gone_path, O_WRONLY);
	STATE_CHECK(gone_writer >= 0 && write(gone_writer, "gone", 4) == 4);
	STATE_CHECK(unlink(gone_path) == 0);
	make("both", both_path);
	both = open(both_path, O_RDWR);
	STATE_CHECK(both >= 0 && write(both, "both", 4) == 4);
	make("quiet", quiet_path);
	quiet = open(quiet_path, O_RDONLY | O_NONBLOCK);
	STATE_CHECK(quiet >= 0);

	state_ready(argc, argv);

	expect(reader, "in flight");
	STATE_CHECK(read(reader, &c, 1) == -1 && errno == EAGAIN);
	STATE_CHECK((fcntl(writer, F_GETFL) & O_NONBLOCK) == 0);
	late = open(path, O_WRONLY | O_NONBLOCK);
	STATE_CHECK(late >= 0 && write(late, "late", 4) == 4);
	expect(reader, "late");
	STATE_CHECK(close(late) == 0 && close(writer) == 0);
	STATE_CHECK(read(reader, &c, 1) == 0);
	expect(gone_reader, "gone");
	STATE_CHECK(write(gone_writer, "on", 2) == 2);
	expect(gone_reader, "on");
	STATE_CHECK(access(gone_path, F_OK) == -1);
	expect(both, "both");
	p = (struct pollfd){.fd = quiet, .events = POLLIN};
	STATE_CHECK(poll(&p, 1, 0) == 0);
	unlink(path);
	unlink(both_path);
	unlink(quiet_path);
	rmdir(dir);
	return state_ok();
}
