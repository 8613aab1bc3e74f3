/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outsidenet - a host outside, for sessions of tests whose network is virtual.
 *
 *      session's network                 pump, a process            network of its own
 *      net0 10.171.0.2  TUN  ===>   read, write   ===>   TUN  10.200.0.1, a peer that listens
 *           fd7a::2                                                  fd7a:1::1
 *
 * The peer speaks a line, then bytes.  "ID SEND FIN": it sends SEND bytes of outsidenet_byte(),
 * then perhaps its end (FIN 1), reads nothing until it is told to, then all up to the end;
 * without FIN it then says "bye" and ends.  ID 0 is its controller: "go" lets the others read;
 * "result ID" is answered with how many bytes ID has sent it, in a line, once it has read all, or
 * -1 if they were not those of outsidenet_byte(); "datagram PORT" sends one there; "call PORT"
 * makes it connect to the session.  "echo": sends back what it gets.
 *
 * What goes to the port OUTSIDENET_DEAF is lost until packets have been held back once.
 */
#ifndef TESTS_LIB_OUTSIDENET_H
#define TESTS_LIB_OUTSIDENET_H

#include <stdbool.h>
#include <stddef.h>

#define OUTSIDENET_PORT	    7000
#define OUTSIDENET_DEAF	    7777
#define OUTSIDENET_HOST4    "10.200.0.1"
#define OUTSIDENET_HOST6    "fd7a:1::1"
#define OUTSIDENET_SESSION4 "10.171.0.2"
#define OUTSIDENET_SESSION6 "fd7a::2"
#define OUTSIDENET_MAX	    4096 /* IDs */

static inline unsigned char outsidenet_byte(size_t place)
{
	return (unsigned char)(place * 2654435761u >> 24);
}

struct outsidenet {
	int pump; /* commands */
};

/* Exits with a message where that is impossible.  Both processes end with the caller. */
void outsidenet_make(struct outsidenet *o);
/* Gives a session whose namespaces these are its net0.  Packets are held back until
 * outsidenet_hold(o, false). */
void outsidenet_attach(struct outsidenet *o, int ns_user, int ns_net);
/* In effect when it returns. */
void outsidenet_hold(struct outsidenet *o, bool on);

#endif
