/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * neighbour - TCP between two sessions of one gateway.
 */
#ifndef VNET_GATEWAY_NEIGHBOUR_H
#define VNET_GATEWAY_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

struct vnet_gateway;
struct vnet_packet;

/* True if @p was for another session, and has gone there. */
bool gateway_neighbour_take(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);

/* How many connections its kernel has with neighbours. */
uint32_t gateway_neighbour_count(struct vnet_gateway *g, uint32_t session);

/*
 * The session is no more, nor are connections with it: true if that was the last reason to keep
 * another one that is suspended.
 */
bool gateway_neighbour_forget(struct vnet_gateway *g, uint32_t session);

#endif
