/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coalesce - segments that came over a wire put together to super-packets again, for a TUN.
 *
 * The kernel does the same behind its network cards (GRO), but what comes out of a tunnel never
 * passes one, and a write to a TUN costs the same for 64 KB as for 1400 bytes.  Segments of one
 * TCP connection are joined if a cut of the result would give exactly them again: the same
 * headers, consecutive sequence numbers, equal sizes but for the last, right checksums.  UDP
 * datagrams likewise, where the TUN takes them.
 *
 * Packets of one connection stay in order.  Nothing waits: whoever has added all he has got calls
 * vnet_coalesce_flush.
 */
#ifndef VNET_TUNNEL_COALESCE_H
#define VNET_TUNNEL_COALESCE_H

#include "vnet/packet.h"

struct vnet_coalesce;

/* Gets each packet, parsed, with vh set; it may change it, and keep it until it returns. */
typedef void vnet_coalesce_fn(void *ctx, uint32_t from, struct vnet_packet *p);

struct vnet_coalesce_options {
	bool tcp, udp; /* what may be joined */
	vnet_coalesce_fn *deliver;
	void *ctx;
};

/* NULL: no memory. */
struct vnet_coalesce *vnet_coalesce_new(const struct vnet_coalesce_options *o);
void vnet_coalesce_free(struct vnet_coalesce *c);

/*
 * Where the next packet is to be put (VNET_PACKET_MAX bytes and VNET_COALESCE_SLACK for who
 * decrypts into it), then adds it; @p is where it was put, parsed.  @from is handed on, and never
 * joined with another.
 */
#define VNET_COALESCE_SLACK 64
uint8_t *vnet_coalesce_room(struct vnet_coalesce *c);
void vnet_coalesce_add(struct vnet_coalesce *c, uint32_t from, const struct vnet_packet *p);
/* Delivers all that was added, in the order in which their first parts came. */
void vnet_coalesce_flush(struct vnet_coalesce *c);

#endif
