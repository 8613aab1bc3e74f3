/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gather - packets on their way into a TUN that wait, for no longer than a turn, for what comes
 * behind them.
 */
#ifndef VNET_GATEWAY_GATHER_H
#define VNET_GATEWAY_GATHER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_packet;

/* Index of a session, or the inner kernel. */
#define GATEWAY_GATHER_INNER UINT32_MAX

int gateway_gather_start(struct vnet_gateway *g, struct err *e);
/* Before each that is read: will there be more at once, as far as one can tell? */
void gateway_gather_expect(struct vnet_gateway *g, bool more);
/* A translated packet, parsed; the caller's again when this returns. */
void gateway_gather_give(struct vnet_gateway *g, uint32_t to, struct vnet_packet *p);
/* At the end of a turn. */
void gateway_gather_flush(struct vnet_gateway *g);

#endif
