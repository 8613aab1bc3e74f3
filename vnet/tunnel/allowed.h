/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allowed - which peer an address belongs to: the longest prefix that matches wins.
 *
 * The same table says where a packet goes (by its destination) and whether it may come from whom
 * it came (by its source): the paper's cryptokey routing.  A binary tree with one bit per level
 * in one array; links are positions.
 */
#ifndef VNET_TUNNEL_ALLOWED_H
#define VNET_TUNNEL_ALLOWED_H

#include "vnet/endpoint.h"
#include "vnet/tunnel/config.h"

#define VNET_ALLOWED_NOBODY UINT32_MAX

struct vnet_allowed_node;

struct vnet_allowed { /* zeros: empty */
	struct vnet_allowed_node *nodes;
	uint32_t n, room;
};

void vnet_allowed_fini(struct vnet_allowed *t);
/* @peer gets the addresses of @prefix, whoever had them; -ENOMEM. */
int vnet_allowed_add(struct vnet_allowed *t, const struct vnet_prefix *prefix, uint32_t peer);
/* Or VNET_ALLOWED_NOBODY. */
uint32_t vnet_allowed_find(const struct vnet_allowed *t, const struct vnet_endpoint *address);

#endif
