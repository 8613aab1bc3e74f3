// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      browser == websocket == relay == stream == display server, or ssh to where it is
 *
 * A browser's first message is text, "token HEX" or "ticket HEX"; the answer is JSON with its
 * ticket.  Only then is the stream made.  Everything behind that is binary: what comes from the
 * stream goes on as it is, what comes from the browser goes through the filter.
 *
 * One piece of the stream is in our hands at a time: the next is read when the websocket has taken
 * it, which it does as long as little is unsent (TCP_NOTSENT_LOWAT).  So a slow line is noticed by
 * the display server, who decides what is worth sending.  The other way, no more is read from the
 * browser while the stream takes nothing.
 *
 * Each end's close is the other's.  Codes above 4400 tell the page whether trying again is of use
 * (display/viewer/web/connection.js).
 */
#include "display/web/relay.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "display/web/filter.h"

#define PIECE	   (32u << 10)	/* bytes of the stream */
#define LAST_MAX   (1u << 20)	/* bytes that are read when the stream has ended */
#define UP_MAX	   (256u << 10) /* bytes for the stream until a browser has to wait */
#define PATIENCE   20		/* seconds for a browser to say who it is, or to read its end */
#define ANSWER_MAX 256
#define FIRST_MAX  128

enum close_code {
	CLOSE_BROKEN = 4400,
	CLOSE_REFUSED = 4401,
	CLOSE_REPLACED = 4403,
	CLOSE_GONE = 4404
};

struct display_relay {
	struct display_relays *all;
	struct lws *websocket, *stream; /* stream: NULL before and after */
	lws_sorted_usec_list_t more;	/* the stream has not taken all */
	struct display_seat *seat;	/* NULL: nobody knows who it is */
	struct display_filter filter;
	struct buf up;
	char answer[ANSWER_MAX]; /* to be sent, "" once it has been */
	int close;		 /* what is sent then is the end */
	char reason[120];
	struct buf last; /* what the stream still had when it ended */
	size_t down;	 /* bytes of the piece */
	uint8_t room[LWS_PRE + PIECE];
};

size_t display_relay_size(void)
{
	return sizeof(struct display_relay);
}

/* As soon as it can be written to, the websocket is closed with @code. */
static void end(struct display_relay *r, int code, const char *reason)
{
	if (r->close)
		return;
	r->close = code;
	snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1, reason);
	/* A close frame takes UTF-8 only, and this may have been cut. */
	for (char *p = r->reason; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	lws_callback_on_writable(r->websocket);
}

/* The stream's end is not waited for: it knows nothing of us from here on. */
static void drop_stream(struct display_relay *r)
{
	if (!r->stream)
		return;
	lws_sul_cancel(&r->more);
	lws_set_opaque_user_data(r->stream, NULL);
	lws_set_timeout(r->stream, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
	r->stream = NULL;
}

/* ---- who it is */

static void open_stream(struct display_relay *r)
{
	struct err e = {0};
	lws_sock_file_fd_type fd;
	int sock = r->all->connect(r->all->ctx, &e);

	if (sock >= 0 && io_set_nonblock(sock, true) < 0)
		sock = close_fd(sock);
	if (sock < 0) {
		end(r, sock == -ESTALE ? CLOSE_REFUSED : CLOSE_GONE,
			e.msg[0] ? e.msg : "no display");
		return;
	}
	fd.filefd = sock;
	r->stream = lws_adopt_descriptor_vhost(lws_get_vhost(r->websocket), LWS_ADOPT_RAW_FILE_DESC,
		fd, DISPLAY_RELAY_STREAM, NULL);
	if (!r->stream) {
		end(r, CLOSE_GONE, "no display"); /* the descriptor has been closed */
		return;
	}
	lws_set_opaque_user_data(r->stream, r);
}

/* It may be at the end of a line that is dead: nothing is kept for it until it reads that. */
static void replace(struct display_relay *r)
{
	end(r, CLOSE_REPLACED, "The session is shown in another window.");
	drop_stream(r);
	lws_set_timeout(r->websocket, PENDING_TIMEOUT_USER_OK, PATIENCE);
}

static void seat(struct display_relay *r, struct display_seat *s)
{
	if (s->guest)
		replace(s->guest);
	s->guest = r;
	r->seat = s;
	r->all->seated(r->all->ctx, r->websocket);
	snprintf(r->answer, sizeof(r->answer),
		"{\"ticket\": \"%s\", \"viewOnly\": %s, \"quality\": %u}", s->ticket,
		r->all->view_only ? "true" : "false", r->all->quality);
	lws_set_timeout(r->websocket, NO_PENDING_TIMEOUT, 0);
	lws_callback_on_writable(r->websocket);
	open_stream(r);
}

/* The first message. */
static void introduce(struct display_relay *r, const char *in, size_t len)
{
	char first[FIRST_MAX] = "";
	struct display_seat *s = NULL;

	if (len < sizeof(first) && lws_is_first_fragment(r->websocket) &&
		lws_is_final_fragment(r->websocket) && !lws_frame_is_binary(r->websocket))
		memcpy(first, in, len);
	if (strncmp(first, "ticket ", 7) == 0)
		s = display_tickets_return(&r->all->tickets, first + 7);
	else if (strncmp(first, "token ", 6) == 0)
		s = display_tickets_admit(&r->all->tickets, first + 6);
	if (!s) {
		end(r, CLOSE_REFUSED,
			"This address has been used, or is not complete: run podrun view again.");
		return;
	}
	seat(r, s);
	if (strncmp(first, "token ", 6) == 0 && r->all->admitted)
		r->all->admitted(r->all->ctx);
}

/* ---- the websocket */

static void receive(struct display_relay *r, const void *in, size_t len)
{
	int n;

	if (r->close)
		return;
	if (!r->seat) {
		introduce(r, in, len);
		return;
	}
	if (!lws_frame_is_binary(r->websocket)) {
		end(r, CLOSE_BROKEN, "this is not the display protocol");
		return;
	}
	n = display_filter_feed(&r->filter, in, len, &r->up);
	if (n < 0) {
		end(r, CLOSE_BROKEN, "this is not the display protocol");
		return;
	}
	if (r->up.len > UP_MAX)
		lws_rx_flow_control(r->websocket, 0);
	if (r->up.len && r->stream)
		lws_callback_on_writable(r->stream);
}

/* One thing at a time.  Negative: close. */
static int send_next(struct display_relay *r)
{
	uint8_t *at = r->room + LWS_PRE;
	uint8_t text[LWS_PRE + ANSWER_MAX];
	size_t n = strlen(r->answer);

	if (n) {
		memcpy(text + LWS_PRE, r->answer, n);
		r->answer[0] = '\0';
		if (lws_write(r->websocket, text + LWS_PRE, n, LWS_WRITE_TEXT) < (int)n)
			return -1;
	} else if (r->down) {
		n = r->down;
		r->down = 0;
		if (lws_write(r->websocket, at, n, LWS_WRITE_BINARY) < (int)n)
			return -1;
		if (r->stream)
			lws_rx_flow_control(r->stream, 1);
	} else if (r->last.len) {
		r->down = MIN(r->last.len, (size_t)PIECE);
		memcpy(at, r->last.data, r->down);
		buf_consume(&r->last, r->down);
	} else if (r->close) {
		lws_close_reason(r->websocket, (enum lws_close_status)r->close,
			(unsigned char *)r->reason, strlen(r->reason));
		return -1;
	}
	if (r->down || r->close)
		lws_callback_on_writable(r->websocket);
	return 0;
}

static void init(struct display_relay *r, struct lws *wsi)
{
	r->all = lws_get_protocol(wsi)->user;
	r->websocket = wsi;
	r->all->n++;
	display_filter_init(&r->filter, r->all->view_only);
	lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, PATIENCE);
}

static void fini(struct display_relay *r)
{
	if (!r->all)
		return;
	drop_stream(r);
	if (r->seat && r->seat->guest == r)
		r->seat->guest = NULL;
	display_filter_fini(&r->filter);
	buf_fini(&r->up);
	buf_fini(&r->last);
	r->all->n--;
	r->all = NULL;
}

int display_relay_websocket(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	switch (reason) {
	case LWS_CALLBACK_ESTABLISHED:
		init(user, wsi);
		return 0;
	case LWS_CALLBACK_RECEIVE:
		receive(user, in, len);
		return 0;
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return send_next(user);
	case LWS_CALLBACK_CLOSED:
		fini(user);
		return 0;
	default:
		return 0;
	}
}

/* ---- the stream */

static int read_piece(struct display_relay *r, struct lws *wsi)
{
	int fd = lws_get_socket_fd(wsi);
	ssize_t n;

	if (r->down)
		return 0; /* its turn comes */
	n = read(fd, r->room + LWS_PRE, PIECE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	r->down = (size_t)n;
	lws_rx_flow_control(wsi, 0);
	lws_callback_on_writable(r->websocket);
	return 0;
}

/* It has ended: what it said before may be why. */
static void read_last(struct display_relay *r, struct lws *wsi)
{
	ssize_t n = 1;

	while (n > 0 && r->last.len < LAST_MAX) {
		uint8_t *room = buf_reserve(&r->last, PIECE);

		n = room ? read(lws_get_socket_fd(wsi), room, PIECE) : 0;
		if (n > 0)
			r->last.len += (size_t)n;
	}
}

static void on_more(lws_sorted_usec_list_t *more)
{
	struct display_relay *r = lws_container_of(more, struct display_relay, more);

	if (r->stream)
		lws_callback_on_writable(r->stream);
}

/*
 * Who asks for it while a file is written to is not told when it can be again, for libwebsockets
 * takes that back behind the callback.
 */
static void write_soon(struct display_relay *r)
{
	lws_sul_schedule(lws_get_context(r->websocket), 0, &r->more, on_more, 1);
}

static int write_up(struct display_relay *r, struct lws *wsi)
{
	ssize_t n;

	if (!r->up.len)
		return 0;
	n = write(lws_get_socket_fd(wsi), r->up.data, r->up.len);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (n > 0)
		buf_consume(&r->up, (size_t)n);
	if (r->up.len)
		write_soon(r);
	if (r->up.len <= UP_MAX)
		lws_rx_flow_control(r->websocket, 1);
	return 0;
}

int display_relay_stream(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct display_relay *r = lws_get_opaque_user_data(wsi);

	switch (reason) {
	case LWS_CALLBACK_RAW_RX_FILE:
		return r ? read_piece(r, wsi) : -1;
	case LWS_CALLBACK_RAW_WRITEABLE_FILE:
		return r ? write_up(r, wsi) : -1;
	case LWS_CALLBACK_RAW_CLOSE_FILE:
		if (r) {
			read_last(r, wsi);
			lws_sul_cancel(&r->more);
			r->stream = NULL;
			end(r, CLOSE_GONE, "The display server has ended the connection.");
		}
		return 0;
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
		return -1; /* a websocket that asks for this protocol */
	default:
		return 0;
	}
}
