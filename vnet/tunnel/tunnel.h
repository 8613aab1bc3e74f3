/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tunnel - a carrier that speaks WireGuard over UDP, with podrun or with anything else that does.
 *
 * (https://www.wireguard.com/protocol/, and the paper there.)  One tunnel is one key with its
 * peers, as one configuration file has it.
 *
 *     TUN packet -> segment -> AEAD -> run of datagrams -> sendmsg(UDP_SEGMENT)
 *     recvmmsg (UDP_GRO) -> run -> AEAD -> replay window -> coalesce -> TUN packet
 *
 * A peer's packets may come from anywhere; where the last authentic one came from is where
 * answers go (*roaming*). So a session that is resumed on another host needs only to send
 * something.
 *
 * Modules, from the bottom: crypto, message; noise, cookie, flood, replay, index, allowed, stamp,
 * socket, segment, coalesce; device.h (what they work on), timers, handshake, data; tunnel.
 */
#ifndef VNET_TUNNEL_TUNNEL_H
#define VNET_TUNNEL_TUNNEL_H

#include "vnet/tunnel/carrier.h"
#include "vnet/tunnel/config.h"
#include "vnet/tunnel/outside.h"

#define VNET_TUNNEL_MTU \
	1420 /* where the configuration says nothing: fits 1500 with IPv6 and all headers */

struct vnet_tunnel_options {
	struct vnet_carrier_owner owner;
	const char *state; /* a directory for the last time stamp; NULL: in memory only */
	bool no_udp_runs;  /* see socket.h */
	bool no_super_tcp, no_super_udp;       /* what the receiving TUN does not take */
	const struct vnet_tunnel_clock *clock; /* NULL: the system's */
};

/*
 * Opens a UDP socket in the calling thread's network namespace.  Peers are those of @c, in order;
 * one whose endpoint is a name has none until vnet_tunnel_set_endpoint says so, and packets for it
 * wait.  -EBUSY: another live session has the key.
 */
int vnet_tunnel_open(struct vnet_carrier **ret, const struct vnet_config *c,
	const struct vnet_tunnel_options *o, struct err *e);

/* What is only a tunnel's. */
/* The one peer of a tunnel that was opened without any. */
int vnet_tunnel_add_peer(
	struct vnet_carrier *c, const struct vnet_config_peer *peer, struct err *e);
void vnet_tunnel_set_endpoint(
	struct vnet_carrier *c, uint32_t peer, const struct vnet_endpoint *at);
int vnet_tunnel_peer_stats(
	struct vnet_carrier *c, uint32_t peer, struct vnet_tunnel_peer_stats *ret);
uint16_t vnet_tunnel_port(struct vnet_carrier *c);
/* Says hello to peer @peer now (a handshake or a keepalive), so that it knows where we are. */
void vnet_tunnel_greet(struct vnet_carrier *c, uint32_t peer);

#endif
