/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire - packets into TUNs: gw0's at once, a session's at once or when it goes on.
 *
 * vnet_gateway_to_session of gateway.h is here.
 */
#ifndef VNET_GATEWAY_WIRE_H
#define VNET_GATEWAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_packet;

int gateway_wire_start(struct vnet_gateway *g, struct err *e);
void gateway_wire_to_inner(struct vnet_gateway *g, const struct vnet_packet *p);
/* Is anything held for a session, frozen or with no room? */
bool gateway_wire_waits(const struct vnet_gateway *g, uint32_t session);
/* What has been held for a session is written, as far as there is room, or thrown away. */
void gateway_wire_flush(struct vnet_gateway *g, uint32_t session);
void gateway_wire_forget(struct vnet_gateway *g, uint32_t session);

/*
 * @data has packets, as GatewayRequest.unsent has them, that were written to a session's TUN and have not
 * come there: they come before what is held.  False: it makes no sense, and what of it did is there.
 */
bool gateway_wire_take_back(
	struct vnet_gateway *g, uint32_t session, const uint8_t *data, size_t len);

/*
 * @p, of a neighbour, is for a session that is suspended: it is written when that is back, once,
 * however often it comes.  True: it is what its sender tries again and again, and will give up if
 * nobody answers; all that is before it has come to the session.
 */
bool gateway_wire_keep(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p);

/*
 * The session goes on in another kernel, to which what is held for it will be written if it does so
 * within seconds: all but what only the one before could take.
 */
void gateway_wire_hand_over(struct vnet_gateway *g, uint32_t session);

#endif
