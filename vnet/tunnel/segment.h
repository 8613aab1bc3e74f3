/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * segment - a super-packet cut into the packets that go over a wire, as a network card would do it.
 *
 * Each gets headers of its own and a whole checksum, for who receives it may be anybody.  A packet
 * that is no super-packet is one segment, whose checksum is completed if it was partial.
 */
#ifndef VNET_TUNNEL_SEGMENT_H
#define VNET_TUNNEL_SEGMENT_H

#include "vnet/packet.h"

/* How many segments the parsed packet @p makes: 1 or more. */
unsigned vnet_segment_count(const struct vnet_packet *p);
/* How long segment @i is, with its headers. */
size_t vnet_segment_length(const struct vnet_packet *p, unsigned i);
/* Writes segment @i to @ret (of that length, any alignment). */
void vnet_segment_write(const struct vnet_packet *p, unsigned i, uint8_t *ret);

#endif
