/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * away_line - the packets, requests and answers of one session, both ways by one byte stream.
 *
 * Theory of operation
 *
 * What lies between a supervisor and its gateway on another host (away.c) passes requests and answers on
 * as they are, in order with the packets, in frames. It looks at requests only to know when packets may
 * be read: between HOLD and GO, and before a session that attaches frozen is told to go, none are, for a
 * kernel whose sockets are being looked at must not be heard.  Since frames stay in order, all that was
 * sent here before the gateway's "held" has been written to the TUN before the supervisor hears of it.
 * What the gateway has written and was not sent yet it gets back, for whoever goes on.
 *
 * In the other direction as well: a session's kernel counts as sent what lies in its TUN, and believes so
 * still where its connections are moved to.  So all of that is read before a HOLD is passed on, and
 * whoever has the gateway gives it what comes by the tunnel, until nothing more does, before he lets it
 * hear of the HOLD.  What was lost on this way would be sent again after a second, for a connection that
 * has just been restored knows no round trip to go by.
 *
 * Descriptors stay where they are.  The TUN is read and written on its host, and the gateway gets a
 * socket that gives and takes a packet a call as a TUN does; a file goes as its contents.
 *
 * The supervisor's end is not that of its session's packets (vnet/gateway/session.c): whoever
 * carries them says so in its place, and goes on until the gateway wants no more.
 *
 * Each process has a thread for each direction, so that a line which is full one way never stops
 * the other. Only the stream is waited for: packets for which a socket has no room are dropped, as
 * a network does.
 *
 * Where the attach says so, packets may go by a tunnel as well (vnet/direct.h).  Whoever carries
 * puts his end of it into the attach; the other side answers with its own, in a frame that one who
 * has not asked never sees.  Requests and answers always go by the stream, and packets with them
 * where their order is a promise: those that the gateway sent before an answer, but of a hold, and the
 * last ones of a session.  What comes by the tunnel between HOLD and GO waits.  The tunnel is of the outgoing
 * thread alone.
 */
#ifndef VNET_AWAY_LINE_H
#define VNET_AWAY_LINE_H

#include <stdbool.h>

struct err;

/* All descriptors are borrowed, but for `theirs`. */
struct vnet_away_line {
	int control; /* to the supervisor, or to the gateway */
	int packets; /* a socket with packets; -1: the TUN that an attach brings */
	int theirs;  /* its other end, for the gateway, which is closed here; or -1 */
	int in, out; /* the stream */
	bool carries; /* the session's side */
	bool called;  /* the side to which ssh has gone */
};

/* Once in a process.  0 at the end of either side, or a negative errno if it could not begin. */
int vnet_away_line(const struct vnet_away_line *l, struct err *e);

/* The empty frame in front of all others that says that a session may be attached now. */
int vnet_away_say_listens(int out);
bool vnet_away_hear_listens(int in);

#endif
