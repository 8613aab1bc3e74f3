// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A poll loop over the supervisor's connection, our stdin and a signalfd.  The connection is
 * non-blocking and stdin is read only when everything before has gone out: both directions may be
 * full at the same time, and each must drain without the other.  Writing to our own stdout may
 * block; then the supervisor stops reading from the command, as with a pipe.  A terminal that takes
 * nothing makes us wait, but not for signals that end us.
 *
 * A terminal is put into raw mode while the command's terminal is attached to it, and put back
 * whatever happens but SIGKILL.  So are the modes in which a command is that goes on elsewhere or
 * was killed (supervisor/modes.h); one that ends by itself leaves them as it likes.
 */
#include "supervisor/cli/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/cli/cli.h"
#include "supervisor/message.h"
#include "supervisor/modes.h"
#include "supervisor/relay.h"

#define CHUNK  (64u << 10)
#define CTRL_P 0x10
#define CTRL_Q 0x11

struct stream {
	struct proto_conn *conn;
	struct stream_options o;
	char name[72];
	bool started, tty, raw, unsent, input_open, half_detach, output_lost;
	bool watched; /* stdout is a terminal, in modes of the command's */
	struct modes modes;
	struct termios before;
	int screen;	  /* stdout once more where that is watched, non-blocking; or -1 */
	int killed;	  /* the signal by which we are to end, or 0 */
	int signals;	  /* signalfd(2) */
	int code;	  /* -1 while it runs */
	int output_error; /* of our stdout or stderr; 0 where only its reader went away */
};

static const int forwarded[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
#define N_CANCELLING 3 /* the first of them */

int stream_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void stream_size(uint32_t *ret_rows, uint32_t *ret_cols)
{
	struct winsize size;

	*ret_rows = *ret_cols = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ||
		ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
		*ret_rows = size.ws_row;
		*ret_cols = size.ws_col;
	}
}

/* ---- to the supervisor -------------------------------------------------------------------- */

/* What a send or a flush has come to: @r. */
static int sent(struct stream *s, int r, struct err *e)
{
	s->unsent = r == 1;
	/*
	 * The supervisor has closed: what it said before, or that it said nothing, is yet to be
	 * read.
	 */
	if (r == -EPIPE || r == -ECONNRESET) {
		s->input_open = false;
		*e = (struct err){0};
		return 0;
	}
	return r < 0 ? r : 0;
}

static int send(struct stream *s, const Pb__Control *m, struct err *e)
{
	return sent(s, message_send(s->conn, m, NULL, 0, e), e);
}

static int send_input(struct stream *s, const uint8_t *data, size_t n, bool end, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Data d = PB__DATA__INIT;

	d.data.data = (uint8_t *)data;
	d.data.len = n;
	d.end = end;
	m.body_case = PB__CONTROL__BODY_INPUT;
	m.input = &d;
	return send(s, &m, e);
}

static int send_size(struct stream *s, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Resize size = PB__RESIZE__INIT;

	stream_size(&size.rows, &size.cols);
	m.body_case = PB__CONTROL__BODY_RESIZE;
	m.resize = &size;
	return send(s, &m, e);
}

static int send_signal(struct stream *s, int number, struct err *e)
{
	Pb__Control m = PB__CONTROL__INIT;
	Pb__SignalRequest q = PB__SIGNAL_REQUEST__INIT;

	q.signal = number;
	q.job = true;
	m.body_case = PB__CONTROL__BODY_SIGNAL;
	m.signal = &q;
	return send(s, &m, e);
}

/* Do signals go to the command?  Where it has our terminal those of the keyboard come by that. */
static bool forwards(const struct stream *s)
{
	return s->o.forward && !(s->o.own_tty && s->tty);
}

/* Looks for ctrl-p ctrl-q in what was typed; a ctrl-p is kept back until the next key. */
static bool detaches(struct stream *s, uint8_t *keys, size_t *n, uint8_t *out)
{
	size_t k = 0;

	for (size_t i = 0; i < *n; i++) {
		if (s->half_detach && keys[i] == CTRL_Q)
			return true;
		if (s->half_detach)
			out[k++] = CTRL_P;
		s->half_detach = keys[i] == CTRL_P;
		if (!s->half_detach)
			out[k++] = keys[i];
	}
	*n = k;
	return false;
}

static int on_stdin(struct stream *s, struct err *e)
{
	uint8_t keys[CHUNK], out[2 * 4096 + 1];
	bool watch_keys = s->tty && s->o.detachable;
	ssize_t n = read(STDIN_FILENO, keys, watch_keys ? 4096 : sizeof(keys));
	size_t len;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		s->input_open = false;
		/* In the background a terminal can't be read: that is no end of input. */
		return n == 0 ? send_input(s, NULL, 0, true, e) : 0;
	}
	if (!watch_keys)
		return send_input(s, keys, (size_t)n, false, e);
	len = (size_t)n;
	if (detaches(s, keys, &len, out)) {
		s->code = 0;
		return 0;
	}
	return len ? send_input(s, out, len, false, e) : 0;
}

static int on_signal(struct stream *s, struct err *e)
{
	struct signalfd_siginfo info;
	struct sigaction was;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGWINCH)
		return s->tty ? send_size(s, e) : 0;
	if (s->started && !forwards(s)) {
		if (sigaction((int)info.ssi_signo, NULL, &was) == 0 && was.sa_handler == SIG_IGN)
			return 0;
		s->killed = (int)info.ssi_signo;
		s->code = 128 + s->killed;
		return 0;
	}
	return send_signal(s, (int)info.ssi_signo, e);
}

/*
 * Those that are looked at before the session is there and then; others wait until they are.  By
 * those that end us while the terminal is the command's we end when it has been put back.
 */
static void choose_signals(const struct stream *s, sigset_t *ret)
{
	bool early = s->o.cancel && !s->started;

	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (forwarded[i] == SIGWINCH || (early ? i < N_CANCELLING : forwards(s) || s->tty))
			sigaddset(ret, forwarded[i]);
}

/* The session is there.  What is not looked at does to us what it does. */
static void change_signals(struct stream *s)
{
	sigset_t set, rest;

	choose_signals(s, &set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&rest);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		if (!sigismember(&set, forwarded[i]))
			sigaddset(&rest, forwarded[i]);
	signalfd(s->signals, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigprocmask(SIG_UNBLOCK, &rest, NULL);
}

/* ---- from the supervisor ------------------------------------------------------------------ */

static void enter_raw_mode(struct stream *s)
{
	struct termios raw;

	if (!s->tty || !s->o.input || tcgetattr(STDIN_FILENO, &s->before) < 0)
		return;
	raw = s->before;
	cfmakeraw(&raw);
	s->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void leave_raw_mode(struct stream *s)
{
	if (s->raw)
		tcsetattr(STDIN_FILENO, s->killed ? TCSANOW : TCSADRAIN, &s->before);
	s->raw = false;
}

/*
 * Whoever else has our output may have made it non-blocking.  One who is to end does not wait for a
 * terminal: -EAGAIN.
 */
static int write_output(struct stream *s, int fd, const uint8_t *data, size_t len)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLOUT},
		{.fd = s->tty && !forwards(s) ? s->signals : -1, .events = POLLIN}};
	struct err ignored = {0};

	while (len) {
		ssize_t n = write(fd, data, len);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return -EIO;
		} else if (errno == EAGAIN && s->killed) {
			return -EAGAIN;
		} else if (errno == EAGAIN) {
			if (poll(p, ARRAY_SIZE(p), -1) > 0 && p[1].revents)
				on_signal(s, &ignored);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void watch(struct stream *s)
{
	s->watched = s->tty && isatty(STDOUT_FILENO);
	if (s->watched)
		s->screen = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int output_of(const struct stream *s)
{
	return s->screen >= 0 ? s->screen : STDOUT_FILENO;
}

static void leave_modes(struct stream *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (!s->watched)
		return;
	s->watched = false;
	modes_leave(&s->modes, &b);
	if (buf_error(&b) == 0)
		write_output(s, output_of(s), b.data, b.len);
}

/* The same of a command that goes on: what we say is not to stand behind its prompt. */
static void leave_terminal(struct stream *s)
{
	bool raw = s->raw;

	leave_modes(s);
	leave_raw_mode(s);
	if (raw && !s->killed)
		putc('\n', stderr);
}

static int on_output(struct stream *s, const Pb__Data *d, struct err *e)
{
	int fd = d->stream == RELAY_ERR ? STDERR_FILENO : output_of(s);
	Pb__Control m = PB__CONTROL__INIT;
	Pb__Data closed = PB__DATA__INIT;
	int r = write_output(s, fd, d->data.data, d->data.len);

	if (s->watched)
		modes_feed(&s->modes, d->data.data, d->data.len);
	if (r == 0 || s->output_lost || s->killed)
		return 0;
	/* Whoever read our output is gone: the command shall learn it as it would have. */
	s->output_lost = true;
	s->output_error = r == -EPIPE || r == -ECONNRESET ? 0 : r;
	closed.stream = d->stream;
	m.body_case = PB__CONTROL__BODY_CLOSE_OUTPUT;
	m.close_output = &closed;
	return send(s, &m, e);
}

static int on_failure(struct stream *s, const Pb__Failure *f, struct err *e)
{
	message_to_err(f, e);
	if (f->exit_code != 126 && f->exit_code != 127)
		return e->error;
	cli_print_error(e);
	s->code = (int)f->exit_code;
	*e = (struct err){0};
	return 0;
}

static int on_message(struct stream *s, const Pb__Control *m, struct err *e)
{
	switch (m->body_case) {
	case PB__CONTROL__BODY_STARTED:
		snprintf(s->name, sizeof(s->name), "%.71s", m->started->name);
		s->started = true;
		cli_say_lacking(m->started->lacking, m->started->root);
		cli_say_note(m->started->note);
		if (s->o.started)
			s->o.started(s->o.ctx, s->name);
		s->tty = m->started->tty;
		watch(s);
		change_signals(s);
		s->input_open = s->o.input;
		enter_raw_mode(s);
		return 0;
	case PB__CONTROL__BODY_OUTPUT:
		return on_output(s, m->output, e);
	case PB__CONTROL__BODY_EXITED:
		if (WIFSIGNALED(m->exited->status))
			leave_modes(s);
		s->watched = false;
		leave_raw_mode(s);
		s->code = stream_exit_code(m->exited->status);
		if (m->exited->left && !s->o.quiet)
			fprintf(stderr,
				"podrun: the command has ended; '%s' goes on with %d process%s\n",
				s->name, m->exited->left, m->exited->left == 1 ? "" : "es");
		return 0;
	case PB__CONTROL__BODY_FAILURE:
		return on_failure(s, m->failure, e);
	case PB__CONTROL__BODY_MOVED:
		leave_terminal(s);
		if (m->moved->peer[0])
			err_set(e, ERR_MOVED, -ECONNRESET, "'%s' was moved to %s", s->name,
				m->moved->peer);
		else
			err_set(e, ERR_MOVED, -ECONNRESET, "'%s' was suspended%s%s", s->name,
				m->moved->image[0] ? " to " : "", m->moved->image);
		return e->error;
	default:
		return 0;
	}
}

static int on_conn(struct stream *s, struct err *e)
{
	int fds[MESSAGE_MAX_FDS], r;
	Pb__Control *m;
	size_t n;

	while (s->code < 0) {
		r = message_recv(s->conn, &m, fds, MESSAGE_MAX_FDS, &n, e);
		if (r == 0)
			return 0;
		if (r < 0)
			return err_set(e, ERR_FAILED, -ECONNRESET,
				"the supervisor of '%s' has died",
				s->name[0] ? s->name : "the session");
		while (n)
			close_fd(fds[--n]);
		r = on_message(s, m, e);
		message_free(m);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the loop ----------------------------------------------------------------------------- */

static int loop(struct stream *s, struct err *e)
{
	while (s->code < 0) {
		struct pollfd p[] = {
			{.fd = proto_conn_fd(s->conn),
				.events = (short)(POLLIN | (s->unsent ? POLLOUT : 0))},
			{.fd = s->signals, .events = POLLIN},
			{.fd = s->input_open && !s->unsent ? STDIN_FILENO : -1, .events = POLLIN},
		};
		int r = 0;

		if (poll(p, ARRAY_SIZE(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			return err_errno(e, -errno, "poll");
		}
		if (p[0].revents & POLLOUT)
			r = sent(s, proto_conn_flush(s->conn, e), e);
		if (r == 0 && p[0].revents & (POLLIN | POLLHUP | POLLERR))
			r = on_conn(s, e);
		if (r == 0 && s->code < 0 && p[1].revents)
			r = on_signal(s, e);
		if (r == 0 && s->code < 0 && p[2].revents)
			r = on_stdin(s, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The command may have ended well, or died of its output's end: only we know why. */
static int tell_lost(struct stream *s, struct err *e)
{
	err_errno(e, s->output_error, "cannot write the command's output");
	if (s->code == 0)
		return e->error;
	cli_print_error(e);
	*e = (struct err){0};
	return s->code;
}

int stream_run(struct proto_conn *c, const struct stream_options *o, struct err *e)
{
	struct stream s = {.conn = c, .o = *o, .code = -1, .screen = -1};
	sigset_t set, old;
	int r;

	choose_signals(&s, &set);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &old);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	for (size_t i = 0; o->cancel && i < ARRAY_SIZE(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	io_set_nonblock(proto_conn_fd(c), true);
	r = s.signals < 0 ? err_errno(e, -errno, "signals") : loop(&s, e);
	close_fd(s.signals);
	leave_terminal(&s);
	close_fd(s.screen);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (s.killed)
		raise(s.killed);
	if (r == 0 && s.tty && s.half_detach && s.code == 0)
		fprintf(stderr, "detached from '%s'\n", s.name);
	if (r == 0 && s.output_error)
		return tell_lost(&s, e);
	return r < 0 ? r : s.code;
}
