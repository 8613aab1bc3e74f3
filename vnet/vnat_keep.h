/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnat_keep - a copy of one TCP segment in a flow's record, cut to what fits: the SYN of a flow
 * that is held, or the oldest segment for a session that is away.
 */
#ifndef VNET_VNAT_KEEP_H
#define VNET_VNAT_KEEP_H

#include "vnet/vnat.h"

/*
 * Keeps headers and at most @payload bytes of @p in place of what was kept.  -EMSGSIZE if the
 * headers alone are too long; then what was kept is kept still.
 */
int vnat_keep(struct vnet_flow *f, const struct vnet_packet *p, size_t payload);

/*
 * Is @p, a segment from the gateway, older than what is kept, or the first, and does it want an
 * answer?
 */
bool vnat_keep_wanted(const struct vnet_flow *f, const struct vnet_packet *p);

/* @p, with a buffer of >= VNET_KEPT bytes, becomes the packet that is kept (kept_valid). */
void vnat_kept(const struct vnet_flow *f, struct vnet_packet *p);

#endif
