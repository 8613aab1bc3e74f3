/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * state - what the parts of the datagram half have in common; private to this folder.
 */
#ifndef VNET_DATAGRAM_STATE_H
#define VNET_DATAGRAM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/datagram/mapping.h"
#include "vnet/datagram/outside.h"
#include "vnet/datagram/resolv.h"
#include "vnet/datagram/sessions.h"
#include "vnet/packet.h"

struct vnet_dns_pending;
struct vnet_shown;

/*
 * In front of a received payload there is room for the headers of a packet, and it stays aligned.
 */
#define VNET_DATAGRAM_HEADROOM 64
#define VNET_DATAGRAM_BUFFER   (VNET_DATAGRAM_HEADROOM + VNET_PACKET_MAX)

/* Whose descriptor is ready: the upper half of the number that epoll gives back, and an index. */
enum vnet_datagram_watch {
	VNET_DATAGRAM_MAPPING,
	VNET_DATAGRAM_DNS,
	VNET_DATAGRAM_DNS_TIMER,
	VNET_DATAGRAM_TIMER,
};

/* Datagrams of one size from one port to one place that wait for more of them. */
struct vnet_datagram_run {
	struct vnet_mapping *mapping; /* NULL: none wait */
	struct vnet_endpoint to;
	struct vnet_outside_how how;
	size_t len;
	unsigned n;
	bool closed; /* the last was a shorter one */
	uint8_t *data;
};

/*
 * By which published port, and at which of the host's addresses, somebody has last sent to a port
 * of a session's: so he is answered.
 */
struct vnet_datagram_via {
	struct vnet_endpoint client; /* as the session sees him */
	struct vnet_endpoint at;
	uint32_t mapping;
};
#define VNET_VIAS 4096 /* by a hash; who has lost his place is answered by any */

struct vnet_datagram {
	const struct vnet_datagram_sessions *sessions;
	void *data; /* theirs */
	int epoll, timer, dns_timer;
	bool ticking;
	struct vnet_mappings *mappings;
	struct vnet_mapping *records;
	struct vnet_dns_pending *pending; /* in the arena */
	struct vnet_shown *shown;	  /* in the arena */
	struct vnet_resolv resolv;
	struct vnet_datagram_run run;
	struct vnet_datagram_via *vias;
	bool no_echo[2]; /* ping sockets are refused, v4 and v6; it has been said */
	uint8_t *in;	 /* VNET_OUTSIDE_BATCH buffers */
	uint8_t *out;	 /* a packet on its way to a session */
	uint64_t dropped;
};

/* CLOCK_MONOTONIC in milliseconds. */
uint64_t vnet_datagram_now(void);
/* Watches @fd (EPOLLIN or EPOLLOUT); a negative errno of epoll_ctl(2). */
int vnet_datagram_watch(struct vnet_datagram *d, int fd, uint32_t events,
	enum vnet_datagram_watch what, uint32_t index);
void vnet_datagram_unwatch(struct vnet_datagram *d, int fd);
/* Something ages: the timer runs from now on. */
void vnet_datagram_tick(struct vnet_datagram *d);

/*
 * The mapping that is like @want, made now if there is none: its socket, and a place in the
 * table, for which another one of the session may have to go.  One from which @to can be reached:
 * a port that is published at the host's loopback leads nowhere else.  Marks it as used.  0 or a
 * negative errno.
 */
int vnet_datagram_mapping(
	struct vnet_datagram *d, const struct vnet_mapping *want, const struct vnet_endpoint *to,
	struct vnet_mapping **ret);
/* Its socket and its record go. */
void vnet_datagram_close(struct vnet_datagram *d, struct vnet_mapping *m);
int vnet_datagram_watch_mapping(struct vnet_datagram *d, struct vnet_mapping *m);

/* The hops a packet of a session has left behind the gateway, > 0. */
uint8_t vnet_datagram_ttl(const struct vnet_packet *p);
/*
 * Where the session's @to is outside.  -ECONNREFUSED: at the gateway, where nothing listens;
 * -EPERM: where sessions may not send to.
 */
int vnet_datagram_outside_of(const struct vnet_datagram_session *s, const struct vnet_endpoint *to,
	struct vnet_endpoint *ret);
/* What the session knows @from as; false if it can't be shown one. */
bool vnet_datagram_inside_of(const struct vnet_datagram_session *s,
	const struct vnet_endpoint *from, struct vnet_endpoint *ret);
/* An address of the session's gateway, without a port. */
struct vnet_endpoint vnet_datagram_gateway(const struct vnet_datagram_session *s, int family);

/* A packet without contents whose buffer is d->out. */
struct vnet_packet vnet_datagram_packet(struct vnet_datagram *d);
/* An ICMP error about the session's packet @about.  @from NULL: the gateway says so. */
void vnet_datagram_refuse(struct vnet_datagram *d, uint32_t session,
	const struct vnet_packet *about, const struct vnet_endpoint *from,
	const struct vnet_icmp *icmp);
/* The same for a negative errno of a send; what means nothing to a session is dropped. */
void vnet_datagram_refuse_errno(
	struct vnet_datagram *d, uint32_t session, const struct vnet_packet *about, int error);

#endif
