// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pty_bytes - what waits in a pseudo terminal, taken out and put back.
 *
 * Theory of operation
 *
 * The kernel has no way to look at these bytes without reading them.  So they are read and written
 * back while every task is stopped, and the same writing fills a new pair at resume.
 *
 *      master --write--> [settings: signals, CR/NL, echo] --> lines | rest of a line --read--> slave
 *      master <--read--- bytes <-- [settings: OPOST] <--write-- slave
 *
 * Bytes must not go through the settings a second time: for the writing they are replaced by quiet
 * ones.  Canonical mode needs care, because switching it on or off makes one line of all that
 * waits (n_tty_set_termios): whole lines are read in canonical mode, the rest in raw mode, and when
 * it is switched on again nothing waits any more.
 *
 * The kernel hands bytes to the line discipline in the background.  They have arrived when FIONREAD
 * counts them; with no whole line among them poll(2) waits for the background work itself.
 *
 * What waits is some 24 KiB at most: a page in the line discipline, and before it buffers that hold
 * twice their size (nobody marks errors), until more than 8192 are used up.  A buffer is as large as
 * the write that needs it, of 256 to 1792; what is left of the last one is lost when the next write
 * does not fit.  So how much there is room for is a matter of the writes (15 to 24 KB on Linux 6.18),
 * and of how soon the background work empties some.  put_bytes makes room for as much as any writer can:
 * the page is filled by whole buffers, 8192 are reached exactly, and the rest is one write.
 */
#include "ckpt/kinds/pty.h"

#include <asm/termbits.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#define WAIT_MS	  1000
#define NAP_US	  200
#define BUFFER	  256		   /* the smallest one; holds twice as much */
#define PAGE	  (4096 - 1)	   /* the line discipline's */
#define USED_UP	  (PAGE + 2 * 8192) /* behind these a buffer may have any size, and is the last */
#define ANYWAY	  8192		   /* there is room for as many, however they are written */
#define DC3	  0x13

void pty_bytes_fini(struct pty_bytes *p)
{
	buf_fini(&p->lines);
	buf_fini(&p->input);
	buf_fini(&p->output);
}

static short ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};

	return poll(&p, 1, 0) < 0 ? 0 : p.revents;
}

static int waiting(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) < 0 ? 0 : n;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* One read; -EAGAIN when nothing is there. */
static ssize_t read_some(int fd, uint8_t *p, size_t n)
{
	ssize_t r;

	do
		r = read(fd, p, n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* Notes what has been put into one of @p's buffers. */
static void note(struct pty_bytes *p, const struct buf *b)
{
	struct pty_notes *n = p->notes;
	size_t *len = b == &p->lines ? &n->lines.len : b == &p->input ? &n->input.len : &n->output.len;
	uint8_t *data = b == &p->lines ? n->lines.data :
			b == &p->input ? n->input.data :
					 n->output.data;

	if (b->failed || b->len > sizeof(n->lines.data))
		return;
	memcpy(data + *len, b->data + *len, b->len - *len);
	*len = b->len;
}

static int take_lines(int slave, struct pty_bytes *p, struct err *e)
{
	struct buf *lines = &p->lines;
	uint8_t line[8192];

	while (lines->len < PTY_MAX_BYTES) {
		ssize_t n = read_some(slave, line, sizeof(line));

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return err_errno(e, (int)n, "cannot read a terminal");
		/* Nothing at all is a lone EOF character. */
		buf_put_u32(lines, (uint32_t)n);
		buf_put(lines, line, (size_t)n);
		if (p->notes)
			note(p, lines);
	}
	return 0;
}

static int take_all(int fd, struct pty_bytes *p, struct buf *b, struct err *e)
{
	uint8_t bytes[8192];

	while (b->len < PTY_MAX_BYTES) {
		ssize_t n = read_some(fd, bytes, sizeof(bytes));

		/* EIO: a master whose slave has been closed. */
		if (n == -EAGAIN || n == -EIO || n == 0)
			return 0;
		if (n < 0)
			return err_errno(e, (int)n, "cannot read a terminal");
		buf_put(b, bytes, (size_t)n);
		if (p->notes)
			note(p, b);
	}
	return 0;
}

/* Tells which sort of stop it is by trying to end it the one way. */
static enum pty_flow find_flow(int master, int slave)
{
	if ((ready(slave) & POLLOUT) || waiting(master) > 0)
		return PTY_RUNNING;
	ioctl(slave, TCXONC, TCOON);
	if (!(ready(slave) & POLLOUT))
		return PTY_STOPPED_BY_CHAR;
	ioctl(slave, TCXONC, TCOOFF);
	return PTY_STOPPED_BY_CALL;
}

int pty_bytes_take(int master, int slave, bool output, const struct termios2 *t,
	struct pty_bytes *ret, struct err *e)
{
	struct termios2 raw = *t;
	int r = 0;

	if (t->c_lflag & ICANON && !(ret->notes && ret->notes->raw)) {
		r = take_lines(slave, ret, e);
		if (ret->notes)
			ret->notes->raw = true;
		raw.c_lflag &= ~(tcflag_t)ICANON;
		raw.c_cc[VMIN] = raw.c_cc[VTIME] = 0;
		if (r == 0 && ioctl(slave, TCSETS2, &raw) < 0)
			r = err_errno(e, -errno, "cannot set a terminal");
	}
	if (r == 0)
		r = take_all(slave, ret, &ret->input, e);
	if (r == 0 && output)
		r = take_all(master, ret, &ret->output, e);
	ret->flow = find_flow(master, slave);
	if (r == 0 && (ret->lines.failed || ret->input.failed || ret->output.failed))
		r = err_errno(e, -ENOMEM, "terminal");
	return r;
}

/* ---- putting --------------------------------------------------------------------------------- */

/* Settings which change no byte and answer none.  IXON stays: clearing it would start the
 * output. */
static struct termios2 quiet(const struct termios2 *t, uint8_t eof)
{
	struct termios2 q = *t;

	q.c_iflag &= IXON;
	q.c_oflag &= ~(tcflag_t)OPOST;
	q.c_lflag &= ICANON;
	memset(q.c_cc, 0, sizeof(q.c_cc));
	q.c_cc[VMIN] = 1;
	q.c_cc[VEOF] = eof;
	q.c_cc[VEOL] = t->c_cc[VEOL];
	q.c_cc[VEOL2] = t->c_cc[VEOL2];
	return q;
}

/* A byte which none of the waiting ones is, to stand for the EOF character. */
static uint8_t spare_byte(const struct pty_bytes *p, const struct termios2 *t)
{
	bool used[256] = {[0] = true, ['\n'] = true};

	used[t->c_cc[VEOL]] = used[t->c_cc[VEOL2]] = true;
	for (size_t i = 0; i < p->lines.len; i++)
		used[p->lines.data[i]] = true;
	for (size_t i = 0; i < p->input.len; i++)
		used[p->input.data[i]] = true;
	for (int c = 255; c > 0; c--)
		if (!used[c])
			return (uint8_t)c;
	return 0;
}

static bool ends_line(const struct termios2 *t, const uint8_t *line, size_t n)
{
	uint8_t last = n ? line[n - 1] : 0;

	return last == '\n' || (last && (last == t->c_cc[VEOL] || last == t->c_cc[VEOL2]));
}

/* What has to be typed to have it all waiting again; counts the lines and their bytes. */
static int compose(const struct pty_bytes *p, const struct termios2 *t, uint8_t eof,
	struct buf *typed, size_t *ret_lines, size_t *ret_bytes)
{
	struct cursor c = cursor_of(p->lines.data, p->lines.len);
	size_t lines = 0, bytes = 0;

	while (cursor_left(&c)) {
		uint32_t n = cursor_u32(&c);
		const uint8_t *line = cursor_take(&c, n);

		if (c.bad)
			return -EBADMSG;
		buf_put(typed, line, n);
		if (!ends_line(t, line, n))
			buf_put_u8(typed, eof);
		lines++;
		bytes += n;
	}
	buf_put(typed, p->input.data, p->input.len);
	*ret_lines = lines;
	*ret_bytes = bytes;
	return buf_error(typed);
}

static void wait_for_lines(int slave, size_t bytes)
{
	for (int i = 0; i < WAIT_MS * 1000 / NAP_US; i++) {
		if ((ready(slave) & POLLIN) && (size_t)waiting(slave) >= bytes)
			return;
		usleep(NAP_US);
	}
	log_warn("a terminal's input is slow to arrive");
}

static void wait_for_bytes(int slave, size_t bytes)
{
	/* The line discipline holds a page; the rest waits in front of it. */
	for (int i = 0; i < WAIT_MS * 1000 / NAP_US; i++) {
		ready(slave);
		if ((size_t)waiting(slave) >= MIN(bytes, (size_t)4095))
			return;
		usleep(NAP_US);
	}
	log_warn("a terminal's input is slow to arrive");
}

/* How much of @n bytes is to be written at once behind @done of them. */
static size_t piece(size_t done, size_t n)
{
	if (n <= ANYWAY || done >= USED_UP)
		return n - done;
	return MIN(n - done, (size_t)(done ? BUFFER : BUFFER - 1));
}

/*
 * Writes all of it into one end, whose other end nobody reads. -EAGAIN: it is more than a terminal
 * takes.  poll(2) knows of no room that only a last buffer has, and nobody is woken when the
 * background work makes some.
 */
static int put_bytes(int fd, const uint8_t *data, size_t n)
{
	size_t done = 0;

	for (int naps = 0; done < n;) {
		ssize_t r = write(fd, data + done, piece(done, n));

		if (r > 0) {
			done += (size_t)r;
			naps = 0;
			continue;
		}
		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0 || errno != EAGAIN || naps++ == WAIT_MS * 1000 / NAP_US)
			return r < 0 ? -errno : -EIO;
		usleep(NAP_US);
	}
	return 0;
}

/* More than a terminal takes: no terminal has held that. */
static int cannot_put(const char *what, int r, struct err *e)
{
	err_errno(e, r, "cannot put back a terminal's %s", what);
	return r == -EAGAIN ? err_reclass(e, ERR_IMAGE) : r;
}

static int put_input(int master, int slave, const struct termios2 *t, uint8_t eof,
	const struct pty_bytes *p, struct err *e)
{
	_cleanup_buf_ struct buf typed = BUF_INIT;
	size_t lines, bytes;
	int r = compose(p, t, eof, &typed, &lines, &bytes);

	if (r == 0 && typed.len)
		r = put_bytes(master, typed.data, typed.len);
	if (r < 0)
		return cannot_put("input", r, e);
	if (typed.len == 0)
		return 0;
	if (!(t->c_lflag & ICANON)) {
		wait_for_bytes(slave, typed.len);
	} else if (lines) {
		wait_for_lines(slave, bytes);
		/* Behind the last line nothing can be counted; more than one piece may come
		 * late. */
		if (typed.len > 1024)
			usleep(2000);
	} else {
		ready(slave);
	}
	return 0;
}

/* Types the stop character and waits until it has taken effect. */
static void stop_by_char(int master, int slave, const struct termios2 *t)
{
	struct termios2 q = quiet(t, 0);
	uint8_t stop = t->c_cc[VSTOP] ? t->c_cc[VSTOP] : DC3;

	q.c_iflag = IXON;
	q.c_cc[VSTOP] = stop;
	ioctl(slave, TCSETS2, &q);
	if (io_write_full(master, &stop, 1) < 0)
		return;
	for (int i = 0; i < WAIT_MS * 1000 / NAP_US && (ready(slave) & POLLOUT); i++)
		usleep(NAP_US);
}

static int put_output(int master, int slave, const struct termios2 *t, const struct pty_bytes *p,
	struct err *e)
{
	struct termios2 q = quiet(t, 0);
	int r;

	if (p->output.len && p->flow == PTY_STOPPED_BY_CALL) {
		ioctl(slave, TCXONC, TCOON);
	} else if (p->output.len && p->flow == PTY_STOPPED_BY_CHAR) {
		q.c_iflag = 0;
		ioctl(slave, TCSETS2, &q);
	}
	r = put_bytes(slave, p->output.data, p->output.len);
	if (r < 0)
		cannot_put("output", r, e);
	/* In a new pair the output runs; in the old one it does if there was something to put. */
	if (p->flow == PTY_STOPPED_BY_CALL)
		ioctl(slave, TCXONC, TCOOFF);
	else if (p->flow == PTY_STOPPED_BY_CHAR && (ready(slave) & POLLOUT))
		stop_by_char(master, slave, t);
	return r;
}

int pty_bytes_put(int master, int slave, const struct termios2 *t, const struct pty_bytes *p,
	struct err *e)
{
	uint8_t eof = spare_byte(p, t);
	struct termios2 q = quiet(t, eof);
	int r, x;

	if (ioctl(slave, TCSETS2, &q) < 0)
		return err_errno(e, -errno, "cannot set a terminal");
	r = put_input(master, slave, t, eof, p, e);
	x = put_output(master, slave, t, p, r < 0 ? NULL : e);
	if (ioctl(slave, TCSETS2, t) < 0 && r == 0 && x == 0)
		return err_errno(e, -errno, "cannot set a terminal");
	return r < 0 ? r : x;
}
