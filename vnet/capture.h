/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture - what crosses a TUN, as a file that tcpdump and Wireshark read (libpcap's dump format,
 * link type RAW).
 *
 * A capture needs no privilege: its packets come from whoever reads the TUN.  They are as they were
 * there, so super-packets are long, and partial checksums look wrong to a program that has not been
 * told.
 *
 * Capturing never makes the network wait.  What a reader does not take yet (a pipe into tcpdump)
 * waits in memory, up to VNET_CAPTURE_WAITING bytes; packets beyond that are left out and counted.
 */
#ifndef VNET_CAPTURE_H
#define VNET_CAPTURE_H

#include <stdint.h>

struct err;
struct vnet_capture;
struct vnet_packet;

#define VNET_CAPTURE_WAITING (4u << 20)

/*
 * Begins a file on @fd, which the capture owns from here on, also if this fails.  What a file had
 * is gone then, if @fd is at its beginning.
 */
int vnet_capture_open(int fd, struct vnet_capture **ret, struct err *e);

/*
 * A packet, with the time of day.  0; -ENOBUFS if it was left out; other errors when @fd is of no
 * use any more.
 */
int vnet_capture_packet(struct vnet_capture *c, const struct vnet_packet *p);

/* How many packets were left out so far. */
uint64_t vnet_capture_lost(const struct vnet_capture *c);

/*
 * Writes what waits and can be written at once, and closes.  Accepts NULL.  A failure of the last
 * write: -errno.
 */
int vnet_capture_close(struct vnet_capture *c);

#endif
