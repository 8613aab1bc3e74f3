/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dns - the gateway's port 53: questions of sessions, answered here or by the host's name servers.
 */
#ifndef VNET_DATAGRAM_DNS_H
#define VNET_DATAGRAM_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/endpoint.h"

struct vnet_datagram;
struct vnet_datagram_session;
struct vnet_packet;

#define VNET_DNS_PENDING	 256  /* questions on their way, of all sessions */
#define VNET_DNS_PENDING_SESSION 128  /* of one; beyond that the oldest is given up */
#define VNET_DNS_QUERY		 1024 /* bytes of a question by UDP */
#define VNET_DNS_TRY_MS		 2000 /* for a server, before the next one is asked */
#define VNET_DNS_TRIES		 4    /* and then the session is told that it did not work */

/* A question on its way; in memory that outlives the process. */
struct vnet_dns_pending {
	uint32_t state; /* 0: free */
	uint32_t session;
	struct vnet_endpoint from, to; /* who asked, and which address of the gateway */
	uint16_t id;		       /* the session's; the one in the query is ours */
	uint16_t udp_size;	       /* the longest answer that it takes */
	uint16_t tries;
	int32_t fd;
	uint64_t due_ms;
	uint16_t len;
	uint8_t query[VNET_DNS_QUERY];
};

/* Is it a packet for the gateway's port 53? */
bool vnet_dns_is_for(const struct vnet_datagram_session *s, const struct vnet_packet *p);
void vnet_dns_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, const struct vnet_packet *p);
/* Question @index has an answer, or an error. */
void vnet_dns_ready(struct vnet_datagram *d, uint32_t index);
/* The timer for questions has run out. */
void vnet_dns_expire(struct vnet_datagram *d);
/*
 * Watches all that are on their way: at the start, or those of one session that takes packets
 * again.
 */
void vnet_dns_start(struct vnet_datagram *d);
void vnet_dns_go(struct vnet_datagram *d, uint32_t session);
void vnet_dns_forget(struct vnet_datagram *d, uint32_t session);

#endif
