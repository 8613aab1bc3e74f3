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
 * (tcp_fin.c).
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
/* Fills @m (initialised); *ret_received is the length of the receive queue. */
int tcp_live_dump(int fd, struct Pb__TcpLive *m, uint64_t *ret_received, struct err *e);
/* Both queues, as they were told by tcp_live_dump. */
int tcp_live_read(
	int fd, const struct Pb__TcpLive *m, uint64_t received, struct buf *ret, struct err *e);

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
/* A connected socket in repair mode, with empty queues. */
int tcp_live_make(
	struct ckpt_build *b, const struct Pb__Tcp *m, struct tcp_sizes *sizes, struct err *e);
/* Data of the record, in order; more than the record has announced is -EBADMSG. */
int tcp_live_data(struct tcp_live *l, int fd, const struct Pb__Tcp *m, uint64_t offset,
	const uint8_t *data, size_t len, struct err *e);
int tcp_live_link(struct tcp_live *l, int fd, const struct Pb__Tcp *m, struct err *e);
/* Ends repair mode; before the late options. */
int tcp_live_finish(struct tcp_live *l, int fd, const struct Pb__Tcp *m, struct err *e);
/* Of SYN_SENT, before its connect(2). */
int tcp_live_number_syn(int fd, const struct Pb__TcpLive *m, struct err *e);

/* Of an IPv4 address in its form in IPv6: what it is on the wire.  Others stay. */
void tcp_live_unmap(union ckpt_sockaddr *a);

/* ---- the peer's FIN (tcp_fin.c) -------------------------------------------------------------- */

/* What of a segment matters here; numbers as in RFC 9293. */
struct tcp_fin {
	const union ckpt_sockaddr *from, *to; /* of one family */
	uint32_t seq, ack;
	uint16_t window; /* scaled */
};
/* Lets such a segment arrive in the network namespace of the caller, who may make raw sockets
 * there. */
int tcp_fin_send(const struct tcp_fin *fin, struct err *e);

#endif
