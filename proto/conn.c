// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * conn - one end of a control connection: messages, with descriptors, over a stream socket.
 *
 * Theory of operation
 *
 * A message is a 32-bit little-endian length and so many bytes.  Its descriptors are sent with its
 * first byte.  The kernel may hand out the end of one message and the beginning of the next in one
 * recvmsg, and descriptors with either; so a read never goes beyond the present message - first
 * four bytes, then the body - and what comes with the first byte can only be this message's.
 * Descriptors anywhere else are nonsense, as is a length above the limit.
 *
 * What the socket does not take at once waits in a queue, its descriptors duplicated; the queue
 * is bounded, so a peer that never reads costs no more than MAX_QUEUED, or one message.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"

#define LENGTH	   4u
#define CHUNK	   (64u << 10) /* a length is believed as far as bytes come */
#define MAX_QUEUED (8u << 20)

struct outgoing {
	struct outgoing *next;
	uint8_t *bytes; /* length and body */
	size_t len, sent;
	int fds[IO_MAX_FDS];
	size_t n_fds;
};

struct proto_conn {
	int sock;
	int dead; /* negative errno once the connection is of no more use */
	int mute; /* the same for sending only */

	size_t max;    /* of a message that is received */
	struct buf in; /* length and body, as far as they have come */
	bool given;    /* the message in `in` was returned: the next call begins anew */
	int fds[IO_MAX_FDS];
	size_t n_fds;

	struct outgoing *first, **last;
	size_t queued;
};

static void close_all(int *fds, size_t *n)
{
	while (*n)
		close(fds[--*n]);
}

static void outgoing_free(struct outgoing *m)
{
	close_all(m->fds, &m->n_fds);
	free(m->bytes);
	free(m);
}

static void forget_outgoing(struct proto_conn *c)
{
	while (c->first) {
		struct outgoing *m = c->first;

		c->first = m->next;
		outgoing_free(m);
	}
	c->last = &c->first;
	c->queued = 0;
}

int proto_conn_new(struct proto_conn **ret, int sock, struct err *e)
{
	struct proto_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		close(sock);
		return err_errno(e, -ENOMEM, "connection");
	}
	c->sock = sock;
	c->max = PROTO_MAX_CONTROL;
	c->last = &c->first;
	*ret = c;
	return 0;
}

void proto_conn_free(struct proto_conn *c)
{
	if (!c)
		return;
	forget_outgoing(c);
	close_all(c->fds, &c->n_fds);
	buf_fini(&c->in);
	close_fd(c->sock);
	free(c);
}

int proto_conn_fd(const struct proto_conn *c)
{
	return c->sock;
}

void proto_conn_limit(struct proto_conn *c, size_t max)
{
	c->max = max;
}

static int die(struct proto_conn *c, int error, const char *what, struct err *e)
{
	c->dead = error;
	if (error == -EBADMSG)
		return err_set(e, ERR_FAILED, error, "%s", what);
	return err_errno(e, error, "%s", what);
}

/* ---- sending ------------------------------------------------------------------------------- */

static struct outgoing *outgoing_new(const void *body, size_t len, const int *fds, size_t n_fds)
{
	struct outgoing *m = calloc(1, sizeof(*m));
	uint32_t length = htole32((uint32_t)len);

	if (!m)
		return NULL;
	m->len = LENGTH + len;
	m->bytes = malloc(m->len);
	if (m->bytes) {
		memcpy(m->bytes, &length, LENGTH);
		if (len)
			memcpy(m->bytes + LENGTH, body, len);
	}
	for (; m->bytes && m->n_fds < n_fds; m->n_fds++) {
		m->fds[m->n_fds] = fcntl(fds[m->n_fds], F_DUPFD_CLOEXEC, 0);
		if (m->fds[m->n_fds] < 0)
			break;
	}
	if (!m->bytes || m->n_fds < n_fds) {
		int error = m->bytes ? errno : ENOMEM;

		outgoing_free(m);
		errno = error;
		return NULL;
	}
	return m;
}

/* One sendmsg: how many bytes were taken, or a negative errno. */
static ssize_t send_some(int sock, struct outgoing *m)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * IO_MAX_FDS)];
	} control = {0};
	struct iovec iov = {m->bytes + m->sent, m->len - m->sent};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (m->n_fds) {
		struct cmsghdr *h;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
		memcpy(CMSG_DATA(h), m->fds, sizeof(int) * m->n_fds);
	}
	do
		r = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/*
 * What the other side said before it went away can still be heard.  What it was to get is closed: who
 * waits for the other end of a pipe learns that nobody has this one.
 */
static int fall_mute(struct proto_conn *c, int error, struct err *e)
{
	c->mute = error;
	forget_outgoing(c);
	return err_errno(e, error, "cannot send a message");
}

int proto_conn_flush(struct proto_conn *c, struct err *e)
{
	if (c->dead || c->mute)
		return err_errno(e, c->dead ? c->dead : c->mute, "connection");
	while (c->first) {
		struct outgoing *m = c->first;
		ssize_t r = send_some(c->sock, m);

		if (r == -EAGAIN)
			return 1;
		if (r < 0)
			return fall_mute(c, (int)r, e);
		close_all(m->fds, &m->n_fds);
		m->sent += (size_t)r;
		c->queued -= (size_t)r;
		if (m->sent < m->len)
			continue;
		c->first = m->next;
		if (!c->first)
			c->last = &c->first;
		outgoing_free(m);
	}
	return 0;
}

int proto_conn_send(struct proto_conn *c, const void *body, size_t len, const int *fds,
	size_t n_fds, struct err *e)
{
	struct outgoing *m;

	if (c->dead || c->mute)
		return err_errno(e, c->dead ? c->dead : c->mute, "connection");
	if (len > PROTO_MAX_CONTROL || n_fds > IO_MAX_FDS)
		return err_set(e, ERR_FAILED, -EMSGSIZE,
			"a message of %zu bytes with %zu descriptors is above the limit", len,
			n_fds);
	if (c->first && c->queued + LENGTH + len > MAX_QUEUED)
		return err_set(e, ERR_FAILED, -ENOBUFS, "the other side does not read");
	m = outgoing_new(body, len, fds, n_fds);
	if (!m)
		return err_errno(e, -errno, "cannot send a message");
	*c->last = m;
	c->last = &m->next;
	c->queued += m->len;
	return proto_conn_flush(c, e);
}

/* ---- receiving ----------------------------------------------------------------------------- */

/* The length of the message in `in`, once its four bytes have come. */
static size_t length_of(const struct proto_conn *c)
{
	struct cursor at = cursor_of(c->in.data, LENGTH);

	return cursor_u32(&at);
}

/* How many bytes are still missing, as far as is known. */
static size_t missing(const struct proto_conn *c)
{
	if (c->in.len < LENGTH)
		return LENGTH - c->in.len;
	return LENGTH + length_of(c) - c->in.len;
}

static int receive_some(struct proto_conn *c, struct err *e)
{
	bool start = c->in.len == 0;
	size_t n = MIN(missing(c), (size_t)CHUNK), n_fds;
	int fds[IO_MAX_FDS];
	uint8_t *p = buf_reserve(&c->in, n);
	ssize_t r;

	if (!p)
		return die(c, -ENOMEM, "cannot receive a message", e);
	r = io_recv_fds(c->sock, p, n, fds, IO_MAX_FDS, &n_fds);
	if (r == -EAGAIN)
		return 0;
	if (r == -EMSGSIZE)
		return die(c, -EBADMSG, "a message came with too many descriptors", e);
	if (r < 0)
		return die(c, (int)r, "cannot receive a message", e);
	if (r == 0) {
		close_all(fds, &n_fds);
		return die(c, -ECONNRESET, start ? "connection" : "in the middle of a message", e);
	}
	if (n_fds && !start) {
		close_all(fds, &n_fds);
		return die(c, -EBADMSG, "descriptors came in the middle of a message", e);
	}
	if (start) {
		memcpy(c->fds, fds, n_fds * sizeof(fds[0]));
		c->n_fds = n_fds;
	}
	c->in.len += (size_t)r;
	if (c->in.len >= LENGTH && length_of(c) > c->max)
		return die(c, -EBADMSG, "a message is longer than the limit", e);
	return 1;
}

int proto_conn_recv(struct proto_conn *c, const void **ret_body, size_t *ret_len, int *ret_fds,
	size_t max_fds, size_t *ret_n_fds, struct err *e)
{
	if (c->dead)
		return die(c, c->dead, "connection", e);
	if (c->given)
		buf_clear(&c->in);
	c->given = false;
	while (missing(c)) {
		int r = receive_some(c, e);

		if (r <= 0)
			return r;
	}
	if (c->n_fds > max_fds)
		return die(c, -EBADMSG, "a message came with too many descriptors", e);
	if (c->n_fds)
		memcpy(ret_fds, c->fds, c->n_fds * sizeof(ret_fds[0]));
	if (ret_n_fds)
		*ret_n_fds = c->n_fds;
	c->n_fds = 0;
	c->given = true;
	*ret_body = c->in.data + LENGTH;
	*ret_len = c->in.len - LENGTH;
	return 1;
}
