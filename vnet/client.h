/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * client - what a supervisor, a worker or the command line says to the user's gateway process.
 *
 *      vnet_client_connect(&c, runtime, true, e)       starts a gateway if there is none
 *      vnet_client_attach(c, &attach, tun, diag, e)    sends; never waits
 *      ... event loop: vnet_client_fd(c) readable ...
 *      vnet_client_receive(c, &answer, e) == 1         answer.kind is VNET_ANSWER_ATTACHED
 *
 * Each request gets one answer, in order.  Sending never waits and fails only with the connection.
 * Who may wait uses vnet_client_wait instead of vnet_client_receive.
 *
 * A session is attached as long as the connection lives: closing it without a detach ends the
 * session's connections.  A gateway whose worker was killed goes on with the same connection, and
 * a client does not notice.
 */
#ifndef VNET_CLIENT_H
#define VNET_CLIENT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "vnet/endpoint.h"

#define VNET_TICKET_SIZE   32
#define VNET_IDENTITY_SIZE 16
#define VNET_MAX_PORTS	   32 /* published by one session */

/* What a session's image holds of its gateway (GatewayClaim). */
struct vnet_claim {
	uint32_t label; /* 0: no claim */
	uint64_t epoch;
	uint8_t ticket[VNET_TICKET_SIZE];
	uint8_t gateway[VNET_IDENTITY_SIZE];
};

struct vnet_port {
	uint8_t protocol;	 /* IPPROTO_TCP, IPPROTO_UDP */
	uint8_t family;		 /* of the address: AF_INET, AF_INET6; 0: any */
	struct in6_addr address; /* IPv4 in its first four bytes */
	uint16_t outside, session;
};

/* An address all of whose bytes are zero is none. */
struct vnet_attach {
	const char *name, *id;
	struct in_addr address4, gateway4, loopback4;
	struct in6_addr address6, gateway6, loopback6;
	uint32_t mtu;
	bool link_local;	 /* reach what vnet_endpoint_is_of_host() says */
	bool frozen;		 /* nothing passes before vnet_client_go */
	bool arriving;		 /* by a migrate: whoever attaches with its id before that takes its place */
	struct vnet_claim claim; /* label 0: none */
	struct vnet_port ports[VNET_MAX_PORTS];
	size_t n_ports;
	const char *remote;	/* NULL: this gateway itself */
	const char *dns_update; /* vnet/nsupdate.h; NULL: nobody is told where it is */
	uint32_t max_flows;	/* 0: the gateway's own limit */
	bool wires;		/* VNET_ANSWER_WIRE and _FAST are understood */
	bool tunnel;		/* where the gateway is on another host: by a tunnel as well */
	const char *replaces;	/* id of a session whose ports it gets when that ends; or NULL */
};

enum vnet_answer_kind {
	VNET_ANSWER_FAILED,   /* .failure */
	VNET_ANSWER_ATTACHED, /* .claim, .lost, .flows */
	VNET_ANSWER_FLOWS,    /* of hold, detach and forget: .flows */
	VNET_ANSWER_DONE,
	VNET_ANSWER_SESSIONS, /* .sessions, freed by vnet_answer_fini */
	/* Not asked for, .serial is 0: vnet_veth_new with .netns, closed by vnet_answer_fini, and
	 * .name; then vnet_client_wired.  And vnet_veth_fast with .inside, .outside and .fast. */
	VNET_ANSWER_WIRE,
	VNET_ANSWER_FAST,
	VNET_ANSWER_CARRIER, /* serial 0 as well: .tunnel */
};

struct vnet_answer {
	enum vnet_answer_kind kind;
	uint64_t serial; /* which request's: they count from 1 */
	struct err failure;
	struct vnet_claim claim;
	bool lost; /* somebody else has claimed the connections, or they are gone */
	uint32_t flows;
	/* Of ATTACHED: the host's own towards the internet; zeros: none. */
	struct in_addr outside4;
	struct in6_addr outside6;
	struct Pb__GatewaySessions *sessions;
	int netns;
	char name[16];
	struct vnet_endpoint inside, outside;
	bool fast;
	bool tunnel; /* packets go by it now */
};

struct vnet_client;

/*
 * @runtime: podrun's runtime directory (supervisor/disk/paths.h).  Without a gateway there and
 * @start, `podrun gateway --serve` is executed in the background from the caller's own binary;
 * -ENOENT without @start. Connecting does not wait for it to be up.
 */
int vnet_client_connect(struct vnet_client **ret, const char *runtime, bool start, struct err *e);
/*
 * The same for the gateway of this user on another host, as ssh knows it (vnet/away.h).  What that
 * says goes to the caller's stderr.
 */
int vnet_client_connect_away(struct vnet_client **ret, const char *host, struct err *e);
/*
 * The same for the gateway of the host that session @id (hexadecimal) comes from, which its mover
 * has lent to it.  -ENOENT, with @e unset, if he has not.
 */
int vnet_client_connect_lent(
	struct vnet_client **ret, const char *runtime, const char *id, struct err *e);
/* Goes on with a connection on which all that was asked has been answered; takes @sock in any case. */
int vnet_client_connect_by(struct vnet_client **ret, int sock, struct err *e);
/* Accepts NULL.  Ends what is attached by this connection. */
void vnet_client_free(struct vnet_client *c);
/* Readable when there may be an answer, or the gateway has gone. */
int vnet_client_fd(const struct vnet_client *c);

/*
 * Requests.  All return 0, or a negative errno when the connection is of no use any more. @tun
 * stays the caller's (the gateway gets a duplicate) and must not be read by anybody else.  @diag: a
 * NETLINK_SOCK_DIAG socket made in the session's network namespace, by which the gateway sees where
 * the session listens; -1: published ports listen always.
 */
int vnet_client_attach(
	struct vnet_client *c, const struct vnet_attach *a, int tun, int diag, struct err *e);
/* Nothing passes once this is answered; packets for the session wait, a bounded number of them. */
int vnet_client_hold(struct vnet_client *c, struct err *e);
int vnet_client_go(struct vnet_client *c, struct err *e);
/* @suspended: connections wait for whoever attaches with the claim; else they are reset. */
int vnet_client_detach(struct vnet_client *c, bool suspended, struct err *e);
/* While attached frozen: the inbound connection of @client to @session_port begins anew, the
 * @n bytes at @data coming first. */
int vnet_client_redo(struct vnet_client *c, const struct sockaddr *client, uint16_t session_port,
	const void *data, size_t n, struct err *e);
/*
 * The suspended session that @claim is the claim of will not be resumed: its connections are reset.
 */
int vnet_client_forget(struct vnet_client *c, const struct vnet_claim *claim, struct err *e);
/* The pair of interfaces that was asked for is there, or NULL: it can't be. */
int vnet_client_wired(struct vnet_client *c, const char *name, struct err *e);
/* The session that is attached is called @name from now on. */
int vnet_client_rename(struct vnet_client *c, const char *name, struct err *e);
/* The serial of the last request. */
uint64_t vnet_client_asked(const struct vnet_client *c);
int vnet_client_publish(struct vnet_client *c, const struct vnet_port *p, struct err *e);
int vnet_client_unpublish(struct vnet_client *c, const struct vnet_port *p, struct err *e);
/* @name NULL: all sessions. */
int vnet_client_list(struct vnet_client *c, const char *name, struct err *e);
/*
 * What crosses the session's TUN is written to @fd as pcap, until another call with @fd -1.  @end
 * is the writing end of a pipe, of which the gateway keeps a copy as long; vnet_capture_ended reads
 * why it has ended.
 */
int vnet_client_capture(struct vnet_client *c, const char *name, int fd, int end, struct err *e);
/*
 * Of that pipe, when it can be read from: 0 for the end of the session, -errno of what could not be
 * written, -ENODATA if whoever captured was killed.
 */
int vnet_capture_ended(int pipe);

/* 1 and an answer; 0 when none is there yet; -ECONNRESET when the gateway has gone. */
int vnet_client_receive(struct vnet_client *c, struct vnet_answer *ret, struct err *e);
/* Waits for the next answer: 0.  An answer that is a failure is the error of this call. */
int vnet_client_wait(struct vnet_client *c, struct vnet_answer *ret, struct err *e);
/*
 * What the gateway that runs now has: of @name, or of all (NULL).  0 and ret->sessions, freed by
 * vnet_answer_fini; -ENOENT if there is none, or it ended while it was asked.  Waits.
 */
int vnet_client_look(const char *runtime, const char *name, struct vnet_answer *ret, struct err *e);
void vnet_answer_fini(struct vnet_answer *a);

#endif
