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
#include "ckpt/kinds/tcp_repair.h"
#include "ckpt/survey/survey.h"

#define MAX_QUEUE (1u << 30)
#define ROUNDS	  100

uint64_t tcp_queue_received(int fd)
{
	int n = 0;

	return ioctl(fd, SIOCINQ, &n) < 0 || n < 0 ? 0 : (uint64_t)n;
}

/* The FIN counts as a byte. */
static int fin_of(int fd)
{
	int state = tcp_repair_state(fd);

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

/* The send queue of @from, and the number behind its last byte. */
static int read_sent(int from, struct buf *ret, uint32_t *ret_end, struct err *e)
{
	struct tcp_repair repair;
	int none = TCP_NO_QUEUE, r = tcp_repair_on(&repair, from, e);

	if (r >= 0)
		r = tcp_repair_seq(from, TCP_SEND_QUEUE, ret_end, e);
	if (r >= 0)
		r = tcp_repair_peek(from, tcp_queue_unsent(from), ret, e);
	*ret_end -= (uint32_t)fin_of(from);
	if (repair.fd >= 0)
		setsockopt(from, IPPROTO_TCP, TCP_REPAIR_QUEUE, &none, sizeof(none));
	tcp_repair_off(&repair);
	return r;
}

/* The receive queue of @fd, and the number of the next byte it expects; both at one moment. */
static int read_received(int fd, struct buf *ret, uint32_t *ret_next, struct err *e)
{
	size_t start = ret->len;
	struct tcp_repair repair;
	int r = tcp_repair_on(&repair, fd, e);

	for (int i = 0; r >= 0; i++) {
		uint32_t before;

		r = tcp_repair_seq(fd, TCP_RECV_QUEUE, &before, e);
		if (r >= 0)
			r = tcp_repair_peek(fd, tcp_queue_received(fd), ret, e);
		if (r >= 0)
			r = tcp_repair_seq(fd, TCP_RECV_QUEUE, ret_next, e);
		if (r < 0 || before == *ret_next)
			break;
		if (i == ROUNDS)
			r = err_set(
				e, ERR_UNFREEZABLE, -EAGAIN, "a TCP queue does not come to rest");
		ret->len = start;
	}
	tcp_repair_off(&repair);
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
		r = tcp_repair_peek(fd, tcp_queue_received(fd), ret, e);
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

/* ---- room for what a peer still has
 * ------------------------------------------------------------- */

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
