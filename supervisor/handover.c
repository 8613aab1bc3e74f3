// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in handover.h. */
#include "supervisor/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static short look(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) < 0 ? 0 : p.revents;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int handover_write(int fd, unsigned char last, struct err *e)
{
	struct stat st;

	if (is_pipe(fd) && !(look(fd, POLLOUT) & (POLLOUT | POLLERR)))
		return -EAGAIN;
	if (write(fd, &last, 1) != 1)
		return err_errno(e, -errno, "cannot write the end of the image");
	/* A pipe or a socket can't be synced, and need not be. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fsync(fd) < 0)
		return err_errno(e, -errno, "cannot sync the image");
	return 0;
}

enum handover handover_look(int fd)
{
	bool alone;
	int left = 0;

	if (!is_pipe(fd))
		return HANDOVER_TAKEN;
	/* In this order: it may be read, and the pipe closed, in between. */
	alone = look(fd, 0) & POLLERR;
	if (ioctl(fd, FIONREAD, &left) < 0)
		return HANDOVER_TAKEN;
	if (left == 0)
		return HANDOVER_TAKEN;
	return alone ? HANDOVER_REFUSED : HANDOVER_WAITS;
}

bool handover_retract(int fd)
{
	_cleanup_close_ int back = -1;
	char own[32], bytes[4096];
	bool got = false;

	if (!is_pipe(fd))
		return false;
	/* The other end of the same pipe. */
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	back = open(own, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	while (back >= 0 && read(back, bytes, sizeof(bytes)) > 0)
		got = true;
	return got;
}
