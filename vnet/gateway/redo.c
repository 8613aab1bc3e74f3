// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * No kernel lets a connection be put on a listener's queue, so one that waited there can't be
 * restored.  But nobody in the session has seen it yet, and its client need not notice: the inner
 * leg is thrown away without a packet, and a new one with the same names is made.  Through it goes,
 * from the beginning, what the client has ever sent:
 *
 *      received by the session's kernel (it said so)                  0 .. N
 *      in the old inner socket's send queue (TCP_REPAIR shows it)     A .. W
 *      in the pipe, and in the outer socket                           W ..
 *
 * A <= N is how far the session has acknowledged.
 *
 * The first two are put into a pipe in front of the third, and the pump does the rest once the
 * session has answered.
 */
#include "vnet/gateway/redo.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/endpoint.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/inbound.h"
#include "vnet/gateway/pump.h"
#include "vnet/vnat.h"

#define MOST (1u << 20) /* that a pipe holds */

/*
 * The part of TCP_INFO that is asked for, where linux/tcp.h has it (since 4.1): that excludes libc's
 * header, whose struct ends before it or behind it, according to its age.
 */
struct info {
	uint8_t before[120];
	uint64_t bytes_acked;
};

/* What the session's kernel had of the connection. */
static int read_received(int fd, struct buf *ret)
{
	uint8_t *at = buf_reserve(ret, MOST + 1);
	ssize_t n = at ? io_pread_full(fd, at, MOST + 1, 0) : -ENOMEM;

	if (n < 0)
		return (int)n;
	if (n > MOST)
		return -EFBIG;
	ret->len = (size_t)n;
	return 0;
}

/*
 * Appends what the old inner socket has sent and the session has not; the socket says nothing any
 * more.
 */
static int append_unsent(int fd, struct buf *b)
{
	const int on = 1, queue = TCP_SEND_QUEUE;
	struct info info = {0};
	socklen_t len = sizeof(info);
	uint64_t acknowledged;
	uint8_t *at;
	ssize_t n;

	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) < 0 ||
		setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)) < 0 ||
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return -errno;
	/* The SYN counts as one. */
	acknowledged = info.bytes_acked ? info.bytes_acked - 1 : 0;
	at = buf_reserve(b, MOST);
	n = at ? recv(fd, at, MOST, MSG_PEEK | MSG_DONTWAIT) : -1;
	if (!at)
		return -ENOMEM;
	if (n < 0)
		n = 0; /* an empty queue is -EAGAIN */
	if (acknowledged > b->len || acknowledged + (size_t)n < b->len || n == MOST)
		return -EPROTO;
	memmove(at, at + (b->len - acknowledged), (size_t)n - (b->len - acknowledged));
	b->len += (size_t)n - (b->len - acknowledged);
	return 0;
}

int gateway_redo_flow(struct vnet_gateway *g, uint32_t session, const struct vnet_endpoint *client,
	uint16_t port, int received, struct err *e)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	_cleanup_buf_ struct buf first = BUF_INIT;
	struct vnet_endpoint inside = client->family == AF_INET
					      ? vnet_endpoint_v4(s->address4, port)
					      : vnet_endpoint_v6(&s->address6, port);
	uint32_t flow = vnet_flow_by_session(g->vnat, session, &inside, client);
	const struct gateway_flow *f = flow == VNET_NONE ? NULL : &g->arena->flows[flow];
	int32_t pipe = -1;
	int r;

	if (!f || !f->inbound || f->state == GATEWAY_FLOW_FREE)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "no such connection");
	/* The session has never answered: it is being tried still, or again already. */
	if (f->state == GATEWAY_FLOW_SHAKING)
		return 0;
	r = read_received(received, &first);
	if (r == 0)
		r = append_unsent(f->fd[GATEWAY_INNER], &first);
	if (r == 0)
		r = pipe = gateway_pump_put_first(g, flow, first.data, first.len);
	if (r >= 0)
		r = gateway_inbound_again(g, session, client, &inside, flow, pipe);
	if (r == 0)
		return 0;
	gateway_pump_drop(g, pipe);
	if (g->arena->flows[flow].state != GATEWAY_FLOW_FREE)
		gateway_flow_reset(g, flow);
	return err_errno(e, r, "a connection that nobody had accepted");
}
