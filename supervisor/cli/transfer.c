// SPDX-License-Identifier: GPL-2.0-or-later
/* What migrate and receive say to each other in front of an image and behind it, line by line. */
#include "supervisor/cli/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>

#include "base/base.h"

#define PIPE_ROOM (1 << 20) /* what an ordinary user may have */

void transfer_widen(int fd)
{
	/* where it is no pipe, or he has too many, it stays as it is */
	fcntl(fd, F_SETPIPE_SZ, PIPE_ROOM);
}

/* One byte at a time: nothing behind the newline may be taken. */
int transfer_read_line(int fd, char line[TRANSFER_MAX_LINE])
{
	for (size_t n = 0; n < TRANSFER_MAX_LINE - 1; n++) {
		ssize_t r = io_read_full(fd, line + n, 1);

		if (r != 1)
			return -ECONNRESET;
		if (line[n] == '\n') {
			line[n] = '\0';
			return 0;
		}
	}
	return -EMSGSIZE;
}

int transfer_write_line(int fd, const char *fmt, ...)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char line[TRANSFER_MAX_LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	for (char *p = line; *p; p++)
		if (*p == '\n')
			*p = ' ';
	buf_printf(&b, "%s\n", line);
	return buf_error(&b) < 0 ? -ENOMEM : io_write_full(fd, b.data, b.len);
}

int transfer_await(int fd, short events, const struct transfer_watch *w)
{
	struct pollfd p[2] = {{fd, events, 0}, {w->fd, POLLIN, 0}};

	for (;;) {
		int r = 0;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents)
			return 0;
		if (p[1].revents)
			r = w->ready(w->ctx);
		if (r < 0)
			return r;
		p[1].revents = 0;
	}
}

static int write_watched(int to, const uint8_t *data, size_t n, const struct transfer_watch *w)
{
	while (n) {
		ssize_t done = write(to, data, n);
		int r = 0;

		if (done >= 0) {
			data += done;
			n -= (size_t)done;
		} else if (errno == EAGAIN) {
			r = transfer_await(to, POLLOUT, w);
		} else if (errno != EINTR) {
			r = -errno;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int send_chunk(int to, uint8_t *room, size_t n, const struct transfer_watch *w)
{
	/* The length stands in front of the data, in one write. */
	for (int i = 0; i < 4; i++)
		room[i] = (uint8_t)(n >> 8 * i);
	return write_watched(to, room, n + 4, w);
}

static int send_chunks(int from, int to, const struct transfer_watch *w)
{
	_cleanup_free_ uint8_t *room = malloc(TRANSFER_MAX_CHUNK + 4);

	if (!room)
		return -ENOMEM;
	for (;;) {
		int r = transfer_await(from, POLLIN, w);
		ssize_t n;

		if (r < 0)
			return r;
		n = read(from, room + 4, TRANSFER_MAX_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = send_chunk(to, room, (size_t)n, w);
		if (r < 0 || n == 0)
			return r;
	}
}

int transfer_send_image(int from, int to, const struct transfer_watch *w)
{
	int r = io_set_nonblock(to, true);

	if (r == 0)
		r = send_chunks(from, to, w);
	io_set_nonblock(to, false);
	return r;
}

/* -ETIMEDOUT: for @patience ms nothing came. */
static int read_patiently(int fd, uint8_t *data, size_t n, int patience)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (n) {
		int r = poll(&p, 1, patience);
		ssize_t done;

		if (r == 0)
			return -ETIMEDOUT;
		done = r < 0 ? r : read(fd, data, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -ECONNRESET;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

int transfer_receive_image(int from, int to, int patience)
{
	_cleanup_free_ uint8_t *room = malloc(TRANSFER_MAX_CHUNK);

	if (!room)
		return -ENOMEM;
	for (;;) {
		uint8_t head[4];
		struct cursor c = cursor_of(head, sizeof(head));
		uint32_t n;
		int r = read_patiently(from, head, sizeof(head), patience);

		if (r < 0)
			return r;
		n = cursor_u32(&c);
		if (n > TRANSFER_MAX_CHUNK)
			return -EBADMSG;
		if (n == 0)
			return 0;
		r = read_patiently(from, room, n, patience);
		if (r < 0)
			return r;
		/* who does not take it any more has said why */
		if (io_write_full(to, room, n) < 0)
			return -EPIPE;
	}
}
