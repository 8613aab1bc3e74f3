/* SPDX-License-Identifier: GPL-2.0-or-later */
/* meeting - what the ends of a tunnel beside a line (vnet/direct.h) tell each other by it. */
#ifndef VNET_MEETING_H
#define VNET_MEETING_H

#include "vnet/direct.h"

struct Pb__GatewayTunnel;

/*
 * Where ssh has gone, as sshd tells whom it starts: the address to which somebody has come (@own),
 * or the one from which.  Empty: nobody has said.
 */
void vnet_meeting_address(bool own, char ret[INET6_ADDRSTRLEN]);
/* Into an unpacked message, in place of what it has.  -ENOMEM. */
int vnet_meeting_put(struct Pb__GatewayTunnel *m, const struct vnet_direct_end *end);
/* Where it says that it is on this host, or on many, it has no address.  -EBADMSG: it is no end. */
int vnet_meeting_take(struct vnet_direct_end *ret, const struct Pb__GatewayTunnel *m);

#endif
