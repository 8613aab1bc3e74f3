/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream - a carrier on a byte stream that is private and whole already: ssh, TLS, a socket pair.
 *
 *     "podrun packets 1"   16 bytes, once in each direction
 *     frame                 u32 length | u16 0 | virtio_net_hdr (10 bytes) | packet | zeros
 *
 * Numbers are little endian.  `length` is that of the packet; zeros fill it up to a multiple of
 * 8, so that packets lie in the buffer as they are needed and none is copied.  A frame of length
 * 0 says nothing (it keeps a line open).  Super-packets stay whole and checksums partial, for
 * nothing between the ends changes a byte.
 *
 * What is wrong ends the carrier: a stream that has lost its place once is not to be trusted with
 * lengths again.  Packets that are not well formed inside of their frames are dropped.
 */
#ifndef VNET_TUNNEL_STREAM_H
#define VNET_TUNNEL_STREAM_H

#include "vnet/tunnel/carrier.h"

#define VNET_STREAM_MAGIC "podrun packets 1" /* 16 bytes, without a NUL */
#define VNET_STREAM_HEAD  16
#define VNET_STREAM_OUT	  (512 << 10) /* bytes that wait to be written, at most */

struct vnet_stream_options {
	struct vnet_carrier_owner owner;
	int in, out;	    /* may be the same; are the carrier's from then on, and non-blocking */
	uint64_t keepalive; /* nanoseconds between frames that say nothing; 0: none */
};

/* The descriptors are closed on failure, too. */
int vnet_stream_open(struct vnet_carrier **ret, const struct vnet_stream_options *o, struct err *e);

#endif
