/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gateway - one user's way from sessions to the network: `podrun gateway --serve`.
 *
 *      session netns         this process, in the host's netns                        outside
 *      app - TCP - TUN <==>  link - vnat - gw0 [inner netns: kernel TCP] - splice --- sockets
 *                              '- datagrams (UDP, ICMP echo, DNS) ------------------- sockets
 *
 *      keeper    maps the arena, starts the worker and starts it again
 *      worker    the loop; what it opens it has in common with the keeper (CLONE_FILES)
 *      inner     the inner network namespace, and the one thread that makes sockets in it
 *      control   clients and their requests          session    who is attached
 *      link      packets out of TUNs                 wire       and into them
 *      veth      the kernel's own way for those with much to carry
 *      shortcut  and from one session to another      busy      who of those has carried much
 *      flow      TCP connections                     pump       moves their bytes
 *      outbound  those a session makes               inbound    those made to published ports
 *      publish   ports outside                       listening  which ports a session listens on
 *      redo      inbound ones nobody had accepted    neighbour  from one session to another
 *      datagram  UDP, ICMP, DNS                      capture    sessions whose packets are recorded
 *      remote    sessions whose way out is a tunnel       removal    interfaces that go, by a thread
 *      gather    packets that what comes behind them makes needless
 *      dynamic   names in DNS that follow a session
 *
 * Who connects has the same uid (the socket's directory is 0700), but packets are a session's and
 * trusted in nothing.
 */
#ifndef VNET_GATEWAY_GATEWAY_H
#define VNET_GATEWAY_GATEWAY_H

#include <stddef.h>
#include <stdint.h>

#include "vnet/gateway/arena.h"
#include "vnet/gateway/loop.h"

struct err;
struct vnet_packet;
struct vnet_vnat;

/* What all parts of a worker are given.  What only one part needs is that part's own. */
struct vnet_gateway {
	struct gateway_loop *loop;
	struct gateway_arena *arena;
	struct vnet_vnat *vnat;
	struct gateway_inner *inner;
	struct gateway_wire *wire;
	struct gateway_gather *gather;
	struct gateway_link *link;
	struct gateway_veths *veths;
	struct gateway_shortcuts *shortcuts;
	struct gateway_pump *pump;
	struct gateway_flows *flows;
	struct gateway_outbound *outbound;
	struct gateway_control *control;
	struct gateway_remotes *remotes;
	struct gateway_removal *removal; /* NULL: nothing was to be removed yet */
	struct gateway_sessions *sessions;
	struct gateway_publisher *publisher;
	struct gateway_captures *captures;
	struct gateway_datagrams *datagrams;
	struct gateway_dynamic *dynamic;
	/* Told from below: a flow has ended, a session is no more. */
	void (*flow_ended)(struct vnet_gateway *g, uint32_t session);
	void (*maybe_end)(struct vnet_gateway *g);
	void (*leaves_pair)(struct vnet_gateway *g, uint32_t session); /* nothing is to go there */
	void (*inner_sends)(struct vnet_gateway *g);		       /* gw0 will have packets */
	/* What takes its packets has no room: they wait until it has (gateway_wire_flush). */
	void (*session_is_full)(struct vnet_gateway *g, uint32_t session);
};

/*
 * Writes @p, whose addresses are as the session is to see them, to the session's TUN; holds a copy
 * while it is frozen, as far as there is room.  @session: index into arena->sessions.
 */
void vnet_gateway_to_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);

#endif
