/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reassemble - fragments of a session's datagrams put together again (RFC 791 3.2, RFC 8200 4.5).
 *
 * A session's kernel cuts UDP and ICMP above the MTU of its interface.  Sockets outside want the
 * whole.  Fragments wait here, a few datagrams at a time, in memory that is bounded for each
 * session and in all; a datagram that is not complete within 30 seconds (as in Linux), or that is
 * the oldest where room is wanted, is forgotten.
 *
 * Fragments that overlap are an attack or a fault: the whole datagram goes (RFC 5722).  The other
 * direction needs nothing of this: a TUN takes packets of any size up to 64 KB for the session.
 */
#ifndef VNET_REASSEMBLE_H
#define VNET_REASSEMBLE_H

#include <stdint.h>

struct vnet_packet;
struct vnet_reassembly;

/* Datagrams under way: of all, and of one session. */
#define VNET_REASSEMBLY_MAX	32
#define VNET_REASSEMBLY_SESSION 8
#define VNET_REASSEMBLY_SECONDS 30

/* NULL without memory. */
struct vnet_reassembly *vnet_reassembly_new(void);
void vnet_reassembly_free(struct vnet_reassembly *r);

/*
 * A parsed packet of @session that is a fragment, at second @now of any clock.  1: @p is the whole
 * datagram, parsed, in its own buffer (of VNET_PACKET_MAX bytes); 0: it waits for others; -EBADMSG:
 * it can't belong to any, and those that it seems to belong to are forgotten; -ENOMEM.
 */
int vnet_reassemble(
	struct vnet_reassembly *r, uint32_t session, uint32_t now, struct vnet_packet *p);

#endif
