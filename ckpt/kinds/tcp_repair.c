// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in tcp_repair.h. */
#include "ckpt/kinds/tcp_repair.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/kinds/sock.h"

#define MAX_QUEUE (1u << 30)

int tcp_repair_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? -1 : info.tcpi_state;
}

int tcp_repair_on(struct tcp_repair *r, int fd, struct err *e)
{
	int one = TCP_REPAIR_ON;

	r->fd = -1;
	r->reuse = ckpt_sock_get_int(fd, SOL_SOCKET, SO_REUSEADDR);
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &one, sizeof(one)) < 0)
		return err_errno(e, -errno, "TCP_REPAIR");
	r->fd = fd;
	return 0;
}

void tcp_repair_off(struct tcp_repair *r)
{
	int off = TCP_REPAIR_OFF_NO_WP;

	if (r->fd < 0)
		return;
	setsockopt(r->fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off));
	setsockopt(r->fd, SOL_SOCKET, SO_REUSEADDR, &r->reuse, sizeof(r->reuse));
	r->fd = -1;
}

int tcp_repair_seq_again(int fd, uint32_t *ret, struct err *e)
{
	socklen_t len = sizeof(*ret);

	if (getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, ret, &len) < 0)
		return err_errno(e, -errno, "TCP_QUEUE_SEQ");
	return 0;
}

int tcp_repair_seq(int fd, int queue, uint32_t *ret, struct err *e)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)) < 0)
		return err_errno(e, -errno, "TCP_REPAIR_QUEUE");
	return tcp_repair_seq_again(fd, ret, e);
}

int tcp_repair_peek(int fd, size_t expected, struct buf *ret, struct err *e)
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
