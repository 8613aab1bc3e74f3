/* SPDX-License-Identifier: GPL-2.0-or-later */
/* udp - datagrams of sessions by UDP sockets of the host. */
#ifndef VNET_DATAGRAM_UDP_H
#define VNET_DATAGRAM_UDP_H

#include <stdint.h>

struct vnet_datagram;
struct vnet_datagram_session;
struct vnet_endpoint;
struct vnet_mapping;
struct vnet_packet;

/* A whole UDP packet (or run of datagrams) of a session to the outside. */
void vnet_udp_from_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, struct vnet_packet *p);
/* Sends what waits for more. */
void vnet_udp_flush(struct vnet_datagram *d);
/* A mapping's socket is readable; its session takes packets. */
void vnet_udp_ready(
	struct vnet_datagram *d, struct vnet_mapping *m, const struct vnet_datagram_session *s);
/* Gives the session a datagram, or a run of them, from @from as the session knows it. */
void vnet_udp_to_session(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *from, const struct vnet_endpoint *to, uint8_t *payload,
	size_t len, uint16_t segment);

#endif
