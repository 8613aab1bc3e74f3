/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * publish - ports outside that are ports of sessions.
 */
#ifndef VNET_GATEWAY_PUBLISH_H
#define VNET_GATEWAY_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_port;

/* At a worker's start: watches what is published. */
int gateway_publish_start(struct vnet_gateway *g, struct err *e);
/*
 * A port that is published already for the session is no error.  One of the session with the id
 * @replaces (or NULL) is published as soon as that does not publish it any more.
 */
int gateway_publish_add(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p,
	const char *replaces, struct err *e);
int gateway_publish_remove(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p, struct err *e);
/* The session is away, or no more: nothing of it is open outside. */
void gateway_publish_remove_all(struct vnet_gateway *g, uint32_t session);
/* The session runs (again): it will soon listen, and is looked at more often for some time. */
void gateway_publish_expect(struct vnet_gateway *g);
/* It is about to send data: who gets that may know of a port that was not open until now. */
void gateway_publish_said(struct vnet_gateway *g, uint32_t session);
/* A descriptor that nobody holds: taken if a published port had accepted it. */
bool gateway_publish_adopt(struct vnet_gateway *g, int fd);

#endif
