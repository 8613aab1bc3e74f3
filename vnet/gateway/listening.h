/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * listening - at which TCP ports does a session listen?  What sockets has it?
 */
#ifndef VNET_GATEWAY_LISTENING_H
#define VNET_GATEWAY_LISTENING_H

#include <stdint.h>

#include "vnet/gateway/arena.h"

struct inet_diag_msg;

#define GATEWAY_PORT_BYTES (65536 / 8)

/*
 * A bit in @ret for each port where somebody outside the session would reach a listener, as the
 * session's diag socket says.  0 or a negative errno.
 */
int gateway_listening_ports(const struct gateway_session *s, uint8_t ret[GATEWAY_PORT_BYTES]);

/*
 * Calls @fn for each TCP socket of both families in @states (bits, 1 << TCP_*) that @diag, a
 * session's, knows of.  0 or a negative errno.
 */
typedef void gateway_diag_fn(void *ctx, const struct inet_diag_msg *m);
int gateway_diag_walk(int diag, uint32_t states, gateway_diag_fn *fn, void *ctx);

#endif
