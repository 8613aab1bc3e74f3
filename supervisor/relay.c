// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in relay.h. */
#include "supervisor/relay.h"

#include <event2/event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

#define CHUNK	  (64u << 10)
#define REDRAW_MS 100 /* in which a program has seen that the size is another */
#define MAX_DRAIN 64 /* chunks: more than any pipe holds, and an end if somebody goes on writing */

struct relay {
	struct event_base *loop;
	const struct relay_ops *ops;
	void *ctx;
	int fds[RELAY_STREAMS];
	struct event *readable[RELAY_STREAMS];
	struct event *writable; /* of stdin or the terminal */
	struct buf input;
	bool input_ended, held, short_of_room;
	struct event *settle;	/* the size is to be `size` again; NULL: not used yet */
	struct winsize size;
};

static const char *const edge_names[RELAY_STREAMS] = {
	[RELAY_IN] = "stdin",
	[RELAY_OUT] = "stdout",
	[RELAY_ERR] = "stderr",
	[RELAY_TTY] = "tty",
};

int relay_new(struct relay **ret, struct event_base *loop, const struct relay_ops *ops, void *ctx,
	struct err *e)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r)
		return err_errno(e, -ENOMEM, "relay");
	r->loop = loop;
	r->ops = ops;
	r->ctx = ctx;
	for (int i = 0; i < RELAY_STREAMS; i++)
		r->fds[i] = -1;
	*ret = r;
	return 0;
}

static void close_stream(struct relay *r, enum relay_stream s)
{
	if (r->readable[s])
		event_free(r->readable[s]);
	r->readable[s] = NULL;
	if (r->writable && event_get_fd(r->writable) == r->fds[s]) {
		event_free(r->writable);
		r->writable = NULL;
		buf_clear(&r->input);
	}
	r->fds[s] = close_fd(r->fds[s]);
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	for (int i = 0; i < RELAY_STREAMS; i++)
		close_stream(r, (enum relay_stream)i);
	if (r->settle)
		event_free(r->settle);
	buf_fini(&r->input);
	free(r);
}

/* Which streams are watched follows from the state; called after every change of it. */
static void watch(struct relay *r)
{
	bool read = !r->held && r->ops->ready(r->ctx);

	for (int i = 0; i < RELAY_STREAMS; i++) {
		if (!r->readable[i])
			continue;
		if (read)
			event_add(r->readable[i], NULL);
		else
			event_del(r->readable[i]);
	}
	if (!r->writable)
		return;
	if (!r->held && r->input.len)
		event_add(r->writable, NULL);
	else
		event_del(r->writable);
}

void relay_poke(struct relay *r)
{
	watch(r);
}

static bool is_to_settle(const struct relay *r)
{
	return r->settle && event_pending(r->settle, EV_TIMEOUT, NULL);
}

static void settle(struct relay *r)
{
	event_del(r->settle);
	if (r->fds[RELAY_TTY] >= 0)
		ioctl(r->fds[RELAY_TTY], TIOCSWINSZ, &r->size);
}

static void on_settle(evutil_socket_t fd, short what, void *ctx)
{
	settle(ctx);
}

void relay_hold(struct relay *r, bool on)
{
	if (on && is_to_settle(r))
		settle(r);
	r->held = on;
	if (!on && r->input_ended && r->input.len == 0)
		close_stream(r, RELAY_IN);
	watch(r);
}

/* One read of stream @s: true while there may be more. */
static bool read_some(struct relay *r, enum relay_stream s)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);
	ssize_t n;

	if (!chunk)
		return false;
	n = read(r->fds[s], chunk, CHUNK);
	if (n > 0) {
		r->ops->output(r->ctx, s, chunk, (size_t)n);
		return true;
	}
	/* A terminal's master says EIO while no process has the other end open. */
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_stream(r, s);
	return false;
}

static enum relay_stream stream_of(const struct relay *r, int fd)
{
	for (int i = 0; i < RELAY_STREAMS; i++)
		if (r->fds[i] == fd)
			return (enum relay_stream)i;
	return RELAY_STREAMS;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct relay *r = ctx;
	enum relay_stream s = stream_of(r, fd);

	if (s == RELAY_STREAMS)
		return;
	read_some(r, s);
	watch(r);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	struct relay *r = ctx;
	enum relay_stream s = stream_of(r, fd);
	ssize_t n = write(fd, r->input.data, r->input.len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 || (buf_consume(&r->input, (size_t)n), r->input.len == 0 && r->input_ended)) {
		close_stream(r, s);
		return;
	}
	watch(r);
	if (r->short_of_room && r->input.len <= RELAY_INPUT_MAX / 2) {
		r->short_of_room = false;
		r->ops->room(r->ctx);
	}
}

int relay_adopt(struct relay *r, enum relay_stream stream, int fd, struct err *e)
{
	int error = io_set_nonblock(fd, true);

	if (error == 0)
		error = io_set_cloexec(fd, true);
	if (error == 0 && stream != RELAY_IN) {
		r->readable[stream] =
			event_new(r->loop, fd, EV_READ | EV_PERSIST, on_readable, r);
		error = r->readable[stream] ? 0 : -ENOMEM;
	}
	if (error == 0 && (stream == RELAY_IN || stream == RELAY_TTY)) {
		r->writable = event_new(r->loop, fd, EV_WRITE | EV_PERSIST, on_writable, r);
		error = r->writable ? 0 : -ENOMEM;
	}
	if (error < 0) {
		close(fd);
		return err_errno(e, error, "stdio");
	}
	r->fds[stream] = fd;
	watch(r);
	return 0;
}

size_t relay_put(struct relay *r, const void *data, size_t n)
{
	size_t room = RELAY_INPUT_MAX - MIN(r->input.len, (size_t)RELAY_INPUT_MAX);

	if (!r->writable || r->input_ended)
		return n; /* nobody will ever read it */
	if (n > room) {
		n = room;
		r->short_of_room = true;
	}
	buf_put(&r->input, data, n);
	watch(r);
	return n;
}

void relay_end_input(struct relay *r)
{
	if (r->fds[RELAY_IN] < 0)
		return;
	r->input_ended = true;
	if (r->input.len == 0 && !r->held)
		close_stream(r, RELAY_IN);
}

void relay_pending(const struct relay *r, const uint8_t **ret, size_t *ret_n, bool *ret_ended)
{
	*ret = r->input.data;
	*ret_n = r->input.len;
	*ret_ended = r->input_ended;
}

void relay_close_output(struct relay *r, enum relay_stream stream)
{
	if (stream == RELAY_OUT || stream == RELAY_ERR)
		close_stream(r, stream);
}

int relay_resize(struct relay *r, uint16_t rows, uint16_t cols, struct err *e)
{
	struct winsize size = {.ws_row = rows, .ws_col = cols};

	if (r->fds[RELAY_TTY] < 0 || !rows || !cols)
		return 0;
	if (is_to_settle(r))
		event_del(r->settle);
	if (ioctl(r->fds[RELAY_TTY], TIOCSWINSZ, &size) < 0)
		return err_errno(e, -errno, "window size");
	return 0;
}

/*
 * A program that is told twice at once looks once, at the size it knows.  So where that is the old
 * one it is another for a moment.
 */
void relay_redraw(struct relay *r, uint16_t rows, uint16_t cols)
{
	const struct timeval moment = {.tv_usec = REDRAW_MS * 1000};
	struct winsize was = {0};

	if (r->fds[RELAY_TTY] < 0 || !rows || !cols)
		return;
	ioctl(r->fds[RELAY_TTY], TIOCGWINSZ, &was);
	if (!r->settle)
		r->settle = event_new(r->loop, -1, 0, on_settle, r);
	if (was.ws_row != rows || was.ws_col != cols || !r->settle) {
		relay_resize(r, rows, cols, NULL);
		return;
	}
	relay_resize(r, (uint16_t)(rows + 1), cols, NULL);
	r->size = (struct winsize){.ws_row = rows, .ws_col = cols};
	event_add(r->settle, &moment);
}

void relay_drain(struct relay *r)
{
	for (int i = 0; i < RELAY_STREAMS; i++)
		for (int n = 0; n < MAX_DRAIN && r->readable[i]; n++)
			if (!read_some(r, (enum relay_stream)i))
				break;
}

size_t relay_edges(const struct relay *r, const char *prefix, struct ckpt_edge *ret)
{
	size_t n = 0;

	for (int i = 0; i < RELAY_STREAMS; i++) {
		if (r->fds[i] < 0)
			continue;
		snprintf(ret[n].name, sizeof(ret[n].name), "%s%s", prefix, edge_names[i]);
		ret[n++].fd = r->fds[i];
	}
	return n;
}

unsigned relay_open_streams(const struct relay *r)
{
	unsigned mask = 0;

	for (int i = 0; i < RELAY_STREAMS; i++)
		mask |= r->fds[i] >= 0 ? 1u << i : 0;
	return mask;
}
