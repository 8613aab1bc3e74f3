// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording is a viewer's stream, so it plays in any viewer: one process writes the pieces when
 * their time has come, and takes no notice of what the viewer says.
 *
 * The file is made when there is a display to be recorded, and what came until then is its
 * beginning.  It may be stdout, whose reader ends the recording by going away.
 */
#include "supervisor/cli/view_record.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "display/display.h"

#define READ	   (64u << 10)
#define BEFORE_MAX (1u << 20) /* bytes that come before there is a display */
/* What pages draw, too: they have neither zstd nor what is kept from piece to piece. */
#define EVERYWHERE                                                                           \
	(1u << DISPLAY_CODEC_NONE | 1u << DISPLAY_CODEC_LZ4 | 1u << DISPLAY_CODEC_LEFT_LZ4 | \
		1u << DISPLAY_CODEC_PALETTE | 1u << DISPLAY_CODEC_PALETTE_LZ4)

struct recorder {
	int sock;
	const char *path, *name; /* "-": stdout */
	int file;	   /* -1: not yet */
	struct buf before; /* what has come until then */
	struct display_record record;
	struct display_decoder *decoder; /* to know what is to be acknowledged */
	bool welcome, failed;
	char refused[160]; /* why, "": it is not */
	enum display_state state; /* of the session, by what was said last */
};

static void on_message(void *ctx, const struct display_message *m)
{
	struct recorder *r = ctx;
	const struct display_message ack = {.type = DISPLAY_ACK, .serial = m->serial};
	_cleanup_buf_ struct buf b = BUF_INIT;

	r->welcome |= m->type == DISPLAY_WELCOME;
	r->state = display_notice_state(m, r->state);
	display_notice_refuses(m, r->refused, sizeof(r->refused));
	if (m->type != DISPLAY_MARK && m->type != DISPLAY_UPDATED)
		return;
	display_wire_put(&b, &ack);
	if (buf_error(&b) < 0 || io_write_full(r->sock, b.data, b.len) < 0)
		r->failed = true;
}

static const struct display_decoder_ops ops = {.message = on_message};

static int begin_file(struct recorder *r, struct err *e)
{
	if (strcmp(r->path, "-") == 0)
		r->file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		r->file = open(
			r->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->file < 0)
		return err_errno(e, -errno, "%s", r->name);
	if (display_record_begin(&r->record, r->file, e) < 0)
		return err_wrap(e, "%s", r->name);
	return 0;
}

static int write_piece(struct recorder *r, const uint8_t *bytes, size_t n, struct err *e)
{
	buf_put(&r->before, bytes, n);
	if (buf_error(&r->before) < 0 || r->before.len > BEFORE_MAX)
		return err_set(e, ERR_FAILED, -ENOBUFS, "this is not the display protocol");
	if (!r->welcome)
		return 0;
	if (r->file < 0 && begin_file(r, e) < 0)
		return e->error;
	if (display_record_put(&r->record, io_now_ns(), r->before.data, r->before.len, e) < 0)
		return err_wrap(e, "%s", r->name);
	buf_clear(&r->before);
	return 0;
}

/* Nothing more comes: 0 if that is so because the session has ended. */
static int at_the_end(const struct recorder *r, struct err *e)
{
	if (r->state == DISPLAY_STATE_SUSPENDED || r->state == DISPLAY_STATE_MOVED)
		return err_set(e, ERR_MOVED, -ECONNRESET, "the session was %s: %s",
			r->state == DISPLAY_STATE_MOVED ? "moved" : "suspended",
			r->file < 0 ? "nothing was recorded" : "the recording ends there");
	if (r->state == DISPLAY_STATE_ENDED && r->file >= 0)
		return 0;
	return err_set(
		e, ERR_STATE, -ECONNRESET, "the display server has ended the connection");
}

/* 1, 0 at the end, or a negative errno. */
static int take(struct recorder *r, struct err *e)
{
	static uint8_t bytes[READ];
	ssize_t n = recv(r->sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	int k;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n < 0 && errno != ECONNRESET)
		return err_errno(e, -errno, "display");
	if (n <= 0)
		return at_the_end(r, e);
	k = display_decoder_feed(r->decoder, bytes, (size_t)n, e);
	if (k == 0 && r->refused[0])
		k = err_set(e, ERR_STATE, -EUSERS, "%s", r->refused);
	if (k == 0)
		k = write_piece(r, bytes, (size_t)n, e);
	return k < 0 ? k : !r->failed;
}

/* A descriptor that can be read when somebody wants us to end. */
static int open_signals(struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "signalfd") : fd;
}

static int record(struct recorder *rec, int signals, struct err *e)
{
	int r;

	do {
		struct pollfd p[] = {{.fd = rec->sock, .events = POLLIN},
			{.fd = signals, .events = POLLIN}, {.fd = rec->file}};

		poll(p, ARRAY_SIZE(p), -1);
		if (p[1].revents || p[2].revents)
			return 0;
		r = take(rec, e);
	} while (r > 0);
	return r == -EPIPE ? 0 : r;
}

int view_record(int sock, const char *path, struct err *e)
{
	const struct display_viewer_wish wish = {
		.name = "record", .view_only = true, .audio = true, .codecs = EVERYWHERE};
	struct recorder rec = {.sock = sock,
		.path = path,
		.name = strcmp(path, "-") == 0 ? "stdout" : path,
		.file = -1};
	_cleanup_close_ int signals = open_signals(e);
	int r;

	if (signals < 0)
		return signals;
	r = display_decoder_new(&ops, &rec, &rec.decoder);
	if (r == 0)
		r = display_viewer_greet(sock, &wish);
	/* One who does not listen may have said why. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		err_errno(e, r, "display");
	else
		r = record(&rec, signals, e);
	display_decoder_free(rec.decoder);
	close_fd(rec.file);
	buf_fini(&rec.before);
	return MIN(r, 0);
}

static int open_recording(const char *path, struct display_record *ret, struct err *e)
{
	_cleanup_close_ int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return err_errno(e, -errno, "%s", path);
	if (display_record_open(ret, file, e) < 0)
		return err_wrap(e, "%s", path);
	return take_fd(&file);
}

int view_replay_check(const char *path, struct err *e)
{
	struct display_record record;
	int file = open_recording(path, &record, e);

	close_fd(file);
	return MIN(file, 0);
}

/* Until @until_ns; what the viewer says is read away.  False if it is gone. */
static bool wait_until(int sock, uint64_t until_ns)
{
	static uint8_t ignored[READ];

	for (;;) {
		uint64_t now = io_now_ns();
		struct pollfd p = {.fd = sock, .events = POLLIN};
		int ms = until_ns > now ? (int)MIN((until_ns - now) / 1000000 + 1, 1000u) : 0;

		if (poll(&p, 1, ms) > 0 && recv(sock, ignored, sizeof(ignored), MSG_DONTWAIT) == 0)
			return false;
		if (io_now_ns() >= until_ns)
			return true;
	}
}

/* In a child. */
static void play(int sock, struct display_record *record)
{
	uint64_t began = io_now_ns(), us;
	struct buf piece = BUF_INIT;

	signal(SIGPIPE, SIG_IGN);
	while (display_record_next(record, &piece, &us, NULL) == 1) {
		if (!wait_until(sock, began + us * 1000) ||
			io_write_full(sock, piece.data, piece.len) < 0)
			_exit(0);
		buf_clear(&piece);
	}
	/* The last picture stays. */
	while (wait_until(sock, io_now_ns() + 1000000000))
		;
	_exit(0);
}

/* No other viewer's end, nor a listener, is held by who plays. */
static void keep_only(int a, int b)
{
	close_range(3, (unsigned)MIN(a, b) - 1, 0);
	close_range((unsigned)MIN(a, b) + 1, (unsigned)MAX(a, b) - 1, 0);
	close_range((unsigned)MAX(a, b) + 1, ~0u, 0);
}

int view_replay(const char *path, struct err *e)
{
	struct display_record record;
	_cleanup_close_ int file = open_recording(path, &record, e);
	int pair[2];
	pid_t child;

	if (file < 0)
		return file;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socketpair");
	child = fork();
	if (child == 0) {
		keep_only(pair[1], file);
		play(pair[1], &record);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return err_errno(e, -EAGAIN, "fork");
	}
	return pair[0];
}
