/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remote - sessions whose way out is a tunnel: `--gateway wg:FILE`, a WireGuard server anywhere.
 */
#ifndef VNET_GATEWAY_REMOTE_H
#define VNET_GATEWAY_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_packet;

/* Before sessions are taken up. */
int gateway_remote_start(struct vnet_gateway *g, struct err *e);
/*
 * Opens what the session's record says (`remote`), if it says anything.  @again: a worker was
 * killed, and what it had open may not be free yet; then it is tried until it is.  ERR_STATE: the
 * key is in use.
 */
int gateway_remote_open(struct vnet_gateway *g, uint32_t session, bool again, struct err *e);
/* Nothing happens if it has none. */
void gateway_remote_close(struct vnet_gateway *g, uint32_t session);
/* Takes the parsed packet if it goes that way; false: it is for this gateway. */
bool gateway_remote_take(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p);
/* After a number of packets. */
void gateway_remote_flush(struct vnet_gateway *g, uint32_t session);

#endif
