/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * socket - datagrams in runs: one system call moves as many as the kernel can be told of at once.
 *
 * Out: datagrams of one size to one receiver lie behind one another and are sent as one run that
 * the kernel (or the network card) cuts up (UDP_SEGMENT); a shorter one ends a run.  Where that
 * is refused they are sent one by one with sendmmsg.  In: the kernel may have put a run together
 * again (UDP_GRO), and recvmmsg brings several.
 *
 * One socket serves both families where there is IPv6.
 */
#ifndef VNET_TUNNEL_SOCKET_H
#define VNET_TUNNEL_SOCKET_H

#include "vnet/endpoint.h"

struct err;
struct vnet_socket;

#define VNET_SOCKET_MAX 65507 /* the longest datagram or run (RFC 768, in IPv4) */

struct vnet_socket_options {
	uint16_t port; /* 0: any */
	bool no_runs;  /* as on a kernel without UDP_SEGMENT and UDP_GRO */
};

/* One or more datagrams from one sender: @segment bytes each, the last may be shorter. */
struct vnet_socket_run {
	struct vnet_endpoint from;
	uint8_t *data;
	size_t len, segment;
};

int vnet_socket_open(struct vnet_socket **ret, const struct vnet_socket_options *o, struct err *e);
void vnet_socket_close(struct vnet_socket *u);
int vnet_socket_fd(const struct vnet_socket *u);
/* Where it is bound. */
uint16_t vnet_socket_port(const struct vnet_socket *u);

/*
 * Room for a datagram of @len bytes to @to, to be filled before the next call.  NULL: the socket
 * takes no more now, and vnet_socket_blocked is true until vnet_socket_flush has got rid of
 * something.
 */
uint8_t *vnet_socket_put(struct vnet_socket *u, const struct vnet_endpoint *to, size_t len);
/* Sends what was put.  What can't be sent at all is lost, as datagrams may be. */
void vnet_socket_flush(struct vnet_socket *u);
/* True while datagrams wait for the socket to be writable. */
bool vnet_socket_blocked(const struct vnet_socket *u);

/*
 * What has come: how many runs (at most VNET_SOCKET_RUNS), valid until the next call; 0: nothing is
 * there.
 */
#define VNET_SOCKET_RUNS 16
unsigned vnet_socket_receive(struct vnet_socket *u, struct vnet_socket_run ret[VNET_SOCKET_RUNS]);

#endif
