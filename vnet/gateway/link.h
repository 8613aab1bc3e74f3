/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link - packets out of the TUNs: what a session sends, and what the inner kernel sends to
 * sessions.
 */
#ifndef VNET_GATEWAY_LINK_H
#define VNET_GATEWAY_LINK_H

#include <stdint.h>

struct err;
struct vnet_gateway;

/* Watches gw0. */
int gateway_link_start(struct vnet_gateway *g, struct err *e);
/* A session's TUN is read from now on, or not any more. */
int gateway_link_read(struct vnet_gateway *g, uint32_t session, struct err *e);
void gateway_link_stop(struct vnet_gateway *g, uint32_t session);
/* Its programs stand still: what they have sent already, which goes out, and no more. */
void gateway_link_hold(struct vnet_gateway *g, uint32_t session);
/* Its programs have ended: what their last packets in the TUN say, and it is read from now on. */
void gateway_link_drain(struct vnet_gateway *g, uint32_t session);

#endif
