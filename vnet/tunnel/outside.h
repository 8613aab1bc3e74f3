/* SPDX-License-Identifier: GPL-2.0-or-later */
/* outside - what a tunnel asks of those outside, and what it tells them. */
#ifndef VNET_TUNNEL_OUTSIDE_H
#define VNET_TUNNEL_OUTSIDE_H

#include "vnet/endpoint.h"

struct vnet_tunnel_clock {
	uint64_t (*monotonic)(void *ctx); /* nanoseconds, never 0 */
	uint64_t (*real)(void *ctx);	  /* nanoseconds since 1970 */
	void *ctx;
};

struct vnet_tunnel_peer_stats {
	struct vnet_endpoint at;    /* where it is; family 0: not known */
	uint64_t sent, received;    /* bytes of packets */
	uint64_t handshake;	    /* when the last one was complete, monotonic; 0: never */
	uint64_t datagrams_refused; /* authentic, but replayed or not from its addresses */
};

#endif
