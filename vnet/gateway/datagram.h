/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * datagram - UDP, ICMP echo and DNS in the gateway: vnet/datagram/ with this gateway's sessions
 * and loop.
 */
#ifndef VNET_GATEWAY_DATAGRAM_H
#define VNET_GATEWAY_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct gateway_arena;
struct gateway_fds;
struct vnet_endpoint;
struct vnet_gateway;
struct vnet_packet;
struct vnet_port;

/* How much of the arena it needs: gateway_arena_datagrams(), zeroed at the very first. */
size_t gateway_datagram_room(void);
/* Which descriptors are held, before anything else is done with them. */
void gateway_datagram_keep(struct gateway_arena *a, struct gateway_fds *s);
/* At a worker's start, behind the translator's: watches what is in the arena. */
int gateway_datagram_start(struct vnet_gateway *g, struct err *e);

/* Any UDP or ICMP packet of a session, its source checked. */
void gateway_datagram_from_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);
/* There are no more for now: what is gathered goes out. */
void gateway_datagram_flush(struct vnet_gateway *g);
/* The session takes packets again. */
void gateway_datagram_go(struct vnet_gateway *g, uint32_t session);
/* The session has ended: nothing of it is left. */
void gateway_datagram_end_session(struct vnet_gateway *g, uint32_t session);

/* How many of its ports are in a conversation: what a suspended session is kept for. */
uint32_t gateway_datagram_count(struct vnet_gateway *g, uint32_t session);

/*
 * The host's name servers, for TCP: the first with *at 0, the next with what *at is then; false:
 * there are no more.
 */
bool gateway_datagram_resolver(struct vnet_gateway *g, unsigned *at, struct vnet_endpoint *ret);

/* UDP ports outside: -EADDRINUSE, -EACCES and so on. */
int gateway_datagram_publish(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p);
void gateway_datagram_unpublish(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p);

#endif
