/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outbound - connections that a session makes.
 */
#ifndef VNET_GATEWAY_OUTBOUND_H
#define VNET_GATEWAY_OUTBOUND_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_packet;

int gateway_outbound_start(struct vnet_gateway *g, struct err *e);
/* The SYN of a connection that is not known. */
void gateway_outbound_syn(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);
/* The SYN of one that is held has come again: it may have been waited for. */
void gateway_outbound_again(struct vnet_gateway *g, uint32_t flow);
/*
 * The session has acknowledged something of a flow: if that is what its handshake waits for, the
 * gate is looked at in this turn.
 */
void gateway_outbound_shaken(struct vnet_gateway *g, uint32_t flow);
/* The session, which stood still and has not moved, goes on. */
void gateway_outbound_go(struct vnet_gateway *g, uint32_t session);
/*
 * It does so in another kernel, as far as anybody knows: what of its connections is being begun
 * is `anew` until it sends something.
 */
void gateway_outbound_came_back(struct vnet_gateway *g, uint32_t session);
/* The first that it has sent of such a flow, which is being passed on. */
void gateway_outbound_begins_anew(
	struct vnet_gateway *g, uint32_t flow, const struct vnet_packet *p);
/* A descriptor that nobody holds: taken if it is a connection that the gate had accepted. */
bool gateway_outbound_adopt(struct vnet_gateway *g, int fd);

#endif
