/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * veth - a session's end of a pair of interfaces whose other end is in its gateway's inner network
 * namespace.
 *
 * Whoever owns the user namespaces of both, the supervisor, makes the pair when the gateway asks
 * for it, and routes those connections into it that the gateway names.  Everything else, and
 * everything while the session stands still, goes by net0.
 */
#ifndef VNET_VETH_H
#define VNET_VETH_H

#include <stdbool.h>

#include "vnet/endpoint.h"

struct err;
struct vnet_netlink;
struct vnet_veth;

/* The interface's name in a session. */
#define VNET_VETH_NAME "podrun1"
/* Connections of one session. */
#define VNET_VETH_MAX 32

/* Either end of a pair is to be used, with packets as large as those of net0. */
int vnet_veth_up(struct vnet_netlink *nl, int index, struct err *e);

/*
 * A pair between the network namespaces of two descriptors, which stay the caller's; @peer is what
 * the gateway's end is called.  One that is left from before is no more.  -EPERM and others where
 * the kernel or the host does not allow it.
 */
int vnet_veth_new(struct vnet_veth **ret, int session_ns, int gateway_ns, const char *peer,
	unsigned int mtu, struct err *e);
/* What the session sends of this connection goes by the pair, or no more. */
int vnet_veth_fast(struct vnet_veth *v, const struct vnet_endpoint *inside,
	const struct vnet_endpoint *outside, bool on, struct err *e);
/* Nothing goes by it any more once this returns.  Accepts NULL. */
void vnet_veth_slow(struct vnet_veth *v);
/* Accepts NULL.  The pair stays as long as one of the namespaces. */
void vnet_veth_free(struct vnet_veth *v);

#endif
