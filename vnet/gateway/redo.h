/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * redo - an inbound connection that no program had accepted when its session was suspended begins
 * anew.
 */
#ifndef VNET_GATEWAY_REDO_H
#define VNET_GATEWAY_REDO_H

#include <stdint.h>

struct err;
struct vnet_endpoint;
struct vnet_gateway;

/*
 * @client as the session saw it; @received (a file, read from its beginning) is what the session's
 * kernel had of it. -ENOENT: there is no such connection.
 */
int gateway_redo_flow(struct vnet_gateway *g, uint32_t session, const struct vnet_endpoint *client,
	uint16_t port, int received, struct err *e);

#endif
