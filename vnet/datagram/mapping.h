/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapping - which outside socket a session's port has: endpoint-independent mapping, RFC 4787.
 *
 *      session 3, UDP, 10.171.0.2:40000   ->   descriptor 57, whoever it talks to
 *      session 3, echo, id 4711           ->   descriptor 58, a ping socket
 *      session 3, UDP, 10.171.0.2:53      ->   descriptor 40, published as 0.0.0.0:5353
 *
 * The records are in memory that outlives the process (an arena), of fixed size, and hold the
 * descriptors; what finds them - chains, free list, counts - is made again from them by whoever
 * starts anew.  A record is there from the last store to it, of `state`, and gone with the first,
 * of the same.
 */
#ifndef VNET_DATAGRAM_MAPPING_H
#define VNET_DATAGRAM_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/endpoint.h"

#define VNET_MAPPINGS	      8192 /* of all sessions */
#define VNET_MAPPINGS_SESSION 1024 /* of one */
/* How long one is kept after the last packet, milliseconds. */
#define VNET_MAPPING_ANSWERED_MS   (5 * 60 * 1000) /* RFC 4787 REQ-5 */
#define VNET_MAPPING_UNANSWERED_MS (30 * 1000)
#define VNET_MAPPING_HELD_MS	   (24 * 60 * 60 * 1000)
#define VNET_MAPPING_BRIEF_MS	   (10 * 1000) /* all it did was ask port 53 */

enum vnet_mapping_kind { VNET_MAPPING_UDP = 1, VNET_MAPPING_ECHO };

struct vnet_mapping {
	uint32_t state; /* 0: free */
	uint32_t session;
	struct vnet_endpoint inside; /* the session's; an echo's id as port */
	uint8_t kind;
	bool published; /* stays until it is taken back */
	bool answered;	/* something has come from outside */
	bool brief;
	struct vnet_endpoint
		outside; /* what it is bound to; of published ones as it was asked for */
	int32_t fd;
	uint64_t used_ms; /* CLOCK_MONOTONIC */
};

struct vnet_mappings;

/*
 * Of @n records at @records, zeroed when they are used for the first time.  Returns NULL without
 * memory.
 */
struct vnet_mappings *vnet_mappings_new(struct vnet_mapping *records, uint32_t n);
/* The records stay as they are.  Accepts NULL. */
void vnet_mappings_free(struct vnet_mappings *t);

/* A published one before others; NULL if there is none. */
struct vnet_mapping *vnet_mappings_find(struct vnet_mappings *t, uint32_t session,
	enum vnet_mapping_kind kind, const struct vnet_endpoint *inside);
/* The next of the same port, or NULL: it may be published several times. */
struct vnet_mapping *vnet_mappings_find_next(
	struct vnet_mappings *t, const struct vnet_mapping *m);
/*
 * A copy of @m, which is not yet in the table; NULL when there is no room.  A session that has
 * its number of mappings (published ones do not count) gets no more.
 */
struct vnet_mapping *vnet_mappings_add(struct vnet_mappings *t, const struct vnet_mapping *m);
/* Its descriptor is the caller's to close now. */
void vnet_mappings_remove(struct vnet_mappings *t, struct vnet_mapping *m);

/*
 * The one to give up for a new one: unused for longest, unanswered ones first; NULL if none can
 * go.
 */
struct vnet_mapping *vnet_mappings_oldest(struct vnet_mappings *t, uint32_t session);
/* @held: its session can't use it at the moment. */
bool vnet_mapping_aged(const struct vnet_mapping *m, uint64_t now_ms, bool held);

/* All there are: the one behind @m, or the first with NULL.  @m may have been removed meanwhile. */
struct vnet_mapping *vnet_mappings_next(struct vnet_mappings *t, const struct vnet_mapping *m);
uint32_t vnet_mappings_index(const struct vnet_mappings *t, const struct vnet_mapping *m);
uint32_t vnet_mappings_count(const struct vnet_mappings *t, uint32_t session);

#endif
