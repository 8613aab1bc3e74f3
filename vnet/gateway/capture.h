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
 * it asks for the end, or goes.  One at a time.  @end (taken) is a pipe that tells the client when
 * it has ended otherwise, as in GatewayCapture.
 */
int gateway_capture_begin(
	struct vnet_gateway *g, uint32_t session, int conn, int fd, int end, struct err *e);
/* @why: 0, or -errno of what could not be written. */
void gateway_capture_end(struct vnet_gateway *g, uint32_t session, int why);
/* The client has gone. */
void gateway_capture_forget(struct vnet_gateway *g, int conn);

void gateway_capture_write(struct vnet_gateway *g, uint32_t session, const struct vnet_packet *p);
struct gateway_captures {
	struct gateway_capture {
		struct vnet_capture *file; /* NULL: nobody looks */
		int conn, end;
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
