// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * An inner socket is bound to an alias and connects to the session's physical address; the
 * translator shows the session its client instead of the alias, with the client's own address and
 * port.
 *
 * Not every client can be shown so: the host's loopback would mean the session's own, and a
 * link-local address leads nowhere from there.  Those come from the gateway's address, and so does
 * a client of a family that the session has no address of, or refuses: many a server listens by
 * IPv4 alone, and to its client the port is open for both (`localhost` is ::1 first).
 *
 * What the client has sent waits in its socket until the session has answered.  A session that
 * refuses has the client reset.
 */
#include "vnet/gateway/inbound.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/inner.h"
#include "vnet/vnat.h"

#define TRIES 64 /* for a port of the gateway's address that the client does not have already */

/* ---- names ------------------------------------------------------------------------------- */

/* The session's end, of the client's family if it has that. */
static bool inside_of(
	const struct gateway_session *s, uint8_t family, uint16_t port, struct vnet_endpoint *ret)
{
	bool v4 = s->address4.s_addr != 0, v6 = !IN6_IS_ADDR_UNSPECIFIED(&s->address6);

	if (v4 && (family == AF_INET || !v6))
		*ret = vnet_endpoint_v4(s->address4, port);
	else
		*ret = vnet_endpoint_v6(&s->address6, port);
	return v4 || v6;
}

static bool can_be_shown(const struct gateway_session *s, const struct vnet_endpoint *client,
	const struct vnet_endpoint *inside)
{
	if (client->family != inside->family || vnet_endpoint_is_loopback(client) ||
		vnet_endpoint_same_address(client, inside))
		return false;
	return client->family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&client->v6);
}

/* The gateway's address of @family; its port is still to be chosen. */
static struct vnet_endpoint gateway_of(const struct gateway_session *s, uint8_t family)
{
	if (family == AF_INET)
		return vnet_endpoint_v4(s->gateway4, 0);
	return vnet_endpoint_v6(&s->gateway6, 0);
}

static struct vnet_endpoint some_alias(uint8_t family)
{
	struct vnet_endpoint ep = {.family = family};
	uint32_t random = 0;

	getrandom(&random, sizeof(random), 0);
	if (family == AF_INET) {
		ep.v4.s_addr = htonl(VNET_ALIAS_V4 | (random & (~0u >> VNET_ALIAS_V4_BITS)));
		return ep;
	}
	inet_pton(AF_INET6, VNET_ALIAS_V6, &ep.v6);
	memcpy(&ep.v6.s6_addr[12], &random, sizeof(random));
	return ep;
}

/* As the inner sockets want it, which are of IPv6 for both families. */
static socklen_t inner_address(
	const struct gateway_arena *a, const struct vnet_endpoint *ep, struct sockaddr_storage *ret)
{
	struct vnet_endpoint mapped = {.family = AF_INET6, .port = ep->port};

	if (!a->v6 || ep->family == AF_INET6)
		return vnet_endpoint_to_sockaddr(ep, ret);
	mapped.v6.s6_addr[10] = mapped.v6.s6_addr[11] = 0xff;
	memcpy(&mapped.v6.s6_addr[12], &ep->v4, 4);
	return vnet_endpoint_to_sockaddr(&mapped, ret);
}

/* ---- the inner leg ----------------------------------------------------------------------- */

/* An inner socket with a name: its descriptor and *ret_far. */
static int named_socket(struct vnet_gateway *g, uint8_t family, struct vnet_endpoint *ret_far)
{
	struct vnet_endpoint alias = some_alias(family);
	_cleanup_close_ int fd = gateway_inner_socket(g);
	struct sockaddr_storage sa;
	socklen_t len = inner_address(g->arena, &alias, &sa);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&sa, len) < 0)
		return -errno;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, ret_far) < 0)
		return -EIO;
	return take_fd(&fd);
}

/* The translator's record of the flow, under the client's name or the gateway's. */
static int make_flow(struct vnet_gateway *g, uint32_t session, const struct vnet_endpoint *client,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *far,
	struct vnet_endpoint *ret_near, uint32_t *ret)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	struct vnet_endpoint shown = *client;
	int r = -EADDRINUSE;

	if (can_be_shown(s, client, inside))
		r = vnet_flow_inbound(g->vnat, session, &shown, inside, far, ret_near, ret);
	for (unsigned i = 0; r == -EADDRINUSE && i < TRIES; i++) {
		shown = gateway_of(s, inside->family);
		shown.port = (uint16_t)(1024 + (client->port - 1024u + i * 7919u) % 64512u);
		r = vnet_flow_inbound(g->vnat, session, &shown, inside, far, ret_near, ret);
	}
	return r;
}

static int connect_inside(struct vnet_gateway *g, uint32_t flow, const struct vnet_endpoint *near)
{
	const struct gateway_flow *f = &g->arena->flows[flow];
	struct sockaddr_storage sa;
	socklen_t len = inner_address(g->arena, near, &sa);

	if (connect(f->fd[GATEWAY_INNER], (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS)
		return -errno;
	return gateway_flow_watch(g, flow, GATEWAY_INNER);
}

static void refuse(int fd)
{
	const struct linger hard = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

/* @client is connected with @inside, from the beginning; @fd is taken on success. */
static int begin(struct vnet_gateway *g, uint32_t session, int fd,
	const struct vnet_endpoint *client, const struct vnet_endpoint *inside)
{
	struct vnet_endpoint far, near;
	_cleanup_close_ int inner = named_socket(g, inside->family, &far);
	struct gateway_flow *f;
	uint32_t flow;
	int r = inner;

	if (r >= 0)
		r = make_flow(g, session, client, inside, &far, &near, &flow);
	if (r < 0)
		return r;
	f = gateway_flow_begin(g, flow, session, true);
	f->fd[GATEWAY_INNER] = take_fd(&inner);
	f->fd[GATEWAY_OUTER] = fd;
	f->state = GATEWAY_FLOW_SHAKING;
	if (connect_inside(g, flow, &near) < 0 || gateway_flow_watch(g, flow, GATEWAY_OUTER) < 0)
		gateway_flow_reset(g, flow);
	return 0;
}

void gateway_inbound_client(struct vnet_gateway *g, uint32_t session, uint16_t port, int fd,
	const struct vnet_endpoint *client)
{
	struct gateway_session *s = &g->arena->sessions[session];
	struct vnet_endpoint inside;
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (vnet_session_get(g->vnat, session)->n_flows >= s->max_flows ||
		!inside_of(s, client->family, port, &inside) ||
		begin(g, session, fd, client, &inside) < 0) {
		s->counts.refused++;
		refuse(fd);
	}
}

/* The session has refused a client of the one family: true if it is asked by the other now. */
static bool try_other_family(struct vnet_gateway *g, uint32_t flow)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	const struct vnet_endpoint before = vnet_flow_get(g->vnat, flow)->inside;
	uint8_t other = before.family == AF_INET ? AF_INET6 : AF_INET;
	struct vnet_endpoint client, inside;
	int outer = f->fd[GATEWAY_OUTER];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (getpeername(outer, (struct sockaddr *)&sa, &len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, &client) < 0 ||
		client.family != before.family || f->pipe[GATEWAY_OUTER] >= 0 ||
		!inside_of(&g->arena->sessions[f->session], other, before.port, &inside) ||
		inside.family != other)
		return false;
	gateway_loop_remove(g->loop, outer);
	f->fd[GATEWAY_OUTER] = -1;
	if (begin(g, f->session, outer, &client, &inside) < 0)
		refuse(outer);
	gateway_flow_reset(g, flow);
	return true;
}

int gateway_inbound_again(struct vnet_gateway *g, uint32_t session,
	const struct vnet_endpoint *client, const struct vnet_endpoint *inside, uint32_t old,
	int32_t pipe)
{
	struct gateway_flow *before = &g->arena->flows[old], *f;
	int outer = before->fd[GATEWAY_OUTER];
	struct vnet_endpoint far, near;
	_cleanup_close_ int inner = named_socket(g, inside->family, &far);
	uint32_t flow;
	int r;

	if (inner < 0)
		return inner;
	vnet_flow_drop(g->vnat, old);
	r = vnet_flow_inbound(g->vnat, session, client, inside, &far, &near, &flow);
	if (r < 0)
		return r;
	gateway_loop_remove(g->loop, outer);
	before->fd[GATEWAY_OUTER] = -1;
	gateway_flow_close(g, old, false); /* silently: the inner socket is in repair mode */
	f = gateway_flow_begin(g, flow, session, true);
	f->fd[GATEWAY_INNER] = take_fd(&inner);
	f->fd[GATEWAY_OUTER] = outer;
	f->pipe[GATEWAY_OUTER] = pipe;
	g->arena->pipes[pipe].flow = (int32_t)flow;
	f->state = GATEWAY_FLOW_SHAKING;
	if (connect_inside(g, flow, &near) < 0 || gateway_flow_watch(g, flow, GATEWAY_OUTER) < 0)
		gateway_flow_reset(g, flow);
	return 0;
}

static void on_connected(struct vnet_gateway *g, uint32_t flow, int error)
{
	if (!error)
		gateway_flow_open(g, flow);
	else if (error != -ECONNREFUSED || !try_other_family(g, flow))
		gateway_flow_reset(g, flow);
}

int gateway_inbound_start(struct vnet_gateway *g, struct err *e)
{
	static const struct gateway_flow_ops ops = {on_connected};

	gateway_flow_set_ops(g, true, &ops);
	return 0;
}
