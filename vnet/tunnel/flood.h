/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flood - is somebody making us compute?  How many handshakes come altogether, and from each
 * address.
 *
 * A response costs five multiplications on a curve.  Above FLOOD_PER_SECOND the tunnel is *busy*:
 * it answers with cookies (cookie.h), and an address that has one still gets no more than
 * FLOOD_PER_ADDRESS in a second.  The table has a fixed size; addresses that share a bucket share
 * what it has.
 */
#ifndef VNET_TUNNEL_FLOOD_H
#define VNET_TUNNEL_FLOOD_H

#include "vnet/endpoint.h"

#define VNET_FLOOD_PER_SECOND  100
#define VNET_FLOOD_PER_ADDRESS 20
#define VNET_FLOOD_BURST       5
#define VNET_FLOOD_BUCKETS     1024

struct vnet_flood { /* zeros: nothing has come; seed is anything unpredictable */
	uint64_t seed;
	uint64_t window; /* since when is counted */
	unsigned count;
	uint64_t busy_until;
	uint64_t spent[VNET_FLOOD_BUCKETS]; /* when each has all its tokens again */
};

/*
 * One more at @now (nanoseconds).  True while we are busy, which lasts a second longer than the
 * flood.
 */
bool vnet_flood_count(struct vnet_flood *f, uint64_t now);
/* False if @from (a /64 of IPv6) has had its share. */
bool vnet_flood_allow(struct vnet_flood *f, const struct vnet_endpoint *from, uint64_t now);

#endif
