/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * veth - connections whose packets the kernel carries between session and gateway.
 */
#ifndef VNET_GATEWAY_VETH_H
#define VNET_GATEWAY_VETH_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_rewrite;

/* Bytes, from which the kernel is to carry the rest. */
#define GATEWAY_VETH_MUCH (1u << 20)

/* At a worker's start, before anything is read: pairs that were are no more. */
int gateway_veth_start(struct vnet_gateway *g, struct err *e);
/* An open flow has carried something: with much of it, it is to be fast.  Called often. */
void gateway_veth_offer(struct vnet_gateway *g, uint32_t flow);
/* Its packets do not come by gw0. */
bool gateway_veth_is_fast(const struct vnet_gateway *g, uint32_t flow);
/* Before its record is free. */
void gateway_veth_flow_ends(struct vnet_gateway *g, uint32_t flow);
/* The session's client has made its end, or can't. */
void gateway_veth_made(struct vnet_gateway *g, uint32_t session, bool made);
/* The session stands still, and its client has taken everything from the pair. */
void gateway_veth_hold(struct vnet_gateway *g, uint32_t session);
/* There is no pair any more, so the session's kernel sends everything to its TUN. */
void gateway_veth_end(struct vnet_gateway *g, uint32_t session);
/* The same where the session sends nothing by it any more: the pair may stay for a moment. */
void gateway_veth_leave(struct vnet_gateway *g, uint32_t session);
/* What has passed is in the session's counts. */
void gateway_veth_count(struct vnet_gateway *g, uint32_t session);
/* How many connections go by the pair: its flows, and those to other sessions. */
uint32_t gateway_veth_flows(const struct vnet_gateway *g, uint32_t session);

/*
 * For connections to other sessions (shortcut.h).  True: the session has a pair that one more may
 * go by.  False: not now; it has been asked for what it lacks.
 */
bool gateway_veth_may(struct vnet_gateway *g, uint32_t session, uint8_t family);
/* One of its places, and then back, at the latest when g->leaves_pair is called. */
void gateway_veth_lend(struct vnet_gateway *g, uint32_t session);
void gateway_veth_take_back(struct vnet_gateway *g, uint32_t session);
/* Of the pair's end here; and what leads packets there (vnet/rewrite.h). */
uint32_t gateway_veth_index(const struct vnet_gateway *g, uint32_t session);
uint32_t gateway_veth_mark(uint32_t session);
/*
 * What the session sends from @ends->inside to @ends->outside is to go by the pair, or not any
 * more.  Who can't be told the latter has no pair then.
 */
void gateway_veth_tell(
	struct vnet_gateway *g, uint32_t session, const struct vnet_rewrite *ends, bool fast);
/* All that its client was told. */
bool gateway_veth_has_read(const struct vnet_gateway *g, uint32_t session);

#endif
