/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tun - a TUN device: a network interface whose wire is a descriptor.
 *
 * What a kernel sends out of the interface is read here, one packet per call, and what is written
 * here arrives on it.  With IFF_VNET_HDR every packet has a struct virtio_net_hdr in front, and
 * with TUNSETOFFLOAD the kernel leaves segmentation and checksums to whoever reads: packets of 64
 * KB come in one piece (see packet.h).
 *
 * An interface belongs to the network namespace of the thread that opens it, and goes when its last
 * descriptor is closed (whatever namespace holds that).  The opener needs CAP_NET_ADMIN in the user
 * namespace that owns the network namespace; reading and writing needs nothing but the descriptor.
 *
 * Sources: Documentation/networking/tuntap.rst.
 */
#ifndef VNET_TUN_H
#define VNET_TUN_H

#include <stdbool.h>

#include "vnet/packet.h"

struct err;

/* An interface as podrun makes them; what is 0 is left out. */
struct vnet_interface {
	const char *name;	     /* "net0" */
	unsigned int mtu;	     /* VNET_MTU */
	struct vnet_endpoint v4, v6; /* its own addresses; family 0: none */
	bool default_routes; /* everything goes out here, for each family that has an address */
};

/* The session's for life: a restored connection's segment size can't shrink. */
#define VNET_MTU 1420
/*
 * Headers of segments included, a super-packet cut to pieces still fits one UDP GSO send of 65507
 * bytes.
 */
#define VNET_GSO_MAX 61440
/*
 * Packets that wait for their reader: what is more is lost, and whoever has many connections sends some
 * packets on each at once, when they go on after a move, and does it again a second later.  No limit of
 * a socket's holds for them, and each may have 60 KB.  A place is 8 bytes of the kernel's.
 */
#define VNET_QUEUE 16384

/*
 * Opens the TUN @name in the calling thread's network namespace, with virtio headers and all
 * offloads that the kernel has.  Returns a descriptor (non-blocking, closed on exec) or a negative
 * errno; ERR_HOST without /dev/net/tun.
 */
int vnet_tun_open(const char *name, struct err *e);

/*
 * The same, and makes it an interface that works: addresses (without neighbours, and without
 * waiting for duplicates), MTU, the largest super-packet, routes, up.  Returns the descriptor.
 */
int vnet_tun_make(const struct vnet_interface *want, struct err *e);

/*
 * The next packet into p->data[0..p->room); sets vh and len, and doesn't parse.  0, -EAGAIN
 * (nothing there), -EBADFD (the interface is gone), other errors of readv.
 */
int vnet_tun_read(int fd, struct vnet_packet *p);

/*
 * Writes vh and the packet.  0; -EAGAIN if the reader's memory is full; -EINVAL from kernels that
 * refuse super-packets (see vnet_tun_probe); -EIO while the interface is down.
 */
int vnet_tun_write(int fd, const struct vnet_packet *p);

/*
 * Does this kernel take super-packets that are written?  Some of 2024 don't (e269d79c7d35, fixed by
 * 89add40066f9).  Writes one to a TUN that is up, from an address that nobody has to 240.0.0.1,
 * where nobody is.  1, 0, or a negative errno.
 */
int vnet_tun_probe(int fd);

/*
 * Tells the kernel to hand over no packets larger than the MTU (@on false), as vnet_tun_probe may
 * make necessary of the TUN at the other end, or what it did before.  Checksums stay partial.
 */
int vnet_tun_set_segmentation(int fd, bool on, struct err *e);

#endif
