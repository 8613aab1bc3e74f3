/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * carrier - how packets get to another host and back: one interface, whatever is in between.
 *
 *     tunnel.h   the WireGuard protocol over UDP
 *     stream.h   packets on a byte stream: ssh, TLS, anything that is a descriptor
 *
 * A carrier has descriptors to watch and a time at which it wants to be called, and no thread or
 * loop of its own:
 *
 *     for (;;) {
 *             poll(vnet_carrier_watch, until vnet_carrier_deadline);
 *             vnet_carrier_run(c);             delivers what came, does what was due
 *             while (a TUN has a packet && vnet_carrier_send(c, to, packet) == 0)
 *                     ;
 *             vnet_carrier_flush(c);
 *     }
 *
 * Packets are super-packets with partial checksums, as TUNs have them; a carrier that can't take
 * them as they are does what is needed.  It keeps a bounded number of bytes: when there is no
 * room, send says -EAGAIN, and who reads the TUN stops reading until vnet_carrier_run has been
 * called again.
 */
#ifndef VNET_TUNNEL_CARRIER_H
#define VNET_TUNNEL_CARRIER_H

#include "vnet/packet.h"

struct err;
struct vnet_carrier;

/* Peers have numbers from 0; a carrier with one peer has only that. */
#define VNET_CARRIER_BY_ADDRESS UINT32_MAX /* as a receiver: whoever has the packet's destination */
#define VNET_CARRIER_NEVER	UINT64_MAX /* as a deadline */

/*
 * What a carrier tells its owner.  Packets are parsed, may be changed, and are gone after the
 * call.
 */
struct vnet_carrier_owner {
	void (*deliver)(void *ctx, uint32_t from, struct vnet_packet *p);
	void *ctx;
};

struct vnet_carrier_watch {
	int fd; /* -1: none */
	bool read, write;
};

struct vnet_carrier_ops {
	int (*send)(struct vnet_carrier *c, uint32_t to, const struct vnet_packet *p);
	void (*flush)(struct vnet_carrier *c);
	struct vnet_carrier_watch (*watch)(struct vnet_carrier *c, unsigned which);
	uint64_t (*deadline)(struct vnet_carrier *c);
	int (*run)(struct vnet_carrier *c, struct err *e);
	void (*close)(struct vnet_carrier *c);
};

/* The first member of each implementation. */
struct vnet_carrier {
	const struct vnet_carrier_ops *ops;
	struct vnet_carrier_owner owner;
};

/*
 * Takes the parsed packet @p to peer @to, or keeps it until that can be done.  0; -EAGAIN: no
 * room now; -EHOSTUNREACH: nobody has that address, or it is not known where the peer is;
 * -EMSGSIZE.
 */
static inline int vnet_carrier_send(
	struct vnet_carrier *c, uint32_t to, const struct vnet_packet *p)
{
	return c->ops->send(c, to, p);
}

/* After a number of sends: now they go. */
static inline void vnet_carrier_flush(struct vnet_carrier *c)
{
	c->ops->flush(c);
}

/*
 * What to wait for: @which is 0 to VNET_CARRIER_WATCHES - 1.  Whether there is something to write
 * may change with each call of something else; the descriptors stay.
 */
#define VNET_CARRIER_WATCHES 2
static inline struct vnet_carrier_watch vnet_carrier_watch(struct vnet_carrier *c, unsigned which)
{
	return c->ops->watch(c, which);
}

/* When vnet_carrier_run is to be called at the latest, in nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t vnet_carrier_deadline(struct vnet_carrier *c)
{
	return c->ops->deadline(c);
}

/* Does what can be done now.  0, or a negative errno when nothing will ever come or go any more. */
static inline int vnet_carrier_run(struct vnet_carrier *c, struct err *e)
{
	return c->ops->run(c, e);
}

/* Accepts NULL. */
static inline void vnet_carrier_close(struct vnet_carrier *c)
{
	if (c)
		c->ops->close(c);
}

#endif
