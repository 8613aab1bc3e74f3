/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shown - clients of published ports that a session can't see by their own addresses: those on this
 * host's loopback, or with an address that means something else inside.
 *
 *      127.0.0.1:40000 -> the host's 5353, which is the session's 53
 *      the session's 53 gets it from its gateway's address, port 40000, or another if that is taken,
 *      and answers there
 *
 * Nobody is answered who has not asked: a session that may not reach the loopback reaches by this
 * only who has sent to the same published port within the last minutes, and no other port of
 * theirs.
 *
 * The records are in memory that outlives the process.  When all are used the one that was quiet
 * for longest goes.
 */
#ifndef VNET_DATAGRAM_SHOWN_H
#define VNET_DATAGRAM_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "vnet/endpoint.h"

#define VNET_SHOWN    256
#define VNET_SHOWN_MS (5 * 60 * 1000) /* as long as any other conversation */

struct vnet_shown {
	uint32_t state; /* 0: free */
	uint32_t port;	/* index of the published port's mapping */
	struct vnet_endpoint client;
	uint16_t as; /* the gateway's port */
	uint64_t used_ms;
};

/*
 * @client has sent to the published port @port: the gateway's port by which the session sees him; 0
 * for one that nobody could answer (a link-local address of IPv6, whose interface is not known).
 */
uint16_t vnet_shown_as(struct vnet_shown all[VNET_SHOWN], uint32_t port,
	const struct vnet_endpoint *client, uint64_t now_ms);
/*
 * Who port @as of the gateway's is to the published port @port, in the family that *ret says
 * already; false: nobody.
 */
bool vnet_shown_client(const struct vnet_shown all[VNET_SHOWN], uint32_t port, uint16_t as,
	uint64_t now_ms, struct vnet_endpoint *ret);
/* The port is published no more. */
void vnet_shown_forget(struct vnet_shown all[VNET_SHOWN], uint32_t port);

#endif
