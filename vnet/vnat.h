/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnat - the translator between virtual and physical names (Zap 4.4, MobiDesk 5).  Pure: no I/O, no
 * clock, no locks.
 *
 * A TCP connection of a session is two legs in the gateway.  The *inner* leg runs from the
 * session's kernel, through its TUN, this translator and the gateway's TUN, to a socket in the
 * gateway's inner network namespace; the outer leg is a plain socket of the host, and bytes are
 * spliced between the two sockets.  The translator gives each packet of the inner leg other ends:
 *
 *      on the session's TUN                          on the gateway's TUN
 *      inside  <--------->  outside           =      near  <--------->  far
 *      its virtual address  whom it talks to         its physical       an address of the
 *      and port             (a server, a client)     address, a port    gateway's, with a socket
 *
 * - Physical addresses.  Every session has one of each family, which no other has or has had
 *   lately: 198.18.y.z, made of the number of its record and of how often that was used.  So two
 *   sessions may have the same virtual address, and what is still on its way to an old session
 *   never reaches a new one.
 * - Aliases.  One listener in the gateway takes all outbound connections, whatever their
 *   destination.  So that the two directions of a flow can be told from those of another, `far` is
 *   an *alias* of the destination: a hash of it in 100.64.0.0/10 (fd64::/16), with the listener's
 *   port.  All aliases are local to the gateway's namespace.
 * - The near port is the session's own, unless another destination with the same alias uses it.
 *
 * The life of a flow:
 *
 *      FREE --open--> HELD --release--> OPEN --linger--> LINGER --60 s, or a full table--> FREE
 *                      '---refuse---> FREE  '--drop---> FREE
 *      FREE --inbound---------------> OPEN
 *
 * - An unknown SYN is VNAT_NEW: its caller opens a flow with it, which keeps a copy, and connects
 *   outside.  Retransmissions are swallowed.  What the outside answers is what the session sees:
 *   `release` gives the SYN to the inner leg, `refuse` answers it with a RST or an ICMP error.
 * - FIN and RST are only noted (vnet_flow_ends): the flow ends when its owner says so, who has the
 *   sockets. It lingers then, so that late packets find their way, until a new connection with the
 *   same ends, time, or want of room takes its record.
 * - Anything else that is unknown gets a RST, as from a host that has forgotten the connection.
 *
 * While a session is *away* (suspended) what the gateway sends it is not written anywhere.  The
 * oldest segment that nobody has acknowledged is kept, cut to a few bytes, and `replay` gives it
 * out once when the session is back: the answer makes the gateway's kernel go on at once, which
 * otherwise might try again only in two minutes.
 *
 * Memory.  Everything that has to outlive the process - sessions and flows - is in the *arena*,
 * which the caller provides (zeroed at first) and which may be shared with a keeper.  A worker may
 * be killed between any two instructions: a record is in use only if its state says so, and the
 * state is written last.  Indexes (hash chains, the free list, the order of lingering flows) are in
 * memory of the process's own, built from the records by vnet_vnat_new, which frees what was
 * half-made.
 *
 * Numbers that come from outside are 32-bit indexes of records; 0 is a valid one, VNET_NONE none.
 */
#ifndef VNET_VNAT_H
#define VNET_VNAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vnet/packet.h"

struct err;

#define VNET_NONE UINT32_MAX

/*
 * Limits.  A session may have that many flows, lingering ones not counted, so that none can use up
 * the table.
 */
#define VNET_SESSION_FLOWS 32768
/* Seconds for which a flow that has ended is remembered: as long as Linux keeps TIME_WAIT. */
#define VNET_LINGER 60
/* Of a SYN, or of the oldest segment of a session that is away. */
#define VNET_KEPT 192
/* For whoever owns a flow: descriptors, fill of pipes ... */
#define VNET_OWNER 96

/*
 * Where physical addresses and aliases are: to be routed to gw0, and to be local, in the inner
 * namespace.
 */
#define VNET_PHYSICAL_V4      0xc6120000u /* 198.18.0.0/15: no network uses it (RFC 2544) */
#define VNET_PHYSICAL_V4_BITS 15
#define VNET_ALIAS_V4	      0x64400000u /* 100.64.0.0/10 */
#define VNET_ALIAS_V4_BITS    10
#define VNET_PHYSICAL_V6      "fd65::" /* /16 */
#define VNET_ALIAS_V6	      "fd64::" /* /16 */
#define VNET_V6_BITS	      16

/* Of whom a session of this gateway knows, or knew; most are somebody else, which the first bits tell. */
static inline bool vnet_endpoint_may_be_physical(const struct vnet_endpoint *ep)
{
	if (ep->family == AF_INET)
		return (ntohl(ep->v4.s_addr) ^ VNET_PHYSICAL_V4) >> (32 - VNET_PHYSICAL_V4_BITS) ==
		       0;
	return ep->v6.s6_addr[0] == 0xfd && ep->v6.s6_addr[1] == 0x65; /* VNET_PHYSICAL_V6 */
}

enum vnet_flow_state {
	VNET_FLOW_FREE,
	VNET_FLOW_HELD,
	VNET_FLOW_OPEN,
	VNET_FLOW_LINGER,
};

/* What was seen of a flow, in both directions (struct vnet_flow, seen). */
enum {
	VNET_SEEN_FIN_INSIDE = 1,  /* the session has no more to say */
	VNET_SEEN_FIN_OUTSIDE = 2, /* the gateway's kernel has no more to say */
	VNET_SEEN_RST_INSIDE = 4,
	VNET_SEEN_RST_OUTSIDE = 8,
	VNET_SEEN_REPLY =
		16, /* the session has answered an inbound SYN, or the gateway an outbound one */
};

struct vnet_flow {
	_Atomic uint8_t state; /* enum vnet_flow_state; written last */
	uint8_t seen;
	bool inbound;
	bool kept_valid; /* kept is a whole packet */
	uint32_t session;
	/* How often the record was used: tells a flow from a later one with its number. */
	uint32_t generation;
	uint32_t used; /* the clock's seconds at its last packet, or when it began to linger */
	struct vnet_endpoint inside, outside; /* as the session sees it */
	struct vnet_endpoint near, far;	      /* as the inner leg has it */
	uint64_t
		owner[VNET_OWNER / 8]; /* zeros when the flow is made; the translator never looks */
	/* HELD: the SYN.  Away: the oldest segment for the session, translated. */
	struct virtio_net_hdr kept_vh;
	uint16_t kept_len;
	_Alignas(4) uint8_t kept[VNET_KEPT];
};

/* Packets and bytes (of IP packets) as the session's interface sees them. */
struct vnet_counters {
	uint64_t out_packets, out_bytes, in_packets, in_bytes;
	uint64_t dropped;  /* malformed, or from or to addresses that nobody has */
	uint64_t answered; /* by a RST of ours: no such connection */
	uint64_t flows;	   /* opened so far, both directions */
};

struct vnet_session {
	_Atomic uint8_t state; /* 0 free, 1 in use; written last */
	bool away;
	uint32_t generation;	     /* how often the record was used */
	uint32_t n_flows;	     /* HELD and OPEN; counted anew by vnet_vnat_new */
	struct vnet_endpoint v4, v6; /* virtual; family 0: none */
	struct vnet_endpoint physical_v4, physical_v6; /* made by vnet_session_add */
	struct vnet_counters counters;
};

struct vnet_vnat;

/* How many bytes of arena so many records need; both are powers of two, at most 4096 and 2^20. */
size_t vnet_vnat_size(uint32_t max_sessions, uint32_t max_flows);

/*
 * A translator over @arena, which is zeroed or was one's before with the same numbers, aligned to a
 * page.  @gate_v4 and _v6 are the ports of the listeners in the inner namespace.  The arena stays
 * the caller's, and outlives it.  -ENOMEM; -EINVAL if the arena is of another size or layout.
 */
int vnet_vnat_new(void *arena, uint32_t max_sessions, uint32_t max_flows, uint16_t gate_v4,
	uint16_t gate_v6, struct vnet_vnat **ret, struct err *e);
void vnet_vnat_free(struct vnet_vnat *v);

/* The caller's clock, in seconds, monotonic also from one process to the next (CLOCK_MONOTONIC). */
void vnet_vnat_set_clock(struct vnet_vnat *v, uint32_t now);

/*
 * Sessions.  The record @session, which the caller chooses and which is free (-EBUSY), gets virtual
 * addresses (NULL: none of that family) and new physical ones.
 */
int vnet_session_add(struct vnet_vnat *v, uint32_t session, const struct vnet_endpoint *v4,
	const struct vnet_endpoint *v6);
/* NULL if it is not in use. */
struct vnet_session *vnet_session_get(struct vnet_vnat *v, uint32_t session);
/* Forgets the session and its flows.  Their owner has closed what he has. */
void vnet_session_remove(struct vnet_vnat *v, uint32_t session);
void vnet_session_set_away(struct vnet_vnat *v, uint32_t session, bool away);

enum vnat_verdict {
	VNAT_DROP, /* nothing is to be done with it */
	VNAT_PASS, /* rewritten: to be written on the other side */
	VNAT_NEW,  /* the SYN of an unknown connection: vnet_flow_open, or vnet_packet_make_rst */
	VNAT_DATAGRAM, /* UDP, ICMP, or a fragment of these: not for the translator; unchanged */
	VNAT_ANSWER,   /* @p is now what is to be written back to where it came from */
};

/*
 * A parsed packet that came out of the session's TUN.  *ret_flow is its flow, if that is known, or
 * VNET_NONE.
 */
enum vnat_verdict vnet_vnat_from_session(
	struct vnet_vnat *v, uint32_t session, struct vnet_packet *p, uint32_t *ret_flow);
/*
 * A parsed packet that came out of the gateway's TUN; with VNAT_PASS *ret_session is whose TUN gets
 * it.
 */
enum vnat_verdict vnet_vnat_from_gateway(
	struct vnet_vnat *v, struct vnet_packet *p, uint32_t *ret_session, uint32_t *ret_flow);

/* The flow @flow, or NULL if that record is free. */
struct vnet_flow *vnet_flow_get(struct vnet_vnat *v, uint32_t flow);

/*
 * An outbound flow from its SYN, which vnet_vnat_from_session has called new.  HELD; *ret is its
 * number.  -ENOSPC (the table is full, or the session has too many), -EADDRINUSE (no near port is
 * free), -EMSGSIZE (a SYN with headers that no kernel makes).
 */
int vnet_flow_open(
	struct vnet_vnat *v, uint32_t session, const struct vnet_packet *syn, uint32_t *ret);
/*
 * HELD -> OPEN; @p (with a buffer of >= VNET_KEPT bytes) becomes the SYN, to be written to the
 * gateway's TUN.
 */
void vnet_flow_release(struct vnet_vnat *v, uint32_t flow, struct vnet_packet *p);
/*
 * HELD -> FREE; @p becomes what is to be written to the session: a RST, or the ICMP error @icmp if
 * that is not NULL. The buffer has >= 2 * VNET_KEPT bytes.
 */
void vnet_flow_refuse(
	struct vnet_vnat *v, uint32_t flow, const struct vnet_icmp *icmp, struct vnet_packet *p);

/*
 * An inbound flow, before the inner leg connects: the session will see @outside (a client)
 * connecting to @inside (its own address and port), while a socket that is bound to @far connects
 * to *ret_near.  -EADDRINUSE if the session has a connection with these ends, or somebody has @far
 * and near; -ENOSPC.
 */
int vnet_flow_inbound(struct vnet_vnat *v, uint32_t session, const struct vnet_endpoint *outside,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *far,
	struct vnet_endpoint *ret_near, uint32_t *ret);

/*
 * Which flow has the inner leg whose socket says getpeername() = @near and getsockname() = @far?
 * VNET_NONE.
 */
uint32_t vnet_flow_by_inner(
	struct vnet_vnat *v, const struct vnet_endpoint *near, const struct vnet_endpoint *far);
/* Which flow of the session has these ends?  VNET_NONE. */
uint32_t vnet_flow_by_session(struct vnet_vnat *v, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *outside);

/* Has it come to its end as far as packets tell: a FIN from both sides, or a RST? */
bool vnet_flow_ends(const struct vnet_flow *f);
/* Its owner has closed what he had.  HELD -> FREE, OPEN -> LINGER. */
void vnet_flow_linger(struct vnet_vnat *v, uint32_t flow);
/* -> FREE at once: the next packet of it is unknown. */
void vnet_flow_drop(struct vnet_vnat *v, uint32_t flow);

/*
 * Flows of @session (VNET_NONE: of all) in order of number: @flow is VNET_NONE at first.  VNET_NONE
 * at the end.
 */
uint32_t vnet_flow_next(struct vnet_vnat *v, uint32_t session, uint32_t flow);

/*
 * Frees what has lingered for VNET_LINGER seconds; returns in how many the next will have, or
 * UINT32_MAX.
 */
uint32_t vnet_vnat_expire(struct vnet_vnat *v);

/*
 * For a session that is back: @p (>= VNET_KEPT bytes) becomes the oldest segment that was sent to
 * it while it was away, and is forgotten.  1, or 0 if there was none.
 */
int vnet_flow_replay(struct vnet_vnat *v, uint32_t flow, struct vnet_packet *p);

#endif
