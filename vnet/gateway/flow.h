/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow - TCP connections of sessions: what outbound and inbound ones have in common.
 */
#ifndef VNET_GATEWAY_FLOW_H
#define VNET_GATEWAY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "vnet/gateway/arena.h"

struct err;
struct vnet_gateway;
struct vnet_flow;

/* Whoever made a flow is told when its first socket is connected, or has failed. */
struct gateway_flow_ops {
	void (*connected)(struct vnet_gateway *g, uint32_t flow, int error);
};

int gateway_flow_start(struct vnet_gateway *g, struct err *e);
void gateway_flow_set_ops(struct vnet_gateway *g, bool inbound, const struct gateway_flow_ops *ops);
/* At a worker's start, once all parts are there: goes on with what the arena has. */
void gateway_flow_take_up(struct vnet_gateway *g);

/* The record of a flow that the translator has made just now; its state is still FREE. */
struct gateway_flow *gateway_flow_begin(
	struct vnet_gateway *g, uint32_t flow, uint32_t session, bool inbound);
/*
 * Its socket on @side (taken) is there, and watched: until it is connected for the ops, then for
 * the pump.
 */
int gateway_flow_watch(struct vnet_gateway *g, uint32_t flow, enum gateway_side side);
/* Both sockets are connected. */
void gateway_flow_open(struct vnet_gateway *g, uint32_t flow);
/*
 * Its session has sent something: it may be read at the end of this turn, before anybody is told.
 */
void gateway_flow_poke(struct vnet_gateway *g, uint32_t flow);
/*
 * Its session has sent a RST.  A connection that the session's kernel has given up before it began
 * ends then, for no socket would ever tell.
 */
void gateway_flow_refused(struct vnet_gateway *g, uint32_t flow);
/*
 * Its session begins another connection with the same ends, so its kernel knows nothing of this one
 * any more (none takes TIME_WAIT along): it ends as soon as the outside has been told all.
 */
void gateway_flow_forgotten(struct vnet_gateway *g, uint32_t flow);
/* RST to whichever side is there. */
void gateway_flow_reset(struct vnet_gateway *g, uint32_t flow);
/* Closes what there is and forgets the record; the translator's is the caller's. */
void gateway_flow_close(struct vnet_gateway *g, uint32_t flow, bool reset);
/*
 * What can still be delivered of a session that has ended is; the rest is reset.  How many are
 * left.
 */
uint32_t gateway_flow_end_session(struct vnet_gateway *g, uint32_t session, bool now);
/*
 * It has ended, but its kernel is still there (gateway_session_has_kernel): each connection goes on
 * until that has sent its end, or knows nothing of it.
 */
void gateway_flow_finish_session(struct vnet_gateway *g, uint32_t session);
/* Its session goes away: those of its connections that are not kept alive yet are. */
void gateway_flow_keep_alive(struct vnet_gateway *g, uint32_t session);

#endif
