/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * direct - packets from one end of a line to the other past it, by a tunnel, while that works.
 *
 *      vnet_direct_open, vnet_direct_self      what the other end has to know goes by the line
 *      vnet_direct_meet                        what it has said
 *      vnet_direct_send == true                the packet goes by the tunnel; else by the line
 *
 * One end each, of one thread: vnet_direct_watch and vnet_direct_timeout say what to wait for.
 */
#ifndef VNET_DIRECT_H
#define VNET_DIRECT_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct vnet_direct;
struct vnet_packet;

#define VNET_DIRECT_KEY 32

/* What one end is to the other. */
struct vnet_direct_end {
	uint8_t key[VNET_DIRECT_KEY];	/* public */
	uint16_t port;			/* UDP */
	char address[INET6_ADDRSTRLEN]; /* where that is reached; empty: not known */
};

struct vnet_direct_owner {
	void (*deliver)(void *ctx, const struct vnet_packet *p);
	/* From now on packets go by the tunnel, or by the line again. */
	void (*changed)(void *ctx, bool tunnel);
	void *ctx;
};

/* Makes a key, which nobody but this process ever has, and opens a port.  @mtu: of the packets,
 * 1280 to 65535. */
int vnet_direct_open(
	struct vnet_direct **ret, const struct vnet_direct_owner *o, unsigned mtu, struct err *e);
/* Accepts NULL, as all below do that return nothing. */
void vnet_direct_close(struct vnet_direct *d);
/* Its own key and port. */
void vnet_direct_self(const struct vnet_direct *d, struct vnet_direct_end *ret);
/* Once.  -EINVAL: such an end there is not. */
int vnet_direct_meet(struct vnet_direct *d, const struct vnet_direct_end *other, struct err *e);

/*
 * @data is a packet as a TUN gives it, @len bytes with its virtio_net_hdr, the packet itself at a
 * multiple of 4.  False (of NULL as well): it is to go by the line.
 */
bool vnet_direct_send(struct vnet_direct *d, uint8_t *data, size_t len);
/* After a number of them. */
void vnet_direct_flush(struct vnet_direct *d);

/* Between hold and go what comes waits, a bounded number of packets. */
void vnet_direct_hold(struct vnet_direct *d);
void vnet_direct_go(struct vnet_direct *d);

void vnet_direct_watch(struct vnet_direct *d, struct pollfd *ret);
int vnet_direct_timeout(struct vnet_direct *d); /* milliseconds for poll(2); of NULL -1 */
void vnet_direct_run(struct vnet_direct *d);

#endif
