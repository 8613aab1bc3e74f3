/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inbound - connections that clients outside make to published ports of a session.
 */
#ifndef VNET_GATEWAY_INBOUND_H
#define VNET_GATEWAY_INBOUND_H

#include <stdint.h>

struct err;
struct vnet_endpoint;
struct vnet_gateway;

int gateway_inbound_start(struct vnet_gateway *g, struct err *e);
/*
 * A client that was accepted outside (@fd is taken) is to be connected with @port of the session.
 */
void gateway_inbound_client(struct vnet_gateway *g, uint32_t session, uint16_t port, int fd,
	const struct vnet_endpoint *client);
/*
 * A connection that is there already (redo.h) is tried again under exactly these names, its bytes
 * in @pipe first. @outer and @pipe are taken on success; the record it had, @old, loses its
 * descriptor of @outer.
 */
int gateway_inbound_again(struct vnet_gateway *g, uint32_t session,
	const struct vnet_endpoint *client, const struct vnet_endpoint *inside, uint32_t old,
	int32_t pipe);

#endif
