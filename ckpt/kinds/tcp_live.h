/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_live - connections that lead out of the session by a virtual network, kept as they are.
 *
 * Theory of operation
 *
 * The peer is on another host and knows nothing of a move: what it has been told - numbers,
 * windows, options - must hold afterwards.  Repair mode (tcp_repair.h) tells all of that, and
 * takes it.  Whoever carries the session's packets holds them back meanwhile
 * (ckpt_dump_options.hold), so nothing changes while it is read, the peer hears nothing, and what
 * it sends arrives later.  A session that runs on goes on as if nothing had happened.
 *
 *      receive queue    [receive_seq .. + received)
 *      send queue       [send_seq .. + sent) [.. + unsent)
 *
 * A FIN takes a number but is no byte; in the record the numbers are those without.  Afterwards
 * the session's own FIN is sent again by shutdown(2), with the number it had; the peer's, which
 * it does not send again once it was acknowledged, is a packet that the builder makes
 * (tcp_peer.c).
 *
 *      ESTABLISHED             queues
 *      CLOSE_WAIT              queues, the peer's FIN
 *      FIN_WAIT1, FIN_WAIT2    queues, own FIN
 *      LAST_ACK                queues, the peer's FIN, own FIN
 *      CLOSING                 queues, own FIN, the peer's FIN
 *      SYN_SENT                the initial number: the same SYN is sent again
 *
 * Restore: create with room for the queues, then numbers, connect(2) in repair mode, options;
 * data fills the queues; link sets the windows.  Not before finish does repair mode end: what had
 * not been sent is sent, which stays in the network device until the session's packets are let
 * pass, then come the FINs and a probe of the peer's window.
 *
 * A kernel acknowledges what arrives somewhat later, and one that has just been told of it has no
 * reason to: the peer would go on only when it has sent all of it again, 200 ms after the first time
 * or more.  So an old segment, without bytes, is made to arrive from it, and the kernel says, as to
 * whoever sends what it has (RFC 9293 section 3.10.7.4), how far it is.  The probe does not: it is an
 * old segment itself, and what those acknowledge nobody looks at.
 *
 * Lost: segments that came out of order (they are sent again), what the kernel has learned about
 * congestion.  A connection that the session has closed has no descriptor: until the peer has all
 * of it the session is not frozen (tcp_live_check).
 */
#ifndef CKPT_KINDS_TCP_LIVE_H
#define CKPT_KINDS_TCP_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/build.h"
#include "ckpt/kinds/sock.h"

struct Pb__Tcp;
struct Pb__TcpLive;
struct tcp_sizes;

/* ---- dump ------------------------------------------------------------------------------------ */

/* Does the connection of @x, whose other end is not in the session, lead out by a virtual
 * network? */
bool tcp_live_leads_out(const struct ckpt_dump *d, const struct ckpt_inet_diag *x);
/* Likewise by an interface of the host's, so that it can't be kept (ckpt_world.wired)? */
bool tcp_live_is_wired(const struct ckpt_dump *d, const struct ckpt_inet_diag *x);
/* Is it one that the session has closed and the peer has not got all of?  -EAGAIN. */
int tcp_live_check(
	const struct ckpt_dump *d, const struct ckpt_inet_diag_list *list, struct err *e);
/* Both queues, if they have no more than @most bytes: @bytes has all of them, or nothing. */
struct tcp_live_short {
	size_t most;
	struct buf bytes;
};
/*
 * Fills @m (initialised); *ret_received is the length of the receive queue.  Of one that has ended
 * meanwhile nothing but its state, TCP_CLOSE.
 */
int tcp_live_dump(int fd, struct Pb__TcpLive *m, uint64_t *ret_received,
	struct tcp_live_short *both, struct err *e);
/* Appends both queues, of as many bytes as tcp_live_dump has told. */
int tcp_live_read(int fd, uint64_t received, uint64_t sent, struct buf *ret, struct err *e);

/* ---- restore (tcp_live_build.c) -------------------------------------------------------------- */

/* While one is being made. */
struct tcp_live {
	uint64_t filled;
	struct buf unsent;
};
void tcp_live_fini(struct tcp_live *l);

/* Does @m, of an image, make sense? */
bool tcp_live_valid(const struct Pb__Tcp *m);
/* What their options are like when they are new; NULL: that is of no use. */
struct ckpt_sock_fresh *tcp_live_fresh(struct ckpt_build *b, const struct Pb__Tcp *m);
/*
 * Sockets that are made from now on have room for the queues of @m, and of those who are alike in
 * that.
 */
void tcp_live_prepare(struct ckpt_build *b, const struct Pb__Tcp *m, struct tcp_sizes *sizes);
bool tcp_live_alike(
	const struct Pb__Tcp *x, const struct Pb__Tcp *y, const struct tcp_sizes *sizes);
/* A connected socket in repair mode, with empty queues.  May run for several at the same time. */
int tcp_live_make(struct ckpt_build *b, const struct Pb__Tcp *m, struct err *e);
/* Data of the record, in order; more than the record has announced is -EBADMSG. */
int tcp_live_data(struct tcp_live *l, int fd, const struct Pb__Tcp *m, uint64_t offset,
	const uint8_t *data, size_t len, struct err *e);
int tcp_live_link(struct tcp_live *l, int fd, const struct Pb__Tcp *m, struct err *e);
struct tcp_peer;
/*
 * Ends repair mode; before the late options.  May run for several at the same time, which share
 * @peer.
 */
int tcp_live_finish(struct tcp_live *l, int fd, const struct Pb__Tcp *m,
	const struct tcp_peer *peer, struct err *e);
/* Of SYN_SENT, before its connect(2). */
int tcp_live_number_syn(int fd, const struct Pb__TcpLive *m, struct err *e);

/* Of an IPv4 address in its form in IPv6: what it is on the wire.  Others stay. */
void tcp_live_unmap(union ckpt_sockaddr *a);

/* ---- what a peer would say (tcp_peer.c) ------------------------------------------------------ */

/* By whom: raw sockets in the network namespace of who opens it, or the failure. */
struct tcp_peer {
	int four, six;
};
void tcp_peer_open(struct tcp_peer *ret);
void tcp_peer_close(struct tcp_peer *p);

/* What of a segment without bytes matters here; numbers as in RFC 9293. */
struct tcp_segment {
	const union ckpt_sockaddr *from, *to; /* of one family */
	uint32_t seq, ack;
	uint16_t window; /* scaled */
	bool fin;
};
/* Lets it arrive in that namespace. */
int tcp_peer_say(const struct tcp_peer *p, const struct tcp_segment *s, struct err *e);

#endif
