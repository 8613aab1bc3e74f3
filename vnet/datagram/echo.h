/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * echo - ICMP echo ("ping") of sessions by ping sockets of the host, and what else of ICMP
 * concerns the gateway.
 */
#ifndef VNET_DATAGRAM_ECHO_H
#define VNET_DATAGRAM_ECHO_H

#include <stdint.h>

struct vnet_datagram;
struct vnet_datagram_session;
struct vnet_mapping;
struct vnet_packet;

/* Any ICMP packet of a session to the outside, or to the gateway. */
void vnet_echo_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, struct vnet_packet *p);
/* A mapping's ping socket is readable; its session takes packets. */
void vnet_echo_ready(
	struct vnet_datagram *d, struct vnet_mapping *m, const struct vnet_datagram_session *s);

#endif
