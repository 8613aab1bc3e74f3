// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes between two TCP sockets of the session.
 *
 *      from: send queue                             fd: receive queue
 *      [una ........................ write_seq)     [copied ........ rcv_nxt)
 *               what fd has already is in both
 *
 * The receive queue is peeked at like any other.  The send queue can be read in repair mode only
 * (TCP_REPAIR, which the owner of the network namespace may switch on), and where the one ends
 * and the other begins is a sequence number that only repair mode tells.  Nothing stops the
 * kernel from delivering meanwhile, so the send queue is read first: whatever leaves it afterwards
 * is in our copy, and the receiver's number, read last, says from where the copy counts.
 *
 * Repair mode forgets SO_REUSEADDR when it is switched off; it is set again.
 *
 * On the host's network nobody may switch repair mode on.  What has not been delivered is made to
 * be delivered, by the same means as in the next case.
 *
 * A peer that was closed while it still had bytes to deliver can't be asked for them: no descriptor
 * leads to it.  They come by themselves if there is room for them.  SO_RCVLOWAT makes the kernel
 * enlarge a receive queue, up to what net.ipv4.tcp_rmem allows, and a peek makes it tell the peer.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "ckpt/enter.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/tcp.h"
#include "ckpt/survey.h"

enum { NO_QUEUE, RECV_QUEUE, SEND_QUEUE }; /* linux/tcp.h: TCP_NO_QUEUE ... */
#define REPAIR_OFF_NO_PROBE -1
#define MAX_QUEUE	    (1u << 30)
#define ROUNDS		    100

int tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? -1 : info.tcpi_state;
}

uint64_t tcp_queue_received(int fd)
{
	int n = 0;

	return ioctl(fd, SIOCINQ, &n) < 0 || n < 0 ? 0 : (uint64_t)n;
}

/* The FIN counts as a byte. */
static int fin_of(int fd)
{
	int state = tcp_state(fd);

	return state == TCP_FIN_WAIT1 || state == TCP_CLOSING || state == TCP_LAST_ACK;
}

uint64_t tcp_queue_unsent(int from)
{
	int n = 0;

	if (from < 0 || ioctl(from, SIOCOUTQ, &n) < 0)
		return 0;
	n -= fin_of(from);
	return n > 0 ? (uint64_t)n : 0;
}

struct repair {
	int fd, reuse;
};

static int repair_on(struct repair *r, int fd, struct err *e)
{
	int one = 1;

	r->fd = -1;
	r->reuse = ckpt_sock_get_int(fd, SOL_SOCKET, SO_REUSEADDR);
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &one, sizeof(one)) < 0)
		return err_errno(e, -errno, "TCP_REPAIR");
	r->fd = fd;
	return 0;
}

static void repair_off(struct repair *r)
{
	int off = REPAIR_OFF_NO_PROBE;

	if (r->fd < 0)
		return;
	setsockopt(r->fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off));
	setsockopt(r->fd, SOL_SOCKET, SO_REUSEADDR, &r->reuse, sizeof(r->reuse));
}

/* The number behind the last byte of a queue; the queue stays chosen. */
static int queue_seq(int fd, int queue, uint32_t *ret, struct err *e)
{
	socklen_t len = sizeof(*ret);

	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)) < 0 ||
		getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, ret, &len) < 0)
		return err_errno(e, -errno, "TCP_QUEUE_SEQ");
	return 0;
}

/* Appends everything that a peek shows.  Without @expected bytes it would tell a waiting error. */
static int peek_all(int fd, size_t expected, struct buf *ret, struct err *e)
{
	size_t room = expected + 4096;
	uint8_t *p;
	ssize_t n;

	if (!expected)
		return 0;
	if (room > MAX_QUEUE)
		return err_set(e, ERR_UNFREEZABLE, -EFBIG, "too much is on its way over TCP");
	p = buf_reserve(ret, room);
	if (!p)
		return err_errno(e, -ENOMEM, "queue of a socket");
	n = recv(fd, p, room, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0)
		ret->len += (size_t)n;
	if (n < 0 && errno != EAGAIN)
		return err_errno(e, -errno, "cannot look into a TCP queue");
	return 0;
}

/* The send queue of @from, and the number behind its last byte. */
static int read_sent(int from, struct buf *ret, uint32_t *ret_end, struct err *e)
{
	struct repair repair;
	int none = NO_QUEUE, r = repair_on(&repair, from, e);

	if (r >= 0)
		r = queue_seq(from, SEND_QUEUE, ret_end, e);
	if (r >= 0)
		r = peek_all(from, tcp_queue_unsent(from), ret, e);
	*ret_end -= (uint32_t)fin_of(from);
	if (repair.fd >= 0)
		setsockopt(from, IPPROTO_TCP, TCP_REPAIR_QUEUE, &none, sizeof(none));
	repair_off(&repair);
	return r;
}

/* The receive queue of @fd, and the number of the next byte it expects; both at one moment. */
static int read_received(int fd, struct buf *ret, uint32_t *ret_next, struct err *e)
{
	size_t start = ret->len;
	struct repair repair;
	int r = repair_on(&repair, fd, e);

	for (int i = 0; r >= 0; i++) {
		uint32_t before;

		r = queue_seq(fd, RECV_QUEUE, &before, e);
		if (r >= 0)
			r = peek_all(fd, tcp_queue_received(fd), ret, e);
		if (r >= 0)
			r = queue_seq(fd, RECV_QUEUE, ret_next, e);
		if (r < 0 || before == *ret_next)
			break;
		if (i == ROUNDS)
			r = err_set(
				e, ERR_UNFREEZABLE, -EAGAIN, "a TCP queue does not come to rest");
		ret->len = start;
	}
	repair_off(&repair);
	return r;
}

int tcp_queue_read(int fd, int from, struct buf *ret, struct err *e)
{
	int peek_off = ckpt_sock_get_int(fd, SOL_SOCKET, SO_PEEK_OFF), none = -1;
	_cleanup_buf_ struct buf sent = BUF_INIT;
	uint32_t end = 0, next = 0;
	int32_t missing;
	int r;

	if (peek_off >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	if (!tcp_queue_unsent(from)) {
		r = peek_all(fd, tcp_queue_received(fd), ret, e);
	} else {
		r = read_sent(from, &sent, &end, e);
		if (r >= 0)
			r = read_received(fd, ret, &next, e);
	}
	if (peek_off >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &peek_off, sizeof(peek_off));
	if (r < 0)
		return r;
	missing = (int32_t)(end - next);
	if (missing > 0 && (size_t)missing > sent.len)
		return err_set(e, ERR_FAILED, -EPROTO, "TCP queues do not fit together");
	if (missing > 0)
		buf_put(ret, sent.data + sent.len - missing, (size_t)missing);
	return buf_error(ret);
}

/* ---- room for what a peer still has ------------------------------------------------------------- */

void tcp_queue_invite(int fd, uint64_t bytes)
{
	int before = ckpt_sock_get_int(fd, SOL_SOCKET, SO_RCVLOWAT);
	int mark = (int)(bytes + tcp_queue_received(fd));
	char byte;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
	recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, sizeof(before));
}

struct room {
	int proc, fd;
	uint64_t bytes;
};

/* Inside: tcp_rmem is the session network's own. */
static int make_room(int sock, void *ctx, struct err *e)
{
	static const char name[] = "sys/net/ipv4/tcp_rmem";
	const struct room *room = ctx;
	unsigned long low, normal, most, wanted = 4 * room->bytes;
	_cleanup_buf_ struct buf text = BUF_INIT;
	char more[96];
	int r = io_read_file(room->proc, name, 256, &text);

	if (r < 0 || !buf_cstr(&text) ||
		sscanf(buf_cstr(&text), "%lu %lu %lu", &low, &normal, &most) != 3)
		return err_errno(e, r < 0 ? r : -EINVAL, "/proc/%s", name);
	snprintf(more, sizeof(more), "%lu %lu %lu", low, normal, MAX(most, wanted));
	io_write_str(room->proc, name, more);
	tcp_queue_invite(room->fd, room->bytes);
	io_write_str(room->proc, name, buf_cstr(&text));
	return 0;
}

int tcp_queue_deliver(const struct ckpt_dump *d, int fd, int from, struct err *e)
{
	int r = 0;

	for (int i = 0; i < ROUNDS && r >= 0 && tcp_queue_unsent(from); i++) {
		r = tcp_queue_make_room(d, fd, tcp_queue_unsent(from), e);
		poll(NULL, 0, 1);
	}
	return r;
}

int tcp_queue_make_room(const struct ckpt_dump *d, int fd, uint64_t bytes, struct err *e)
{
	struct room room = {.proc = d->host_proc, .fd = fd, .bytes = bytes};
	struct buf none = BUF_INIT;

	if (bytes > MAX_QUEUE)
		return 0;
	if (d->world->ns_net < 0) {
		tcp_queue_invite(fd, bytes);
		return 0;
	}
	return ckpt_enter_read(d->world, CLONE_NEWNET, make_room, &room, 0, &none, e);
}
