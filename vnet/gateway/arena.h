/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arena - what a gateway's worker knows, in memory that outlives it.
 *
 * The keeper maps the arena before it starts the first worker, and every worker finds it at the
 * same address with all descriptors still open.  A record becomes valid by the last store to it
 * (its `state`, its fd), and invalid by the first; everything else - chains, free lists, timers,
 * the epoll set - is a worker's own and made again from the records.  A descriptor that no record
 * holds is closed or adopted at a worker's start.
 */
#ifndef VNET_GATEWAY_ARENA_H
#define VNET_GATEWAY_ARENA_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "vnet/client.h"
#include "vnet/netlink.h"

#define GATEWAY_REMOTE_MAX    1024
#define GATEWAY_UPDATE_MAX    2048
#define GATEWAY_MAX_SESSIONS  64    /* attached or suspended */
#define GATEWAY_MAX_CONNS     256   /* clients of the control socket */
#define GATEWAY_MAX_FLOWS     16384 /* TCP, of all sessions */
#define GATEWAY_SESSION_FLOWS 4096  /* of one, unless it is told otherwise */
#define GATEWAY_MAX_PIPES     (2 * GATEWAY_MAX_FLOWS)
#define GATEWAY_POOL	      256 /* unbound sockets of the inner namespace */

enum gateway_session_state {
	GATEWAY_SESSION_FREE,
	GATEWAY_SESSION_ATTACHED,
	GATEWAY_SESSION_SUSPENDED,
	/* It is gone, and some of what it sent is still to be read from its TUN, or delivered. */
	GATEWAY_SESSION_ENDING,
};

struct gateway_published {
	bool used;
	struct vnet_port port;
	int32_t fd; /* TCP: bound outside, and listening while the session does; -1: none */
	bool listening;
	bool waits; /* for the session that has the port, and in whose place this one is */
};

struct gateway_counts {
	uint64_t from_packets, from_bytes, to_packets, to_bytes, dropped, refused, opened;
};

/* Addresses that are all zero are none. */
struct gateway_session {
	uint32_t state;
	bool held;
	bool arriving;	   /* by a migrate, until packets pass */
	bool wires;	   /* its client can make a pair of interfaces */
	bool wired;	   /* there may be one, gateway/veth.c */
	uint32_t pairs;	   /* that its client was asked for */
	bool tunnel;	   /* its packets come by one, from another host */
	bool link_local;   /* it may reach the host's link-local addresses */
	int32_t tun, diag; /* -1: none */
	int32_t conn;	   /* index of the control connection, -1 */
	char name[64], id[64];
	char remote[GATEWAY_REMOTE_MAX];     /* the way out is there; empty: here */
	char dns_update[GATEWAY_UPDATE_MAX]; /* vnet/nsupdate.h; empty: nobody is told */
	struct in_addr address4, gateway4, loopback4;
	struct in6_addr address6, gateway6, loopback6;
	uint32_t mtu, max_flows;
	/* The claim that this one has taken up, until packets pass; label 0: none. */
	struct vnet_claim before;
	/* What the next attach must say; the label is the session's for life. */
	struct vnet_claim claim;
	uint64_t since; /* io_now_ns() of the last change of state */
	/* A bit for each session that it has had a TCP packet from or for (gateway/neighbour.h). */
	uint64_t neighbours;
	uint32_t neighbour_flows; /* connections with them, while it is held */
	struct gateway_published ports[VNET_MAX_PORTS];
	struct gateway_counts counts;
	struct vnet_traffic counted; /* of the pair of interfaces, and in counts */
};

/* Packets go to and come from its kernel, if it is not held. */
static inline bool gateway_session_has_kernel(const struct gateway_session *s)
{
	return s->tun >= 0 &&
	       (s->state == GATEWAY_SESSION_ATTACHED || s->state == GATEWAY_SESSION_ENDING);
}

struct gateway_conn {
	bool used;
	int32_t fd;
	int32_t session; /* index, -1 */
	/* Serials of the requests that attached and detached it, and what was answered. */
	uint64_t attached_by, detached_by;
	bool lost;
	uint32_t kept;
};

/*
 * Of a TCP connection what is not the translator's (vnet/vnat.h): same index as its record there.
 */
enum gateway_flow_state {
	GATEWAY_FLOW_FREE,
	GATEWAY_FLOW_CONNECTING, /* outside; the session's SYN is held */
	GATEWAY_FLOW_SHAKING,	 /* outside is there, the inner handshake is under way */
	GATEWAY_FLOW_OPEN,	 /* both are: bytes go both ways */
};

enum gateway_side { GATEWAY_INNER, GATEWAY_OUTER };

struct gateway_flow {
	uint32_t state;
	uint32_t session;
	int32_t fd[2];	 /* by side, -1: none */
	int32_t pipe[2]; /* with bytes on their way from that side; -1: none */
	bool ended[2];	 /* that side has sent its end, and the other has been told */
	bool urgent[2];	 /* that side has sent urgent data, which may not have been passed on */
	bool inbound;
	/* Begun before its session came back, which has sent nothing of it since (outbound.c). */
	bool anew;
	uint8_t asked; /* name servers that were tried, of a question by TCP; else 0 */
	uint64_t since;
};

struct gateway_pipe {
	int32_t fd[2]; /* -1: not made */
	int32_t flow;  /* -1: free */
	uint32_t side; /* where its bytes are from */
};

struct gateway_arena {
	uint8_t identity[VNET_IDENTITY_SIZE];
	int32_t keeper, worker; /* pids */
	uint32_t restarts;
	struct err failure;	     /* why the last worker could not begin */
	int32_t directory, listener; /* vnet/ondemand.h */
	/* The inner namespace, its TUN and its one listener; -1: not made. */
	int32_t inner_ns, gw_tun, gate;
	/* For its interfaces and its packet filter; -1: none, and no pairs of interfaces. */
	int32_t inner_route, inner_rewrite, inner_links;
	uint16_t gate_port;
	bool forwards4, forwards6; /* the namespace, from one interface to another */
	bool v6;		   /* the kernel has IPv6 */
	bool whole;		   /* and takes super-packets that are written to a TUN */
	int32_t pool[GATEWAY_POOL];
	struct gateway_session sessions[GATEWAY_MAX_SESSIONS];
	struct gateway_conn conns[GATEWAY_MAX_CONNS];
	struct gateway_flow flows[GATEWAY_MAX_FLOWS];
	struct gateway_pipe pipes[GATEWAY_MAX_PIPES];
	/* What follows: for the translator, and for datagrams. */
	size_t vnat_offset, datagram_offset, size;
};

/* Zeroed but for what is set here, shared with every process that is cloned later. */
int gateway_arena_new(
	struct gateway_arena **ret, size_t vnat_room, size_t datagram_room, struct err *e);
void *gateway_arena_vnat(struct gateway_arena *a);
void *gateway_arena_datagrams(struct gateway_arena *a);

/* A set of descriptors, to find those that nobody holds. */
struct gateway_fds {
	uint8_t *bits;
	size_t n; /* descriptors below this */
};
void gateway_fds_keep(struct gateway_fds *s, int fd);
/* Everything the arena's own records hold. */
void gateway_arena_keep(const struct gateway_arena *a, struct gateway_fds *s);
/*
 * Calls @stray for each descriptor that is open and not in @s, which closes it or finds a record
 * for it.
 */
int gateway_fds_stray(
	struct gateway_fds *s, void (*stray)(void *ctx, int fd), void *ctx, struct err *e);

#endif
