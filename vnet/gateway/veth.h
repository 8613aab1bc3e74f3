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

/* At a worker's start, before anything is read: pairs that were are no more. */
int gateway_veth_start(struct vnet_gateway *g, struct err *e);
/* An open flow has carried something: with much of it, it is to be fast.  Called often. */
void gateway_veth_offer(struct vnet_gateway *g, uint32_t flow);
/* Before its record is free. */
void gateway_veth_flow_ends(struct vnet_gateway *g, uint32_t flow);
/* The session's client has made its end, or can't. */
void gateway_veth_made(struct vnet_gateway *g, uint32_t session, bool made);
/* The session stands still, and its client has taken everything from the pair. */
void gateway_veth_hold(struct vnet_gateway *g, uint32_t session);
/* There is no pair any more, so the session's kernel sends everything to its TUN. */
void gateway_veth_end(struct vnet_gateway *g, uint32_t session);
/* What has passed is in the session's counts. */
void gateway_veth_count(struct vnet_gateway *g, uint32_t session);
/* How many of its flows go by the pair. */
uint32_t gateway_veth_flows(const struct vnet_gateway *g, uint32_t session);

#endif
