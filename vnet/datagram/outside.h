/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outside - the host's sockets for datagrams, as an ordinary user has them.
 *
 * UDP sockets are not connected, so that one serves a session's port whoever it talks to.  Ping
 * sockets (icmp(7)) send echo requests and receive the replies to them; the kernel chooses the
 * id.  Both are told of ICMP errors by the error queue (IP_RECVERR), with the address of who sent
 * it.
 */
#ifndef VNET_DATAGRAM_OUTSIDE_H
#define VNET_DATAGRAM_OUTSIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "vnet/endpoint.h"

/*
 * A run of datagrams that is sent or received at once is at most this long: what a UDP datagram
 * can be.
 */
#define VNET_OUTSIDE_MAX      65507
#define VNET_OUTSIDE_SEGMENTS 64 /* UDP_MAX_SEGMENTS before Linux 6.9 */

/*
 * A non-blocking UDP socket bound to @at (its port may be 0); *@at is what it is bound to then. 
 * Returns it, or a negative errno.  An IPv6 socket takes IPv6 only.
 */
int vnet_outside_udp(struct vnet_endpoint *at);
/*
 * A ping socket of AF_INET or AF_INET6; -EACCES if net.ipv4.ping_group_range does not have our
 * group.
 */
int vnet_outside_ping(int family);

struct vnet_outside_how {
	uint16_t segment; /* cut into datagrams of so many bytes; 0: it is one */
	uint8_t ttl;	  /* 0: as the host does */
	struct vnet_endpoint from; /* which of the host's addresses; family 0: as it does */
};

/*
 * Sends to @to.  0, or a negative errno; -EAGAIN if there is no room, and what was not sent is
 * lost, as on any wire.  A pending error of an earlier datagram is not returned: it stays on the
 * queue.
 */
int vnet_outside_send(int fd, const struct vnet_endpoint *to, const void *data, size_t len,
	const struct vnet_outside_how *how);

/* Received datagrams: @n messages with a buffer of @room bytes each. */
struct vnet_outside_message {
	struct vnet_endpoint from;
	struct vnet_endpoint at; /* the host's address it came to, of a published port; or family 0 */
	uint8_t *data;
	size_t len;
	uint16_t segment; /* a run of datagrams of that size; 0: it is one */
};
#define VNET_OUTSIDE_BATCH 16
/*
 * How many came (at most VNET_OUTSIDE_BATCH); 0 when there are none.  .data is given by the
 * caller, with @room bytes.
 */
int vnet_outside_receive(int fd, struct vnet_outside_message *m, unsigned n, size_t room);

struct vnet_outside_error {
	struct vnet_endpoint to;   /* who the datagram was for */
	struct vnet_endpoint from; /* who says so; family 0: this host */
	uint8_t type, code;	   /* ICMP or ICMPv6, by the family of `to` */
	uint32_t rest;		   /* for the ICMP header, network order: an MTU */
	size_t len;		   /* of what is known of the datagram, in the caller's buffer */
};
/* The next ICMP error.  1; 0 when there is none.  What the session need not know is passed over. */
int vnet_outside_error(int fd, void *data, size_t room, struct vnet_outside_error *ret);

#endif
