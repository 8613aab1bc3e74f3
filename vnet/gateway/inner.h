/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inner - the gateway's inner network namespace: gw0, the gate, and sockets made in there.
 */
#ifndef VNET_GATEWAY_INNER_H
#define VNET_GATEWAY_INNER_H

struct err;
struct vnet_gateway;

/* At a worker's start: afterwards the arena has gw_tun, gate and gate_port. */
int gateway_inner_start(struct vnet_gateway *g, struct err *e);
/*
 * A TCP socket of the inner namespace, unbound, non-blocking, the caller's; for IPv4 too (as
 * ::ffff:1.2.3.4, if the arena says v6).  -EAGAIN: there is none just now, more are being made.
 */
int gateway_inner_socket(struct vnet_gateway *g);

#endif
