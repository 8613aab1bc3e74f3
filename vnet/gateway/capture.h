/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture - sessions whose packets somebody wants to see.
 */
#ifndef VNET_GATEWAY_CAPTURE_H
#define VNET_GATEWAY_CAPTURE_H

#include <stdint.h>

#include "vnet/gateway/gateway.h"

struct vnet_packet;

int gateway_capture_start(struct vnet_gateway *g, struct err *e);
/*
 * What crosses the session's TUN is written to @fd (taken) from now on, for the client @conn: until
 * it asks for the end, or goes.  One at a time.
 */
int gateway_capture_begin(
	struct vnet_gateway *g, uint32_t session, int conn, int fd, struct err *e);
void gateway_capture_end(struct vnet_gateway *g, uint32_t session);
/* The client has gone. */
void gateway_capture_forget(struct vnet_gateway *g, int conn);

void gateway_capture_write(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p);
struct gateway_captures {
	struct gateway_capture {
		struct vnet_capture *file; /* NULL: nobody looks */
		int conn;
	} sessions[GATEWAY_MAX_SESSIONS];
};
/* On the path of every packet. */
static inline void gateway_capture_packet(
	struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p)
{
	if (g->captures->sessions[session].file)
		gateway_capture_write(g, session, p);
}

#endif
