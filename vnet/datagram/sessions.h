/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sessions - what the datagram half of the gateway asks whoever holds the sessions.
 *
 * Nothing of it is kept: it is asked for at each use, so that a session which moves, is held or
 * gets another name needs no word here.  Sessions have numbers that are theirs as long as they
 * have connections here, also while they are suspended.
 */
#ifndef VNET_DATAGRAM_SESSIONS_H
#define VNET_DATAGRAM_SESSIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct vnet_packet;

/* A session's names.  An address of zeros is one it has not. */
struct vnet_datagram_session {
	const char *name; /* borrowed until something changes */
	struct in_addr address4, gateway4, physical4;
	struct in6_addr address6, gateway6, physical6;
	/* They lead to services on this host's loopback. */
	struct in_addr loopback4;
	struct in6_addr loopback6;
	bool link_local; /* it may reach what vnet_endpoint_is_of_host() says */
	uint16_t mtu;	 /* of its TUN, bytes */
	bool held;	 /* frozen or away: nothing can be given to it now */
};

struct vnet_datagram_sessions {
	/* False if there is none of that number. */
	bool (*get)(void *data, uint32_t id, struct vnet_datagram_session *ret);
	/*
	 * Another session of this gateway by its name in any case, or by its physical address
	 * (family AF_INET or AF_INET6).
	 */
	bool (*by_name)(void *data, const char *name, uint32_t *ret);
	bool (*by_physical)(void *data, int family, const void *address, uint32_t *ret);
	/* Gives a packet to a session that is not held (one that is: it may be lost). */
	void (*to_session)(void *data, uint32_t id, struct vnet_packet *p);
	/* The last of a session's conversations has aged (vnet_datagram_count).  May be NULL. */
	void (*idle)(void *data, uint32_t id);
};

#endif
