/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * removal - interfaces that are wanted no more.
 *
 * The kernel takes 10 to 20 ms to remove an interface: it waits until no CPU looks at it any more, and
 * whoever asked for it waits with it.  The loop carries the packets of all sessions, so a thread
 * asks, one after the other.  A worker that ends before leaves it to the next, which closes what
 * no record holds; an end of a pair goes with its session's network, which connections that
 * nobody ended may keep for minutes.
 */
#ifndef VNET_GATEWAY_REMOVAL_H
#define VNET_GATEWAY_REMOVAL_H

struct vnet_gateway;

/* Closes @fd, which is the removal's from now on: an interface that ends with its descriptor. */
void gateway_removal_close(struct vnet_gateway *g, int fd);
/* Removes the interface @index of the inner network namespace. */
void gateway_removal_link(struct vnet_gateway *g, int index);

#endif
