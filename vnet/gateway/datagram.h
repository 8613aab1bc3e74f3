/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * datagram - UDP, ICMP echo and DNS: what is done packet by packet, without the inner kernel.
 */
#ifndef VNET_GATEWAY_DATAGRAM_H
#define VNET_GATEWAY_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct gateway_fds;
struct vnet_gateway;
struct vnet_packet;
struct vnet_port;

/* How much of the arena it needs: gateway_arena_datagrams(), zeroed at the very first. */
size_t vnet_datagram_room(void);
/* Before anything else is told which descriptors are held. */
void vnet_datagram_keep(struct vnet_gateway *g, struct gateway_fds *s);
/* At a worker's start: watches what is in the arena.  g->datagrams is its own. */
int vnet_datagram_start(struct vnet_gateway *g, struct err *e);

/* Any UDP or ICMP packet of a session, its source checked. */
void vnet_datagram_from_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);
/* UDP ports outside: -EADDRINUSE, -EACCES and so on. */
int vnet_datagram_publish(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p, struct err *e);
void vnet_datagram_unpublish(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p);
/* The session has ended: nothing of it is left. */
void vnet_datagram_end_session(struct vnet_gateway *g, uint32_t session);

#endif
