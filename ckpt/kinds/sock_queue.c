// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looking at a queue without touching it: MSG_PEEK, moved on by SO_PEEK_OFF.
 *
 * With SO_PASSCRED the kernel shows who sent what, and ends a read where the sender changes.
 * Descriptors end a read too, but bytes before theirs are glued in front; where theirs begin
 * comes out by a read that has no room for the last byte.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "ckpt/kinds/sock.h"

#define MAX_FDS	     253 /* SCM_MAX_FD of net/scm.h */
#define MAX_DATAGRAM (1u << 20)
#define PASS_RIGHTS  83 /* SO_PASSRIGHTS, 6.16 */

/* What is changed while looking, and put back. */
static const int switched[] = {SO_PASSCRED, PASS_RIGHTS};

struct looker {
	int fd, type;
	bool is_unix;
	int peek_off;
	int before[ARRAY_SIZE(switched)]; /* 0: was off, and has been switched on */
	uint8_t *room;
	size_t size;
	void *nowhere; /* a page nobody can write to */
	ckpt_sock_each each;
	void *ctx;
};

int ckpt_sock_get_int(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) < 0 ? -1 : v;
}

static void set_int(int fd, int name, int value)
{
	setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value));
}

static int prepare(struct looker *l, struct err *e)
{
	int waiting = 0, zero = 0;

	if (l->type == SOCK_STREAM && ioctl(l->fd, SIOCINQ, &waiting) < 0)
		return err_errno(e, -errno, "SIOCINQ");
	l->size = l->type == SOCK_STREAM ? (size_t)waiting + 1 : MAX_DATAGRAM;
	l->room = malloc(l->size);
	l->nowhere = mmap(NULL, PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!l->room || l->nowhere == MAP_FAILED)
		return err_errno(e, -ENOMEM, "queue of a socket");
	l->peek_off = ckpt_sock_get_int(l->fd, SOL_SOCKET, SO_PEEK_OFF);
	if (setsockopt(l->fd, SOL_SOCKET, SO_PEEK_OFF, &zero, sizeof(zero)) < 0)
		return err_errno(e, -errno, "SO_PEEK_OFF");
	for (size_t i = 0; l->is_unix && i < ARRAY_SIZE(switched); i++) {
		l->before[i] = ckpt_sock_get_int(l->fd, SOL_SOCKET, switched[i]);
		if (l->before[i] == 0)
			set_int(l->fd, switched[i], 1);
	}
	return 0;
}

static void put_back(struct looker *l)
{
	for (size_t i = 0; l->is_unix && i < ARRAY_SIZE(switched); i++)
		if (l->before[i] == 0)
			set_int(l->fd, switched[i], 0);
	set_int(l->fd, SO_PEEK_OFF, l->peek_off);
	if (l->nowhere != MAP_FAILED)
		munmap(l->nowhere, PAGE_SIZE);
	free(l->room);
}

static void take_control(struct msghdr *msg, struct ckpt_sock_message *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			m->n_fds = MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)MAX_FDS);
			memcpy(m->fds, CMSG_DATA(c), m->n_fds * sizeof(int));
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&m->cred, CMSG_DATA(c), sizeof(m->cred));
			/* A message that carries none shows process 0. */
			m->has_cred = m->cred.pid != 0;
		}
	}
}

/*
 * Of the @len bytes from @at on, of which the last buffer came with descriptors: how many were
 * before it.  The kernel copies buffer by buffer; if there is no room for the very last byte, it
 * returns what it copied before.
 */
static size_t plain_part(struct looker *l, size_t at, size_t len)
{
	struct iovec iov[] = {{l->room, len - 1}, {l->nowhere, 1}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	set_int(l->fd, SO_PEEK_OFF, (int)at);
	n = recvmsg(l->fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	set_int(l->fd, SO_PEEK_OFF, (int)(at + len));
	return n > 0 ? (size_t)n : 0;
}

static int show(struct looker *l, struct ckpt_sock_message *m, size_t at, struct err *e)
{
	size_t plain = 0;
	int r;

	if (l->type == SOCK_STREAM && m->n_fds && m->len > 1)
		plain = plain_part(l, at, m->len);
	if (plain) {
		struct ckpt_sock_message before = *m;

		before.len = plain;
		before.n_fds = 0;
		r = l->each(l->ctx, &before, e);
		if (r < 0)
			return r;
		m->data += plain;
		m->len -= plain;
	}
	return l->each(l->ctx, m, e);
}

/* One step: the number of bytes shown, -EAGAIN at the end. */
static ssize_t look(struct looker *l, size_t at, struct err *e)
{
	int fds[MAX_FDS];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fds)) + CMSG_SPACE(sizeof(struct ucred)) + 512];
	} control;
	struct sockaddr_storage from;
	struct iovec iov = {l->room, l->size};
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	struct ckpt_sock_message m = {.data = l->room, .fds = fds};
	ssize_t n = recvmsg(l->fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	ssize_t r;

	/* Of packets an error is told first. */
	if (n < 0 && errno == ECONNRESET && l->type != SOCK_STREAM)
		n = recvmsg(l->fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : err_errno(e, -errno, "MSG_PEEK");
	/* The end of a connection looks like an empty message without ancillary data. */
	if (n == 0 && (l->type == SOCK_STREAM || (l->is_unix && !msg.msg_controllen)))
		return -EAGAIN;
	m.len = (size_t)n;
	m.from = msg.msg_namelen ? (void *)&from : NULL;
	m.from_len = msg.msg_namelen;
	take_control(&msg, &m);
	if (msg.msg_flags & MSG_TRUNC)
		r = err_set(e, ERR_UNFREEZABLE, -EMSGSIZE, "a message in a queue is too long");
	else
		r = show(l, &m, at, e);
	for (size_t i = 0; i < m.n_fds; i++)
		close_fd(fds[i]);
	return r < 0 ? r : n;
}

int ckpt_sock_peek(int fd, ckpt_sock_each each, void *ctx, struct err *e)
{
	struct looker l = {
		.fd = fd,
		.type = ckpt_sock_get_int(fd, SOL_SOCKET, SO_TYPE),
		.is_unix = ckpt_sock_get_int(fd, SOL_SOCKET, SO_DOMAIN) == AF_UNIX,
		.peek_off = -1,
		.before = {-1, -1},
		.nowhere = MAP_FAILED,
		.each = each,
		.ctx = ctx,
	};
	size_t at = 0;
	ssize_t n = prepare(&l, e);

	/* Behind the end of a stream an error may wait, which is not for us. */
	while (n >= 0 && !(l.type == SOCK_STREAM && at + 1 >= l.size)) {
		n = look(&l, at, e);
		if (n > 0)
			at += (size_t)n;
	}
	put_back(&l);
	return n == -EAGAIN ? 0 : (int)MIN(n, (ssize_t)0);
}
